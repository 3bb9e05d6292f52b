"""A sample of an Inspect log while it is read: its long lists lie in a temporary file, and come out item by item."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator
from typing import IO, Any

from .. import reading
from ..json_stream import Member, Rule
from ..report import Notes

MAX_PART_BYTES = reading.MAX_LINE_BYTES
_MEMORY_BYTES = 8 << 20  # a small sample never sees the disk
_TEXTS_BYTES = 8 << 20

_LISTS = {"events": "events", "messages": "messages", "message_pool": "pool", "events_data/messages": "pool"}
_ITEMS: Rule = {"*": None}
_HEAD = (
    "id", "epoch", "uuid", "input", "output", "scores", "model_usage", "error", "limit", "started_at", "completed_at",
)  # fmt: skip
# what is taken of a sample; its store, metadata and time lines are read past
SAMPLE: Rule = {
    **dict.fromkeys(_HEAD),
    **dict.fromkeys(("events", "messages", "message_pool", "attachments"), _ITEMS),
    "events_data": {"messages": _ITEMS},
}


class Parts:
    """The parts of one sample. Its file has no name anywhere, and is gone with it.

    Attributes:
        head: The short members by name, secrets removed.
        events, messages, pool: The long lists.
        texts: The attachments.
    """

    def __init__(self, what: str, notes: Notes) -> None:
        self.what = what
        self.head: dict[str, Any] = {}
        self._notes = notes
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115 - see close
        self.events = Listed(self._file, "event", what, notes)
        self.messages = Listed(self._file, "message", what, notes)
        self.pool = Listed(self._file, "message of the pool", what, notes)
        self.texts = Texts(self._file, notes)

    def close(self) -> None:
        """The temporary file goes."""
        self._file.close()

    def take(self, member: Member, path: tuple[str | int, ...]) -> None:
        """A value of the sample; ``path`` is its place in it."""
        *where, last = path
        inside = "/".join(map(str, where))
        if member.raw is None:
            limit = f"longer than {MAX_PART_BYTES >> 20} MB"
            self._notes.skip(member.line, f"{'/'.join(map(str, path))} of {self.what} is {limit}: left out")
        elif inside == "attachments":
            self.texts.put(str(last), member.raw)
        elif inside in _LISTS and isinstance(last, int):
            getattr(self, _LISTS[inside]).put(member.raw, member.line)
        elif not inside:
            try:
                self.head[str(last)] = reading.clean(member.raw, self._notes)
            except ValueError as error:
                self._notes.skip(member.line, f"{last} of {self.what} is {error}")


class Listed:
    """The items of a list, in the temporary file; one that cannot be read is None, and noted once."""

    def __init__(self, file: IO[bytes], noun: str, what: str, notes: Notes) -> None:
        self._file = file
        self._places = array("Q")  # of each item begin, length, line
        self._said = noun, what
        self._notes = notes
        self._bad: set[int] = set()

    def __len__(self) -> int:
        return len(self._places) // 3

    def put(self, raw: bytes, line: int) -> None:
        """One more item, as it stands in the document."""
        self._places.extend((self._file.seek(0, 2), len(raw), line))
        self._file.write(raw)

    def at(self, index: int) -> dict[str, Any] | None:
        """An item (from 0), secrets removed; None when it is no JSON object."""
        try:
            value = reading.clean(self._raw(index), self._notes)
        except ValueError as error:
            if index not in self._bad:
                self._bad.add(index)
                noun, what = self._said
                self._notes.skip(self._places[3 * index + 2], f"{noun} {index + 1} of {what} is {error}")
            return None
        return value if isinstance(value, dict) else None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (value for index in range(len(self)) if (value := self.at(index)) is not None)

    def glimpsed(self) -> Iterator[dict[str, Any]]:
        """The objects with whatever secrets they have, for a look that keeps nothing; the bad ones left out."""
        for index in range(len(self)):
            try:
                value = reading.decode(self._raw(index))
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value

    def _raw(self, index: int) -> bytes:
        self._file.seek(self._places[3 * index])
        return self._file.read(self._places[3 * index + 1])


class Texts:
    """The attachments of a sample, by their hash; those that were asked for last are at hand."""

    def __init__(self, file: IO[bytes], notes: Notes) -> None:
        self._file = file
        self._notes = notes
        self._places: dict[str, tuple[int, int]] = {}
        self._near: dict[str, Any] = {}
        self._near_bytes = 0

    def put(self, name: str, raw: bytes) -> None:
        """One more, as it stands in the document."""
        self._places[name] = self._file.seek(0, 2), len(raw)
        self._file.write(raw)

    def get(self, name: str) -> Any:
        """What is attached under this name, secrets removed; None when there is nothing."""
        if name in self._near:
            return self._near[name]
        if name not in self._places:
            return None
        place, size = self._places[name]
        self._file.seek(place)
        try:
            value = reading.clean(self._file.read(size), self._notes)
        except ValueError:
            value = None
        if size < _TEXTS_BYTES // 4:
            if self._near_bytes + size > _TEXTS_BYTES:
                self._near, self._near_bytes = {}, 0
            self._near[name] = value
            self._near_bytes += size
        return value
