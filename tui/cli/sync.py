"""`looptape sync`: journals and remembered folders into the store."""

from __future__ import annotations

import time

import click

from .. import format as fmt
from .. import report, sessions
from .options import json_option

PAUSE = 2.0


@click.command("sync")
@click.option("--watch", is_flag=True, help="Go on until interrupted.")
@json_option
def command(watch: bool, as_json: bool) -> None:
    """Move what was recorded, and what remembered folders gained, into the store (every reading command does so)."""
    first = True
    while True:
        said = _once()
        if first or said["records"] or said["files"]:
            _print(said, as_json)
        if not watch:
            return
        if first:
            report.note("watching; ctrl+c ends it")
        first = False
        time.sleep(PAUSE)


def _once() -> dict[str, object]:
    from ...tracer.store import open_store, sync

    done = sync()
    reports = []
    if sessions.remembered():
        with open_store(drain=False) as store:
            reports = sessions.in_step(store, report.progress, everything=True)
        report.progress("")
    for text in done.messages:
        report.note(text)
    return {
        "records": done.records,
        "runs": done.runs,
        "turns": done.turns,
        "waiting": done.waiting,
        "bad": done.bad,
        "newer": done.newer,
        "files": [r.as_json() for r in reports],
    }


def _print(said: dict[str, object], as_json: bool) -> None:
    if as_json:
        report.data(said)
        return
    files = said["files"]
    parts = [f"{said['records']:,} records", f"{said['runs']:,} runs", f"{said['turns']:,} turns"]
    if isinstance(files, list) and files:
        parts.append(fmt.counted(len(files), "session file"))
    report.out("moved ", ", ".join(parts))
    if said["waiting"]:
        report.out(f"{said['waiting']} journals wait")
    if said["bad"]:
        report.out(f"{said['bad']} records could not be read; they are kept in the store's bad records")
    if said["newer"]:
        report.out(f"{said['newer']} records are of a newer looptape; upgrade to read them")
