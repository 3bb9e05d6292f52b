"""The door to the store: short readings, snapshots, and what lies around on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptape.tracer import tape
from looptape.tracer.errors import LooptapeError
from looptape.tracer.store import open_store
from looptape.tui.data.source import StoreSource, found_sessions
from looptape.tui.data.views import RunsWanted
from tui_driver import Seat, drive

RUN = "ab" * 8
START = 1_795_000_000_000_000


def records() -> list[tape.Record]:
    prompt = tape.blob('{"role": "user", "content": "What is 7 % of 50?"}')
    echo = tape.blob(
        '{"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "calculator", "input": {"x": "50*0.07"}}]}'
    )
    result = tape.blob('{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "3.5"}]}')
    first = tape.blob(
        '{"id": "m1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [{"type": "tool_use", "id": "t1", "name": "calculator", "input": {"x": "50*0.07"}}], "stop_reason": "tool_use"}'
    )
    last = tape.blob(
        '{"id": "m2", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": "It is 3.5."}], "stop_reason": "end_turn"}'
    )
    common = {
        "run": RUN,
        "provider": "anthropic",
        "api": "anthropic.messages",
        "model": "claude-sonnet-4-5",
        "stream": False,
        "mode": "full",
    }
    usage = {"input": 100, "output": 20, "origin": "recorded"}
    call = {"id": "t1", "name": "calculator", "arguments_raw": '{"x": "50*0.07"}', "valid": True}
    return [
        tape.header(writer="test", started_at=START),
        prompt, echo, result, first, last,
        {"kind": "run_start", "run": RUN, "at": START, "name": "revenue", "source": "sdk"},
        {"kind": "turn_start", "turn": 1, "at": START, "keep": 0, "append": [prompt["hash"]], "user_turn": True, **common},
        {"kind": "turn_end", "run": RUN, "turn": 1, "at": START + 900_000, "status": "ok", "stop_reason": "tool_use", "response": first["hash"], "calls": [call], "usage": usage, "parse": "ok"},
        {"kind": "call_seen", "run": RUN, "turn": 1, "call": "t1", "at": START + 950_000, "message": result["hash"], "path": "$.content[0].content", "is_error": False},
        {"kind": "turn_start", "turn": 2, "at": START + 950_000, "keep": 1, "base": 1, "append": [echo["hash"], result["hash"]], **common},
        {"kind": "turn_end", "run": RUN, "turn": 2, "at": START + 1_900_000, "status": "ok", "stop_reason": "end_turn", "response": last["hash"], "calls": [], "usage": usage, "parse": "no_calls"},
        {"kind": "run_end", "run": RUN, "at": START + 1_900_000, "status": "completed", "reason": "end_turn"},
    ]  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with open_store(tmp_path / "home") as store:
        store.ingest(records())
    return tmp_path / "home"


def test_a_recorded_run_is_seen_from_the_list_to_the_wire(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        assert "revenue" in seat.chosen
        await seat.press("enter")
        assert "calculator" in seat.chosen
        assert "What is 7 % of 50?" in seat.text
        await seat.press("j")
        assert "It is 3.5." in seat.text
        assert "↳ calculator" in seat.text
        await seat.press("enter", "2")
        assert "messages 3" in seat.text
        await seat.press("7")
        assert "REQUEST" in seat.text
        assert "! " not in seat.text

    drive(StoreSource(home), steps)


def test_a_reference_opens_the_run_it_means_and_an_unknown_one_is_an_error(home: Path) -> None:
    source = StoreSource(home)
    assert source.find("revenue") == RUN
    assert source.find(RUN[:6]) == RUN
    with pytest.raises(LooptapeError):
        source.find("nobody")


def test_the_version_changes_when_a_journal_grows_and_rests_otherwise(home: Path) -> None:
    source = StoreSource(home)
    source.runs(RunsWanted())
    before = source.version()
    source.runs(RunsWanted())
    assert source.version() == before
    (home / "journal").mkdir(exist_ok=True)
    (home / "journal" / "x.jsonl").write_bytes(b"{}\n")
    assert source.version() != before


def test_the_store_is_closed_between_readings(home: Path) -> None:
    source = StoreSource(home)
    source.run(RUN)
    import duckdb

    duckdb.connect(str(home / "store.duckdb")).close()


def test_claude_code_sessions_are_counted_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert found_sessions() == ()
    folder = tmp_path / ".claude" / "projects" / "-home-kim"
    folder.mkdir(parents=True)
    for name in ("a.jsonl", "b.jsonl", "c.txt"):
        (folder / name).write_bytes(b"x" * 600)
    (found,) = found_sessions()
    assert found.what == "2 Claude Code sessions, 1.2 kB"
    assert found.command == "looptape import --claude-code"


def test_an_empty_home_offers_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    async def steps(seat: Seat) -> None:
        assert "Nothing recorded yet." in seat.text

    drive(StoreSource(tmp_path / "new"), steps)
