"""T02: two instrumentations told of the same model call, so that sums over spans count it twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...tracer.model import Event, Turn
from .facts import RunFacts
from .rule import Finding, Said, Unknown, counted, quote, span

ID = "T02"
TITLE = "A model call counted twice"
FIX = (
    "Switch one of the two instrumentations off (an SDK that traces itself needs none beside it); where both must stay, sum "
    "usage over the inner spans only."
)
SPANS = frozenset({"otlp", "langfuse", "langsmith"})
"""Sources that are heaps of spans; elsewhere nobody tells of a call but the loop."""


def check(facts: RunFacts) -> Iterator[Said]:
    """Calls told of twice and counted once here, and turns that stand here twice."""
    again = _same_answer(facts)
    if again:
        yield _doubled(facts, again)
    told = [e for e in facts.events if e.kind == "wrapper" and foreign_scope(e)]
    if told:
        yield _told_twice(facts, told)
    elif facts.run.source in SPANS and _doubtful(facts):
        yield Unknown(ID, facts.run.id, ("turns.response_id",))


def foreign_scope(event: Event) -> bool:
    """True when the wrapping span is another instrumentation's than the span inside."""
    inner = event.detail.get("inner_scope")
    return inner is None or inner != event.detail.get("scope")


def usage_of(event: Event) -> tuple[int, int] | None:
    """Tokens read and written that a span says beside those of the call; None when it has no usage."""
    read, wrote = event.detail.get("input_total"), event.detail.get("output")
    if not isinstance(read, int) and not isinstance(wrote, int):
        return None
    return read if isinstance(read, int) else 0, wrote if isinstance(wrote, int) else 0


def _told_twice(facts: RunFacts, told: list[Event]) -> Finding:
    again = [usage for event in told if (usage := usage_of(event)) is not None]
    scopes = {str(e.detail.get("scope") or e.detail.get("span_name") or "?") for e in told}
    inner = {str(e.detail["inner_scope"]) for e in told if e.detail.get("inner_scope")}
    numbers = [e.turn for e in told if e.turn is not None]
    read, wrote = sum(r for r, _ in again), sum(w for _, w in again)
    sums = f": {read:,} tokens read and {wrote:,} written a second time" if again else ""
    beside = f" beside {', '.join(sorted(inner))}" if inner else ""
    shown = [
        (e.turn, quote(str(e.detail.get("span_name")), 60), quote(str(e.detail.get("scope")), 60)) for e in told[:3]
    ]
    return Finding(
        ID, "info", facts.run.id, min(numbers, default=0), max(numbers, default=0),
        f"{counted(len(set(numbers)), 'model call')} told of twice, by {', '.join(sorted(scopes))}{beside}{sums}; "
        "counted once here, but not by a sum over the spans",
        tuple(f"turn {turn}: span {name} of {scope}" for turn, name, scope in shown), confidence=0.9, fix=FIX,
    )  # fmt: skip


def _same_answer(facts: RunFacts) -> list[list[Turn]]:
    found: dict[str, list[Turn]] = {}
    for turn in facts.turns:
        if turn.response_id and turn.status == "ok":
            found.setdefault(turn.response_id, []).append(turn)
    return [turns for turns in found.values() if len(turns) > 1 and _overlap(turns[0], turns[1])]


def _doubled(facts: RunFacts, again: list[list[Turn]]) -> Finding:
    extra = [t.number for turns in again for t in turns[1:]]
    return Finding(
        ID, "warning", facts.run.id, again[0][0].number, max(extra),
        f"{counted(len(extra), 'answer')} twice in the record ({span(extra)}): their tokens are counted twice",
        tuple(f"turns {span([t.number for t in turns])[5:].strip()}: the answer {quote(turns[0].response_id or '', 60)}" for turns in again[:3]),
        facts.waste(()), 0.85, FIX,
    )  # fmt: skip


def _overlap(one: Turn, other: Turn) -> bool:
    """At the same time; an answer that comes again later was served from a cache or a recording."""
    if None in (one.started_at, one.ended_at, other.started_at):
        return False
    return (one.started_at or 0) <= (other.started_at or 0) < (one.ended_at or 0)


def _doubtful(facts: RunFacts) -> bool:
    """Two turns at the same time with the same figures, and no id to tell them apart."""
    turns = [t for t in facts.turns if t.status == "ok" and t.usage.context is not None]
    return any(
        _overlap(a, b) and None in (a.response_id, b.response_id)
        and (a.usage.context, a.usage.output, a.text) == (b.usage.context, b.usage.output, b.text)
        for a, b in itertools.pairwise(turns)
    )  # fmt: skip
