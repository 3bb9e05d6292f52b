"""The runs that people name, with their sub-agents, and one report out of several stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...tracer.model import Run
from .lint import Report, ordered

if TYPE_CHECKING:
    from ...tracer.store import Store


def family(store: Store, run: Run) -> list[Run]:
    """A run and its sub-agents, and theirs, each once; the run first."""
    query = (
        "with recursive tree(id) as (select ? union select r.id from tree as t join base.runs as r on r.parent_run = t.id "
        "where r.parent_kind = 'sub-agent') select id from tree"
    )
    ids = [row["id"] for row in store.rows(query, [run.id])]
    return [run, *(store.run(i) for i in sorted(ids) if i != run.id)]


def within(report: Report, run: str, first: int, last: int) -> Report:
    """The report with only those findings of a run that touch these turns."""
    kept = tuple(f for f in report.findings if f.run != run or (f.first_turn <= last and f.last_turn >= first))
    return replace(report, findings=kept)


def merged(reports: Sequence[Report]) -> Report:
    """One report of several, findings in the order of one."""
    if len(reports) == 1:
        return reports[0]
    runs = _once([r for report in reports for r in report.runs])
    findings = [f for report in reports for f in report.findings]
    return Report(
        ordered(findings, runs),
        tuple(u for report in reports for u in report.unknown),
        runs,
        tuple(dict.fromkeys(rule for report in reports for rule in report.rules)),
        tuple(dict.fromkeys(t for report in reports for t in report.troubles)),
        tuple(f for report in reports for f in report.old),
    )


def _once(runs: Iterable[Run]) -> tuple[Run, ...]:
    return tuple({run.id: run for run in runs}.values())
