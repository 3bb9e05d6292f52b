"""Rows as plain dicts, the columns they have, and the way in and out of DuckDB for many at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .text import decode, dumps, encode, loads

Row = dict[str, Any]
Connection = Any  # duckdb.DuckDBPyConnection; named here so that nothing else needs the import

USAGE = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")
MOST_TOKENS = 2**53


class Bad(Exception):
    """A record that does not say what its kind must say; the text is the reason."""


_columns: dict[str, list[str]] = {}


def columns(con: Connection, table: str) -> list[str]:
    """The column names of a table of ours; asked once, since all open stores have our schema."""
    if table not in _columns:
        _columns[table] = _ask_columns(con, table)
    return _columns[table]


def _ask_columns(con: Connection, table: str) -> list[str]:
    return [d[0] for d in con.execute(f"select * from base.{table} limit 0").description]  # noqa: S608 - our names


def select(con: Connection, query: str, values: Sequence[Any] = ()) -> list[Row]:
    """Rows of a query as dicts, texts decoded."""
    found = con.execute(query, list(values))
    names = [d[0] for d in found.description]
    return [dict(zip(names, map(_back, row), strict=True)) for row in found.fetchall()]


def _back(value: Any) -> Any:
    return value if value.__class__ is not str or value.isascii() else decode(value)


def append(con: Connection, table: str, rows: Iterable[Row]) -> None:
    """Adds many rows through DuckDB's appender, inside the open transaction.

    Only columns that some row has are handed over (no column of ours has a default): of wide tables most are empty.
    """
    names = columns(con, table)
    turned = zip(*[tuple(map(row.get, names)) for row in rows], strict=True)  # none where there is no row
    told = {n: column for n, column in zip(names, turned, strict=False) if any(v is not None for v in column)}
    if told:
        coded = [column if _plain(column) else _coded(column) for column in told.values()]
        with con.appender(f"base.{table}", columns=list(told)) as appender:
            appender.append_rows(zip(*coded, strict=True))


def _plain(column: tuple[Any, ...]) -> bool:
    """True for a column in which no text has to be encoded: asked of all at once, since most are ASCII."""
    try:
        return all(map(str.isascii, filter(None, column)))
    except TypeError:  # a column of numbers, as a rule
        return not any(issubclass(kind, str) for kind in set(map(type, column)))


def _coded(column: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(encode(value) if isinstance(value, str) else value for value in column)


def delete_turns(con: Connection, table: str, keys: Sequence[tuple[str, int]], column: str) -> None:
    """Removes the rows of these (run, turn) pairs from a table whose turn column has that name."""
    if keys:
        con.execute(
            f"delete from base.{table} as t using (select unnest($1::varchar[]) as run, unnest($2::integer[]) as n) as k "  # noqa: S608
            f"where t.run = k.run and t.{column} = k.n",
            [[k[0] for k in keys], [k[1] for k in keys]],
        )


def text(value: Any, name: str, *, needed: bool = False) -> str | None:
    """The value as text or None."""
    if isinstance(value, str):
        return value
    if value is None and not needed:
        return None
    raise Bad(f"{name} is {'missing' if value is None else 'no text'}")


def whole(value: Any, name: str, *, needed: bool = False, limit: int = 2**62) -> int | None:
    """The value as a whole number that fits its column, or None."""
    if type(value) is int and -limit <= value <= limit:  # nearly all; True is of another type
        return value
    if value is None and not needed:
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < limit:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > limit:
        raise Bad(f"{name} is {'missing' if value is None else 'no whole number in range'}")
    return value


def tokens(value: Any) -> int | None:
    """The value as a count of tokens, None when it is none (negative, no whole number, beyond 2^53)."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if counts else None


def warn(row: Row, warnings: list[Any]) -> None:
    """Adds warnings to the row of a run, each once."""
    known = loads(row.get("warnings_json")) or []
    new = [str(w) for w in warnings]
    if new:
        row["warnings_json"] = dumps(list(dict.fromkeys([*known, *new])))


def number(value: Any, name: str) -> float | None:
    """The value as a float or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e300:
        raise Bad(f"{name} is no number")
    return float(value)


def mapping(value: Any, name: str) -> dict[str, Any]:
    """The value as an object; nothing is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Bad(f"{name} is no object")
    return value


def listing(value: Any, name: str) -> list[Any]:
    """The value as a list; nothing is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise Bad(f"{name} is no list")
    return value
