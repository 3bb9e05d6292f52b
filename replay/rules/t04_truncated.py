"""T04: the producer of the trace cut it, so that what the model saw is not all here."""

from __future__ import annotations

from collections.abc import Iterator

from .facts import RunFacts
from .rule import Finding, Said, Unknown, counted, span

ID = "T04"
TITLE = "Truncated at source"
FIX = (
    "Raise the limits where the trace is made (OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT, OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT, the "
    "instrumentation's own), or record the requests themselves."
)
SHARE = 0.5
"""Share of cut turns from which nothing can be said of the run as a whole: a warning."""
THRESHOLDS = {"share": SHARE}
CUT, NOT_KEPT = "truncated_at_source", "content_not_kept"


def check(facts: RunFacts) -> Iterator[Said]:
    """Turns that are marked as cut. Where content was left out on purpose, nobody can tell whether it was cut."""
    cut = [t.number for t in facts.turns if CUT in t.flags]
    bare = [t.number for t in facts.turns if NOT_KEPT in t.flags and CUT not in t.flags]
    if cut:
        much = len(cut) >= facts.thresholds(ID, THRESHOLDS)["share"] * len(facts.turns)
        yield Finding(
            ID, "warning" if much else "info", facts.run.id, cut[0], cut[-1],
            f"{len(cut)} of {counted(len(facts.turns), 'turn')} cut where the trace was made ({span(cut)}): messages, tools or results are missing or end early",
            tuple(f"turn {n}: {_what(facts, n)}" for n in cut[:3]), facts.waste(()), 0.9, FIX,
        )  # fmt: skip
    elif bare and len(bare) == len(facts.turns):
        yield Unknown(ID, facts.run.id, ("messages",))


def _what(facts: RunFacts, number: int) -> str:
    turn = facts.turn(number)
    calls = facts.by_turn.get(number, ())
    lost = [word for word, gone in (("no messages", turn is not None and not turn.message_count),
            ("no tools", number not in facts.toolsets), ("no result", any(c.text is None for c in calls))) if gone]  # fmt: skip
    return ", ".join(lost) or "values end early"
