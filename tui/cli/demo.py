"""`looptape demo`: sample loops, recorded on this machine, and where to look first."""

from __future__ import annotations

import time

import click

from ...tracer import paths
from .. import report


@click.command("demo")
@click.option("--no-tui", is_flag=True, help="Print what there is to see instead of opening the screen.")
def command(no_tui: bool) -> int | None:
    """Record the sample loops through the real SDK (no key, no network), import the sample tapes, and look."""
    from ...sample_traces import demo

    report.note("recording the sample loops: the real SDK, a scripted model, no key, no network")
    demo.record(paths.home())
    _import_tapes()
    if not no_tui and report.is_terminal():
        from .tui import open_screen

        return open_screen()
    _tour()
    return None


def _import_tapes() -> None:
    from ...sample_traces import demo
    from ...tracer.importers import import_path
    from ...tracer.store import open_store

    with open_store() as store:
        for number, tape in enumerate(demo.tapes(), 1):
            report.progress(f"importing sample tape {number}")
            import_path(store, tape)
    report.progress("")


def _tour() -> None:
    """The list, one run's turns, three commands to try next."""
    from ...replay.recording import load
    from ...tracer.store import Filter, open_store
    from .. import run_table, transcript

    with open_store() as store:
        runs = store.runs(Filter(limit=20))
        total = store.count(Filter())
        report.out(report.Styled("$ looptape runs", "accent"))
        run_table.show(runs, time.time_ns() // 1000, totals=False)
        if total > len(runs):
            report.note(f"{len(runs)} of {total:,} runs: looptape runs --limit 0 for all")
        if not runs:
            return
        chosen = next((r for r in runs if 2 <= r.turns <= 5 and r.tool_calls), runs[0])
        report.out()
        report.out(report.Styled(f"$ looptape show {chosen.id}", "accent"))
        transcript.show_run(load(store, chosen))
    report.out()
    report.out(report.Styled("next", "accent"))
    report.out(f"  looptape show {chosen.id}:1 --request     what the model really saw in turn 1")
    report.out('  looptape sql "select name, turns, cost_usd from runs order by cost_usd desc"')
    report.out("  looptape                                  the screen (in a terminal)")
