"""The rows of the list of runs: keys of all, whole lines of those that were read; what is not read yet is known as missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from ....replay.listing import Line, Listing, Totals

MOST = 3_000
"""Lines kept; beyond it those out of sight are forgotten and read anew when they are seen."""
HEAD = "\x00"
"""Begins the key of a project's line (as in `replay.listing`, which is not loaded before the first reading)."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the list: a run (``line`` is None while it is not read), or a project with its sums."""

    key: str
    line: Line | None = None
    depth: int = 0
    totals: Totals | None = None
    folded: bool = False


class RunLines(Sequence[Row]):
    """The rows in order. Made anew at each reading; old lines are shown until new ones came.

    Args:
        found: The order of all keys.
        lines: The lines that are read.
        before: Lines of an earlier reading.
    """

    def __init__(
        self,
        found: Listing,
        lines: Mapping[str, Line],
        before: RunLines | None = None,
        folded: frozenset[str] = frozenset(),
    ) -> None:
        self.found = found
        self.folded = folded
        self._lines = dict(lines)
        self._gone: set[str] = set()
        self._old: dict[str, Line] = {} if before is None else {**before._old, **before._lines}
        if len(self._old) > MOST:
            self._old = dict(before._lines) if before is not None else {}

    def __len__(self) -> int:
        return len(self.found.keys)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self._row(key) for key in self.found.keys[index]]
        return self._row(self.found.keys[index])

    def __iter__(self) -> Iterator[Row]:
        return (self._row(key) for key in self.found.keys)

    def place_of(self, key: str) -> int | None:
        """Where a key stands; None when it is not in the list (a search in C: 1 ms in 100,000)."""
        try:
            return self.found.keys.index(key)
        except ValueError:
            return None

    def unread(self, first: int, last: int) -> list[str]:
        """Keys of runs between two places whose lines are not read."""
        return [key for key in self.found.keys[max(0, first) : max(0, last)] if not self.is_read(key)]

    def is_read(self, key: str) -> bool:
        """True when there is nothing to read for this key (any more)."""
        return key in self._lines or key in self._gone or key.startswith(HEAD)

    def read(self, first: int, last: int) -> list[Line]:
        """The lines between two places that are read."""
        return [self._lines[key] for key in self.found.keys[max(0, first) : max(0, last)] if key in self._lines]

    def lines_of(self, keys: Iterable[str]) -> list[Line]:
        """Those of these keys that are read."""
        return [self._lines[key] for key in keys if key in self._lines]

    def fill(self, lines: Mapping[str, Line], asked: Iterable[str]) -> None:
        """Lines that were read since; those that were asked for and are not there have gone meanwhile."""
        self._gone.update(key for key in asked if key not in lines)
        if len(self._lines) + len(lines) > MOST:
            self._lines.clear()
        self._lines.update(lines)

    def _row(self, key: str) -> Row:
        if key.startswith(HEAD):
            return Row(key, totals=self.found.projects.get(key), folded=key in self.folded)
        line = self._lines.get(key) or self._old.get(key)
        return Row(key, line, self.found.depths.get(key, 0))
