"""What an analysis gives: named columns, rows, and what a reader must know of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


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


def table(fields: Sequence[Field], rows: Sequence[dict[str, Any]], notes: Sequence[str] = ()) -> Table:
    """A table of rows given as dicts."""
    return Table(tuple(fields), tuple(tuple(r[f.name] for f in fields) for r in rows), tuple(notes))
