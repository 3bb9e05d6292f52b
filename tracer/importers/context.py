"""What an import knows beyond the file it reads: where the bytes are, which runs are already here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from . import reading


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to import: a file, the pieces of a journal in their order, or a stream.

    Attributes:
        label: What people call it: the path as given, ``-`` for standard input.
        files: The files in order; empty for a stream.
        stream: Bytes that are no file (standard input, kept in a temporary file so that they can be read twice).
    """

    label: str
    files: tuple[Path, ...] = ()
    stream: IO[bytes] | None = None

    @property
    def path(self) -> Path | None:
        """The (first) file, None for a stream."""
        return self.files[0] if self.files else None

    def head(self) -> bytes:
        """The first bytes, for recognition; at least one whole line unless that is very long."""
        if self.stream is not None:
            self.stream.seek(0)
            return _head_of(self.stream)
        with self.files[0].open("rb") as stream:
            return _head_of(stream)

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Numbered lines of all files; the numbers start anew with each file."""
        if self.stream is not None:
            self.stream.seek(0)
            yield from reading.lines(self.stream)
        for path in self.files:
            with path.open("rb") as stream:
                yield from reading.lines(stream)


@dataclass(slots=True)
class Context:
    """What is shared by the files of one import.

    Attributes:
        ended: End times (µs) of runs that the store already holds, so that a shorter copy of a session
            that comes after a longer one does not undo its end.
        calls: Call id of a sub-agent's start -> run and turn that made it.
        agents: (session, agent id) -> call id, as told by the results of such calls.
    """

    ended: Mapping[str, int] = field(default_factory=dict)
    calls: dict[str, tuple[str, int]] = field(default_factory=dict)
    agents: dict[tuple[str, str], str] = field(default_factory=dict)


def _head_of(stream: IO[bytes]) -> bytes:
    head = stream.read(reading.HEAD_BYTES)
    if b"\n" not in head:
        head += stream.readline(reading.MAX_LINE_BYTES)
    return head
