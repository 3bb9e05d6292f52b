"""`looptape budget RUN... --file F`: turns, tokens and cost of runs against a baseline."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import report
from .options import json_option, run_argument

if TYPE_CHECKING:
    from ...replay.ci.budget import Judgement, Line
    from ...replay.ci.figures import Figures

_SIGNS = {"ok": "good", "over": "bad", "unknown": "bad", "unchecked": "warn", "new": "bad"}


@click.command("budget")
@run_argument("runs", nargs=-1)
@click.option(
    "--file", "file", required=True, metavar="FILE", help="The baseline, a JSON file to keep in the repository."
)
@click.option("--tolerance", default="10%", show_default=True, help="What may be added to each figure: 10% or 0.1.")
@click.option("--update", is_flag=True, help="Write the figures of these runs into the baseline instead.")
@json_option
def command(runs: tuple[str, ...], file: str, tolerance: str, update: bool, as_json: bool) -> int:
    """Hold turns, tokens and cost of runs (or tapes) against a baseline; ends with 1 where one took more.

    A run is known by the path of its tape as it is written here, else by its task or name. One that the baseline
    does not know fails, and so does a cost that is in the baseline and cannot be known now (a model without a price).
    """
    from ...replay.ci import budget

    part = budget.tolerance_of(tolerance)
    measured = [_measured(run) for run in runs]
    if update:
        return _update(Path(file), measured, as_json=as_json)
    baseline = budget.read(Path(file))
    judged = [budget.judge(key, label, now, baseline, part) for key, label, now in measured]
    if as_json:
        report.data({"ok": all(j.ok for j in judged), "runs": [_json(j) for j in judged]})
    else:
        _table(judged)
    for one in judged:
        _say(one, file)
    return report.FINE if all(j.ok for j in judged) else report.BAD


def _measured(run: str) -> tuple[str, str, Figures]:
    """Key, label and figures."""
    from ...replay.ci import measured
    from ...replay.reference import parse
    from .reading import found

    named = parse(run)
    if named.path is not None and named.path.is_file() and named.first is None:
        return Path(named.base).as_posix(), run, measured.of_tape(named.path)
    with found(run) as one:
        key = one.run.task or one.run.name or one.run.title or one.run.id
        return key, f"{one.run.id} ({key})" if key != one.run.id else key, measured.of_found(one)


def _update(file: Path, measured: list[tuple[str, str, Figures]], *, as_json: bool) -> int:
    from ...replay.ci import budget

    grouped: dict[str, list[Figures]] = {}
    for key, _, now in measured:
        grouped.setdefault(key, []).append(now)
    most = {key: budget.worst(found) for key, found in grouped.items()}
    budget.write(file, most)
    for key, now in most.items():
        for name in ("tokens", "usd"):
            if now.get(name) is None:
                report.note(f"warning: {key}: {name} is not in the baseline: {now.missing(name)}")
    if as_json:
        report.data({"file": str(file), "updated": sorted(most)})
    report.note(f"wrote {file} ({len(most)} {'run' if len(most) == 1 else 'runs'})")
    return report.FINE


def _table(judged: list[Judgement]) -> None:
    columns = [report.Column("run", grow=True), report.Column("figure")]
    columns += [report.Column(title, right=True) for title in ("baseline", "now", "at most")]
    columns.append(report.Column("verdict"))
    rows: list[list[report.Part]] = []
    for one in judged:
        if not one.lines:
            rows.append([one.label, "", "", "", "", report.Styled("not in the baseline", "bad")])
        rows += [_row(one, line) for line in one.lines]
    report.table(columns, rows)


def _row(one: Judgement, line: Line) -> list[report.Part]:
    from ...replay.ci.figures import shown

    said = {"unknown": "cannot be checked", "unchecked": "not checked"}.get(line.judged, line.judged)
    most = shown(line.name, line.most) if line.most is not None else ""
    base = shown(line.name, line.base) if line.base is not None else "none"
    return [one.label, line.name, base, shown(line.name, line.now), most, report.Styled(said, _SIGNS[line.judged])]


def _say(one: Judgement, file: str) -> None:
    if not one.lines:
        report.note(f"{one.label} is not in {file}: add it with --update")
    for line in one.lines:
        if line.judged in ("unknown", "unchecked"):
            word = "error" if line.judged == "unknown" else "warning"
            report.note(
                f"{word}: {one.label}: {line.name} {'cannot be' if word == 'error' else 'was not'} checked: {line.why}"
            )


def _json(one: Judgement) -> dict[str, Any]:
    lines = {
        line.name: {
            "baseline": _number(line.base), "now": _number(line.now), "limit": _number(line.most),
            "verdict": line.judged, "why": line.why,
        }
        for line in one.lines
    }  # fmt: skip
    return {"run": one.label, "key": one.key, "ok": one.ok, "known": bool(one.lines), "figures": lines}


def _number(value: Decimal | None) -> int | float | None:
    return None if value is None else int(value) if value == value.to_integral_value() else float(value)
