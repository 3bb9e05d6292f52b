"""Findings as JUnit test cases: one a finding, one a run without any, and one skipped for what could not be judged."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ..rules.lint import Report
from ..rules.rule import Finding
from .junit import Result, xml
from .places import code_place, run_name, turns, whole


def text(report: Report, titles: Mapping[str, str], failing: Collection[str]) -> str:
    """The file's text. What is not bad enough to fail passes, and its report stands in the output."""
    return xml("looptape lint", list(_results(report, titles, failing)))


def _results(report: Report, titles: Mapping[str, str], failing: Collection[str]) -> Iterator[Result]:
    runs = {run.id: run for run in report.runs}
    found = {f.run for f in report.findings}
    for finding in report.findings:
        file, line = code_place(finding, runs.get(finding.run)) or (None, None)
        name = " ".join(part for part in (run_name(runs, finding.run), turns(finding)) if part)
        bad = finding.severity in failing
        yield Result(
            _group(finding), name, "failure" if bad else "passed", title=_title(finding, titles),
            kind=f"{finding.rule} {finding.severity}", text=whole(finding) if bad else "",
            output="" if bad else f"{finding.severity}: {whole(finding)}", file=file, line=line,
        )  # fmt: skip
    for run in report.runs:
        if run.id not in found:
            yield Result("looptape.lint", run_name(runs, run.id))
    for one in report.unknown:
        said = f"{titles.get(one.rule, one.rule)}: not recorded: {', '.join(one.missing)}"
        yield Result(f"looptape.lint.{one.rule}", run_name(runs, one.run), "skipped", title=said)


def _group(finding: Finding) -> str:
    return f"looptape.lint.{finding.rule}"


def _title(finding: Finding, titles: Mapping[str, str]) -> str:
    return f"{titles.get(finding.rule, finding.rule)}: {finding.message}"
