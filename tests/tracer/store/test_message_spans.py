"""Message lists kept as intervals come back as they were, whatever was done to the history."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

import long_tape
from examples import examples
from looptape.tracer import tape
from looptape.tracer.store import memory_store
from looptape.tracer.store.spans import History

EDITS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 8), st.lists(st.integers(1, 5), max_size=4)), min_size=1, max_size=12
)


def lists_of(edits):
    """The message list of each turn, made the plain way: keep k of some earlier turn, then new ones."""
    lists = {}
    for turn, (back, keep, new) in enumerate(edits, 1):
        base = max(turn - 1 - back, 0)
        kept = lists[base][:keep] if base else []
        lists[turn] = kept + new
        yield turn, (base or None, keep if base else 0, new), lists[turn]


@given(EDITS)
@settings(max_examples=examples(300))
def test_any_history_of_edits_is_rebuilt(edits):
    history, wanted = History(), {}
    for turn, (base, keep, new), messages in lists_of(edits):
        assert history.add(turn, base, keep, new) == len(messages)
        wanted[turn] = messages
    assert {turn: history.at(turn) for turn in wanted} == wanted


@given(EDITS, st.randoms(use_true_random=False), st.lists(st.integers(1, 11), max_size=3))
@settings(max_examples=examples(12), deadline=None)
def test_any_history_of_edits_is_rebuilt_from_the_store(edits, pick, cuts):
    steps = list(lists_of(edits))
    records = []
    for turn, (base, keep, new), _ in steps:
        blobs = [tape.blob(json.dumps({"role": "user", "content": str(n)})) for n in new]
        start = {"kind": "turn_start", "run": "r", "turn": turn, "at": turn, "keep": keep, "base": base}
        records.append([*blobs, {**start, "append": [b["hash"] for b in blobs], "api": "manual"}])
    with memory_store() as store:
        bounds = [0, *sorted(c for c in cuts if c < len(records)), len(records)]
        for begin, end in pairwise(bounds):  # in several drains
            store.ingest([r for part in records[begin:end] for r in part])
        store.ingest([r for part in pick.sample(records, len(records)) for r in part])  # and all of it again
        for turn, _, messages in steps:
            got = [m["content"] for m in store.request("r", turn).messages]
            assert got == [str(n) for n in messages]


def test_a_turn_that_comes_late_finds_its_place():
    history = History()
    history.add(1, None, 0, [1])
    history.add(3, 1, 1, [2, 3])
    history.add(2, 1, 1, [2])
    assert [history.at(n) for n in (1, 2, 3)] == [[1], [1, 2], [1, 2, 3]]


def test_a_growing_history_needs_one_row_a_message():
    with memory_store() as store:
        store.ingest(long_tape.records(turns=50))
        assert store.rows("select count(*) as n from base.spans") == [{"n": 99}]
        assert store.rows("select count(*) as n from base.spans where last_turn is not null") == [{"n": 0}]


def test_a_history_that_lacks_its_base_says_so():
    lone = tape.blob('"new"')
    with memory_store() as store:
        store.ingest(
            [
                lone,
                {"kind": "turn_start", "run": "r", "turn": 2, "at": 1, "keep": 5, "base": 1, "append": [lone["hash"]]},
            ]
        )
        (turn,) = store.turns("r")
        assert turn.flags == ("history_incomplete",)
        assert store.request("r", 2).messages == ("new",)
