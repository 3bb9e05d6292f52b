"""What an import knows beyond the file it reads: where the bytes are, which runs are already here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ..errors import LooptapeError
from . import reading
from .compressed import unpacked
from .growth import Growth

# a document that must be decoded as a whole (one JSON value, a cassette) needs about ten times this in memory
MAX_DOCUMENT_BYTES = 256 << 20
_BEGIN_BYTES = 1 << 18  # of a document without lines: what `glimpse` looks at
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to import: a file, the pieces of a journal in their order, or a stream.

    Attributes:
        label: What people call it: the path as given, ``-`` for standard input.
        files: The files in order; empty for a stream.
        stream: Bytes that are no file (standard input, kept in a temporary file so that they can be read twice).
        growth: For a file that is followed: where to begin, and where reading stopped.
    """

    label: str
    files: tuple[Path, ...] = ()
    stream: IO[bytes] | None = None
    growth: Growth | None = None

    @property
    def path(self) -> Path | None:
        """The (first) file, None for a stream."""
        return self.files[0] if self.files else None

    def head(self) -> bytes:
        """The first bytes, for recognition; at least one whole line unless that is very long."""
        with self.open() as stream:
            return _head_of(stream)

    @contextlib.contextmanager
    def open(self, path: Path | None = None) -> Iterator[IO[bytes]]:
        """The bytes of the stream or of one file (the first), from their beginning; gzip and zstd unpacked."""
        if self.stream is not None and path is None:
            self.stream.seek(0)
            with unpacked(self.stream, self.label) as stream:
                yield stream
        else:
            path = path or self.files[0]
            with path.open("rb") as packed, unpacked(packed, str(path)) as stream:
                yield stream

    def whole(self, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
        """All bytes, for a document that can only be read as one.

        Raises:
            LooptapeError: It is larger than ``limit`` (``too-large``), which is named.
        """
        with self.open() as stream:
            data = stream.read(limit + 1)
        if len(data) > limit:
            raise LooptapeError(
                "too-large",
                f"{self.label}: larger than {limit >> 20} MB, the limit for one document",
                "Nothing of it was imported; split it, or store it as one object a line",
            )
        return data

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Numbered lines of all files; the numbers start anew with each file."""
        for path in self.files or (None,):
            with self.open(path) as stream:
                yield from reading.lines(stream) if self.growth is None else self.growth.read(stream)


@dataclass(slots=True)
class Context:
    """What is shared by the files of one import.

    Attributes:
        ended: End times (µs) of runs that the store already holds, so that a shorter copy of a session
            that comes after a longer one does not undo its end.
        calls: Call id of a sub-agent's start -> run and turn that made it.
        unlinked: Sub-agents' runs whose call is not known yet.
        orphans: Id of a span that was named as a parent and not received -> run, turn and flags of what named it.
        traced: Whether spans of one of these traces are in the store as they came, and which of them are in a file's runs.
        agents: (session, agent id) -> call id, as told by the results of such calls.
    """

    ended: Mapping[str, int] = field(default_factory=dict)
    calls: dict[str, tuple[str, int]] = field(default_factory=dict)
    agents: dict[tuple[str, str], str] = field(default_factory=dict)
    unlinked: set[str] = field(default_factory=set)
    orphans: Mapping[str, Sequence[tuple[str, int, Sequence[str]]]] = field(default_factory=dict)
    traced: Callable[[Collection[str]], tuple[bool, Collection[str]]] = lambda traces: (False, ())


def _head_of(stream: IO[bytes]) -> bytes:
    head = stream.read(reading.HEAD_BYTES)
    if b"\n" in head:
        return head
    head += stream.readline(reading.MAX_LINE_BYTES)
    if len(head) <= reading.MAX_LINE_BYTES:
        return head
    while (piece := stream.readline(_PIECE_BYTES)) and piece[-1:] != b"\n":
        pass
    rest = stream.read(reading.HEAD_BYTES)  # nobody reads so long a line: those behind it tell what it is
    return head[:_BEGIN_BYTES] + (b"\n" + rest if rest else b"")
