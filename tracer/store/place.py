"""Where the rows of one run lie: the condition that lets DuckDB pass over the rest without an index."""

from __future__ import annotations

from .rows import Connection
from .text import encode


def of_run(con: Connection, run: str) -> str:
    """`` and place = N``, to stand after ``run = ?``; nothing where that is not known."""
    import duckdb

    try:
        found = con.execute("select place from base.runs where id = ?", [encode(run)]).fetchall()
    except duckdb.BinderException:  # a store of an older schema that somebody else holds: read as it is
        return ""
    return f" and place = {int(found[0][0])}" if found and found[0][0] is not None else ""
