"""The journal files as they lie in the store directory: how far each was read, whether its writer lives."""

from __future__ import annotations

import fcntl
import io
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .. import paths
from .rows import Connection, Row, select

PASS_BYTES = 32 << 20


@dataclass(slots=True)
class Journal:
    """A journal file. ``alive``: its writer holds the lock of one of its pieces; ``bytes``: read so far."""

    path: Path
    size: int
    alive: bool
    bytes: int = 0
    lines: int = 0

    @property
    def writer(self) -> str:
        """The writer's id: its pieces share it."""
        return _writer(self.path)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a journal with its number and the offset behind it."""

    journal: Journal
    number: int
    end: int
    data: bytes


def journals(con: Connection, home: Path) -> list[Journal]:
    """All journals, in the order in which they were begun, with how far the store has read them."""
    known = {r["name"]: r for r in select(con, "select name, bytes, lines from base.journals")}
    found = list(_looked_at(_files(home), known))
    while True:
        living = {j.writer for j in found if j.alive}
        names, gone = {j.path.name for j in found}, {j.writer for j in found} - living
        # who seems gone may have gone on in a new piece: it holds that before it lets the old one go
        later = [f for f in _files(home) if _writer(f) in gone and f.name not in names] if gone else []
        more = list(_looked_at(later, known))
        if not more:
            break
        found += more
    for journal in found:
        journal.alive = journal.writer in living
    return sorted(found, key=lambda j: (_begun(j.path), _piece(j.path)))


def pending(found: list[Journal], home: Path) -> list[Journal]:
    """Those that need a drain: unread bytes, or finished and not yet moved away."""
    waiting = paths.journal_dir(home)
    return [j for j in found if j.size > j.bytes or (j.path.parent == waiting and not j.alive and j.size > 0)]


def unread(found: list[Journal]) -> Iterator[list[Line]]:
    """Whole lines that the store lacks, about PASS_BYTES at a time."""
    part: list[Line] = []
    size = 0
    for journal in found:
        offset, number = journal.bytes, journal.lines
        while True:
            data, more = _read(journal, offset, PASS_BYTES - size)
            for line in _lines(data):
                offset += len(line)
                number += 1
                part.append(Line(journal, number, offset, line))
            size += len(data)
            if size >= PASS_BYTES or more:
                yield part
                part, size = [], 0
            if not more:
                break
    if part:
        yield part


def remove_empty(found: list[Journal]) -> None:
    """Files that a writer made and never wrote to (it was killed at once); young ones may be just begun."""
    for journal in found:
        with suppress(FileNotFoundError):
            if journal.size == 0 and not journal.alive and time.time() - journal.path.stat().st_mtime > 60:
                journal.path.unlink()


def move_to_done(journal: Journal, home: Path) -> None:
    """Puts a journal that is read to its end where it waits for the next checkpoint."""
    folder = paths.make_private(paths.done_dir(home))
    target = folder / journal.path.name
    with suppress(FileNotFoundError):  # somebody removed it meanwhile
        journal.path.rename(target)
        journal.path = target


def format_of(journal: Journal) -> int | None:
    """The tape format that the journal's header names, None when it names none."""
    with _opened(journal.path) as file:
        head = file.readline(1 << 16)
    try:
        version = json.loads(head).get("version")
    except (ValueError, AttributeError, RecursionError):
        return None
    return version if isinstance(version, int) else None


def _read(journal: Journal, offset: int, most: int) -> tuple[bytes, bool]:
    """Whole lines from an offset on, at least one, and whether there are more.

    The torn end of a dead writer's journal is a line of its own, so that it is set aside and said.
    """
    most = max(most, 1)
    with _opened(journal.path) as file:
        file.seek(offset)
        data = file.read(most)
        more = len(data) == most
        while more and b"\n" not in data:
            piece = file.read(PASS_BYTES)
            more = len(piece) == PASS_BYTES
            data += piece
    cut = data.rfind(b"\n") + 1
    if cut < len(data) and not more and not journal.alive:
        return data, False
    return data[:cut], more


def _lines(data: bytes) -> Iterator[bytes]:
    """The lines with their newlines (`splitlines` would also part at carriage returns and the like)."""
    parts = data.split(b"\n")
    yield from (part + b"\n" for part in parts[:-1])
    if parts[-1]:
        yield parts[-1]


def _locked(file: Path) -> bool:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _begun(file: Path) -> float:
    try:
        with open(file, "rb") as opened:
            return float(json.loads(opened.readline(1 << 16)).get("started_at") or 0)
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return 0.0


def _files(home: Path) -> list[Path]:
    return [f for d in (paths.done_dir(home), paths.journal_dir(home)) if d.is_dir() for f in d.glob("*.jsonl")]


def _looked_at(files: list[Path], known: Mapping[str, Row]) -> Iterator[Journal]:
    for file in files:
        row = known.get(file.name)
        read = (row["bytes"], row["lines"]) if row else (0, 0)
        alive = _locked(file)  # before the size: what a writer adds and then dies is read the next time
        with suppress(FileNotFoundError):  # its writer could not begin it after all, or somebody removed it
            size = file.stat().st_size
            # one that had just made the file may have locked it and begun since: asked again, it holds it
            yield Journal(file, size, alive or (size > 0 and _locked(file)), *read)


def _opened(file: Path) -> IO[bytes]:
    """A journal; an empty one where somebody removed it meanwhile."""
    try:
        return open(file, "rb")
    except FileNotFoundError:
        return io.BytesIO()


def _writer(file: Path) -> str:
    return file.name.split(".", 1)[0]


def _piece(file: Path) -> int:
    part = file.name.removesuffix(".jsonl").rpartition(".")[2]
    return int(part) if part.isdigit() else 0
