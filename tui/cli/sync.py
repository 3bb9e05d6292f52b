"""`looptape sync`: journals and remembered folders into the store."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from ...tracer.errors import LooptapeError, UsageError
from .. import format as fmt
from .. import report
from ..data import sessions
from ..safe_text import clean
from .options import json_option

if TYPE_CHECKING:
    from ...tracer.store.reprice import Repriced

PAUSE = 2.0


@click.command("sync")
@click.option("--watch", is_flag=True, help="Go on until interrupted.")
@click.option("--reprice", is_flag=True, help="Then work out every cost again, by today's price lists.")
@json_option
def command(watch: bool, reprice: bool, as_json: bool) -> None:
    """Move what was recorded, and what remembered folders gained, into the store (every reading command does so)."""
    if watch and reprice:
        raise UsageError("usage", "--watch and --reprice exclude each other", "Choose one")
    if reprice:
        _reprice(as_json)
        return
    first, told = True, ""
    while True:
        try:
            said = _once()
        except LooptapeError as error:
            if first or not watch:
                raise
            if str(error) != told:  # somebody holds the store, the disk is full: it may pass
                report.note(told := str(error))
            time.sleep(PAUSE)
            continue
        told = ""
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
    for one in reports:
        if one.error is not None:
            report.note(f"{one.error}. {one.cure or ''}".rstrip())
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


def _reprice(as_json: bool) -> None:
    """Costs of all turns anew, each at the time when it was made; says what changed."""
    from ...tracer import pricing
    from ...tracer.store import open_store
    from ...tracer.store.reprice import reprice

    said = _once()
    with open_store(drain=False) as store:
        done = store.write(lambda con: reprice(con, report.progress))
    report.progress("")
    if as_json:
        report.data({**said, "repriced": {**done.as_json(), "prices": pricing.sources()}})
        return
    _print(said, as_json=False)
    _print_repriced(done, pricing.sources())


def _print_repriced(done: Repriced, prices: str) -> None:
    partial = f", {done.unpriced:,} not priced" if done.unpriced else ""
    report.out(f"prices of {prices}: {fmt.counted(done.turns, 'turn')}{partial}")
    if not done.changed:
        report.out(f"no cost changed: {fmt.money(float(done.after))}")
        return
    rows = []
    for model, change in sorted(done.changed.items()):
        news = [f"{change.now_priced:,} priced now"] if change.now_priced else []
        news += [f"{change.now_unpriced:,} no longer priced"] if change.now_unpriced else []
        figures = (
            _sum(change.before, change.now_priced == change.turns),
            _sum(change.after, change.now_unpriced == change.turns),
        )
        rows.append([clean(model, limit=60), fmt.count(change.turns), *figures, ", ".join(news)])
    heads = (("model", False), ("turns", True), ("before", True), ("now", True), ("", False))
    report.table([report.Column(title, right=right) for title, right in heads], rows)
    report.out(
        f"all: {fmt.money(float(done.before))} before, {fmt.money(float(done.after))} now{' (partial)' if partial else ''}"
    )


def _sum(amount: Decimal, unpriced: bool) -> str:
    return fmt.money(None if unpriced else float(amount))


def _print(said: dict[str, object], as_json: bool) -> None:
    if as_json:
        report.data(said)
        return
    files = said["files"]
    parts = [f"{said['records']:,} records", f"{said['runs']:,} runs", f"{said['turns']:,} turns"]
    read = [f for f in files if f["format"] is not None] if isinstance(files, list) else []
    if read:
        parts.append(fmt.counted(len(read), "session file"))
    report.out("moved ", ", ".join(parts))
    if said["waiting"]:
        report.out(f"{said['waiting']} journals wait")
    if said["bad"]:
        report.out(f"{said['bad']} records could not be read; they are kept in the store's bad records")
    if said["newer"]:
        report.out(f"{said['newer']} records are of a newer looptape; upgrade to read them")
