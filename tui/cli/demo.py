"""`looptape demo`: sample loops, recorded on this machine into a store of their own, and where to look first."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from pathlib import Path

import click

from ...tracer import paths
from ...tracer.errors import LooptapeError
from .. import report
from ..data.demo_store import MARK, place


@click.command("demo")
@click.option("--no-tui", is_flag=True, help="Print what there is to see instead of opening the screen.")
def command(no_tui: bool) -> int | None:
    """Record sample loops through the real SDK (no key, no network), add sample tapes, and look.

    The demo has a store of its own, made fresh each time: your runs stay as they are.
    """
    home = _fresh(place())
    report.note(f"recording sample loops into {home}: the real SDK, a scripted model, no key, no network")
    os.environ["LOOPTAPE_HOME"] = str(home)
    _fill(home)
    again = f"LOOPTAPE_HOME={shlex.quote(str(home))}"
    if not no_tui and report.is_terminal():
        from .tui import open_screen

        code = open_screen()
        report.note(f"to look at it again: {again} looptape")
        return code
    _tour(again)
    return None


def _fresh(home: Path) -> Path:
    """The demo's folder, empty. Only a folder that a demo made is ever removed."""
    if home.exists() and not (home / MARK).is_file():
        raise LooptapeError("demo-place", f"{home} is there and no demo made it", "Move it away, or set LOOPTAPE_HOME")
    try:
        if home.exists():
            shutil.rmtree(home)
        paths.make_private(home)
        (home / MARK).touch(mode=0o600)
    except OSError as error:
        raise LooptapeError(
            "demo-place", f"{home}: {error.strerror or error}", "Set LOOPTAPE_HOME to a folder that you can write"
        ) from None
    return home


_TRIES = (
    ("cycles", "where-is-my-parcel", "where it went round in circles"),
    ("lint", "where-is-my-parcel", "what is wrong with the loop, and the fix"),
    ("why", "broken-returns", "where its cost went"),
)
"""Commands with the sample run that has something to show for them."""


def _fill(home: Path) -> None:
    """Loops that are played, and the tapes of those that are not: each sample once."""
    from ...sample_traces import demo
    from ...tracer.importers import import_path
    from ...tracer.store import open_store

    played = demo.LIVE if demo.record(home) else ()
    with open_store(home) as store:
        for number, tape in enumerate(demo.tapes(but=played), 1):
            report.progress(f"importing sample tape {number}")
            import_path(store, tape)
    report.progress("")


def _tour(again: str) -> None:
    """The list, one run's turns, a command of each kind to try next."""
    from ...replay.recording import load
    from ...tracer.store import Filter, open_store
    from ..told import run_table, transcript

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
    report.out(f"  export {again}")
    tries = (
        (f"show {chosen.id}:1 --request", "what the model really saw in turn 1"),
        *((f"{command} {name}", says) for command, name, says in _TRIES if any(r.name == name for r in runs)),
        (f"replay {chosen.id}", "the run again, offline, from its recording"),
        ("stats --by model", "what it cost"),
        ("", "the screen (in a terminal)"),
    )
    width = max(len(command) for command, _ in tries)
    for command, says in tries:
        report.out(f"  looptape {command:<{width}}   {says}")
    report.note(f"to look at it again: {again} looptape")
