"""`looptape stable RUN -- COMMAND`: runs a program twice against its recording and names what its requests differ in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...tracer.errors import UsageError
from .. import report
from ..format import counted
from .options import json_option, run_argument
from .program import WithProgram, normaliser_option, program

if TYPE_CHECKING:
    from ...replay.program.stable import Stability, Unsteady

_SHOWN = 40


@click.command("stable", cls=WithProgram)
@run_argument()
@click.option(
    "--unwrapped", type=click.Choice(("stop", "run")), default="stop", show_default=True,
    help="run: recorded tools that are not wrapped in the program may really run, twice.",
)  # fmt: skip
@normaliser_option
@click.option("--proxy", is_flag=True, help="Answer through the loopback proxy.")
@json_option
def command(run: str, unwrapped: str, normaliser: tuple[str, ...], proxy: bool, as_json: bool) -> int:
    """Name what makes a program's requests differ from run to run.

    The program runs twice, offline, answered from RUN. What is not the same in both is listed with its place in
    the request, the line that asked, and the calls in the program that make such values; and whether matching
    allows for it. The program's own output goes to stderr.

    Ends with 1 if something differs that the default matching would stop at.
    """
    from ...replay.player.settings import ReplaySettings
    from ...replay.program.spec import normalisers
    from ...replay.program.stable import stability
    from .replay import chosen

    argv = program(f"stable {run}")
    if argv is None:
        raise UsageError("no-command", "no program was named", f"Try: looptape stable {run} -- python agent.py")
    how = ReplaySettings(unwrapped=unwrapped, normalisers=normalisers(normaliser))  # type: ignore[arg-type]
    found = stability(chosen(run), argv, how, proxy=proxy)
    stopped = next((r.exit_code for r in found.reruns if r.exit_code in (report.USAGE, report.INTERRUPTED)), None)
    if stopped is not None:
        for text in found.reruns[0].verdict.lines():
            report.note(text)
        return stopped
    if as_json:
        report.data(_shape(found))
    else:
        _print(found)
    return report.FINE if found.stable else report.BAD


def _shape(found: Stability) -> dict[str, object]:
    recorded, first, second = found.turns
    return {
        "stable": found.stable,
        "turns": {"recorded": recorded, "first": first, "second": second},
        "differences": [u.as_json() for u in found.unsteady],
        "changed": [u.as_json() for u in found.changed],
    }


def _print(found: Stability) -> None:
    _, first, second = found.turns
    if first != second:
        report.out(report.Styled("turns", "bad"), f"  {first} in the first run, {second} in the second")
    for one in found.unsteady[:_SHOWN]:
        _one(one)
    if len(found.unsteady) > _SHOWN:
        report.out(f"… and {len(found.unsteady) - _SHOWN} more (--json has all)")
    for one in found.changed[:_SHOWN]:
        allowed = f" (matching allows it: {', '.join(one.rules)})" if one.rules else ""
        report.out(f"turn {one.turn}  {one.path}  is the same in both runs, but not as recorded{allowed}")
        report.out("  recorded  ", one.recorded or "(nothing)")
        report.out("  now       ", one.first or "(nothing)")
    hard = sum(1 for u in found.unsteady if not u.rules)
    soft = len(found.unsteady) - hard
    if not found.unsteady and first == second:
        report.out(f"stable: {counted(first, 'turn')}, the same requests in both runs")
    else:
        report.out(f"{counted(hard, 'difference')} that a replay stops at, {soft} that matching allows")


def _one(one: Unsteady) -> None:
    style = "warn" if one.rules else "bad"
    head = f"turn {one.turn}  {one.path}"
    report.out(report.Styled(head, style), f"  {one.cause.name if one.cause else ''}")
    report.out("  first     ", one.first or "(nothing)")
    report.out("  second    ", one.second or "(nothing)")
    if one.recorded:
        report.out("  recorded  ", one.recorded)
    if one.rules:
        report.out(f"  allowed   by the rule {', '.join(one.rules)}; --match exact would stop here")
    if one.caller:
        report.out("  asked at  ", one.caller)
    for place in one.places[:5]:
        report.out("  made at?  ", place)
    if one.cause is not None:
        report.out("  cure      ", one.cause.cure)
