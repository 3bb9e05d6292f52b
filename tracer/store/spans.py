"""Message lists as intervals: which blob stood at which place from which turn to which.

A loop's history mostly grows, so that intervals stay linear where copies or lists per turn are quadratic.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .rows import Connection, Row


@dataclass(slots=True)
class Span:
    """A blob at a position (from 1) of the request, from `first` to `last` turn; `last` None: still there."""

    position: int
    blob: int
    first: int
    last: int | None = None


@dataclass(slots=True)
class History:
    """The message lists of all turns of one run. ``spans`` begins with what the store already has."""

    spans: list[Span] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    changed: bool = False
    _latest: list[Span] = field(default_factory=list)
    _stored: int = 0
    _stored_open: list[Span] = field(default_factory=list)
    _remade: bool = False

    def __post_init__(self) -> None:
        self.turns.sort()
        self._stored = len(self.spans)
        self._stored_open = [s for s in self.spans if s.last is None]
        self._latest = sorted(self._stored_open, key=lambda s: s.position)

    def at(self, turn: int) -> list[int]:
        """Blob ids of the messages of a turn, in order."""
        if self.turns and turn == self.turns[-1]:
            return [s.blob for s in self._latest]
        here = [s for s in self.spans if s.first <= turn and (s.last is None or turn <= s.last)]
        return [s.blob for s in sorted(here, key=lambda s: s.position)]

    def add(self, turn: int, base: int | None, keep: int, new: list[int]) -> int:
        """Sets the messages of a turn: the first `keep` of those of `base`, then `new`. Returns how many they are."""
        if self.turns and turn <= self.turns[-1]:
            return self._insert(turn, (self.at(base)[:keep] if base else []) + new)
        if not self.turns or (base == self.turns[-1] and keep):
            common, blobs = min(keep, len(self._latest)), new
        else:
            wanted = (self.at(base)[:keep] if base else []) + new
            common = _common([s.blob for s in self._latest], wanted)
            blobs = wanted[common:]
        before = self.turns[-1] if self.turns else turn
        for span in self._latest[common:]:
            span.last = before
        added = [Span(common + i, blob, turn) for i, blob in enumerate(blobs, 1)]
        del self._latest[common:]
        self._latest += added
        self.spans += added
        self.turns.append(turn)
        self.changed = True
        return len(self._latest)

    def write(self, con: Connection, run: str) -> list[Row]:
        """Takes away the rows of the run (its name as DuckDB takes it) that changed; gives those to add.

        They are added for all runs of a slice at once: an appender costs some milliseconds.
        """
        closed = [s for s in self._stored_open if s.last is not None]
        if self._remade:
            con.execute("delete from base.spans where run = ?", [run])
            rows = self.spans
        elif closed:
            lowest = min(s.position for s in closed)
            con.execute("delete from base.spans where run = ? and position >= ? and last_turn is null", [run, lowest])
            rows = closed + self.spans[self._stored :]
        else:
            rows = self.spans[self._stored :]
        return [
            {"run": run, "position": s.position, "blob": s.blob, "first_turn": s.first, "last_turn": s.last}
            for s in rows
        ]

    def _insert(self, turn: int, messages: list[int]) -> int:
        """A turn that comes late, between others: all intervals of the run are made again."""
        lists = {t: self.at(t) for t in self.turns}
        lists[turn] = messages
        self.spans, self.turns, self._latest, self._stored_open = [], [], [], []
        self._remade = True
        for number in sorted(lists):
            common = _common([s.blob for s in self._latest], lists[number])
            self.add(number, self.turns[-1] if self.turns else None, common, lists[number][common:])
        return len(messages)


def _common(left: list[int], right: list[int]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count
