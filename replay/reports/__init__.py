"""Findings in the formats that machines read: SARIF, GitHub annotations, JUnit. `write` gives the whole text."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..rules.lint import Report
from . import findings_github, findings_junit, sarif

FORMATS = ("sarif", "github", "junit")


def write(form: str, report: Report, titles: Mapping[str, str], failing: Collection[str] = ("error",)) -> str:
    """A report as text of one of `FORMATS`, without an end of line; ASCII, so that no recorded character can act.

    Args:
        titles: Rule id to title.
        failing: Severities that count as a failure (JUnit knows nothing between good and bad).
    """
    if form == "sarif":
        return sarif.text(report, titles)
    if form == "github":
        return "\n".join(findings_github.lines(report))
    return findings_junit.text(report, titles, failing)


__all__ = ["FORMATS", "write"]
