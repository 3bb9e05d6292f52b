"""`looptape runs`: the list."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import click

from ...tracer import settings
from ...tracer.errors import UsageError
from .. import report
from .options import asked, filter_argument, filter_options, json_option, sort_option


@click.command("runs")
@filter_argument
@filter_options
@sort_option
@click.option("--limit", type=click.IntRange(min=0), help="At most so many; 0 for all.  [default: 50]")
@click.option("--all", "with_empty", is_flag=True, help="Also runs without turns.")
@json_option
def command(
    *, words: tuple[str, ...], sort: str, limit: int | None, with_empty: bool, as_json: bool, **picked: Any
) -> None:
    """List recorded runs, the newest first.

    FILTER are pairs that must all hold, and words to look for in names and titles:

    \b
      looptape runs 'model:claude*' error:yes 'turns:>20' 'cost:>1' cycle:yes since:7d tag.customer:4711 refund
    """
    now = time.time_ns() // 1000
    limit = int(settings.effective({"limit": limit})["limit"].value)
    wanted = replace(asked(now, picked, words), include_empty=with_empty, sort=sort, limit=limit)
    show_list(wanted, now, as_json=as_json)


def show_list(wanted: object, now: int, *, as_json: bool = False) -> int:
    """Prints the runs of a filter; returns how many there are in all."""
    from ...replay.filters import ready
    from ...tracer.store import Filter
    from ..told import json_shape, run_table
    from .reading import reading

    if not isinstance(wanted, Filter):
        raise UsageError("bad-filter", "this is no filter")
    with reading() as store:
        ready(store, wanted, report.progress)
        report.progress("")
        runs = store.runs(wanted)
        total = store.count(wanted)
        anything = total or store.count(Filter(include_empty=True))
    if as_json:
        report.data({"runs": [json_shape.run(r) for r in runs], "total": total, "sum": json_shape.cost_sum(runs)})
    elif runs:
        run_table.show(runs, now)
    elif anything or total is None:
        report.note("no run matches")
    else:
        from ..told.beginning import beginnings

        for line in ("there is no run yet: looptape demo, or looptape import PATH", *beginnings()):
            report.note(line)
    if total > len(runs):
        report.note(f"{len(runs):,} of {total:,} runs: --limit 0 for all")
    if replace(wanted, limit=0) == Filter(limit=0) and not as_json and total and total < anything:
        report.note("runs without turns are not shown: --all")
    return total
