"""Findings as GitHub annotations, at the line of the loop that asked, where the recording knows it."""

from __future__ import annotations

from collections.abc import Iterator

from ..rules.lint import Report
from ..rules.rule import Finding
from .annotations import Level, Note, commands
from .places import code_place, run_name, turns, whole

_LEVELS: dict[str, Level] = {"error": "error", "warning": "warning", "info": "notice"}


def lines(report: Report) -> Iterator[str]:
    """The ten worst, then how many more."""
    runs = {run.id: run for run in report.runs}

    def note(finding: Finding) -> Note:
        file, line = code_place(finding, runs.get(finding.run)) or (None, None)
        where = " ".join(part for part in (run_name(runs, finding.run), turns(finding)) if part)
        return Note(_LEVELS[finding.severity], f"{finding.rule} {where}", whole(finding), file, line)

    notes = [note(f) for f in report.findings]
    return commands(notes, "finding", "looptape lint without --format github shows all of them")
