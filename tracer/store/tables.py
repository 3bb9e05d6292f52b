"""Whole tables of the documented views, for exports and data frames: of the runs that a filter picks, in batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..errors import LooptapeError, UsageError
from .filters import Filter, where
from .query import VIEWS
from .rows import Connection
from .text import decode

BATCH = 5000
Batches = tuple[list[str], list[str], Iterator[list[Any]]]  # names, types, rows
_ORDER = {
    "runs": "started_at desc nulls last, id",
    "turns": "run, number",
    "tool_calls": "run, turn, position",
    "messages": "run, position, first_turn",
    "attempts": "run, turn, number",
    "events": "run, turn nulls first, happened_at nulls first, kind",
}
_TURNS = {
    "turns": "number between ? and ?",
    "tool_calls": "turn between ? and ?",
    "messages": "coalesce(last_turn, 2147483647) >= ? and first_turn <= ?",
    "attempts": "turn between ? and ?",
    "events": "turn between ? and ?",
}


def statement(table: str, given: Filter, turns: tuple[int, int] | None = None) -> tuple[str, list[Any]]:
    """The query of a table's rows and its values.

    Args:
        given: Picks the runs; its sort and limit are left aside.
        turns: Only rows of these turns, first and last included.

    Raises:
        UsageError: No view has that name, or runs were asked for by turns.
    """
    if table not in VIEWS:
        raise UsageError("no-such-table", f"there is no table {table!r}", f"The tables are {', '.join(VIEWS)}")
    condition, values = where(replace(given, limit=0))
    key = "id" if table == "runs" else "run"
    query = f"select * from main.{table} where {key} in (select r.id from base.runs as r where {condition})"  # noqa: S608 - our names
    if turns is not None:
        if table not in _TURNS:
            raise UsageError("usage", "a row of runs is a whole run", "Leave the turns out, or ask for turns")
        query += f" and {_TURNS[table]}"
        values += turns
    return f"{query} order by {_ORDER[table]}", values


def batches(con: Connection, query: str, values: list[Any]) -> Batches:
    """Column names, their types, and the rows a few thousand at a time; read them before the store is asked again."""
    with _troubles():
        found = con.execute(query, values)
    names = [d[0] for d in found.description]
    types = [str(d[1]) for d in found.description]

    def rows() -> Iterator[list[Any]]:
        with _troubles():
            while some := found.fetchmany(BATCH):
                yield [tuple(decode(v) if isinstance(v, str) else v for v in row) for row in some]

    return names, types, rows()


def frame(con: Connection, query: str, values: list[Any], method: str) -> Any:
    """All rows as a frame, made by the relation's method of that name."""
    with _troubles():
        return getattr(con.sql(query, params=values), method)()


@contextmanager
def _troubles() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise LooptapeError(
            "sql-memory",
            "the rows need more memory than looptape lets them have",
            "Pick fewer runs, or take a snapshot",
        ) from None
    except duckdb.Error as error:
        raise LooptapeError("store-unreadable", f"the rows cannot be read ({str(error).splitlines()[0]})") from None
