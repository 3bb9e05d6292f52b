"""Rows of an OpenCode store, from a dump (a JSON object a line) or from the SQLite file itself, session by session."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ...errors import LooptapeError
from ...providers.answer import mapping, text_of
from ..context import Source
from ..reading import _redacted, objects
from ..report import Notes

SESSIONS, MESSAGES = "session_v2", "session_message"
MAGIC = b"SQLite format 3\0"

Row = dict[str, Any]


def sessions(source: Source, notes: Notes) -> Iterator[tuple[Row, list[Row]]]:
    """Each session with its messages in order, parents before their children.

    Raises:
        LooptapeError: It is a SQLite file that cannot be read.
    """
    if source.head().startswith(MAGIC):
        yield from _database(source, notes)
    else:
        yield from _dump(source, notes)


def _dump(source: Source, notes: Notes) -> Iterator[tuple[Row, list[Row]]]:
    found: dict[str, Row] = {}
    messages: dict[str, list[Row]] = {}
    for number, line in objects(source.lines(), notes):
        table, row = line.get("table"), line.get("row")
        if table == SESSIONS and isinstance(row, dict) and isinstance(row.get("id"), str):
            found[row["id"]] = row
        elif table == MESSAGES and isinstance(row, dict) and isinstance(row.get("session_id"), str):
            messages.setdefault(row["session_id"], []).append(row)
        elif table in (SESSIONS, MESSAGES):
            notes.skip(number, f"a row of {table} without its id")
        else:
            notes.strange(f"table {str(table)[:60]}")
    for name in messages:
        if name not in found:
            notes.warn("messages of sessions whose own row is not in the file: title, agent and end are not known")
            found[name] = {"id": name}
    for row in _parents_first(found):
        yield row, sorted(messages.get(row["id"], []), key=_order)


def _database(source: Source, notes: Notes) -> Iterator[tuple[Row, list[Row]]]:
    """The file is opened read-only; what a running OpenCode has not yet checkpointed comes from its WAL."""
    with tempfile.TemporaryDirectory() as folder:
        path = source.path
        if path is None:
            path = Path(folder, "store.db")
            with source.open() as stream:
                path.write_bytes(stream.read())
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)) as base:
                base.row_factory = sqlite3.Row
                base.text_factory = lambda raw: raw.decode("utf-8", "replace")
                yield from _tables(base, notes)
        except sqlite3.Error as error:
            raise LooptapeError(
                "unreadable-file",
                f"{source.label}: not readable as an OpenCode store ({error})",
                "Close OpenCode and try again, or import a copy",
            ) from None


def _tables(base: sqlite3.Connection, notes: Notes) -> Iterator[tuple[Row, list[Row]]]:
    rows = {str(r["id"]): dict(r) for r in base.execute(f"select * from {SESSIONS}")}  # noqa: S608 - our own word
    for row in _parents_first(rows):
        found = []
        query = f"select * from {MESSAGES} where session_id = ?"  # noqa: S608 - our own word
        for number, message in enumerate(base.execute(query, [row["id"]]), 1):
            value = _decoded(dict(message))
            notes.counts["objects"] += 1
            if isinstance(value.get("data"), dict):
                found.append(value)
            else:
                notes.skip(number, f"message of {row['id']}: its data is no JSON object")
        notes.counts["objects"] += 1
        yield _redacted(row), sorted(found, key=_order)


def _decoded(row: Row) -> Row:
    try:
        return dict(_redacted({**row, "data": json.loads(row.get("data") or "null")}))
    except (ValueError, TypeError, RecursionError):
        return {**row, "data": None}


def _parents_first(rows: dict[str, Row]) -> Iterator[Row]:
    done: set[str] = set()
    for name in rows:
        chain: list[str] = []
        at: str | None = name
        while at in rows and at not in done and at not in chain:
            chain.append(at)
            at = text_of(rows[at].get("parent_id")) or text_of(rows[at].get("fork_session_id"))
        for one in reversed(chain):
            done.add(one)
            yield rows[one]


def _order(row: Row) -> tuple[float, float, str]:
    made = mapping(mapping(row.get("data")).get("time")).get("created")
    return _number(row.get("seq")), _number(row.get("time_created") or made), str(row.get("id"))


def _number(value: Any) -> float:
    return (
        float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18 else 0.0
    )
