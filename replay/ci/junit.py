"""Gate results as a JUnit file: one test case a recording."""

from __future__ import annotations

from collections.abc import Sequence

from ..reports.junit import Result, xml
from .gate import UNUSABLE, Case, Problem


def junit(cases: Sequence[Case], problems: Sequence[Problem]) -> str:
    """The file's text: `error` for a recording that cannot be replayed, `failure` for a bad replay."""
    results = [_result(case, [p for p in problems if p.case == case.label]) for case in cases]
    return xml("looptape replay", results) + "\n"


def _result(case: Case, problems: Sequence[Problem]) -> Result:
    errors = [p for p in problems if p.severity == "error"]
    unusable = case.exit_code == UNUSABLE
    title = errors[0].title if errors else f"ended with {case.exit_code}"
    return Result(
        "looptape.replay",
        case.label,
        "passed" if case.ok else "error" if unusable else "failure",
        title=title,
        kind="recording-unusable" if unusable else "ReplayMismatch",
        text="" if case.ok else "\n\n".join(p.text for p in errors) or title,
        output="\n".join(f"{p.title}: {p.text}" for p in problems if p.severity == "warning"),
        file=None if case.file is None else case.label,
        line=errors[0].line if errors and case.file is not None else None,
    )
