"""L07: the record of the run has holes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from ...tracer.model import Turn
from .facts import CallFacts, RunFacts
from .l06_parallel import unpaired
from .rule import Finding, Said, Unknown, counted, quote, span

ID = "L07"
TITLE = "Holes in the record"
FIX = (
    "Record every turn where the loop runs (looptape.run and looptape.tools write locally, before the next request goes out); "
    "refuse to start when the exporter does not work."
)
FIX_CALL = (
    "Answer every call before going on: after an interruption give the model an error result for it, or ask, "
    "before any call runs live."
)
WHOLE, HALF_BLIND = 0.95, 0.8
"""Shares of turns recorded whole: below 95 % some failure will meet a hole; below 80 % most will."""
WIRE = frozenset({"vcr", "messages", "proxy", "otlp"})
"""Sources that see requests only: that no further request came does not tell that the run was killed."""
THRESHOLDS = {"whole": WHOLE, "half_blind": HALF_BLIND}


def check(facts: RunFacts) -> Iterator[Said]:
    """Calls without a result, missing turn numbers, and the share of turns that are recorded whole."""
    if not facts.turns:
        return
    at = facts.thresholds(ID, THRESHOLDS)
    yield from _orphans(facts)
    yield from _gaps(facts)
    lacking = {t.number: found for t in facts.turns if (found := lacks(t, facts.by_turn.get(t.number, ())))}
    score = 1 - len(lacking) / len(facts.turns)
    if score >= at["whole"]:
        return
    fields = Counter(field for found in lacking.values() for field in found)
    if facts.foreign:
        yield Unknown(ID, facts.run.id, tuple(sorted(fields)))
        return
    named = ", ".join(f"{field} ({count} turns)" for field, count in fields.most_common(5))
    yield Finding(
        ID, "error" if score < at["half_blind"] else "warning", facts.run.id, min(lacking), max(lacking),
        f"Only {score:.0%} of {len(facts.turns)} turns are recorded whole; missing: {named}",
        tuple(f"turn {n}: no {', '.join(sorted(found))}" for n, found in list(lacking.items())[:3]),
        facts.waste(()), 0.9, FIX,
    )  # fmt: skip


def lacks(turn: Turn, calls: tuple[CallFacts, ...]) -> set[str]:
    """The fields that a turn should have and has not. A turn that failed or was cut is told by its error."""
    found = set()
    if not (turn.model or turn.request_model):
        found.add("model")
    if turn.started_at is None or (turn.ended_at is None and turn.status != "open"):
        found.add("times")
    if turn.status == "ok":
        found |= {"usage"} if turn.usage.origin == "missing" and not turn.stream else set()  # streams are T05's
        found |= {"stop_reason"} if not turn.stop_reason else set()
    for call in calls:
        if call.call.origin == "provider" or call.unanswered:
            continue
        if call.call.arguments is None and not call.call.arguments_raw:
            found.add("arguments")
        if call.text is None and call.call.result_digest is None and call.call.state == "done":
            found.add("result")
        if call.call.is_error is None and (turn.api or "").startswith("anthropic"):  # other APIs have no such flag
            found.add("is_error")
    return found


def _orphans(facts: RunFacts) -> Iterator[Said]:
    """Calls that nothing answers: when the run was killed, or in the middle of it."""
    last = facts.turns[-1].number
    lost = [c for c in facts.calls if c.unanswered and not unpaired(facts, c.turn)]
    killed = [c for c in lost if c.turn == last]
    between = [c for c in lost if c.turn != last]
    if killed and facts.ended_by == "cut" and facts.run.source in WIRE:
        yield Unknown(ID, facts.run.id, ("run.end",))
    elif killed and facts.ended_by == "cut":
        yield _orphan(
            facts, killed, f"The run ended while {_names(killed)} ran: no result, and nothing says what was done", 0.9
        )
    if between:
        numbers = [c.turn for c in between]
        yield _orphan(facts, between, f"{_names(between)} got no result, and the loop went on ({span(numbers)})", 0.85)


def _orphan(facts: RunFacts, calls: list[CallFacts], message: str, confidence: float) -> Finding:
    numbers = [c.turn for c in calls]
    killed = numbers[-1] == facts.turns[-1].number
    return Finding(
        ID, "warning" if killed or facts.foreign else "error", facts.run.id, numbers[0], numbers[-1], message,
        tuple(f"turn {c.turn}: {quote(c.short)}: {c.call.state}" for c in calls[:4]),
        facts.waste(()), confidence, FIX_CALL,
    )  # fmt: skip


def _gaps(facts: RunFacts) -> Iterator[Finding]:
    numbers = [t.number for t in facts.turns]
    gaps = [(a, b) for a, b in itertools.pairwise(numbers) if b - a > 1]
    inner = {t.number for t in (facts.recording.turns if facts.recording is not None else ())}
    gaps = [(a, b) for a, b in gaps if not inner.intersection(range(a + 1, b))]  # inherited turns stand there
    if gaps:
        missing = sum(b - a - 1 for a, b in gaps)
        yield Finding(
            ID, "error", facts.run.id, gaps[0][0], gaps[-1][1],
            f"{counted(missing, 'turn')} {'is' if missing == 1 else 'are'} missing from the record",
            tuple(f"turn {a} is followed by turn {b}" for a, b in gaps[:3]), facts.waste(()), 0.95, FIX,
        )  # fmt: skip


def _names(calls: list[CallFacts]) -> str:
    return quote(calls[0].short) if len(calls) == 1 else f"{len(calls)} calls"
