"""A healthy run with one fault planted in it has exactly that fault: every rule sees its own cause and no other's."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from looptape.replay.recording import Recording, load
from looptape.replay.rules import RULES, lint_facts
from looptape.replay.rules.facts import facts_of
from looptape.sample_traces import demo
from looptape.tracer.canonical import digest
from looptape.tracer.importers import import_path
from looptape.tracer.model import Attempt, Event, Limits, ToolCall, Turn, Usage
from looptape.tracer.store import Filter, memory_store
from rule_runs import SECOND, call, turn

SICK = {"where-is-my-parcel", "mugs-in-store", "photos"}
WINDOW = 200_000
TOOLS = ("read_orders", "fetch_prices", "list_stock", "get_returns", "search_mails", "query_ledger")


def healthy() -> dict[str, Recording]:
    """The sound sample runs of at least three turns, each with limits, so that their length may change."""
    store = memory_store()
    for tape in demo.tapes():
        import_path(store, tape)
    found = {}
    for run in store.runs(Filter(limit=0)):
        if run.name not in SICK and run.turns >= 3 and run.parent is None:
            recording = load(store, run)
            limits = run.limits or Limits(turns=100).given()
            found[str(run.name)] = replace(recording, run=replace(run, limits=limits, outcome=None))
    return found


RUNS = healthy()


def planted(recording: Recording, at: int, new: list[Turn]) -> Recording:
    """The recording with turns put before the one at that place, numbered and timed anew."""
    like = recording.turns[0]
    fitting = [
        replace(t, model=like.model, provider=like.provider, api=like.api, agent=like.agent, text=t.text or "Next.")
        for t in new
    ]
    shift = len(new)
    after = [
        replace(t, number=t.number + shift, started_at=moved(t.started_at, shift), ended_at=moved(t.ended_at, shift))
        for t in recording.turns[at:]
    ]
    begin = (recording.turns[at].started_at or 0) if at < len(recording.turns) else 0
    between = [
        replace(
            t, run=recording.run.id, number=at + 1 + n, started_at=begin + n * 10 * SECOND,
            ended_at=begin + (n * 60 + 4) * SECOND, usage=usage(recording, at),
        )
        for n, t in enumerate(fitting)
    ]  # fmt: skip
    turns = (*recording.turns[:at], *between, *after)
    incoming = {n + shift if n > at else n: i for n, i in recording.incoming.items()}
    return replace(recording, run=replace(recording.run, turns=len(turns)), turns=turns, events=(), incoming=incoming)


def moved(at: int | None, turns: int) -> int | None:
    return None if at is None else at + turns * 10 * SECOND


def usage(recording: Recording, at: int) -> Usage:
    """The usage of the turn before: nothing of the cache is lost."""
    return recording.turns[max(0, at - 1)].usage


def looking(pick: random.Random, count: int) -> list[Turn]:
    """Turns that look at something new each, with tools and arguments that depend on what came before."""
    name = pick.choice(TOOLS)
    return [turn(call(name, {"ref": digest(f"{name}{n}")[:8]}, f"{digest(f'{n}{name}')} is in stock, {n} of it")) for n in range(count)]  # fmt: skip


# -- the faults ----------------------------------------------------------------------------------------------


def no_backstop(recording: Recording, at: int, pick: random.Random) -> Recording:
    longer = planted(recording, at, looking(pick, 2))
    return replace(longer, run=replace(longer.run, limits={}))


def raw_error(recording: Recording, at: int, pick: random.Random) -> Recording:
    text = pick.choice(
        ["<html><body><h1>Oops</h1></body></html>", "An error occurred.", "\x1b[31mbroken pipe of x\x1b[0m"]
    )
    return planted(recording, at, [turn(call(pick.choice(TOOLS), {"ref": "a1"}, text, error=True)), *looking(pick, 1)])


def growing(recording: Recording, at: int, pick: random.Random) -> Recording:
    longer = planted(recording, at, looking(pick, 14))
    share, most = pick.uniform(0.55, 0.95), len(longer.turns)
    flat = replace(longer, turns=tuple(replace(t, flags=()) for t in longer.turns))
    turns = [
        replace(t, model="claude-sonnet-4-5", usage=Usage(input=10, cache_read=int(WINDOW * share * n / most), output=40, origin="recorded"))
        for n, t in enumerate(flat.turns, 1)
    ]  # fmt: skip
    return replace(flat, turns=tuple(turns))


def full_disk(recording: Recording, at: int, pick: random.Random) -> Recording:
    names = pick.sample(TOOLS, pick.randint(3, 5))
    text = "OSError: [Errno 28] No space left on device"
    return planted(recording, at, [turn(call(n, {"ref": n}, f"{text}: /var/{n}", error=True)) for n in names])


def circle(recording: Recording, at: int, pick: random.Random) -> Recording:
    same = call(pick.choice(TOOLS), {"ref": "k1"}, "12 rows, the last of March")
    return planted(recording, at, [turn(same)] * pick.randint(3, 8))


def lost_sibling(recording: Recording, at: int, pick: random.Random) -> Recording:
    calls = [call(n, {"ref": n}, f"{n}: 4 rows") for n in pick.sample(TOOLS, 3)]
    calls[pick.randrange(3)] = call("get_weather", {"city": "Oslo"}, None)
    return planted(recording, at, [turn(*calls)])


def blamed_sibling(recording: Recording, at: int, pick: random.Random) -> Recording:
    first, second = pick.sample(TOOLS, 2)
    own = call(first, {"ref": "row-71"}, "row-71 is locked by the nightly job", error=True)
    other = call(second, {"ref": "page-3"}, "not run: another parallel call failed", error=True)
    return planted(recording, at, [turn(own, other)])


def missing_turn(recording: Recording, at: int, pick: random.Random) -> Recording:
    longer = planted(recording, at, looking(pick, 3))
    gone = at + 2
    return replace(longer, turns=tuple(t for t in longer.turns if t.number != gone))


def orphan(recording: Recording, at: int, pick: random.Random) -> Recording:
    lost: ToolCall = call(pick.choice(TOOLS), {"ref": "z9"}, None)
    return planted(recording, at, [turn(lost)])


def changed(recording: Recording, at: int, new: list[Turn], *more: dict[str, object]) -> Recording:
    """The recording with turns planted, and with these fields in the first of them, in the second, ..."""
    longer = planted(recording, at, new)
    fields = {at + n: given for n, given in enumerate(more, 1)}
    return replace(longer, turns=tuple(replace(t, **fields.get(t.number, {})) for t in longer.turns))  # type: ignore[arg-type]


def lost_cache(recording: Recording, at: int, pick: random.Random) -> Recording:
    kept = pick.randint(20_000, 90_000)
    sizes = ((kept, 900), (pick.randint(0, kept // 4), kept), (kept + 2_000, 400))
    counts = [Usage(input=fresh, cache_read=read, output=40, origin="recorded") for read, fresh in sizes]
    return changed(recording, at, looking(pick, 3), *({"usage": usage} for usage in counts))


def unpriced(recording: Recording, at: int, pick: random.Random) -> Recording:
    name = pick.choice(["acme-9", "our-own-model"])
    turns = [replace(t, model=name, request_model=name, cost_usd=None) for t in recording.turns]
    return replace(recording, turns=tuple(turns))


def confused_tools(recording: Recording, at: int, pick: random.Random) -> Recording:
    new = []
    for value in pick.sample(["A-17", "B-29", "C-31", "D-43"], 2):
        new.append(turn(call("get_user", {"ref": value}, f"no user {value}: not found", error=True)))
        new.append(turn(call("get_account", {"ref": value}, f"{digest(value)}: open since March")))
    return planted(recording, at, new)


def malformed(pick: random.Random, result: str, *, error: bool) -> Turn:
    made = call(pick.choice(TOOLS), {}, result, error=error)
    return turn(replace(made, arguments_raw='{"ref": "a', arguments=None, valid=False, invalid_reason="no valid JSON"))


def silent_repair(recording: Recording, at: int, pick: random.Random) -> Recording:
    return planted(recording, at, [malformed(pick, "12 rows of March", error=False)])


def malformed_twice(recording: Recording, at: int, pick: random.Random) -> Recording:
    return planted(recording, at, [malformed(pick, "ref: the text has no end; quote it", error=True)] * 2)


def constant_gaps(recording: Recording, at: int, pick: random.Random) -> Recording:
    gap = pick.uniform(0, 4_000)
    fallen = [Attempt(pick.choice([500, 503]), "down", wait_ms=0)] + [Attempt(502, "down", wait_ms=gap)] * 2
    return changed(recording, at, looking(pick, 1), {"attempts": (*fallen, Attempt(200, wait_ms=gap))})


def hasty(recording: Recording, at: int, pick: random.Random) -> Recording:
    wait = pick.randint(5, 60)
    refused = Attempt(429, "slow down", wait_ms=0, headers={"retry-after": str(wait)})
    return changed(
        recording, at, looking(pick, 1), {"attempts": (refused, Attempt(200, wait_ms=wait * pick.uniform(0, 900)))}
    )


def one_by_one(recording: Recording, at: int, pick: random.Random) -> Recording:
    name, first = pick.choice(TOOLS), pick.randint(1, 2000)
    months = range(first, first + pick.randint(4, 5))
    return planted(
        recording, at, [turn(call(name, {"month": m}, f"{digest(f'{m}')} sold in month {m}")) for m in months]
    )


def told_twice(recording: Recording, at: int, pick: random.Random) -> Recording:
    detail = {
        "span_name": "chat",
        "scope": "acme",
        "inner_scope": "sdk",
        "input_total": pick.randint(1, 9_000),
        "output": 5,
    }
    return replace(recording, events=(Event("wrapper", turn=at, detail=detail),))


def summed_above(recording: Recording, at: int, pick: random.Random) -> Recording:
    detail = {"span_name": "agent", "scope": "acme", "input_total": pick.randint(1, 9_000), "output": 5}
    return replace(recording, events=(Event("span_usage", turn=at, detail=detail),))


def cut_at_source(recording: Recording, at: int, pick: random.Random) -> Recording:
    return changed(recording, at, looking(pick, 1), {"flags": ("truncated_at_source",)})


def silent_stream(recording: Recording, at: int, pick: random.Random) -> Recording:
    return changed(recording, at, looking(pick, 1), {"stream": True, "usage": Usage(), "cost_usd": None})


@dataclass(frozen=True)
class Mutation:
    """A fault to plant, and the rule that is to see it."""

    rule: str
    plant: Callable[[Recording, int, random.Random], Recording]


MUTATIONS = (
    Mutation("L01", no_backstop),
    Mutation("L02", raw_error),
    Mutation("L03", growing),
    Mutation("L04", full_disk),
    Mutation("L05", circle),
    Mutation("L06", lost_sibling),
    Mutation("L06", blamed_sibling),
    Mutation("L07", missing_turn),
    Mutation("L07", orphan),
    Mutation("L08", lost_cache),
    Mutation("L08", unpriced),
    Mutation("L09", confused_tools),
    Mutation("L10", silent_repair),
    Mutation("L10", malformed_twice),
    Mutation("L12", constant_gaps),
    Mutation("L13", hasty),
    Mutation("T01", one_by_one),
    Mutation("T02", told_twice),
    Mutation("T03", summed_above),
    Mutation("T04", cut_at_source),
    Mutation("T05", silent_stream),
)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_the_run_is_healthy_before(name: str) -> None:
    assert lint_facts(facts_of(RUNS[name]), RULES).findings == ()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.rule} {m.plant.__name__}")
@settings(max_examples=examples(15), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(sorted(RUNS)), share=st.floats(0, 1), seed=st.integers(0, 10_000))
def test_a_planted_fault_is_seen_by_its_rule_and_no_other(
    mutation: Mutation, name: str, share: float, seed: int
) -> None:
    """Anywhere between the first turn and the last, in every healthy run."""
    healthy_run = RUNS[name]
    at = 1 + round(share * (len(healthy_run.turns) - 2))
    sick = mutation.plant(healthy_run, at, random.Random(seed))
    # One sample reads months one by one, for its context is small: planted turns part them from the compaction after them.
    judges = [r for r in RULES if r.ID != "T01" or mutation.rule == "T01"]
    found = lint_facts(facts_of(sick), judges)
    assert found.troubles == ()
    assert {f.rule for f in found.findings} == {mutation.rule}, [f.message for f in found.findings]
