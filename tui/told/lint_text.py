"""Findings for people: by run with evidence and cure, or, over many runs, a table by rule with its total waste."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...replay.cycles import Waste
from ...replay.rules import Finding, Report, Unknown
from ...replay.rules.pages import has_page
from ...replay.rules.together import added
from ...tracer.model import Run
from .. import report
from ..format import counted, money, run_title, short_tokens
from ..report import Column, Part, Styled

FEW = 5
"""Runs that are told one by one; over more the table by rule comes first and each finding takes a line."""
LINES = 50
NAME = 60
"""Characters of a run's name in a line; a session without one is called by its first words."""
_STYLES = {"error": "bad", "warning": "warn", "info": "accent"}


@dataclass(frozen=True, slots=True)
class Total:
    """What a rule found over many runs."""

    rule: str
    runs: int
    errors: int
    warnings: int
    others: int
    wasted: Waste


def show(found: Report, titles: Mapping[str, str], *, limit: int = LINES) -> None:
    """Prints a report. ``limit``: findings that get a line when there are many runs; 0 for all."""
    if len({f.run for f in found.findings}) > FEW:
        _summary(found, titles)
        _lines(found, limit)
    else:
        _by_run(found, titles)
    _unknown(found)
    _ending(found)


def totals(findings: Iterable[Finding]) -> list[Total]:
    """By rule: how many runs, how often, and what was wasted in all; the dearest first."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    found = [_total(rule, some) for rule, some in by_rule.items()]
    return sorted(found, key=lambda t: (-(t.wasted.usd or 0), -t.wasted.turns, -t.errors, t.rule))


def wasted(waste: Waste) -> str:
    """``3 turns, 2.6k tokens, $0.0031, 2.5 s``; empty when nothing was."""
    parts = [counted(waste.turns, "turn")] if waste.turns else []
    parts += [f"{short_tokens(waste.tokens)} tokens"] if waste.tokens else []
    parts += [money(waste.usd)] if waste.usd else []
    parts += [_seconds(waste.seconds)] if waste.seconds else []
    return ", ".join(parts)


def turns(finding: Finding) -> str:
    """``7``, ``29-33``; empty where no turn is meant."""
    if not finding.first_turn:
        return ""
    last = "" if finding.last_turn == finding.first_turn else f"-{finding.last_turn}"
    return f"{finding.first_turn}{last}"


def lacking(unknown: Iterable[Unknown]) -> list[tuple[str, tuple[str, ...], list[str]]]:
    """What could not be judged, once for each rule and what it lacked: rule, missing fields, runs."""
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in unknown:
        grouped.setdefault((one.rule, one.missing), []).append(one.run)
    return [(rule, missing, runs) for (rule, missing), runs in sorted(grouped.items())]


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds < 100 else f"{seconds / 60:,.0f} min"


def _total(rule: str, findings: Sequence[Finding]) -> Total:
    counts = [sum(f.severity == s for f in findings) for s in ("error", "warning", "info")]
    waste = added([f.wasted for f in findings])
    return Total(rule, len({f.run for f in findings}), counts[0], counts[1], counts[2], waste)


def _summary(found: Report, titles: Mapping[str, str]) -> None:
    columns = (
        Column("rule"), Column("what", grow=True), Column("runs", right=True), Column("errors", right=True),
        Column("warnings", right=True), Column("turns", right=True), Column("tokens", right=True), Column("usd", right=True),
    )  # fmt: skip
    rows: list[list[Part]] = []
    for total in totals(found.findings):
        waste = total.wasted
        rows.append(
            [Styled(total.rule, "bold"), titles.get(total.rule, ""), str(total.runs), str(total.errors), str(total.warnings),
             str(waste.turns), short_tokens(waste.tokens), money(waste.usd) if waste.usd is not None else "-"]
        )  # fmt: skip
    report.table(columns, rows)
    report.out("")


def _lines(found: Report, limit: int) -> None:
    runs = {r.id: r for r in found.runs}
    shown = found.findings[:limit] if limit else found.findings
    for finding in shown:
        name = _name(runs.get(finding.run), finding.run)
        name = name if len(name) <= NAME else f"{name[: NAME - 1]}…"
        place = f"{finding.run}:{turns(finding)}" if finding.first_turn else finding.run
        report.out(
            Styled(f"{finding.severity:7} {finding.rule} ", _STYLES[finding.severity]), f"{place} ",
            Styled(f"{name}: ", "dim"), finding.message,
        )  # fmt: skip
    if len(shown) < len(found.findings):
        report.note(f"{len(shown)} of {len(found.findings)} findings: --limit 0 for all")


def _by_run(found: Report, titles: Mapping[str, str]) -> None:
    runs = {r.id: r for r in found.runs}
    by_run: dict[str, list[Finding]] = {}
    for finding in found.findings:
        by_run.setdefault(finding.run, []).append(finding)
    for run in sorted(by_run, key=lambda r: list(runs).index(r) if r in runs else -1):
        known = runs.get(run)
        report.out(Styled(_name(known, run), "bold"), f"  {run}", f"  {_standing(known)}" if known else "")
        for finding in by_run[run]:
            _one(finding, titles)
        report.out("")


def _one(finding: Finding, titles: Mapping[str, str]) -> None:
    waste = wasted(finding.wasted)
    report.out(
        "  ", Styled(f"{finding.severity:7} {finding.rule}", _STYLES[finding.severity]), f"  {titles.get(finding.rule, '')}",
        Styled(f"  turn {turns(finding)}, {finding.confidence:.0%} sure" if finding.first_turn else "", "dim"),
        Styled(f", wasted {waste}" if waste else "", "warn"),
    )  # fmt: skip
    report.out("    ", finding.message)
    for text in finding.evidence:
        report.out("    ", Styled(f"> {text}", "dim"))
    more = f"  [looptape lint --explain {finding.rule}]" if has_page(finding.rule) else ""
    report.out("    ", Styled("fix: ", "good"), finding.fix, Styled(more, "dim"))


def _unknown(found: Report) -> None:
    for rule, missing, runs in lacking(found.unknown):
        who = counted(len(set(runs)), "run") if len(found.runs) > 1 else "this run"
        report.out(Styled(f"unknown {rule} ", "dim"), f"cannot judge {who}: not recorded: {', '.join(missing)}")


def _ending(found: Report) -> None:
    for trouble in found.troubles:
        report.note(Styled("looptape: ", "bad"), trouble)
    if found.old:
        report.note(f"{counted(len(found.old), 'finding')} of the baseline not shown")
    errors = sum(f.severity == "error" for f in found.findings)
    warnings = sum(f.severity == "warning" for f in found.findings)
    rest = len(found.findings) - errors - warnings
    said = [counted(errors, "error"), counted(warnings, "warning")] + ([counted(rest, "remark")] if rest else [])
    report.note(
        f"{', '.join(said)} in {counted(len(found.runs), 'run')}"
        if found.findings
        else f"nothing {'else ' if found.old else ''}found in {counted(len(found.runs), 'run')}"
    )


def _name(run: Run | None, fallback: str) -> str:
    return run_title(run) if run is not None else fallback


def _standing(run: Run) -> str:
    return f"{counted(run.turns, 'turn')}, {run.status}" + (f" ({run.reason})" if run.reason else "")
