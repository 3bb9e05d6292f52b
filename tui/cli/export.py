"""`looptape export`: a run, some of its turns, or all runs that a filter picks, in one of several formats."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tracer.errors import UsageError
from .. import format as fmt
from .. import report
from ..outside.export_files import file_name
from ..outside.export_forms import FORMS, write
from .options import asked, filter_argument, filter_options, is_pair, run_argument

if TYPE_CHECKING:
    from ...replay.reference import Found
    from ...tracer.store import Filter, Store

TABLES = ("turns", "runs", "tool_calls", "messages")


@click.command("export")
@run_argument(required=False)
@click.option("--to", "form", type=click.Choice(tuple(FORMS)), default="tape", show_default=True, help="The format.")
@click.option("-o", "--output", metavar="FILE", help="The file, or with --all the folder. Without it: stdout.")
@click.option(
    "--all", "everything", is_flag=True, help="All runs (or those of FILTER and the options below), a file each."
)
@click.option("--table", type=click.Choice(TABLES), help="Which rows parquet and csv hold.  [default: turns]")
@click.option("--endpoint", metavar="URL", help="With --to otlp: post the spans to this collector instead.")
@filter_argument
@filter_options
def command(
    run: str | None,
    words: tuple[str, ...],
    form: str,
    output: str | None,
    everything: bool,
    table: str | None,
    endpoint: str | None,
    **picked: Any,
) -> None:
    """Write a run, or with RUN:N-M some of its turns, to a file.

    With --all FILTER in place of RUN: pairs as in `looptape runs`, model:claude* since:7d.
    """
    if everything and run is not None and is_pair(run):
        words, run = (run, *words), None
    elif words:
        raise UsageError("usage", f"{words[0]!r} is one too many", "Name one run; filters go with --all")
    _check(run, form, everything=everything, table=table, endpoint=endpoint, output=output, picked=picked)
    wanted = asked(time.time_ns() // 1000, picked, words) if everything else None
    if FORMS[form].texts is None:
        from .export_rows import export_rows

        export_rows(form, table or TABLES[0], output, run, wanted)
    elif endpoint is not None:
        from .export_send import send

        with _chosen(run, wanted, form) as chosen:
            send(endpoint, chosen)
    elif wanted is not None:
        _all(form, output, wanted)
    else:
        _one(run or "", form, output)


def _check(
    run: str | None,
    form: str,
    *,
    everything: bool,
    table: str | None,
    endpoint: str | None,
    output: str | None,
    picked: dict[str, Any],
) -> None:
    """Raises UsageError for options that do not go together."""
    filters = ", ".join(f"--{name}" for name, value in picked.items() if value)
    if everything == (run is not None):
        what = "name one run, or --all" if everything else "no run was named"
        raise UsageError("usage", what, "Try: looptape export last" if not filters or everything else "Add --all")
    if filters and not everything:
        raise UsageError("usage", f"{filters} picks runs, but one is named", "Leave the run out and add --all")
    if table and FORMS[form].texts is not None:
        raise UsageError("usage", f"--table is for parquet and csv, not {form}", "Add --to csv, or leave it out")
    if endpoint is not None and form != "otlp":
        raise UsageError("usage", f"--endpoint is for otlp, not {form}", "Add --to otlp")
    if endpoint is not None and output:
        raise UsageError("usage", "--endpoint and -o cannot be combined", "Export twice")


def _one(run: str, form: str, output: str | None) -> None:
    from .reading import found

    with found(run) as one:
        if FORMS[form].whole and one.first is not None:
            raise UsageError(
                "usage", f"a {form} holds whole runs", f"Leave the turns out, or use --to markdown: {one.run.id}"
            )
        if form == "messages" and one.first != one.last:
            raise UsageError("usage", "messages are the request of one turn", f"Name it: {one.run.id}:{one.last}")
        if output in (None, "-"):
            for text in _texts(form, one):
                report.exact(text)
            return
        write(Path(output or "").expanduser(), form, one)
    report.note(f"wrote {output}")


def _all(form: str, output: str | None, wanted: Filter) -> None:
    if not output or output == "-":
        raise UsageError("usage", "--all writes one file a run", "Name a folder: -o FOLDER")
    from .reading import reading

    folder = Path(output).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError("bad-output", f"{folder}: {error.strerror}", "Name a folder that can be made") from None
    with reading() as store:
        heads, inside = _heads(store, wanted, form)
        for number, one in enumerate(heads, 1):
            report.progress(f"{number} of {len(heads)}")
            write(folder / f"{file_name(one.run.id)}{FORMS[form].ending}", form, one)
    report.progress("")
    more = f" (with {inside} child runs inside)" if inside else ""
    report.note(f"wrote {fmt.counted(len(heads), 'file')}{more} to {folder}")


@contextmanager
def _chosen(run: str | None, wanted: Filter | None, form: str) -> Iterator[list[Found]]:
    """The runs of a command line, their store open."""
    from .reading import found, reading

    if wanted is None:
        with found(run or "") as one:
            yield [one]
    else:
        with reading() as store:
            yield _heads(store, wanted, form)[0]


def _heads(store: Store, wanted: Filter, form: str) -> tuple[list[Found], int]:
    """The runs that get a file of their own, and how many stand inside another's."""
    from dataclasses import replace

    from ...replay.filters import ready
    from ...replay.reference import Found

    ready(store, wanted)
    runs = store.runs(replace(wanted, limit=0))
    ids = {r.id for r in runs}
    inside = {
        r.id for r in runs if FORMS[form].family and r.parent and r.parent.kind == "sub-agent" and r.parent.run in ids
    }
    return [Found(r, store) for r in runs if r.id not in inside], len(inside)


def _texts(form: str, one: Found) -> Iterator[str]:
    texts = FORMS[form].texts
    return texts(one) if texts is not None else iter(())
