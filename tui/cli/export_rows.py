"""Exports of rows: turns, runs, tool calls or messages as one CSV or Parquet file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...tracer.errors import UsageError
from .. import report
from ..format import counted
from ..outside.export_files import write_texts
from .reading import found, reading
from .values import cell

if TYPE_CHECKING:
    from ...tracer.store import Filter, Store


def export_rows(form: str, table: str, output: str | None, run: str | None, wanted: Filter | None) -> None:
    """Writes the rows of a run, some of its turns, or of all runs that pass a filter, into one file."""
    from ...tracer.store import Filter

    to_stdout = output in (None, "-")
    if form == "parquet" and to_stdout:
        raise UsageError("usage", "parquet needs a file", "Add -o FILE")
    if not to_stdout and Path(output or "").expanduser().is_dir():
        raise UsageError(
            "bad-output", f"{output} is a folder", f"All rows go into one file: -o {output}/{table}.{form}"
        )
    if wanted is not None:
        from ...replay.filters import ready

        with reading() as store:
            ready(store, wanted)
            count = _write(store, form, table, output, wanted, None)
    else:
        with found(run or "") as one:
            turns = None if one.first is None or one.last is None else (one.first, one.last)
            count = _write(one.store, form, table, output, Filter(ids=(one.run.id,)), turns)
    if not to_stdout:
        report.note(f"wrote {counted(count, 'row')} to {output}")


def csv_lines(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, head: bool = True) -> str:
    """Rows as CSV text; what is not known is empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    if head:
        writer.writerow(columns)
    writer.writerows([["" if v is None else cell(v) for v in row] for row in rows])
    return text.getvalue()


def _write(
    store: Store, form: str, table: str, output: str | None, wanted: Filter, turns: tuple[int, int] | None
) -> int:
    columns, types, batches = store.table(table, wanted, turns)
    if form == "parquet":
        from ...tracer.store import parquet

        return parquet.write_batches(Path(output or "").expanduser(), columns, types, batches)
    count = 0

    def texts() -> Iterator[str]:
        nonlocal count
        yield csv_lines(columns, [])
        for rows in batches:
            count += len(rows)
            yield csv_lines(columns, rows, head=False)

    if output in (None, "-"):
        for text in texts():
            report.exact(text)
    else:
        write_texts(Path(output or "").expanduser(), texts())
    return count
