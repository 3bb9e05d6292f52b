"""Runs composed of known parts: each part comes back within a cent, and the parts sum to the difference exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from composed import Composed, Step, healthy
from examples import examples
from looptape.replay.cycles import CycleFinding, Waste
from looptape.replay.why import CAUSES, Explanation, explain
from looptape.replay.why.account import Account, Child, Entry
from looptape.replay.why.breaks import Break
from looptape.replay.why.explain import split
from looptape.tracer.errors import UsageError
from looptape.tracer.model import Run, ToolCall, Turn, Usage
from looptape.tracer.store import Store, memory_store

SUBJECT = "5" * 16
CENT = Decimal("0.01")
# dollars a million tokens, as of 2025-11: read by hand from the lists
SONNET = {"input": Decimal(3), "cache_read": Decimal("0.3"), "cache_write": Decimal("3.75"), "output": Decimal(15)}
OPUS = {"input": Decimal(5), "cache_read": Decimal("0.5"), "cache_write": Decimal("6.25"), "output": Decimal(25)}


def cost(step: Step, price: dict[str, Decimal] = SONNET) -> Decimal:
    return sum((price[b] * (getattr(step, b) or 0) for b in price), Decimal(0)) / 1_000_000


def asked(steps: Sequence[Step], *others: Composed, usual: Sequence[Sequence[Step]] | None = None, **run: object) -> Explanation:  # fmt: skip
    """Why the subject is what it is, beside healthy runs of the same name."""
    with memory_store() as store:
        peers = [healthy(), healthy(), healthy()] if usual is None else usual
        for number, peer in enumerate(peers):
            store.ingest(Composed(f"{number:016x}", peer).records())
        store.ingest(Composed(SUBJECT, steps, **run).records())  # type: ignore[arg-type]
        for other in others:
            store.ingest(other.records())
        return explain(store, store.run(SUBJECT))


def part(found: Explanation, cause: str) -> Decimal:
    return next((p.amount for p in found.parts if p.cause == cause), Decimal(0))


def sums(found: Explanation) -> None:
    assert sum(p.amount for p in found.parts) == found.difference
    assert sum(p.turns for p in found.parts) == found.turns_above


def only(found: Explanation, **causes: Decimal) -> None:
    """Every cause is what it should be within a cent; the others are nothing."""
    sums(found)
    for cause in CAUSES:
        assert abs(part(found, cause) - causes.get(cause, Decimal(0))) < CENT, (cause, found.parts)


LOOPING = Step(input=4, cache_read=60_000, cache_write=400, output=900, arguments={"path": "a.py"}, result="no change")


def test_a_run_as_usual_has_no_parts() -> None:
    found = asked(healthy())
    assert (found.difference, found.turns_above, found.parts) == (0, 0, ())
    assert (len(found.usual.runs), found.usual.kind, found.usual.name) == (3, "name", "job")


def test_an_inserted_cycle_comes_back_whole_with_its_turns_and_caller() -> None:
    looping = [replace(LOOPING, caller="loop.py:40")] * 12
    steps = [*healthy()[:4], *looping, *healthy()[4:]]
    found = asked(steps)
    assert found.difference == 12 * cost(LOOPING)
    only(found, cycles=12 * cost(LOOPING))
    (cycle,) = [p for p in found.parts if p.cause == "cycles"]
    assert (cycle.first_turn, cycle.last_turn, cycle.turns, cycle.at) == (5, 16, 12, tuple(range(5, 17)))
    assert cycle.callers == ("loop.py:40",)
    assert "12 times" in cycle.what


def test_the_first_lap_is_work_where_the_usual_run_does_it_too() -> None:
    once = [*healthy()[:4], LOOPING, *healthy()[4:]]
    steps = [*healthy()[:4], *[LOOPING] * 9, *healthy()[4:]]
    only(asked(steps, usual=[once, once]), cycles=8 * cost(LOOPING))


def test_a_cache_break_costs_what_its_tokens_cost_more_than_a_read() -> None:
    steps = healthy(60)
    broken = steps[40]
    lost = broken.cache_read or 0
    steps[40] = replace(broken, cache_read=0, cache_write=(broken.cache_write or 0) + lost)
    found = asked(steps, usual=[healthy(60)])
    only(found, cache_breaks=lost * (SONNET["cache_write"] - SONNET["cache_read"]) / 1_000_000)
    (one,) = [p for p in found.parts if p.cause == "cache_breaks"]
    assert one.at == (41,)
    assert f"{lost:,}" in one.what


def test_a_changed_message_is_named_where_the_cache_broke() -> None:
    with memory_store() as store:
        store.ingest(Composed("a" * 16, healthy(6)).records())
        steps = healthy(6)
        steps[4] = replace(steps[4], cache_read=0, cache_write=(steps[4].cache_write or 0) + (steps[4].cache_read or 0))
        records = list(Composed(SUBJECT, steps).records())
        start = next(r for r in records if r["kind"] == "turn_start" and r["turn"] == 5)
        from looptape.tracer.tape import blob

        changed = blob('{"role":"user","content":"go another way"}')
        first = next(r for r in records if r["kind"] == "turn_start" and r["turn"] == 1)
        kept = [h for r in records if r["kind"] == "turn_start" and r["turn"] <= 4 for h in r["append"]]
        assert kept[0] == first["append"][0]
        start |= {"keep": 0, "base": None, "append": [changed["hash"], *kept[1:], *start["append"]]}
        store.ingest([changed, *records])
        found = explain(store, store.run(SUBJECT))
    (one,) = [p for p in found.parts if p.cause == "cache_breaks"]
    assert (one.at, "messages[1]" in one.what) == ((5,), True)


def test_a_bigger_context_is_what_more_was_read_and_written_to_the_cache() -> None:
    more = 30_000
    steps = healthy(20)
    steps[9] = replace(steps[9], cache_write=(steps[9].cache_write or 0) + more)
    steps[10:] = [replace(s, cache_read=(s.cache_read or 0) + more) for s in steps[10:]]
    found = asked(steps, usual=[healthy(20)] * 2)
    only(found, larger_context=more * (SONNET["cache_write"] + 10 * SONNET["cache_read"]) / 1_000_000)
    assert next(p for p in found.parts if p.cause == "larger_context").at[0] == 10


def test_longer_outputs() -> None:
    steps = [replace(s, output=2220) for s in healthy()]
    only(asked(steps), longer_outputs=8 * 2000 * SONNET["output"] / 1_000_000)


def test_a_dearer_model() -> None:
    dear = [replace(s, model="claude-opus-4-5") for s in healthy(30)]
    found = asked(dear, usual=[healthy(30)])
    only(found, dearer_model=sum(cost(s, OPUS) - cost(s) for s in dear))
    assert "claude-opus-4-5 instead of claude-sonnet-4-5" in found.parts[0].what


def test_a_run_without_cache_beside_cached_ones_is_told_as_such() -> None:
    bare = [replace(s, input=(s.cache_read or 0) + (s.cache_write or 0), cache_read=None, cache_write=None) for s in healthy(20)]  # fmt: skip
    found = asked(bare, usual=[healthy(20)])
    sums(found)
    assert found.parts[0].cause == "cache_breaks"
    assert "nothing was cached" in found.parts[0].what
    assert part(found, "cache_breaks") > found.difference * Decimal("0.9")


def test_a_sub_agent_counts_once_with_all_below_it() -> None:
    child = Composed(
        "c" * 16, healthy(20), name="research", parent={"run": SUBJECT, "turn": 3, "call": "t3", "kind": "sub-agent"}
    )
    below = Composed(
        "d" * 16, healthy(20), name="fetch", parent={"run": "c" * 16, "turn": 2, "call": "t2", "kind": "sub-agent"}
    )
    found = asked(healthy(), child, below)
    only(found, sub_agents=2 * sum(cost(s) for s in healthy(20)))
    (one,) = found.parts
    assert (one.at, one.turns) == ((3,), 0)
    assert "research" in one.what


def test_answers_asked_for_again_are_retries() -> None:
    big = Step(input=4, cache_read=8000, cache_write=2000, output=4000)
    lost = replace(big, status="abandoned", tool=None)
    refused = ({"status": 429, "wait_ms": 0}, {"status": 529, "wait_ms": 2000}, {"status": 200, "wait_ms": 4000})
    steps = healthy()
    steps[2] = replace(steps[2], attempts=refused)
    steps[3] = replace(steps[3], again=True)
    found = asked([*steps[:3], lost, *steps[3:]])
    only(found, retries=cost(lost))
    (one,) = [p for p in found.parts if p.cause == "retries"]
    assert (one.at, one.turns) == ((4,), 1)
    assert "2 attempts refused (429, 529) in turn 3, 6 s waited" in one.what


def test_turns_whose_calls_all_failed() -> None:
    bad = Step(
        input=4, cache_read=8000, cache_write=2000, output=3000, tool="bash", is_error=True, result="no such file: x"
    )
    found = asked(
        [*healthy()[:4], bad, replace(bad, arguments={"other": 1}, result="permission denied"), *healthy()[4:]]
    )
    only(found, failed_calls=2 * cost(bad))
    assert "turns 5-6: bash ×2 failed" in next(p for p in found.parts if p.cause == "failed_calls").what


def test_extra_turns_are_the_ones_that_were_put_in() -> None:
    new = [Step(input=4, cache_read=9000, cache_write=2000, output=2500, tool="grep", arguments={"q": i}, result=f"hit {i}") for i in (1, 2, 3)]  # fmt: skip
    usual = [replace(s, arguments={"step": i}) if s.tool else s for i, s in enumerate(healthy())]
    found = asked([*usual[:4], *new, *usual[4:]], usual=[usual, usual])
    only(found, extra_turns=3 * cost(new[0]))
    assert next(p for p in found.parts if p.cause == "extra_turns").at == (5, 6, 7)


def test_a_shorter_run_is_told_as_one() -> None:
    found = asked(healthy(5), usual=[healthy(8)])
    sums(found)
    assert found.turns_above == -3
    assert found.difference < 0
    assert "3 turns fewer" in next(p for p in found.parts if p.cause == "extra_turns").what


def test_all_causes_at_once_come_back() -> None:
    looping = [replace(LOOPING, model="claude-opus-4-5")] * 6
    more = [replace(s, model="claude-opus-4-5", output=3220) for s in healthy(30)]
    found = asked([*more[:10], *looping, *more[10:]], usual=[healthy(30)])
    only(
        found,
        cycles=6 * cost(LOOPING, OPUS),
        dearer_model=sum(cost(s, OPUS) - cost(s) for s in more),
        longer_outputs=30 * 3000 * SONNET["output"] / 1_000_000,
    )


def test_without_peers_the_run_itself_is_split() -> None:
    steps = [*healthy()[:4], *[LOOPING] * 6, *healthy()[4:]]
    found = asked(steps, usual=[])
    assert found.usual.kind == "none"
    assert any("nothing to compare with" in n for n in found.notes)
    assert sum(p.amount for p in found.parts) == found.difference == found.amount == sum(cost(s) for s in steps)
    assert part(found, "cycles") == 5 * cost(LOOPING)
    assert part(found, "longer_outputs") == (8 * 220 + 900) * SONNET["output"] / 1_000_000


def test_what_cannot_be_priced_is_told_in_tokens() -> None:
    steps = [replace(s, model="unheard-of-9") for s in healthy()]
    found = asked([*steps[:4], *[replace(LOOPING, model="unheard-of-9")] * 6, *steps[4:]])
    sums(found)
    assert found.unit == "tokens"
    assert any("cannot be priced" in n for n in found.notes)
    assert part(found, "cycles") == 6 * (4 + 60_000 + 400 + 900)


def test_unpriced_and_unfinished_peers_are_left_out_and_said() -> None:
    with memory_store() as store:
        store.ingest(Composed("a" * 16, healthy()).records())
        store.ingest(Composed("b" * 16, [replace(s, model="unheard-of-9") for s in healthy()]).records())
        store.ingest(Composed("c" * 16, healthy(2), status="failed").records())
        store.ingest(Composed(SUBJECT, healthy()).records())
        found = explain(store, store.run(SUBJECT))
    assert found.usual.runs == ("a" * 16,)
    assert any("1 other run has unpriced turns" in n for n in found.notes)
    assert any("1 that did not complete left out" in n for n in found.notes)


def test_the_median_of_an_even_number_lies_between_two_runs() -> None:
    found = asked(healthy(8), usual=[healthy(8), healthy(12)])
    sums(found)
    both = [sum(cost(s) for s in healthy(n)) for n in (8, 12)]
    assert found.usual.amount == sum(both) / 2
    assert found.usual.turns == 10
    assert part(found, "unexplained") == both[0] - sum(both) / 2


def against(store: Store, mine: Sequence[Step], other: Sequence[Step]) -> Explanation:
    store.ingest(Composed("a" * 16, other, name="one").records())
    store.ingest(Composed(SUBJECT, mine, name="two").records())
    return explain(store, store.run(SUBJECT), store.run("a" * 16))


def test_a_run_named_with_against_needs_turns() -> None:
    with memory_store() as store, pytest.raises(UsageError, match="has no turns"):
        against(store, healthy(), [])


STEPS = st.lists(
    st.builds(
        Step,
        input=st.integers(0, 300_000),
        cache_read=st.none() | st.integers(0, 300_000),
        cache_write=st.none() | st.integers(0, 300_000),
        output=st.integers(0, 20_000),
        tool=st.sampled_from(["read", "bash", None]),
        arguments=st.sampled_from([None, {"a": 1}]),
        result=st.sampled_from([None, "same"]),
        is_error=st.booleans(),
        model=st.sampled_from(["claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-4-5"]),
        status=st.sampled_from(["ok", "ok", "ok", "error", "abandoned"]),
        again=st.booleans(),
    ).map(lambda s: s if s.status == "ok" else replace(s, tool=None)),
    min_size=1,
    max_size=12,
).map(lambda steps: [replace(steps[0], again=False), *steps[1:]])


@settings(max_examples=examples(6), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(mine=STEPS, other=STEPS)
def test_stored_runs_of_any_kind_sum_to_their_difference(mine: list[Step], other: list[Step]) -> None:
    with memory_store() as store:
        found = against(store, mine, other)
        alone = explain(store, store.run(SUBJECT))
    sums(found)
    assert sum(p.amount for p in alone.parts) == alone.difference == alone.amount
    assert found.amount == alone.amount == sum((cost_of(s) for s in mine), Decimal(0))


@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_a_run_against_its_double_has_no_difference(steps: list[Step]) -> None:
    with memory_store() as store:
        found = against(store, steps, steps)
    assert found.difference == 0
    assert all(p.amount == 0 for p in found.parts)


ENTRIES = st.lists(
    st.builds(
        lambda number, step, again, dollars: Entry(turn_of(number, step), dollars, again),
        st.integers(1, 40),
        STEPS.map(lambda steps: steps[0]),
        st.booleans(),
        st.decimals(0, 50, places=12),
    ),
    max_size=12,
    unique_by=lambda e: e.number,
).map(lambda entries: sorted(entries, key=lambda e: e.number))
LOST = st.dictionaries(st.integers(1, 40), st.builds(Break, st.integers(0, 400_000)), max_size=6)


@st.composite
def accounts(draw: st.DrawFn, unit: str) -> Account:
    """Any account: amounts that no price list gives, cycles over any turns, breaks of any size."""
    entries = draw(ENTRIES)
    if unit == "tokens":
        entries = [
            replace(e, amount=Decimal((e.turn.usage.context or 0) + (e.turn.usage.output or 0))) for e in entries
        ]
    looped = tuple(sorted(draw(st.sets(st.integers(1, 40), max_size=10))))
    cycles = (CycleFinding(None, None, "exact", 1, 40, 3, 4, draw(st.integers(1, 3)), (), looped, Waste(len(looped))),)
    below = tuple(Child(f"{i}", None, 2, 3, draw(st.decimals(0, 9, places=12)), Decimal(7), 0) for i in range(draw(st.integers(0, 2))))  # fmt: skip
    return Account(Run("r"), unit, tuple(entries), below, cycles if looped else (), draw(LOST))


def turn_of(number: int, step: Step) -> Turn:
    call = ToolCall("c", step.tool, is_error=step.is_error) if step.tool else None
    usage = Usage(step.input, step.cache_read, step.cache_write, None, step.output)
    return Turn("r", number, provider="anthropic", model=step.model, status=step.status, usage=usage,
                tool_calls=(call,) if call else ())  # type: ignore[arg-type]  # fmt: skip


@settings(max_examples=examples(50), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data(), unit=st.sampled_from(["usd", "tokens"]))
def test_the_parts_sum_to_the_difference_whatever_the_runs(data: st.DataObject, unit: str) -> None:
    mine, other = data.draw(accounts(unit)), data.draw(accounts(unit))
    sums, _ = split(mine, other)
    assert sum(sums.total(c) for c in CAUSES) == mine.total - other.total
    assert sum(sums.turns.values()) == len(mine.entries) - len(other.entries)
    alone, _ = split(mine, None)
    assert sum(alone.total(c) for c in CAUSES) == mine.total
    itself, _ = split(mine, mine)
    assert sum(itself.total(c) for c in CAUSES) == 0


HAIKU = {"input": Decimal(1), "cache_read": Decimal("0.1"), "cache_write": Decimal("1.25"), "output": Decimal(5)}


def cost_of(step: Step) -> Decimal:
    """By hand; beyond 200,000 tokens of input sonnet has its second price."""
    read = (step.input or 0) + (step.cache_read or 0) + (step.cache_write or 0)
    if step.model == "claude-sonnet-4-5" and read > 200_000:
        long = {"input": 6, "cache_read": Decimal("0.6"), "cache_write": Decimal("7.5"), "output": Decimal("22.5")}
        return cost(step, {k: Decimal(v) for k, v in long.items()})
    return cost(step, {"claude-opus-4-5": OPUS, "claude-haiku-4-5": HAIKU}.get(step.model, SONNET))
