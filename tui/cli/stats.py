"""`looptape stats`: cost, turns, tokens, time and errors of many runs, grouped."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tracer.errors import LooptapeError, UsageError
from .. import report
from ..format import counted
from .options import asked, filter_argument, filter_options

if TYPE_CHECKING:
    from ...replay.analytics import Table
    from ...tracer.store import Filter, Store

CYCLES_SECONDS = 20.0
"""How long the overview looks for cycles in runs it has not looked at; it says what is left."""


@click.command("stats")
@click.option("--by", metavar="WHAT", help="model, day, tool, project, task, outcome, run, tag, agent, provider, source; tag.NAME; two with a comma.")  # fmt: skip
@filter_argument
@filter_options
@click.option("--format", "form", type=click.Choice(("table", "json", "csv", "parquet")), default="table", show_default=True, help="How it is written.")  # fmt: skip
@click.option("--sort", metavar="COLUMN", help="With --by or --task: the largest of this column first, as JSON and CSV call it.")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", help="The file for csv and parquet.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(
    *,
    words: tuple[str, ...],
    by: str | None,
    form: str,
    sort: str | None,
    output: str | None,
    as_json: bool,
    **picked: Any,
) -> None:
    """Cost, turns, tokens, cache hits, time and errors of the runs that a filter picks.

    Without --by: an overview. With --task and without --by: the history of that task, run by run. --since counts the
    turns that began since then.
    """
    form = "json" if as_json else form
    if output and form in ("table", "json"):
        raise UsageError("usage", f"-o is for csv and parquet, not {form}", "Redirect stdout instead")
    if form == "parquet" and not output:
        raise UsageError("usage", "parquet needs a file", "Add -o FILE")
    names = [n.strip() for n in by.split(",")] if by else []
    if "tool" in names and len(names) > 1:
        raise UsageError("usage", "tools are counted alone", "Use --by tool")
    wanted = asked(time.time_ns() // 1000, picked, words)
    if not names and not wanted.task and form in ("csv", "parquet"):
        raise UsageError("usage", f"the overview is several tables, not one {form} file", "Say --by model, for one")
    if not names and not wanted.task and sort:
        raise UsageError(
            "usage", "the overview is several tables, which have their own order", "Say --by model, for one"
        )
    _run(names, wanted, form, output, sort)


def _run(names: list[str], wanted: Filter, form: str, output: str | None, sort: str | None) -> None:
    from ...replay.analytics import ordered
    from ...replay.filters import ready
    from .reading import reading

    with reading() as store:
        ready(store, wanted, report.progress)
        report.progress("")
        if not names and not wanted.task:
            _overview(store, wanted, form)
            return
        found = _table(store, names, wanted)
        _write(ordered(found, sort) if sort else found, names, form, output)


def _table(store: Store, names: list[str], wanted: Filter) -> Table:
    from ...replay import analytics

    if not names:
        return analytics.history(store, wanted.task or "", replace(wanted, task=None))
    if names == ["tool"]:
        return analytics.tools(store, wanted)
    if names == ["task"]:
        return analytics.tasks(store, wanted)
    return analytics.stats(store, names, wanted)


def _write(table: Table, names: list[str], form: str, output: str | None) -> None:
    from ..told import stats_text

    if form == "json":
        report.data({"by": names, "rows": stats_text.as_json(table), "notes": list(table.notes)})
        return
    if form == "table":
        stats_text.show(table, names)
        return
    if form == "parquet":
        from ...tracer.store import parquet

        fields = table.fields
        parquet.write(Path(output or "").expanduser(), [f.name for f in fields], [f.type for f in fields], table.rows)
    else:
        from .sql import write_csv

        write_csv([f.name for f in table.fields], list(table.rows), output)
        return
    report.note(f"wrote {counted(len(table.rows), 'row')} to {output}")


def _overview(store: Store, wanted: Filter, form: str) -> None:
    from ...replay import analytics
    from ..told import stats_text

    left = 0
    try:
        left = analytics.keep_cycles(store, wanted, seconds=CYCLES_SECONDS, tell=report.progress)
    except LooptapeError as trouble:
        report.note(f"cycles of new runs could not be kept: {trouble.what}")
    finally:
        report.progress("")
    found = analytics.overview(store, wanted, not_looked_at=left)
    if form == "json":
        report.data(stats_text.overview_json(found))
    else:
        stats_text.show_overview(found)
