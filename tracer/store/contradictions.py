"""What a file says of turns that are here already and complete: a copy, a longer one, or something else.

A file never changes such a turn: what is there is kept, and the import says so. Two things may still grow: a turn
that is open, and the last turns of a session that another program is still writing (same response, nothing less of it).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..canonical import digest
from ..tape import Record
from .batch import Batch, Key
from .derive import LIVE_SOURCES
from .rows import USAGE, Row, select, tokens
from .text import at_path, loads, result_text

_RESULTS = ("call_seen", "call_end")


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
        self._calls: set[tuple[str, int, str]] = set()

    def look(self, batch: Batch, records: list[Any]) -> None:
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
        self._look_at_results(batch, records)

    def keeps(self, record: Record) -> bool:
        """True for a record that must not be applied."""
        if not self._turns and not self._calls:
            return False
        run, turn = record.get("run"), record.get("turn")
        if not isinstance(run, str):
            return False
        if run in self._runs or (run, turn) in self._turns:
            return True
        return record.get("kind") in _RESULTS and (run, turn, record.get("call")) in self._calls

    def _look_at_results(self, batch: Batch, records: list[Any]) -> None:
        """A tool result that is here already is not replaced by another one."""
        told = {
            (r["run"], r["turn"], r["call"], r["kind"]): r  # told twice, the last one wins
            for r in records
            if isinstance(r, dict) and r.get("kind") in _RESULTS and _names_a_call(r)
        }
        if not told or not batch.calls:
            return
        texts = {r["hash"]: r.get("text") for r in records if isinstance(r, dict) and r.get("kind") == "blob"}
        for (run, turn, call, _), record in told.items():
            if (run, turn) in self._own or (run, turn) in self._turns:
                continue
            row = next((r for r in batch.calls.get((run, turn), ()) if r["id"] == call), None)
            if row is not None and _another_result(batch, row, record, texts):
                self._calls.add((run, turn, call))
                self.differs[run] = min(turn, self.differs.get(run, turn))

    def _keep(self, key: Key, turn: Row, record: Record) -> None:
        run, number = key
        self._turns.add(key)
        self.differs[run] = min(number, self.differs.get(run, number))
        given = record.get("response_id")
        if given is None or given != turn.get("response_id"):
            self._runs.add(run)  # another conversation under this name: nothing of it belongs here


def _names_a_call(record: Record) -> bool:
    return (
        isinstance(record.get("run"), str)
        and isinstance(record.get("turn"), int)
        and isinstance(record.get("call"), str)
    )


def _another_result(batch: Batch, row: Row, record: Record, texts: dict[str, Any]) -> bool:
    """True when the call's result is here and the record has a different one."""
    if record["kind"] == "call_end":
        given = record.get("digest") or (digest(result_text(record["result"]) or "") if "result" in record else None)
        return None not in (given, row.get("returned_digest")) and given != row["returned_digest"]
    message, path = record.get("message"), record.get("path")
    if row.get("seen_digest") is None or not isinstance(message, str) or not isinstance(path, str):
        return False
    if message == batch.hash_of(row["seen_blob"]) and path == row.get("seen_path"):
        return False
    text = texts.get(message) or batch.text_of(message)
    seen = result_text(at_path(loads(text), path)) if isinstance(text, str) else None
    return seen is not None and digest(seen) != row["seen_digest"]


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
