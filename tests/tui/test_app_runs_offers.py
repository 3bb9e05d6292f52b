"""What the empty list offers is done from the screen: sessions of this machine come in, the demo is made and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

import small_tape
from claude_session import SessionLines
from looptape.tracer.errors import LooptapeError
from looptape.tracer.store import Filter, open_store
from looptape.tui.data import demo_store, sessions
from looptape.tui.data.source import StoreSource
from looptape.tui.widgets.welcome import Welcome
from tui_driver import Seat, drive
from tui_fakes import FakeSource, shop


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with three Claude Code sessions, and a store that is the user's own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "store"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    for number in range(3):
        session(tmp_path, number)
    return tmp_path


def session(home: Path, number: int) -> None:
    lines = SessionLines(f"00000000-0000-4000-8000-00000000000{number}")
    lines.user(f"Please mend part {number}")
    lines.answer(f"msg{number}", "It is mended.", stop="end_turn")
    lines.write(home / ".claude" / "projects" / "-home-kim" / f"{lines.session}.jsonl")


def source(home: Path) -> StoreSource:
    return StoreSource(home / "store", place="~/here")


def test_i_brings_in_what_was_found_and_keeps_it_in_step(machine: Path) -> None:
    async def steps(seat: Seat) -> None:
        assert "3 Claude Code sessions" in seat.text
        await seat.press("i")
        await seat.until("3 runs from 3 session files; kept in step from now on")
        assert "3 runs" in seat.lines[0]
        assert "claude-code" in seat.text or "mend part" in seat.text
        session(machine, 7)
        await seat.until("4 runs")

    drive(source(machine), steps)
    assert sessions.remembered() == [machine / ".claude" / "projects"]
    with open_store(machine / "store") as store:
        assert store.count(Filter()) == 4


def test_with_runs_in_the_list_i_asks_first_and_says_when_all_is_in_step(machine: Path) -> None:
    with open_store(machine / "store") as store:
        store.ingest(small_tape.records())

    async def steps(seat: Seat) -> None:
        await seat.press("i")
        assert "import 3 Claude Code sessions" in seat.text
        await seat.press("n")
        assert sessions.remembered() == []
        await seat.press("i", "enter")
        await seat.until("kept in step from now on")
        assert "4 runs" in seat.lines[0]
        await seat.press("i")
        assert "1 folder kept in step already" in seat.text

    drive(source(machine), steps)


def test_what_is_kept_in_step_already_is_not_offered_again(machine: Path) -> None:
    with open_store(machine / "store") as store:
        store.ingest(small_tape.records())
    sessions.remember(machine / ".claude" / "projects")
    codex = machine / ".codex" / "sessions" / "rollout.jsonl"
    codex.parent.mkdir(parents=True)
    codex.write_text("{}\n")

    async def steps(seat: Seat) -> None:
        await seat.press("i")
        offer = seat.line("and keep in step")
        assert "import 1 Codex session" in offer
        assert "Claude" not in offer

    drive(source(machine), steps)


def test_without_sessions_i_says_so_and_names_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "store"))

    async def steps(seat: Seat) -> None:
        await seat.press("i")
        assert "no Claude Code or Codex sessions on this machine. looptape import PATH" in seat.text

    drive(source(tmp_path), steps)


def test_the_list_of_another_store_takes_no_sessions() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("i")
        assert "sessions go into your own store" in seat.text

    drive(shop(), steps)


def test_d_on_an_empty_list_makes_the_demo_and_shows_it_and_q_leads_back(machine: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("d")
        await seat.until("where-is-my", seconds=120)
        assert "looptape demo" in seat.lines[0]
        assert str(machine / "store" / "demo") in seat.text
        await seat.press("enter")
        assert "1 GENERATE" in seat.text or seat.app.screen.query("#turns")
        await seat.press("q")
        await seat.press("D")
        assert "this is the demo" in seat.text
        await seat.press("q")
        assert "Nothing recorded yet." in seat.text
        assert seat.app.source.home == machine / "store"

    drive(source(machine), steps)
    assert (machine / "store" / "demo" / "made-by-looptape-demo").is_file()
    with open_store(machine / "store") as store:
        assert store.count(Filter()) == 0


def test_a_demo_that_cannot_be_made_is_a_line_and_the_offers_stay(machine: Path) -> None:
    (machine / "store" / "demo").mkdir(parents=True)
    (machine / "store" / "demo" / "mine.txt").write_text("not of a demo")

    async def steps(seat: Seat) -> None:
        await seat.press("d")
        await seat.until("the demo could not be made", seconds=120)
        assert "Nothing recorded yet." in seat.text
        assert "no demo made it" in seat.text

    drive(source(machine), steps)
    assert (machine / "store" / "demo" / "mine.txt").is_file()


def test_after_a_surprise_in_a_job_one_can_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def surprise(*_given: object) -> Path:
        raise ValueError("nobody thought of this")

    monkeypatch.setattr("looptape.tui.screens.runs.jobs.make_demo", surprise)

    async def steps(seat: Seat) -> None:
        for _ in range(2):
            await seat.press("d")
            assert "offers failed: ValueError" in seat.text
            assert "Nothing recorded yet." in seat.text

    drive(FakeSource(), steps)


def test_what_goes_on_stands_in_place_of_the_offers() -> None:
    async def steps(seat: Seat) -> None:
        seat.app.screen.query_one(Welcome).doing("importing: 3 of 900 session files")
        await seat.settle()
        assert "… importing: 3 of 900 session files" in seat.text

    drive(FakeSource(), steps)


def test_a_screen_stays_with_its_store_when_another_comes_up_beside_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "own") as store:
        store.ingest(small_tape.records())
    own, other = StoreSource(tmp_path / "own"), StoreSource(tmp_path / "other")

    async def steps(seat: Seat) -> None:
        await seat.press("enter")
        seat.app.take(other)  # as the demo's list does
        await seat.press("j", "enter", "escape")
        assert seat.app.screen.source is own
        assert seat.app.source is own

    drive(own, steps)


def test_a_demo_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    with pytest.raises(LooptapeError):
        demo_store.make(tmp_path, lambda: True)
    assert not (tmp_path / "demo" / demo_store.MARK).exists()
