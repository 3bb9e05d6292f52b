"""One run in memory: turns, events, and what came in new with each turn."""

from __future__ import annotations

import pytest

import small_tape
from looptape.replay import recording as recordings
from looptape.replay.recording import load, load_many
from looptape.sample_traces import demo
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, Store, memory_store


def stored(**more: object) -> Store:
    store = memory_store()
    store.ingest(small_tape.records(**more))  # type: ignore[arg-type]
    return store


def test_the_question_comes_in_with_turn_1_and_a_known_result_stays_with_its_call() -> None:
    store = stored()
    recording = load(store, store.run(small_tape.RUN))
    assert [t.number for t in recording.turns] == [1, 2]
    assert [(i.role, i.number, i.part.text) for i in recording.incoming[1]] == [
        ("user", 1, "What is 7% of last year's revenue?")
    ]
    assert 2 not in recording.incoming
    assert [(t.number, c.result) for t, c in recording.calls()] == [(1, "revenue: 1200")]


def test_one_turn_alone_shows_the_result_that_came_in() -> None:
    store = stored(is_error=True)
    recording = load(store, store.run(small_tape.RUN), 2, 2)
    (result,) = recording.incoming[2]
    assert (result.part.kind, result.part.text, result.part.is_error, result.number) == (
        "result",
        "revenue: 1200",
        True,
        3,
    )
    assert recording.turn(2).text == "It is 84."


def test_events_of_a_turn() -> None:
    store = stored()
    store.ingest(
        [
            {
                "kind": "event",
                "run": small_tape.RUN,
                "turn": 2,
                "at": small_tape.START,
                "event": "compaction",
                "detail": {"a": 1},
            }
        ]
    )
    recording = load(store, store.run(small_tape.RUN), 2, 2)
    assert [e.kind for e in recording.events_at(2)] == ["compaction"]


@pytest.mark.parametrize("portion", [1, 12, 1000], ids=["one at a time", "a few at a time", "all at once"])
def test_many_runs_loaded_together_are_what_each_is_alone(monkeypatch: pytest.MonkeyPatch, portion: int) -> None:
    monkeypatch.setattr(recordings, "_PORTION", portion)
    store = memory_store()
    for tape in demo.tapes():
        import_path(store, tape)
    runs = store.runs(Filter(limit=0, sort="turns"))
    assert list(load_many(store, runs)) == [load(store, r) for r in runs]
