"""`looptape cycles`: where a run went round in circles, and what that cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .. import report
from .findings import chosen_format, exit_code, machine, output_options
from .options import run_argument

if TYPE_CHECKING:
    from ...replay.cycles import CycleFinding


@click.command("cycles")
@run_argument()
@output_options
def command(run: str, form: str | None, as_json: bool, fail_on: str) -> int:
    """Tell where a run, with its sub-agents, went round in circles.

    A cycle that is merely known is a warning; one that went on from there is an error. What your tools do can be
    said in settings: [tool.looptape.tools] peek_queue = "poll".
    """
    from ...replay.cycles.declared import from_settings
    from ...replay.rules.chosen import family
    from ...replay.rules.circles import TITLES, as_report, cycles_of
    from ...tracer.settings import tables
    from .reading import found

    wanted = chosen_format(form, as_json=as_json)
    declared = from_settings(tables().get("tools", ({}, ""))[0])
    with found(run) as one:
        runs = family(one.store, one.run)
        cycles = cycles_of(one.store, runs, declared)
    if one.first is not None and one.last is not None:
        first, last = one.first, one.last
        cycles = tuple(c for c in cycles if c.run == one.run.id and c.first_turn <= last and c.last_turn >= first)
    told = as_report(cycles, runs)
    if wanted == "json":
        report.data({"findings": [c.as_json() for c in cycles], "runs": [r.id for r in runs]})
    elif wanted == "text":
        _show(cycles, len(runs))
    else:
        machine(wanted, told, TITLES, fail_on)
    return exit_code(told, fail_on)


def _show(cycles: tuple[CycleFinding, ...], runs: int) -> None:
    from ..format import counted
    from ..told.lint_text import wasted

    several = runs > 1
    for cycle in cycles:
        style = "warn" if cycle.level in ("note", "warn") else "bad"
        report.out(
            report.Styled(f"{cycle.kind:11}", style), f"{cycle.run}: " if several else "", cycle.sentence,
            f" (agent {cycle.agent})" if cycle.agent else "",
        )  # fmt: skip
        waste = wasted(cycle.wasted)
        said = f"known from turn {cycle.detected_turn}, {cycle.confidence:.0%} sure"
        report.out(" " * 11, report.Styled(said, "dim"), report.Styled(f", wasted {waste}" if waste else "", "warn"))
        for call in cycle.calls[:8]:
            report.out(" " * 11, report.Styled(f"> {call}", "dim"))
        if len(cycle.calls) > 8:
            report.out(" " * 11, report.Styled(f"> and {len(cycle.calls) - 8} more", "dim"))
    where = "this run" if not several else f"this run and its {counted(runs - 1, 'sub-agent')}"
    report.note(f"{counted(len(cycles), 'cycle')} in {where}" if cycles else f"no cycle in {where}")
