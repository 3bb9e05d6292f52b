"""Runs whose writer is gone: marked interrupted, with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from .rows import Connection, append, select
from .text import encode


def mark_interrupted(con: Connection, writers: Sequence[str], only: Sequence[str] | None = None) -> int:
    """Marks the runs that these writers left running; returns how many. The caller holds a transaction.

    ``only``: just these runs, whoever wrote them.
    """
    column = "r.journal" if only is None else "r.id"
    query = (
        "select r.*, (select max(number) from base.turns where run = r.id) as latest from base.runs as r "  # noqa: S608
        f"where r.status = 'running' and {column} in (select unnest(?::varchar[]))"
    )
    rows = select(con, query, [[encode(w) for w in (writers if only is None else only)]])
    for row in rows:
        latest = row.pop("latest")
        where = f" at turn {latest}" if latest else " before its first turn"
        row.update(
            status="interrupted",
            reason=f"the process ended without a word (killed?){where}",
            ended_at=row["last_at"],
            assumed_gone=True,
        )
    if rows:
        con.execute(
            "delete from base.runs where id in (select unnest(?::varchar[]))", [[encode(r["id"]) for r in rows]]
        )
        append(con, "runs", rows)
    return len(rows)
