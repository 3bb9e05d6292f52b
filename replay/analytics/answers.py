"""What an analysis gives: named columns, rows, and what a reader must know of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...tracer.errors import UsageError


@dataclass(frozen=True, slots=True)
class Field:
    """A column.

    Attributes:
        name: As in JSON and CSV.
        kind: text, date, time, count, money, tokens, ms, share (0 to 1) or list.
        type: Its type in a Parquet file.
    """

    name: str
    kind: str

    @property
    def type(self) -> str:
        """The type of the column in DuckDB and Parquet."""
        return {"text": "VARCHAR", "date": "DATE", "time": "TIMESTAMP", "count": "BIGINT", "tokens": "BIGINT"}.get(
            self.kind, "BOOLEAN" if self.kind == "flag" else "VARCHAR[]" if self.kind == "list" else "DOUBLE"
        )


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values in the order of the fields; None is "not known", never zero."""

    fields: tuple[Field, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = [f.name for f in self.fields]
        return (dict(zip(names, row, strict=True)) for row in self.rows)

    def column(self, name: str) -> list[Any]:
        """All values of a column."""
        place = [f.name for f in self.fields].index(name)
        return [row[place] for row in self.rows]


def ordered(given: Table, column: str) -> Table:
    """The same rows by one column: the largest figure, the latest day, or the first name first; what is not known last.

    Raises:
        UsageError: There is no such column.
    """
    kinds = {f.name: f.kind for f in given.fields}
    if column not in kinds:
        raise UsageError("bad-sort", f"there is no column {column!r}", f"Sort by one of {', '.join(kinds)}")
    place = list(kinds).index(column)
    known = [row for row in given.rows if row[place] is not None]
    known.sort(key=lambda row: row[place], reverse=kinds[column] not in ("text", "list"))
    return replace(given, rows=(*known, *(row for row in given.rows if row[place] is None)))


def table(fields: Sequence[Field], rows: Sequence[dict[str, Any]], notes: Sequence[str] = ()) -> Table:
    """A table of rows given as dicts."""
    return Table(tuple(fields), tuple(tuple(r[f.name] for f in fields) for r in rows), tuple(notes))
