"""Two runs: aligned turn by turn, the first divergence named, its echo not; a run against itself differs in nothing."""

from __future__ import annotations

import json
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import conversation_tape as talk
from examples import examples
from looptape.replay.diff import Diff, Side, diff, side
from looptape.tracer.errors import UsageError
from looptape.tracer.importers import import_path
from looptape.tracer.store import Store, memory_store

SAMPLES = sorted((Path(__file__).parents[3] / "sample_traces").glob("*.jsonl"))
A, B = "a" * 16, "b" * 16
NUMBERS = count(1)
Step = tuple[str, dict[str, Any], str]


def loop(*steps: Step, end: str = "done", **shared: Any) -> list[talk.Said]:
    listed = [
        ([talk.text(f"on {tool}"), talk.call(tool, f"t{n}", **arguments)], [talk.result(f"t{n}", found)])
        for n, (tool, arguments, found) in enumerate(steps, 1)
    ]
    return talk.grown([*listed, ([talk.text(end)], [])], **shared)


PLAIN: list[Step] = [(f"tool{n % 3}", {"n": n}, f"result {n}") for n in range(1, 9)]


@cache
def shared_store() -> Store:
    """One for all: runs have ids of their own."""
    return memory_store()


def compared(a: list[talk.Said], b: list[talk.Said]) -> Diff:
    store, sides = shared_store(), []
    for turns in (a, b):
        run = f"{next(NUMBERS):016x}"
        store.ingest(talk.records(turns, run))
        sides.append(side(store, store.run(run)))
    return diff(*sides)


def told(found: Diff) -> list[tuple[int | None, int | None, list[str]]]:
    return [(p.a, p.b, [f"{c.path} {c.kind}" for c in p.changes]) for p in found.pairs if not p.same]


def sides_of(store: Store, sample: Path) -> list[Side]:
    return [side(store, store.run(run)) for report in import_path(store, sample) for run in report.runs]


@pytest.mark.parametrize("sample", SAMPLES, ids=[s.stem for s in SAMPLES])
def test_a_sample_against_itself_differs_in_nothing(sample: Path) -> None:
    for one in sides_of(memory_store(), sample):
        found = diff(one, one)
        assert found.same
        assert all(p.same and p.a == p.b for p in found.pairs)
        assert found.totals[0] == found.totals[1]


step = st.tuples(
    st.sampled_from(["read", "run", "ask"]),
    st.dictionaries(st.sampled_from("abc"), st.one_of(st.integers(), st.text(max_size=5), st.lists(st.booleans()))),
    st.text(max_size=40),
)


@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(step, max_size=8), st.lists(step, max_size=8))
def test_any_run_against_itself_is_empty_and_another_covers_every_turn_once(a: list[Step], b: list[Step]) -> None:
    found = compared(loop(*a), loop(*b))
    assert [p.a for p in found.pairs if p.a is not None] == list(range(1, len(a) + 2))
    assert [p.b for p in found.pairs if p.b is not None] == list(range(1, len(b) + 2))
    assert found.same == (json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True))
    for one in (found.a, found.b):
        assert diff(one, one).same


def test_two_recordings_of_the_same_conversation_differ_in_nothing() -> None:
    assert compared(loop(*PLAIN), loop(*PLAIN)).same


def test_an_inserted_turn_moves_none_of_those_that_follow() -> None:
    found = compared(loop(*PLAIN), loop(*PLAIN[:3], ("extra", {"x": 1}, "?"), *PLAIN[3:]))
    assert told(found) == [(None, 4, [])]
    assert found.first is not None
    assert (found.first.a, found.first.b, found.first.change) == (None, 4, None)
    assert [(p.a, p.b) for p in found.pairs][4:] == [(n, n + 1) for n in range(4, 10)]


def test_a_turn_that_is_inserted_among_others_of_the_same_tool_is_found_by_its_words() -> None:
    steps: list[Step] = [("bash", {"cmd": f"look at module_{n} and tests"}, f"result {n}") for n in range(6)]
    other: list[Step] = [("bash", {"cmd": f"look at module_{n} or tests"}, f"result {n}") for n in range(6)]
    found = compared(loop(*steps), loop(*other[:2], ("bash", {"cmd": "git status"}, "clean"), *other[2:]))
    assert [(p.a, p.b) for p in found.pairs] == [(1, 1), (2, 2), (None, 3), *((n, n + 1) for n in range(3, 8))]


def test_an_argument_is_named_by_turn_and_path_and_what_follows_from_it_is_told_once() -> None:
    other = [*PLAIN[:4], ("tool2", {"n": 55}, "result 5"), *PLAIN[5:]]
    found = compared(loop(*PLAIN), loop(*other))
    assert told(found) == [(5, 5, ["calls[1].arguments.n edited"])]
    assert found.first is not None
    assert found.first.change is not None
    assert (found.first.a, found.first.change.a, found.first.change.b) == (5, 5, 55)


def test_a_result_that_differs_is_told_in_the_turn_that_called_and_in_no_later_one() -> None:
    other = [*PLAIN[:2], (*PLAIN[2][:2], "result three"), *PLAIN[3:]]
    assert told(compared(loop(*PLAIN), loop(*other))) == [(3, 3, ["calls[1].result edited"])]


def test_another_tool_is_a_call_that_changed() -> None:
    other = [*PLAIN[:2], ("another", {"q": "z"}, "result 3"), *PLAIN[3:]]
    assert told(compared(loop(*PLAIN), loop(*other))) == [(3, 3, ["text edited", "calls[1] edited"])]


def test_system_tools_and_parameters_are_told_once_not_in_every_turn() -> None:
    tool = {"name": "tool0", "description": "d", "input_schema": {"type": "object"}}
    found = compared(
        loop(*PLAIN, tools=[tool]),
        loop(*PLAIN, tools=[{**tool, "description": "D"}], system="Be brief.", params={"max_tokens": 7}),
    )
    assert told(found) == [(1, 1, ["max_tokens edited", "system edited", "tools[1].description edited"])]


def test_the_first_thing_that_was_done_differently_is_told_beside_other_words() -> None:
    b = loop(*PLAIN[:5], ("tool0", {"n": 99}, "x"), *PLAIN[6:])
    b[0].system = "Other words."
    found = compared(loop(*PLAIN), b)
    assert found.first is not None
    assert found.first.change is not None
    assert found.first_act is not None
    assert found.first_act.change is not None
    assert (found.first.a, found.first.change.part) == (1, "system")
    assert (found.first_act.a, found.first_act.change.path) == (6, "calls[1].arguments.n")


def test_a_compaction_in_one_of_them_is_a_change_of_history() -> None:
    b = loop(*PLAIN)
    b[6].messages = [talk.user("summary"), *b[6].messages[-2:]]
    b[6].flags = ["compaction"]
    found = compared(loop(*PLAIN), b)
    assert ("history edited" in told(found)[0][2], told(found)[0][0]) == (True, 7)


def test_a_users_word_in_between_is_compared_as_input() -> None:
    a, b = loop(*PLAIN[:2]), loop(*PLAIN[:2])
    b[2].messages = [*b[2].messages, talk.user("hurry")]
    assert told(compared(a, b)) == [(3, 3, ["input[1] inserted"])]


def test_totals_are_the_sums_of_the_tape() -> None:
    a, b = loop(*PLAIN), loop(*PLAIN[:4])
    for turn in (*a, *b):
        turn.usage = {"input": 100, "cache_read": 50, "output": 7}
    found = compared(a, b)
    assert [(t.turns, t.tool_calls, t.usage.input, t.usage.cache_read, t.usage.output) for t in found.totals] == [
        (9, 8, 900, 450, 63), (5, 4, 500, 250, 35),
    ]  # fmt: skip
    assert found.totals[1].cost_usd == pytest.approx(5 * (100 * 3 + 50 * 0.30 + 7 * 15) / 1e6)


def test_two_turns_are_compared_with_their_whole_requests() -> None:
    store = memory_store()
    store.ingest(talk.records(loop(*PLAIN), A))
    run = store.run(A)
    found = diff(side(store, run, 2, 2), side(store, run, 3, 3))
    assert (found.kind, [(c.kind, c.path) for c in found.request]) == (
        "turns",
        [("appended", "messages[4]"), ("appended", "messages[5]")],
    )
    assert [c.part for c in found.pairs[0].changes] == ["text", "calls", "result"][: len(found.pairs[0].changes)]


def test_stretches_of_runs_are_compared_by_themselves() -> None:
    store = memory_store()
    store.ingest(talk.records(loop(*PLAIN), A))
    store.ingest(talk.records(loop(("other", {}, ""), *PLAIN), B))
    found = diff(side(store, store.run(A), 2, 5), side(store, store.run(B), 3, 6))
    assert (found.same, [(p.a, p.b) for p in found.pairs]) == (True, [(n, n + 1) for n in range(2, 6)])


def test_a_run_and_a_turn_cannot_be_compared() -> None:
    store = memory_store()
    store.ingest(talk.records(loop(*PLAIN), A))
    run = store.run(A)
    with pytest.raises(UsageError, match="a run and a turn"):
        diff(side(store, run), side(store, run, 2, 2))
