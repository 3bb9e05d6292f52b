"""L05: the loop went round in circles and nothing noticed before a cap did."""

from __future__ import annotations

from collections.abc import Iterator

from ..cycles import CycleFinding
from .facts import RunFacts
from .rule import Finding, Said, quote

ID = "L05"
TITLE = "Cycle noticed only at the cap"
FIX = (
    'Watch for repetition while the loop runs: looptape.Guard(cycles="stop") tells the model when the circle is known, '
    "blocks the call two laps later and stops the loop after four."
)
BEFORE_END = 5
"""Turns between the beginning of the circle and the end from which a cap is no early notice."""
THRESHOLDS = {"before_end": BEFORE_END}


def check(facts: RunFacts) -> Iterator[Said]:
    """One finding per circle: an error when it ran into the cap, a warning when nothing spoke up."""
    if not facts.turns:
        return
    before = facts.thresholds(ID, THRESHOLDS)["before_end"]
    last = facts.turns[-1].number
    for cycle in facts.cycles:
        capped = facts.ended_by in ("cap", "cut")  # a guard that stopped it did notice
        lasting = cycle.last_turn > last - max(before, 2 * cycle.period)
        if capped and lasting and last - cycle.first_turn >= before:
            yield _finding(facts, cycle, "error", f"only the end of the run stopped it ({_end(facts)})")
        elif not facts.notices.intersection(range(cycle.detected_turn, cycle.last_turn + 2)):
            yield _finding(facts, cycle, "warning", "nothing told the model or stopped it")


def _finding(facts: RunFacts, cycle: CycleFinding, severity: str, how: str) -> Finding:
    errors = [
        f"turn {c.turn}: {quote(c.text or '', 120)}"
        for c in facts.calls
        if c.failed and c.turn in cycle.turns and c.text
    ]
    said = cycle.sentence[:1].upper() + cycle.sentence[1:]
    return Finding(
        ID, "error" if severity == "error" else "warning", facts.run.id, cycle.first_turn, cycle.last_turn,
        f"{said}; it could be known at turn {cycle.detected_turn}, and {how}",
        (*cycle.calls[:3], *dict.fromkeys(errors[:2])), cycle.wasted, cycle.confidence, FIX,
    )  # fmt: skip


def _end(facts: RunFacts) -> str:
    return facts.run.reason or facts.run.status
