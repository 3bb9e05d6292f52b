"""Where the rows of one run lie: the condition that lets DuckDB pass over the rest without an index."""

from __future__ import annotations

from .rows import Connection
from .text import encode


def of_run(con: Connection, run: str) -> str:
    """`` and place = N``, to stand after ``run = ?``; nothing where that is not known."""
    return look_up(con, run)[0]


def look_up(con: Connection, run: str) -> tuple[str, bool]:
    """The same, and whether the run is running."""
    import duckdb

    try:
        found = con.execute("select place, status from base.runs where id = ?", [encode(run)]).fetchall()
    except duckdb.BinderException:  # a store of an older schema that somebody else holds: read as it is
        found = con.execute("select null, status from base.runs where id = ?", [encode(run)]).fetchall()
    if not found:
        return "", False
    number, status = found[0]
    return "" if number is None else f" and place = {int(number)}", status == "running"
