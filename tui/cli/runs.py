"""`looptape runs`: the list."""

from __future__ import annotations

import time

import click

from ...tracer import settings
from ...tracer.errors import UsageError
from .. import report
from .options import json_option, since

STATUSES = ("running", "completed", "limit", "halted", "failed", "interrupted", "unknown")


@click.command("runs")
@click.option("--project", help="Only runs of this project: a folder; . is this one.")
@click.option("--model", help="Only runs that used this model.")
@click.option("--tool", help="Only runs that called this tool.")
@click.option("--error", is_flag=True, help="Only runs with errors.")
@click.option("--since", "since_text", metavar="WHEN", help="Only runs since then: 30m, 12h, 7d, 2w, 2026-11-29.")
@click.option("--text", help="Only runs with this in name, title, task, agent or id.")
@click.option("--status", type=click.Choice(STATUSES), help="Only runs that stand or ended like this.")
@click.option("--task", help="Only runs of this task.")
@click.option("--outcome", help="Only runs with this outcome, e.g. pass.")
@click.option(
    "--sort",
    type=click.Choice(("time", "cost", "turns", "errors", "wasted")),
    default="time",
    show_default=True,
    help="What comes first: the newest, or the largest.",
)
@click.option("--limit", type=click.IntRange(min=0), help="At most so many; 0 for all.  [default: 50]")
@click.option("--all", "with_empty", is_flag=True, help="Also runs without turns.")
@json_option
def command(
    project: str | None,
    model: str | None,
    tool: str | None,
    error: bool,
    since_text: str | None,
    text: str | None,
    status: str | None,
    task: str | None,
    outcome: str | None,
    sort: str,
    limit: int | None,
    with_empty: bool,
    as_json: bool,
) -> None:
    """List recorded runs, the newest first."""
    from ...tracer.store import Filter

    now = time.time_ns() // 1000
    limit = int(settings.effective({"limit": limit})["limit"].value)
    asked = Filter(
        project=_project(project),
        model=model,
        tool=tool,
        error=error or None,
        since=since(since_text, now),
        text=text,
        status=status,
        task=task,
        outcome=outcome,
        include_empty=with_empty,
        sort=sort,
        limit=limit,
    )
    show_list(asked, now, as_json=as_json)


def show_list(asked: object, now: int, *, as_json: bool = False) -> int:
    """Prints the runs of a filter; returns how many there are in all."""
    from dataclasses import replace

    from ...tracer.store import Filter
    from .. import json_shape, run_table
    from .reading import reading

    if not isinstance(asked, Filter):
        raise UsageError("bad-filter", "this is no filter")
    with reading() as store:
        runs = store.runs(asked)
        total = store.count(asked)
        anything = total or store.count(Filter(include_empty=True))
    if as_json:
        report.data({"runs": [json_shape.run(r) for r in runs], "total": total})
    elif runs:
        run_table.show(runs, now)
    elif anything or total is None:
        report.note("no run matches")
    else:
        report.note("there is no run yet: looptape demo, or looptape import PATH")
    if total > len(runs):
        report.note(f"{len(runs):,} of {total:,} runs: --limit 0 for all")
    if replace(asked, limit=0) == Filter(limit=0) and not as_json and total and total < anything:
        report.note("runs without turns are not shown: --all")
    return total


def _project(given: str | None) -> str | None:
    if given is None:
        return None
    from pathlib import Path

    from .options import project

    folder = Path(given).expanduser()
    return project(folder) if folder.is_dir() else given
