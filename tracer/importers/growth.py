"""How far a growing file was read and what its importer knew there, so that only the rest has to be read.

growth = Growth(mark)                      # None: from the beginning
import_path(store, path, growth=growth)
mark = growth.mark()                       # for the next time; None when the file must be read whole again
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Protocol

from ..version import __version__
from . import reading

_SAMPLES = 16
_SAMPLE_BYTES = 4096


class Session(Protocol):
    """What an importer keeps of a file: it can be told line by line, stopped between two and go on later."""

    def runs(self) -> Mapping[str, int]:
        """The runs told so far, each with its number of turns."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place between two lines of a file.

    Attributes:
        format: Name of the importer that read it.
        device, inode: Which file it was.
        offset: Bytes before the place.
        lines: Lines before it.
        sample: Hash of pieces of these bytes.
        runs: What the store must hold for the rest to fit: run -> turns.
        state: The importer's session, as `Growth.keep` packed it.
        stamp: What code packed it.
    """

    format: str
    device: int
    inode: int
    offset: int
    lines: int
    sample: str
    runs: Mapping[str, int]
    state: bytes
    stamp: str

    def fits(self, path: Path) -> bool:
        """True when the file begins with what was read: it has only grown.

        Between the samples another text of the same length would not be noticed; logs are appended to.
        """
        try:
            with path.open("rb") as file:
                return self.begins(file)
        except OSError:
            return False

    def begins(self, file: IO[bytes]) -> bool:
        """The same of a file that is open."""
        stat = os.fstat(file.fileno())
        same = (stat.st_dev, stat.st_ino) == (self.device, self.inode) and stat.st_size >= self.offset
        return same and _sample(file, self.offset) == self.sample


class Replaced(Exception):
    """The file that was opened is no longer the one that was marked, though it was a moment ago."""


class Growth:
    """The reading of one file, from a mark on or from its beginning, and the next mark."""

    def __init__(self, mark: Mark | None = None) -> None:
        self._from = mark
        self._state: bytes | None = None
        self._stamp = ""
        self._runs: dict[str, int] = {}
        self._format: str | None = None
        self._file: tuple[int, int, str] | None = None
        self._offset = mark.offset if mark else 0
        self._lines = mark.lines if mark else 0

    @property
    def later(self) -> bool:
        """True when the file is read from a place behind its beginning."""
        return self._from is not None

    def resumed(self, kept: Collection[type], parts: Mapping[str, Any]) -> Any:
        """The session at the mark, its outer ``parts`` put in; None (and all is read) where there is none of use.

        Args:
            kept: The classes that a session may consist of; nothing else is made of what is read back.
        """
        mark = self._from
        if mark is not None and mark.stamp == _stamp(kept):
            try:
                return _Unpickler(io.BytesIO(mark.state), kept, parts).load()
            except Exception:  # whatever is wrong with it: the whole file tells the same
                pass
        self.restart()
        return None

    def restart(self) -> None:
        """Read all of it after all."""
        self._from, self._offset, self._lines = None, 0, 0

    def read(self, stream: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
        """Numbered lines of the file from the mark on. Raises Replaced."""
        if self._from is not None and not self._from.begins(stream):
            raise Replaced
        stream.seek(self._offset)
        before = self._lines
        for number, raw in reading.lines(stream):
            yield before + number, raw
            # the next is asked for: this one was whole, or it was the last
            end = stream.tell() if raw is None else self._offset + len(raw)
            if raw is None:
                stream.seek(end - 1)
            if (stream.read(1) if raw is None else raw[-1:]) == b"\n":
                self._offset, self._lines = end, before + number
        stat = os.fstat(stream.fileno())
        self._file = (stat.st_dev, stat.st_ino, _sample(stream, self._offset))

    def keep(self, session: Session, kept: Collection[type], parts: Mapping[str, Any], format: str) -> None:
        """Packs the session as it is after the last whole line."""
        packed = io.BytesIO()
        _Pickler(packed, parts).dump(session)
        self._state, self._stamp, self._format = packed.getvalue(), _stamp(kept), format
        self._runs = dict(session.runs())

    def forget(self) -> None:
        """Something went otherwise than told: the file is read whole the next time."""
        self._state = None

    def mark(self) -> Mark | None:
        """Where reading stopped; None where that is of no use."""
        if self._state is None or self._file is None or self._format is None:
            return None
        device, inode, sample = self._file
        place = (self._format, device, inode, self._offset, self._lines, sample)
        return Mark(*place, self._runs, self._state, self._stamp)


class _Pickler(pickle.Pickler):
    """What belongs to one import only (its source, its notes) is left out by name."""

    def __init__(self, file: IO[bytes], parts: Mapping[str, Any]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._names = {id(part): name for name, part in parts.items()}

    def persistent_id(self, value: Any) -> str | None:
        return self._names.get(id(value))


class _Unpickler(pickle.Unpickler):
    """Makes objects of the given classes and nothing else."""

    def __init__(self, file: IO[bytes], kept: Collection[type], parts: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._kept = {(c.__module__, c.__qualname__): c for c in kept}
        self._parts = parts

    def persistent_load(self, name: Any) -> Any:
        return self._parts[name]

    def find_class(self, module: str, name: str) -> Any:
        return self._kept[module, name]


def _stamp(kept: Collection[type]) -> str:
    """Changes with the code of these classes: another one may keep other things."""
    files = sorted({str(getattr(sys.modules[c.__module__], "__file__", "")) for c in kept})
    facts = [(name, s.st_size, s.st_mtime_ns) for name in files if os.path.exists(name) for s in (os.stat(name),)]
    return f"{__version__} {sys.version_info[:2]} {blake2b(repr(facts).encode(), digest_size=8).hexdigest()}"


def _sample(file: IO[bytes], size: int) -> str:
    """A hash of pieces of the first ``size`` bytes, the first and the last of them included."""
    found = blake2b(digest_size=16)
    last = max(0, size - _SAMPLE_BYTES)
    for number in range(_SAMPLES):
        place = last * number // (_SAMPLES - 1)
        file.seek(place)
        found.update(file.read(min(_SAMPLE_BYTES, size - place)))
    return found.hexdigest()
