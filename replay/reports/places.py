"""Where a finding belongs: the line of the loop's code that made the call, and the run for a person."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from ...tracer.model import Run
from ..rules.rule import Finding


def code_place(finding: Finding, run: Run | None) -> tuple[str, int] | None:
    """File and line of the code that asked, from the root of the project; None when it is not known, or lies outside."""
    file, colon, line = (finding.caller or "").rpartition(":")
    if not colon or not line.isdigit() or int(line) < 1:
        return None
    path = PurePath(file)
    if path.is_absolute():
        try:
            path = path.relative_to(run.project if run is not None and run.project else "")
        except ValueError:
            return None
    if not path.parts or ".." in path.parts:
        return None
    return path.as_posix(), int(line)


def run_name(runs: Mapping[str, Run], run: str) -> str:
    """``research (0123456789abcdef)``: the name where there is one, and the id."""
    known = runs.get(run)
    name = (known.name or known.title or known.agent) if known is not None else None
    return f"{name} ({run})" if name else run


def turns(finding: Finding) -> str:
    """``turn 3``, ``turns 3 to 9``; empty where no turn is meant."""
    if not finding.first_turn:
        return ""
    if finding.first_turn == finding.last_turn:
        return f"turn {finding.first_turn}"
    return f"turns {finding.first_turn} to {finding.last_turn}"


def whole(finding: Finding) -> str:
    """The finding as a text of several lines: message, evidence, fix, page."""
    evidence = [f"> {text}" for text in finding.evidence]
    fix = [f"fix: {finding.fix}"] if finding.fix else []
    return "\n".join([finding.message, *evidence, *fix, f"see {finding.url}"])
