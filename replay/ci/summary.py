"""Gate results as a short markdown page: which recordings hold, and what changed in turns, tools and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..export_markdown import word
from ..player.events import of_kind
from .figures import Figures, shown
from .gate import Case, Problem

MOST = 50
"""Rows of a table; beyond it says how many are left out."""
_LONGEST = 160


def summary(cases: Sequence[Case], problems: Sequence[Problem], costs: Mapping[str, tuple[Figures, Figures]]) -> str:
    """The page.

    Args:
        costs: Of each recording by its label: what it took when it was recorded, and what its replay took live.
    """
    good = sum(1 for c in cases if c.ok)
    rows = [f"## looptape replay: {good} of {len(cases)} recordings hold", ""]
    head = ("recording", "verdict", "model calls served", "tool calls served", "cost recorded", "cost of this replay")
    rows += _table(head, [_case(c, costs.get(c.label)) for c in cases])
    changed = [
        (p.case, str(p.turn or ""), p.title, *_sides(cases, p))
        for p in problems
        if p.turn is not None or p.severity == "error"
    ]
    if changed:
        rows += ["### Changed turns", "", *_table(("recording", "turn", "what", "recorded", "got"), changed)]
    tools = [(c.label, *row) for c in cases for row in _tools(c)]
    if tools:
        rows += ["### Changed tools", "", *_table(("recording", "tool", "recorded", "served", "really ran"), tools)]
    return "\n".join(rows).rstrip("\n") + "\n"


def _case(case: Case, cost: tuple[Figures, Figures] | None) -> tuple[str, ...]:
    spent = tuple(shown("usd", f.usd) for f in cost) if cost is not None else ("", "")
    if case.rerun is None:
        return case.label, "cannot be replayed", "", "", *spent
    verdict = case.rerun.verdict
    said = "ok" if case.ok else "failed" if not verdict.ok else f"ended with {case.exit_code}"
    return (
        case.label, said, f"{verdict.served.model} of {verdict.recorded.model}",
        f"{verdict.served.tools} of {verdict.recorded.tools}", *spent,
    )  # fmt: skip


def _sides(cases: Sequence[Case], problem: Problem) -> tuple[str, str]:
    """What was recorded and what came, where the problem is a miss or a drift."""
    case = next(c for c in cases if c.label == problem.case)
    if case.rerun is None:
        return "", problem.text
    verdict = case.rerun.verdict
    if problem.severity == "error" and verdict.missed is not None:
        return verdict.missed.recorded or "", verdict.missed.got or ""
    drift = next((d for d in verdict.drift if problem.title == f"turn {d.get('turn')} drifts at {d.get('path')}"), {})
    return str(drift.get("recorded") or ""), str(drift.get("got") or "")


def _tools(case: Case) -> Iterator[tuple[str, str, str, str]]:
    """Tools of which not every recorded call was served, or that really ran."""
    if case.rerun is None or case.recorded is None:
        return
    recorded = Counter(call.name for call in case.recorded.calls() if call.has_result)
    served = Counter(str(e.get("name")) for e in of_kind(case.rerun.events, "served_tool"))
    ran = Counter(str(e.get("name")) for e in of_kind(case.rerun.events, "live_tool", "bypassed"))
    for name in sorted({*recorded, *served, *ran}):
        if recorded[name] != served[name] or ran[name]:
            yield name, str(recorded[name]), str(served[name]), str(ran[name])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows[:MOST]:
        yield f"| {' | '.join(_cell(c) for c in row)} |"
    if len(rows) > MOST:
        yield ""
        yield f"{len(rows) - MOST} more rows are left out."
    yield ""


def _cell(text: str) -> str:
    """A cell that no recorded text can leave."""
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return word("".join(c if c.isprintable() else " " for c in short), lambda t: t)
