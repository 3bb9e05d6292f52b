"""The fork screen runs: from the recording, live on loopback, stopped, broken; beside its parent to the verdict."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import talking
from claude_session import SessionLines
from fakellm import Call, FakeLLM, Scenario, Step
from forked import TOOLS, at, ended, fork_screen, forked, home_of_its_own, in_box, runs_of, words, wrote
from looptape.sample_traces import demo
from looptape.tracer import process
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, memory_store, open_store
from looptape.tui.data.source import StoreSource
from looptape.tui.screens.fork.running import ForkRun
from looptape.tui.screens.fork.watch import ForkWatch
from tui_driver import Seat, drive
from tui_fakes import EVIL


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield from home_of_its_own(tmp_path, monkeypatch)


@pytest.fixture
def run(home: Path) -> str:
    return talking.record(home, talking.ANTHROPIC, talking.loop())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    steps = [Step(text="Once more", calls=[Call("search", {"q": "new"}, "toolu_new1")]), Step(text="It is 90.")]
    with FakeLLM({"a": Scenario(steps)}) as running:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.url("a"))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k-" + "test-1")
        yield running


def test_a_sample_run_goes_on_from_its_recording_at_once_and_ends_with_a_verdict(home: Path) -> None:
    tape = next(t for t in demo.tapes() if t.name == "revenue.jsonl")
    with open_store(home) as store:
        import_path(store, tape)
        parent = store.runs(Filter(limit=1))[0]

    async def steps(seat: Seat) -> None:
        await seat.press("escape", "enter", "j", "r")  # by keys, from the list of runs
        await seat.settle()
        await seat.press("ctrl+r")
        await ended(seat)
        assert "✓ completed" in seat.text
        assert f"model calls {parent.turns - 1} of {parent.turns - 1}" in seat.text
        assert "live: nothing; no request was sent" in seat.text
        assert "the same as its parent to the end" in seat.text
        assert " = " in seat.text
        assert " ≠ " not in seat.text
        assert f"fork, turn {parent.turns}" in seat.text
        await seat.press("enter")
        assert f"{parent.turns}" in seat.lines[0] + seat.lines[1]
        assert seat.app.screen.__class__.__name__ == "RunScreen"
        await seat.press("escape", "d")
        assert seat.app.screen.__class__.__name__ == "CompareScreen"
        await seat.press("escape", "escape")
        assert "Asks the model for turn 2" in seat.text

    fork_screen(home, parent.id, 1, steps)
    child = forked(home)
    assert (child.parent.run, child.parent.turn, child.status) == (parent.id, 2, "completed")


def test_nothing_reaches_a_network_without_a_yes_that_names_it(
    home: Path, run: str, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fork_screen_tools.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("fork_screen_tools", None)
    host = server.url("a").split("/")[2]

    async def steps(seat: Seat) -> None:
        await at(seat, "live tools from")
        await seat.press("enter", "p")
        await wrote(seat, "fork_screen_tools:TOOLS")
        await seat.press("enter")
        await seat.settle()
        await seat.press("k", "enter", "l", "k", "enter", "l")
        await seat.press("ctrl+r")
        told = in_box(seat)
        assert f"This sends requests to {host} as claude-sonnet-4-5 (about $0.0009 a turn" in told
        assert "and runs search for real." in told
        await seat.press("escape")
        await seat.press("ctrl+r", "enter")  # what stands first is no
        assert not seat.app.screen.query_one(ForkWatch).running
        assert server.log == []
        await seat.press("ctrl+r", "y")
        await ended(seat)
        assert "search LIVE" in seat.text
        assert "live: 2 model calls, 1 tool call" in seat.text
        assert "first divergence: turn 2 " in seat.text
        assert "It is 90." in seat.text

    fork_screen(home, run, 2, steps)
    assert len(server.log) == 2
    assert sys.modules["fork_screen_tools"].RAN == ["new"]
    assert server.log[1]["body"]["messages"][-1]["content"][0]["content"] == "really new"
    child = forked(home)
    assert (child.status, child.turns) == ("completed", 3)


def test_an_edited_request_is_what_the_model_gets_and_the_rest_is_as_recorded(
    home: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = "keep\u202e this\x1b[2J \r\nexactly\u2028 ‹U+001B›"
    run = talking.record(home, talking.ANTHROPIC, talking.loop(system=odd))
    server.scenarios["a"] = Scenario([Step(text="It is 90.")])

    async def steps(seat: Seat) -> None:
        await seat.press("enter", "l")
        await at(seat, "[1] user")
        await seat.press("e")
        await wrote(seat, "Please: ")
        await seat.press("ctrl+s", "ctrl+r", "y")
        await ended(seat)
        assert "✓ completed" in seat.text

    fork_screen(home, run, 1, steps)
    body = server.log[0]["body"]
    assert body["messages"][0]["content"] == "Please: What is 7% of the revenue?"
    assert body["system"] == odd
    with open_store(home) as store:
        events = [e for e in store.events(forked(home).id) if e.kind == "fork"]
    assert "Please: What is 7%" in str(events[0].detail)


def test_ctrl_r_right_after_another_turn_was_chosen_starts_that_turn_or_nothing(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        seat.app.screen.action_turn(1)  # in one breath: what stands on the screen is still turn 2
        seat.app.screen.action_start()
        await ended(seat)
        assert "turn 3 of 4" in seat.lines[0]

    fork_screen(home, run, 2, steps)
    assert forked(home).parent.turn == 3


def test_a_yes_starts_what_was_asked_about_and_nothing_newer(home: Path, run: str, server: Any) -> None:
    async def steps(seat: Seat) -> None:
        await at(seat, "model")
        await seat.press("enter", "l")
        screen = seat.app.screen
        await seat.press("ctrl+r")
        assert "sends requests to" in in_box(seat)
        screen.change(replace(screen.sketch.order, model="openai:http://127.0.0.1:9/v1"))
        await seat.settle()
        await seat.press("y")
        await ended(seat)
        assert "✓ completed" in seat.text or "halted" in seat.text
        assert "127.0.0.1:9" not in seat.text

    fork_screen(home, run, 2, steps)


def test_a_miss_names_the_difference_and_what_to_do(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await at(seat, "system")
        await seat.press("e")
        await wrote(seat, "Hm. ")
        await seat.press("ctrl+s", "ctrl+r")
        await ended(seat)
        assert "✗ halted" in seat.text
        assert "system was 'You look things up.'" in words(seat)
        assert "Esc goes back to the plan: say there who answers" in seat.text
        await seat.press("escape")
        assert "1 edit" in seat.lines[0]

    fork_screen(home, run, 2, steps)


def test_a_stub_answers_and_the_results_differ(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("j", "enter", "s", "ctrl+s", "ctrl+r")
        await ended(seat)
        assert "search stub" in seat.text
        assert "stubbed: 1 tool call" in seat.text
        assert "first divergence: turn 2 gets other results" in seat.text
        assert "LIVE" not in seat.text

    fork_screen(home, run, 2, steps)


def test_ctrl_x_stops_it_and_the_record_says_by_whom(home: Path, run: str, server: Any) -> None:
    gate = threading.Event()
    slow = Step(text="slow " * 20, calls=[Call("search", {"q": "revenue 2"}, "toolu_a")], pause_after=1, gate=gate)
    server.scenarios["a"] = Scenario([slow, Step(text="never")])

    async def steps(seat: Seat) -> None:
        await at(seat, "max_tokens")
        await seat.press("e", "ctrl+a", "ctrl+k")
        await wrote(seat, "20000")  # so many are streamed
        await seat.press("ctrl+s", "g", "enter", "l", "ctrl+r", "y")
        await seat.met(slow.reached.is_set, settle=False)
        assert "turn 2 is running" in seat.text
        assert "◌ running" in seat.text
        await seat.press("ctrl+r")
        assert "it runs already" in seat.text
        await seat.press("enter")
        assert "it still runs" in seat.text
        await seat.press("q")
        assert "the fork still runs" in seat.text
        await seat.press("s", "ctrl+x")
        assert "Stopping: it ends with the answer or call that is on its way." in seat.text
        gate.set()
        await ended(seat)
        assert "■ halted" in seat.text
        assert "user:" in seat.text

    fork_screen(home, run, 2, steps)
    assert len(server.log) == 1
    child = forked(home)
    assert child.status == "halted"
    assert "user" in (child.reason or "")


def test_leaving_while_it_runs_asks_and_stops_it(home: Path, run: str, server: Any) -> None:
    gate = threading.Event()
    slow = Step(text="slow " * 20, calls=[Call("search", {"q": "revenue 2"}, "toolu_a")], pause_after=1, gate=gate)
    server.scenarios["a"] = Scenario([slow, Step(text="never")])

    async def steps(seat: Seat) -> None:
        await at(seat, "max_tokens")
        await seat.press("e", "ctrl+a", "ctrl+k")
        await wrote(seat, "20000")
        await seat.press("ctrl+s", "g", "enter", "l", "ctrl+r", "y")
        await seat.met(slow.reached.is_set, settle=False)
        going = seat.app.screen.query_one(ForkWatch)._fork
        assert going is not None
        await seat.press("q", "l")
        assert "run on from" not in seat.text
        await seat.met(lambda: going.stopping)  # the screen is taken down behind the one that is seen
        gate.set()
        await asyncio.to_thread(going._thread.join, 60)

    fork_screen(home, run, 2, steps)
    assert len(server.log) == 1
    assert forked(home).status == "halted"


def test_a_fork_whose_app_is_gone_without_a_word_ends_as_it_would_have(home: Path, run: str) -> None:
    def nobody(_message: object) -> None:
        raise RuntimeError("Event loop is closed")

    async def steps(seat: Seat) -> None:
        going = ForkRun(seat.app.source, seat.app.screen.sketch.ready, nobody)
        going.begin()
        await asyncio.to_thread(going._thread.join, 60)
        assert not going._thread.is_alive()

    fork_screen(home, run, 2, steps)
    assert (forked(home).status, forked(home).turns) == ("completed", 4)


def test_a_refused_key_is_one_line_and_the_app_goes_on(home: Path, run: str, server: Any) -> None:
    server.scenarios["a"] = Scenario([Step(text="x", errors=[{"kind": "auth", "message": "no such key"}])])

    async def steps(seat: Seat) -> None:
        await seat.press("enter", "l", "ctrl+r", "y")
        await ended(seat)
        assert "✗ failed" in seat.text
        assert "no such key" in seat.text
        await seat.press("escape", "j")
        assert "Will run live" in seat.text

    fork_screen(home, run, 2, steps)


def test_what_cannot_begin_says_why_and_leaves_no_run(home: Path, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("enter", "o")
        await wrote(seat, "scripted:nowhere.json")
        await seat.press("enter", "ctrl+r")
        await ended(seat)
        assert "! " in seat.text
        assert "nowhere.json" in seat.text
        await seat.press("enter")
        assert "there is no new run to open here" in seat.text

    fork_screen(home, run, 2, steps)
    assert len(runs_of(home)) == 1


def test_with_recording_off_it_says_what_to_unset(home: Path, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPTAPE", "off")

    async def steps(seat: Seat) -> None:
        await seat.press("ctrl+r")
        await ended(seat)
        assert "recording is off. Unset LOOPTAPE=off" in seat.text

    fork_screen(home, run, 2, steps)


def test_an_imported_session_lists_what_it_lacks_before_it_starts(home: Path, tmp_path: Path) -> None:
    session = SessionLines()
    session.user("What is 7% of the revenue?")
    session.answer("m1", {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "revenue"}})
    session.result("c1", "1200")
    session.answer("m2", "It is 84.")
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(session.lines) + "\n")
    with open_store(home) as store:
        import_path(store, path)
    run = runs_of(home)[0].id

    async def steps(seat: Seat) -> None:
        assert "The recording lacks: no system prompt in the recording" in seat.text
        assert "at the top of the list" in seat.text
        assert "! no system prompt in the recording" in seat.line("lacks")
        assert "! no tool definitions" in seat.text
        await at(seat, "tools seen")
        await seat.press("enter")
        assert "offered, derived from the arguments seen" in seat.chosen
        assert "! no tool definitions" not in seat.text
        await seat.press("u")
        await seat.press("ctrl+r")
        await ended(seat)
        assert "✓ completed" in seat.text

    fork_screen(home, run, 2, steps, size=(200, 50))


def test_a_run_of_a_tape_file_is_forked_into_the_store(home: Path) -> None:
    tape = next(t for t in demo.tapes() if t.name == "revenue.jsonl")
    store = memory_store()
    import_path(store, tape)
    parent = store.runs(Filter(limit=1))[0]
    from contextlib import nullcontext

    from looptape.tui.place import Place

    async def steps(seat: Seat) -> None:
        seat.app.open_fork(Place(parent.id, 2))
        await seat.settle()
        await seat.settle()
        await seat.press("ctrl+r")
        await ended(seat)
        assert "✓ completed" in seat.text
        assert "The new run is in your store: looptape show " in seat.text
        await seat.press("enter", "d")
        assert "run on from" in seat.text

    drive(StoreSource(home, place="revenue.jsonl", opener=lambda: nullcontext(store)), steps)
    active = process.replace(None)
    if active is not None:
        active.at_exit()
    assert [r.source for r in runs_of(home)] == ["fork"]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_whatever_the_texts_hold_nothing_acts_and_it_runs(home: Path, size: tuple[int, int]) -> None:
    evil = "".join(c for c in EVIL if not "\ud800" <= c <= "\udfff")
    run = talking.record(home, talking.ANTHROPIC, talking.loop(system=evil, text=evil), title=evil)

    async def steps(seat: Seat) -> None:
        seen = []
        for _ in range(24):
            seen.append(seat.text)
            await seat.press("j")
        await at(seat, "system")
        await seat.press("e")
        seen.append(seat.text)
        await seat.press("escape", "ctrl+r")
        await ended(seat)
        seen.append(seat.text)
        for text in seen:
            assert not any(c in text for c in "\x1b\x07\x9b\x9d\u202e\u2066\x00\x08")
        assert "✓ completed" in seat.text

    fork_screen(home, run, 2, steps, size=size)
