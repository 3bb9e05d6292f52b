"""When everything in a run happened, as the store tells it."""

from __future__ import annotations

from pathlib import Path

from looptape.tracer.store import open_store
from looptape.tracer.store.times import TurnTimes, until
from timed_tape import RUN, Asked, Did, at, records, store


def times(home: Path, turns: list[Asked], first: int | None = None, *, ended: bool = True) -> list[TurnTimes]:
    with open_store(store(home, records(turns, ended=ended))) as opened:
        return opened.turn_times(RUN, first)


def test_measured_and_missing_times_of_calls_are_told_apart(tmp_path: Path) -> None:
    (turn,) = times(tmp_path, [Asked(0, 4, [Did("a", 4, 5), Did("b")], first=2)])
    measured, missing = turn.calls
    assert (turn.started_at, turn.first_chunk_at, turn.ended_at) == (at(0), at(2), at(4))
    assert (measured.started_at, measured.ended_at, measured.measured) == (at(4), at(5), True)
    assert (missing.started_at, missing.ended_at, missing.measured) == (None, None, False)
    assert (measured.wrong, missing.wrong) == (None, "no result")


def test_a_word_says_what_went_wrong_with_a_call(tmp_path: Path) -> None:
    (turn,) = times(tmp_path, [Asked(0, 1, [Did("a", 1, 2, is_error=True), Did("b", 1, 2, state="cancelled")])])
    assert [c.wrong for c in turn.calls] == ["error", "cancelled"]


def test_tries_are_told_only_where_there_were_several(tmp_path: Path) -> None:
    refused = {"status": 429, "error_type": "rate_limit_error", "started_at": at(0), "ended_at": at(1)}
    served = {"status": 200, "wait_ms": 5000, "started_at": at(6), "ended_at": at(8)}
    several, one = times(tmp_path, [Asked(0, 8, attempts=[refused, served]), Asked(9, 10, attempts=[served])])
    assert [(t.said, t.failed, t.wait_ms) for t in several.tries] == [("429", True, None), ("200", False, 5000.0)]
    assert one.tries == ()


def test_only_the_turns_asked_for_are_read(tmp_path: Path) -> None:
    assert [t.number for t in times(tmp_path, [Asked(0, 1), Asked(2, 3), Asked(4, 5)], first=2)] == [2, 3]


def test_what_still_runs_ends_now(tmp_path: Path) -> None:
    turns = times(tmp_path, [Asked(0, 1), Asked(2, None)], ended=False)
    if turns[-1].status == "open":  # the writer of this tape counts as alive
        assert until(turns, at(9) or 0)[-1].ended_at == at(9)
    done = times(tmp_path / "done", [Asked(0, 1), Asked(2, 3)])
    assert until(done, at(9) or 0) == done
