"""Journals into the store: whole lines from where we stopped, rows and offsets in one transaction, exactly once.

The order of things (each step may be the last one, by a kill): lock `drain.lock`; connect; read journals and write
their rows with the new offsets; commit; move what is finished and whose writer is gone to `done/`; checkpoint; delete
from `done/` what the checkpoint made safe. A journal in `done/` that the store does not know to the end is read again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import paths
from ..tape import VERSION, Record
from .gone import mark_interrupted
from .ingest import IngestReport, Located, Place, Unreadable, ingest
from .journals import Journal, Line, format_of, journals, move_to_done, remove_empty, unread
from .otlp import cut_off, marks_of
from .reassemble import reassemble
from .rows import Connection, append, select
from .text import encode

MOST_REFUSED = 50


@dataclass(slots=True)
class SyncReport:
    """What a sync did.

    Attributes:
        waiting: Journals that still hold lines which are not in the store.
        bad: Records set aside in `bad_record`.
        newer: Journals of a newer format, left as they are.
        messages: Lines for people.
    """

    records: int = 0
    runs: int = 0
    turns: int = 0
    waiting: int = 0
    bad: int = 0
    newer: int = 0
    messages: list[str] = field(default_factory=list)
    turn_keys: set[tuple[str, int]] = field(default_factory=set, repr=False)


def drain(con: Connection, home: Path, report: SyncReport) -> None:
    """Reads everything that is there. The caller holds drain.lock and a writing connection."""
    runs: set[str] = set()
    everything = journals(con, home)
    remove_empty(everything)
    found = [j for j in everything if j.size > 0 and not _newer(j, report)]
    for lines in unread(found):
        _in_halves(con, lines, report, runs)
    _mark_gone(con, found, report)
    marks_of(con, runs)
    report.messages += reassemble(con)
    for journal in found:
        if not journal.alive and journal.bytes >= journal.size and journal.path.parent == paths.journal_dir(home):
            move_to_done(journal, home)
    report.runs = len(runs)
    report.waiting = sum(1 for j in found if j.bytes < j.size and not j.alive) + report.newer


def checkpoint(con: Connection, home: Path) -> None:
    """Makes the store file hold everything; journals in `done/` are needed no longer."""
    finished = {r["name"]: r["bytes"] for r in select(con, "select name, bytes from base.journals")}
    con.execute("checkpoint")
    folder = paths.done_dir(home)
    if not folder.is_dir():
        return
    for file in folder.glob("*.jsonl"):
        with suppress(FileNotFoundError):  # somebody removed it meanwhile
            if finished.get(file.name, -1) >= file.stat().st_size:
                file.unlink()


def _commit(con: Connection, lines: list[Line], report: SyncReport, runs: set[str]) -> None:
    """One transaction: the rows of these lines and how far their journals are read now."""
    got = IngestReport()
    last = {line.journal.path.name: line for line in lines}
    con.begin()
    try:
        ingest(con, _records(lines), report=got)
        _advance(con, last)
        con.commit()
    except BaseException:
        _roll_back(con)
        raise
    for line in last.values():
        line.journal.bytes, line.journal.lines = line.end, line.number
    report.records += got.records
    report.turn_keys |= got.turn_keys
    report.turns = len(report.turn_keys)
    report.bad += len(got.bad)
    runs.update(got.runs)


def _advance(con: Connection, last: dict[str, Line]) -> None:
    con.execute("delete from base.journals where name in (select unnest(?::varchar[]))", [[encode(n) for n in last]])
    append(con, "journals", ({"name": n, "bytes": line.end, "lines": line.number} for n, line in last.items()))


def _in_halves(con: Connection, lines: list[Line], report: SyncReport, runs: set[str]) -> None:
    """A line that DuckDB itself refuses is found by halving and set aside; all others go in."""
    import duckdb

    try:
        _commit(con, lines, report, runs)
    except (duckdb.DataError, duckdb.InvalidInputException):
        if report.bad > MOST_REFUSED:
            raise  # the store's own trouble, not that of a few records
        middle = len(lines) // 2
        if middle:
            _in_halves(con, lines[:middle], report, runs)
            _in_halves(con, lines[middle:], report, runs)
        else:
            _set_aside(con, lines[0], report)


def _set_aside(con: Connection, line: Line, report: SyncReport) -> None:
    text = line.data.decode("utf-8", "backslashreplace")
    row = {"source": line.journal.path.name, "position": line.number, "reason": "refused by the store", "text": text}
    con.begin()
    append(con, "bad_record", [row])
    _advance(con, {line.journal.path.name: line})
    con.commit()
    line.journal.bytes, line.journal.lines = line.end, line.number
    report.bad += 1


def _records(lines: list[Line]) -> Iterator[Located]:
    for line in lines:
        if not line.data.strip():
            continue
        place = Place(line.number, line.journal.path.name, line.journal.writer)
        text = line.data.decode("utf-8", "backslashreplace").rstrip("\n")
        try:
            record: Record | Any = json.loads(line.data)
        except (ValueError, RecursionError) as error:
            yield place, Unreadable(f"not JSON, a torn write ({error})", text)
            continue
        if isinstance(record, dict) and isinstance(record.get("kind"), str):
            yield place, record
        else:
            yield place, Unreadable("not a tape record (no kind)", text)


def _mark_gone(con: Connection, found: list[Journal], report: SyncReport) -> None:
    """Runs that say running although their writer is gone and everything it wrote is read."""
    unread = {j.writer for j in found if j.bytes < j.size}
    gone = {j.writer for j in found if not j.alive} - unread
    if gone:
        con.begin()
        try:
            count = mark_interrupted(con, sorted(gone))
            cut_off(con, sorted(gone))
            con.commit()
        except BaseException:
            _roll_back(con)
            raise
        if count:
            report.messages.append(
                f"{count} run{'s' if count > 1 else ''} ended without a word (killed?): marked interrupted"
            )


def _roll_back(con: Connection) -> None:
    try:
        con.rollback()
    except Exception:  # the transaction is gone already; the first error is the one to tell
        pass


def _newer(journal: Journal, report: SyncReport) -> bool:
    version = format_of(journal)
    if version is None or version <= VERSION:
        return False
    report.newer += 1
    report.messages.append(
        f"{journal.path} is of tape format {version}, newer than this looptape reads ({VERSION}): "
        "left as it is. Upgrade looptape"
    )
    return True
