"""What a file says of turns that are here already and complete: a copy, a longer one, or something else.

A file never changes such a turn: what is there is kept, and the import says so. Two things may still grow: a turn
that is open, and the last turns of a session that another program is still writing (same response, nothing less of it).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..tape import Record
from .batch import Batch, Key
from .derive import LIVE_SOURCES
from .rows import USAGE, Row, select, tokens


class Contradictions:
    """What one file may not change, and what it said of it. One for all slices of an ingest.

    Attributes:
        differs: Run -> the first turn (by number) at which the file differs from what is here.
    """

    def __init__(self) -> None:
        self.differs: dict[str, int] = {}
        self._own: set[Key] = set()
        self._turns: set[Key] = set()
        self._runs: set[str] = set()

    def look(self, batch: Batch, records: Iterable[Any]) -> None:
        """Finds the contradictions of a slice, whose rows are loaded."""
        for key, record in _ends(records).items():
            if key in self._own or key in self._turns:
                continue
            turn = batch.turns.get(key)
            if turn is None or turn["status"] != "ok":
                self._own.add(key)
            elif _lesser(turn, record):
                self._turns.add(key)
            elif not _may(batch, turn, record):
                self._keep(key, turn, record)

    def keeps(self, record: Record) -> bool:
        """True for a record that must not be applied."""
        if not self._turns:
            return False
        run = record.get("run")
        return isinstance(run, str) and (run in self._runs or (run, record.get("turn")) in self._turns)

    def _keep(self, key: Key, turn: Row, record: Record) -> None:
        run, number = key
        self._turns.add(key)
        self.differs[run] = min(number, self.differs.get(run, number))
        given = record.get("response_id")
        if given is None or given != turn.get("response_id"):
            self._runs.add(run)  # another conversation under this name: nothing of it belongs here


def _lesser(turn: Row, record: Record) -> bool:
    """True for the same turn told without its response."""
    if record.get("response") is not None or turn.get("response_blob") is None:
        return False
    return record.get("status", "ok") == "ok" and all(n == turn[name] for name, n in _usage(record).items())


def _may(batch: Batch, turn: Row, record: Record) -> bool:
    """May this change a complete turn?"""
    at = record.get("at")
    if isinstance(at, int) and turn.get("ended_at") is not None and at < turn["ended_at"]:
        return True  # older than what is here: it changes nothing
    usage = _usage(record)
    if record.get("response") == _hash(batch, turn) and all(n == turn[name] for name, n in usage.items()):
        return True
    grows = batch.runs[turn["run"]].get("source") not in LIVE_SOURCES
    same_id = record.get("response_id") is not None and record["response_id"] == turn.get("response_id")
    return grows and same_id and all((n or 0) >= (turn[name] or 0) for name, n in usage.items())


def _usage(record: Record) -> dict[str, int | None]:
    told = record.get("usage")
    return {name: tokens(told.get(name)) for name in USAGE} if isinstance(told, dict) else {}


def _ends(records: Iterable[Any]) -> dict[Key, Record]:
    """Of each turn the turn_end that would win."""
    ends: dict[Key, Record] = {}
    for record in records:
        if not isinstance(record, dict) or record.get("kind") != "turn_end":
            continue
        run, turn, at = record.get("run"), record.get("turn"), record.get("at")
        if not isinstance(run, str) or not isinstance(turn, int):
            continue
        before = ends.get((run, turn))
        if before is None or not isinstance(at, int) or at >= (before.get("at") or 0):
            ends[run, turn] = record
    return ends


def _hash(batch: Batch, turn: Row) -> str | None:
    if turn.get("response_blob") is None:
        return None
    query = "select replace(hash::varchar, '-', '') as hash from base.blobs where id = ?"
    found = select(batch.con, query, [turn["response_blob"]])
    return found[0]["hash"] if found else None
