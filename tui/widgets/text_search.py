"""Finds words in a document, folded parts included, line by line: quick enough to follow the typing in 20 MB. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .blocks import Document, Folds, Head, leaves
from .document import CHUNK, Layout, lines_of
from .wrapping import Mark

_Find = Callable[[str], Iterator[tuple[int, int]]]

MOST = 100_000
"""Hits that are listed; there may be more."""


class Hit(NamedTuple):
    """Where a hit stands: number of the leaf, of the line in it, and its characters there."""

    leaf: int
    line: int
    start: int
    end: int


@dataclass(slots=True)
class Hits:
    """What was found, and the one that is looked at.

    Attributes:
        needle: The words.
        at: Index of the current hit; -1 before there is one.
        whole: False when there are more than `MOST`.
    """

    needle: str = ""
    found: Sequence[Hit] = ()
    at: int = -1
    whole: bool = True
    marks: dict[tuple[int, int], tuple[Mark, ...]] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """``3 of 17``; ``no hit``."""
        if not self.found:
            return f"{self.needle!r} is not in this text"
        return f"{self.at + 1:,} of {len(self.found):,}{'' if self.whole else '+'}"

    def first_from(self, leaf: int, line: int) -> int:
        """Index of the first hit at or behind a line; the first of all when there is none."""
        at = bisect_left(self.found, (leaf, line, 0, 0))
        return at if at < len(self.found) else 0

    def choose(self, at: int) -> Hit:
        """Make another hit the current one; beyond the last comes the first."""
        before = self.at
        self.at = at % len(self.found)
        for index in {before, self.at} - {-1}:
            self._mark(index)
        return self.found[self.at]

    def _mark(self, index: int) -> None:
        hit = self.found[index]
        marks = []
        place = bisect_left(self.found, (hit.leaf, hit.line, 0, 0))
        while place < len(self.found) and self.found[place][:2] == hit[:2]:
            one = self.found[place]
            marks.append((one.start, one.end, "hit" if place == self.at else "changed"))
            place += 1
        self.marks[hit.leaf, hit.line] = tuple(marks)


def search(document: Document, layout: Layout, needle: str, wanted: Callable[[], bool]) -> Hits | None:
    """All hits in order. Capital letters count only when the words have some.

    Args:
        layout: Where lines that are shown are taken from; the others are made.
        wanted: Asked now and then; on False the search ends and gives None.
    """
    if not needle:
        return Hits()
    found: list[Hit] = []
    for hit in _all(document, layout, _finder(needle), len(needle)):
        if hit is None:
            if not wanted():
                return None
        elif len(found) == MOST:
            return _marked(Hits(needle, found, whole=False))
        else:
            found.append(hit)
    return _marked(Hits(needle, found))


def _all(document: Document, layout: Layout, find: _Find, size: int) -> Iterator[Hit | None]:
    """The hits in order, and now and then a None."""
    for leaf in leaves(document, Folds()):
        place = layout.places.get(leaf.number)
        lines = layout.sections[place].lines if place is not None else ()
        if not lines or isinstance(leaf.block, Head):
            lines = lines_of(leaf.block)
        for number, line in enumerate(lines):
            if number % 2000 == 0:
                yield None
            after = lines[number + 1][: size - 1] if len(line) == CHUNK and number + 1 < len(lines) else ""
            for start, end in find(line + after if after else line):
                if start < len(line):
                    yield Hit(leaf.number, number, start, min(end, len(line)))


def _marked(hits: Hits) -> Hits:
    marks: dict[tuple[int, int], list[Mark]] = {}
    for leaf, line, start, end in hits.found:
        marks.setdefault((leaf, line), []).append((start, end, "changed"))
    hits.marks = {key: tuple(some) for key, some in marks.items()}
    return hits


def _finder(needle: str) -> _Find:
    exact = needle != needle.lower()
    pattern = re.compile(re.escape(needle), 0 if exact else re.IGNORECASE)
    ascii_needle = needle.isascii()

    def plain(line: str) -> Iterator[tuple[int, int]]:
        if line.isascii():
            if not ascii_needle:
                return
            text = line if exact else line.lower()
            at = text.find(needle)
            while at >= 0:
                yield at, at + len(needle)
                at = text.find(needle, at + len(needle))
        else:
            for match in pattern.finditer(line):
                yield match.span()

    return plain
