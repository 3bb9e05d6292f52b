"""How forks ended, as lines: one run, or several and how they spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import format as fmt
from .. import report
from ..safe_text import clean

if TYPE_CHECKING:
    from ...replay.engine.outcome import Outcome, Spread
    from ...replay.fork.start import Start

_TEXT = 60


def told(sample: int, outcome: Outcome) -> None:
    """One sample is over."""
    report.note(f"sample {sample}: {outcome.status}, {_why(outcome)}")


def show(start: Start, spread: Spread) -> None:
    """The outcome of one fork, or the table of several with their spread."""
    if len(spread.outcomes) == 1 and not spread.failures:
        _one(start, spread.outcomes[0])
        return
    columns = [report.Column(t) for t in ("run", "status", "why")] + [
        report.Column(t, right=True) for t in ("turns", "cost")
    ]
    rows = [
        [o.run, o.status, clean(_why(o), limit=_TEXT), str(o.turns), fmt.money(o.cost_usd)] for o in spread.outcomes
    ]
    report.table(
        [*columns, report.Column("text", grow=True)],
        [[*r, clean(o.text or "", limit=_TEXT)] for r, o in zip(rows, spread.outcomes, strict=True)],
    )
    report.out(f"ended by {', '.join(f'{reason} {count}x' for reason, count in spread.reasons.items())}")
    if spread.turns is not None:
        least, median, most = spread.turns
        report.out(f"turns {least:g} to {most:g}, median {median:g}")
    if spread.cost_usd is not None:
        least, median, most = spread.cost_usd
        report.out(f"cost {fmt.money(least)} to {fmt.money(most)}, median {fmt.money(median)}")
    report.out(f"{len(spread.texts)} different last texts: {', '.join(f'{len(ids)}x' for _, ids in spread.texts)}")
    if spread.checked:
        report.out(f"check passed {spread.passed} of {spread.checked}")
    for line in spread.failures:
        report.note(report.Styled(line, "bad"))


def exit_code(spread: Spread) -> int:
    """130 when the user stopped it; 1 after a miss, a failure, or a check that did not pass; else 0."""
    if any(o.reason == "user" for o in spread.outcomes):
        return report.INTERRUPTED
    bad = any(o.status == "failed" or o.reason == "miss" for o in spread.outcomes)
    return report.BAD if bad or spread.failures or spread.passed < spread.checked else report.FINE


def _one(start: Start, outcome: Outcome) -> None:
    turns = f"{outcome.turns} turn{'' if outcome.turns == 1 else 's'} of its own"
    report.out(
        f"{outcome.run}  {outcome.status}  {turns}  {fmt.money(outcome.cost_usd)}  fork of {start.run}:{start.turn}"
    )
    report.out(_why(outcome))
    if outcome.verdict:
        report.out(f"check: {outcome.verdict}")
    if outcome.text:
        report.block(outcome.text, indent="  ")
    report.note(f"looptape show {outcome.run}")


def _why(outcome: Outcome) -> str:
    return f"{outcome.reason}: {outcome.detail}" if outcome.detail else outcome.reason
