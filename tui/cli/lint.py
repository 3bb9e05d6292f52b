"""`looptape lint`: the faults of a loop, read from its runs."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tracer.errors import UsageError
from .. import report
from .findings import chosen_format, exit_code, machine, output_options
from .options import asked, filter_options, is_pair, project, run_argument

if TYPE_CHECKING:
    from ...replay.rules import Report
    from ...replay.rules.config import Config


@click.command("lint")
@run_argument("runs", nargs=-1, required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="All runs that pass the filters below, and pairs of the filter language in place of RUN.",
)
@filter_options
@click.option("--select", multiple=True, metavar="RULE", help="Only these rules: L05, or L for all that begin so.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Not these rules.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Findings in this file are known and do not count.")
@click.option("--write-baseline", is_flag=True, help="Write what is found to the --baseline file.")
@click.option("--explain", metavar="RULE", help="Print the page of a rule.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=50, show_default=True, help="Lines over many runs; 0 for all."
)
@output_options
def command(
    runs: tuple[str, ...],
    everything: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    baseline: Path | None,
    write_baseline: bool,
    explain: str | None,
    limit: int,
    form: str | None,
    as_json: bool,
    fail_on: str,
    **picked: Any,
) -> int:
    """Look for faults of the loop in recorded runs, with their sub-agents.

    Each finding tells the turns, the evidence, what was wasted, how sure it is and the cure. What the recording does
    not hold is told as unknown. Settings: [tool.looptape.lint] select, ignore, L03 = { half = 0.6 }.
    """
    if explain is not None:
        return _explain(explain)
    wanted = chosen_format(form, as_json=as_json)
    words = runs if everything and all(map(is_pair, runs)) else ()
    runs = () if words else runs
    picking = any(picked.values())
    if runs and (everything or picking):
        raise UsageError("usage", "RUN excludes --all and the filters", "Name runs, or pick them")
    if not runs and not everything and not picking:
        raise UsageError("usage", "no run is named", "Try: looptape lint last, or looptape lint --all --since 7d")
    if write_baseline and baseline is None:
        raise UsageError("usage", "--write-baseline needs a file", "Name it with --baseline FILE")
    found = _found(runs, picked, words, select, ignore)
    if baseline is not None:
        found = _against(found, baseline, write=write_baseline)
    _give(found, wanted, limit, fail_on)
    return exit_code(found, fail_on)


def _explain(rule: str) -> int:
    from ...replay.rules.pages import page

    report.block(page(rule))
    return report.FINE


def _found(
    runs: tuple[str, ...],
    picked: dict[str, Any],
    words: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
) -> Report:
    from ...replay.rules.config import read_config
    from ...replay.rules.lint import all_rules

    config = read_config(all_rules().rules, select=select, ignore=ignore)
    return _of_named(runs, config) if runs else _of_picked(picked, words, config)


def _of_picked(picked: dict[str, Any], words: tuple[str, ...], config: Config) -> Report:
    from ...replay.filters import ready
    from ...replay.rules import lint
    from .reading import reading

    wanted = replace(asked(time.time_ns() // 1000, picked, words), limit=0)
    with reading() as store:
        ready(store, wanted, report.progress)
        chosen = store.runs(wanted)
        found = lint(store, chosen, config, progress=lambda n: report.progress(f"run {n} of {len(chosen)}"))
    report.progress("")
    return found


def _of_named(runs: tuple[str, ...], config: Config) -> Report:
    """The named runs with their sub-agents; those of the store at once, so that they are compared with each other."""
    from ...replay import reference
    from ...replay.rules import lint
    from ...replay.rules.chosen import family, merged, within
    from .reading import reading

    parsed = [reference.parse(text) for text in runs]
    reports = []
    for one in (p for p in parsed if p.path is not None):
        with reference.resolve(one.text) as tape:
            found = lint(tape.store, family(tape.store, tape.run), config)
        reports.append(found if tape.first is None else within(found, tape.run.id, tape.first, tape.last or tape.first))
    stored = [p for p in parsed if p.path is None]
    if stored:
        with reading() as store:
            named = [reference.find(store, p, project()) for p in stored]
            for choice in named:
                if choice.said:
                    report.note(choice.said)
            chosen = {r.id: r for n in named for r in family(store, n.run)}
            found = lint(store, list(chosen.values()), config)
        for choice in named:
            if choice.first is not None:
                found = within(found, choice.run.id, choice.first, choice.last or choice.first)
        reports.append(found)
    return merged(reports)


def _against(found: Report, file: Path, *, write: bool) -> Report:
    from ...replay.rules import baseline

    if write:
        count = baseline.write(found, file)
        report.note(f"{count} findings written to {file}")
        return baseline.apply(found, file)
    return baseline.apply(found, file)


def _give(found: Report, form: str, limit: int, fail_on: str) -> None:
    from ...replay.rules.lint import all_rules
    from ..told import lint_text

    titles = {rule.ID: rule.TITLE for rule in all_rules().rules}
    if form == "text":
        lint_text.show(found, titles, limit=limit)
    elif form == "json":
        report.data(
            {
                "findings": [f.as_json() for f in found.findings],
                "unknown": [u.as_json() for u in found.unknown],
                "runs": [r.id for r in found.runs],
                "rules": {rule: titles.get(rule, "") for rule in found.rules},
                "known": len(found.old),
                "warnings": list(found.troubles),
            }
        )
    else:
        machine(form, found, titles, fail_on)
