"""T03: usage stands on spans that hold other spans with usage, or on them alone."""

from __future__ import annotations

from collections.abc import Iterator

from ...tracer.model import Event
from .facts import RunFacts
from .rule import Finding, Said, Unknown, quote
from .t02_counted_twice import foreign_scope, usage_of

ID = "T03"
TITLE = "Usage on spans that are no leaves"
FIX = (
    "Put usage on the span of the model call and nowhere else; where an agent's span must carry a sum, give it a name of its "
    "own, so that nobody adds it to its parts."
)


def check(facts: RunFacts) -> Iterator[Said]:
    """Sums on an agent's span, calls wrapped by a span of the same instrumentation, and calls without figures below."""
    above = [e for e in facts.events if e.kind == "span_usage" or (e.kind == "wrapper" and not foreign_scope(e))]
    above = [e for e in above if usage_of(e) is not None]
    if above:
        yield _finding(facts, above)
    elif any(f.startswith("parent ") and f.endswith(" not received") for t in facts.turns for f in t.flags):
        yield Unknown(ID, facts.run.id, ("parent spans",))


def _finding(facts: RunFacts, above: list[Event]) -> Finding:
    silent = [t for t in facts.turns if t.usage.origin == "missing"]
    only = len(silent) == len(facts.turns)
    read, wrote = (sum(values) for values in zip(*(usage_of(e) or (0, 0) for e in above), strict=True))
    names = sorted({str(e.detail.get("span_name") or "?") for e in above})
    what = (
        "and on no model call below it: what each turn took is not known" if only
        else "and on the model calls below it: a sum over the spans counts them twice (here they are counted once)"
    )  # fmt: skip
    return Finding(
        ID, "warning" if only else "info", facts.run.id, facts.turns[0].number if facts.turns else 0,
        facts.turns[-1].number if facts.turns else 0,
        f"The span {quote(', '.join(names), 80)} carries usage ({read:,} tokens read, {wrote:,} written), {what}",
        tuple(f"span {quote(str(e.detail.get('span_name')), 60)} of {quote(str(e.detail.get('scope')), 60)}" for e in above[:3]),
        confidence=0.85, fix=FIX,
    )  # fmt: skip
