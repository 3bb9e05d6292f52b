"""Cycles as findings, so that they go out in the same formats and count for the same exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...tracer.model import Run
from ..cycles import CycleFinding, Declared, find_cycles
from ..cycles.finding import KINDS
from ..recording import load_many
from .lint import Report, ordered
from .pages import CYCLE
from .rule import Finding

if TYPE_CHECKING:
    from ...tracer.store import Store

FIX = (
    'Stop it while it runs: looptape.Guard(cycles="stop") tells the model when the circle is known, blocks the call two '
    "laps later and stops the loop after four."
)
TITLES: Mapping[str, str] = {f"{CYCLE}{kind}": f"Cycle: {what}" for kind, what in KINDS.items()}


@dataclass(frozen=True, slots=True)
class CircleFinding(Finding):
    """A cycle in the shape of a rule's finding; its page is that of the detector."""

    @property
    def url(self) -> str:
        """The detector's page."""
        return "docs/cycles.md"


def cycles_of(store: Store, runs: Sequence[Run], declared: Declared) -> tuple[CycleFinding, ...]:
    """The cycles of these runs, in their order."""
    return tuple(c for recording in load_many(store, runs) for c in find_cycles(recording, declared=declared))


def as_report(cycles: Sequence[CycleFinding], runs: Sequence[Run]) -> Report:
    """Cycles as a report: level ``warn`` is a warning, ``intervene`` and ``stop`` are errors."""
    findings = [_finding(cycle) for cycle in cycles]
    kinds = sorted({f.rule for f in findings})
    return Report(ordered(findings, runs), (), tuple(runs), tuple(kinds))


def _finding(cycle: CycleFinding) -> CircleFinding:
    return CircleFinding(
        f"{CYCLE}{cycle.kind}", "warning" if cycle.level in ("note", "warn") else "error", cycle.run or "",
        cycle.first_turn, cycle.last_turn, cycle.sentence, cycle.calls, cycle.wasted, cycle.confidence, FIX,
    )  # fmt: skip
