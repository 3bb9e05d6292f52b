"""`looptape sql`: read-only SQL over the documented views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...tracer.errors import UsageError
from .. import report
from ..format import counted
from .values import cell, plain

ROWS = 1000


@click.command("sql")
@click.argument("query")
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "json", "csv", "parquet")),
    default="table",
    show_default=True,
    help="How the rows are written.",
)
@click.option("-o", "--output", metavar="FILE", help="The file for csv and parquet.")
@click.option("--attach", metavar="FILE", help="Also read this DuckDB, Parquet, CSV or JSON file, under its name.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(query: str, form: str, output: str | None, attach: str | None, as_json: bool) -> None:
    """Ask the store in SQL over the views runs, turns, tool_calls, messages, attempts and events.

    Read-only; no other file and no network but one --attach FILE: prices.csv is the table prices, crm.duckdb the
    tables crm.NAME.
    """
    from .reading import reading

    form = "json" if as_json else form
    if output and form in ("table", "json"):
        raise UsageError("usage", f"-o is for csv and parquet, not {form}", "Redirect stdout instead")
    if form == "parquet" and not output:
        raise UsageError("usage", "parquet needs a file", "Add -o FILE")
    with reading() as store:
        if attach is not None:
            store.attach(Path(attach))
        limit = ROWS if form == "table" else None
        columns, types, rows = store.sql(query, limit=None if limit is None else limit + 1)
    if form == "json":
        report.data(
            {
                "columns": [{"name": n, "type": str(t)} for n, t in zip(columns, types, strict=True)],
                "rows": _plain(columns, rows),
            }
        )
    elif form == "csv":
        write_csv(columns, rows, output)
    elif form == "parquet":
        from ...tracer.store import parquet

        parquet.write(Path(output or "").expanduser(), columns, [str(t) for t in types], rows)
        report.note(f"wrote {counted(len(rows), 'row')} to {output}")
    else:
        _table(columns, types, rows)


def _table(columns: list[str], types: list[Any], rows: list[Any]) -> None:
    shown = rows[:ROWS]
    right = [
        str(t)
        .upper()
        .startswith(("BIGINT", "INT", "UBIGINT", "HUGEINT", "DOUBLE", "FLOAT", "DECIMAL", "SMALL", "TINY"))
        for t in types
    ]
    null = report.Styled("NULL", "dim")
    heads = [report.Column(name, right=r, grow=not r) for name, r in zip(columns, right, strict=True)]
    report.table(heads, [[null if v is None else cell(v) for v in row] for row in shown])
    if len(rows) > ROWS:
        report.note(f"only the first {ROWS:,} rows: --format csv for all")
    elif not rows:
        report.note("no rows")


def write_csv(columns: list[str], rows: list[Any], output: str | None) -> None:
    """Rows as CSV on stdout, or in a file and said so."""
    from .export_rows import csv_lines

    text = csv_lines(columns, rows)
    if output and output != "-":
        from ..outside.export_files import write_texts

        write_texts(Path(output).expanduser(), iter([text]))
        report.note(f"wrote {counted(len(rows), 'row')} to {output}")
    else:
        report.exact(text)


def _plain(columns: list[str], rows: list[Any]) -> list[dict[str, Any]]:
    return [{name: plain(v) for name, v in zip(columns, row, strict=True)} for row in rows]
