"""A response that several recordings hold counts once, whatever the order of the imports."""

from __future__ import annotations

import itertools

import pytest

from looptape.tracer.store import memory_store

START = 1_764_424_800_000_000
SECOND = 1_000_000


def run(name, responses, *, source="claude-code", start=START, ids=None):
    """A run with one turn per (response id, input tokens), at the time the response was made."""
    yield {"kind": "run_start", "run": name, "at": start, "source": source}
    for number, (response, tokens, at) in enumerate(responses, 1):
        yield {
            "kind": "turn_start",
            "run": name,
            "turn": number,
            "at": start + at * SECOND - 5,
            "keep": 0,
            "append": [],
            "provider": "anthropic",
        }
        yield {
            "kind": "turn_end", "run": name, "turn": number, "at": start + at * SECOND, "status": "ok", "response_id": response,
            "model": "acme-large-1", "calls": [], "usage": {"input": tokens, "output": tokens + 1, "origin": "recorded"},
        }  # fmt: skip


FIRST = [("msg_1", 10, 2), ("msg_2", 20, 6)]
RESUMED = [*FIRST, ("msg_3", 30, 104)]
AGAIN = [*RESUMED, ("msg_4", 40, 204)]


@pytest.mark.parametrize("order", list(itertools.permutations("sbz")), ids="".join)
def test_a_resumed_session_owns_only_what_it_added(order):
    runs = {"s": list(run("s", FIRST)), "b": list(run("b", RESUMED)), "z": list(run("z", AGAIN))}
    with memory_store() as store:
        for name in order:
            store.ingest(runs[name])
        for name in order:
            store.ingest(runs[name])
        assert [t.inherited for t in store.turns("s")] == [False, False]
        assert [t.inherited for t in store.turns("b")] == [True, True, False]
        assert [t.inherited for t in store.turns("z")] == [True, True, True, False]
        listed = store.runs()
        assert sum(r.usage.input or 0 for r in listed) == 100
        assert sum(r.usage.output or 0 for r in listed) == 104
        assert store.run("z").inclusive_usage.input == 100
        assert store.run("b").turns == 3
        assert store.sql("select sum(input) from turns where not inherited")[2] == [(100,)]


def test_live_runs_with_equal_ids_from_a_fake_model_are_not_copies():
    with memory_store() as store:
        store.ingest(run("one", FIRST, source="sdk"))
        store.ingest(run("two", FIRST, source="sdk", start=START + 900 * SECOND))
        assert [t.inherited for name in ("one", "two") for t in store.turns(name)] == [False] * 4


def test_a_live_run_that_was_copied_whole_is_a_copy():
    with memory_store() as store:
        store.ingest(run("one", FIRST, source="sdk"))
        store.ingest(run("two", FIRST, source="sdk"))
        assert [r.usage.input for r in store.runs()].count(30) == 1


def test_answers_without_an_id_are_never_copies():
    with memory_store() as store:
        store.ingest(run("one", [(None, 5, 1)]))
        store.ingest(run("two", [(None, 5, 1)]))
        assert [r.usage.input for r in store.runs()] == [5, 5]
