"""Where the lines of a document stand at a given width, without wrapping what nobody looks at."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from ..safe_text import clean
from .blocks import CLOSED, OPEN, Block, Body, Folds, Head, Leaf, json_folds, leaves
from .cells import Spans, cleaned, fit
from .json_text import coloured
from .wrapping import Mark, marked, row_of, wrap

CHUNK = 4000
"""Longest piece of a line, in characters: a line of 5 MB is 1,250 pieces, each wrapped when it is seen."""
BLOCK = 200_000
"""Characters of a line that are cleaned in one go: one go on 12 million of them would hold the keys up."""
CAREFUL = 60_000
"""Characters of long lines that are wrapped at words; what comes after them is cut at the edge (much quicker)."""

_WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uffe6\U0001f000-\U0003fffd]"
)

Marks = Mapping[tuple[int, int], Sequence[Mark]]
"""What is marked in a line, by the number of its leaf and its own number there."""


class Piece(NamedTuple):
    """A line of a block, or a part of a very long line. ``words``: wrapped at words, else cut at the edge."""

    spans: Spans
    indent: int = 0
    syntax: str = ""
    words: bool = True
    hang: int = 0
    tail: Spans = ()
    marks: tuple[Mark, ...] = ()
    cut: bool = False


class Section(NamedTuple):
    """A leaf at a width: its lines, the row where each begins, counted from the leaf's first row.

    Attributes:
        lines: All of them, also those that are folded away inside a JSON text.
        shown: Numbers of the lines that are shown; None for all.
        careful: Number of the first line that is cut at the edge instead of being wrapped at words.
        folds: Lines that can be folded, with their last lines.
    """

    leaf: Leaf
    lines: Sequence[str]
    starts: Sequence[int]
    rows: int
    careful: int
    shown: Sequence[int] | None = None
    folds: Mapping[int, int] = {}
    closed: frozenset[int] = frozenset()

    def number(self, index: int) -> int:
        """The number of the line that is shown at this place."""
        return index if self.shown is None else self.shown[index]

    def piece(self, number: int, marks: Sequence[Mark] = ()) -> Piece:
        """A line as it is to be drawn."""
        block = self.leaf.block
        if isinstance(block, Head):
            return Piece(cleaned(block.spans), block.indent, hang=block.hang, marks=tuple(marks), cut=block.cut)
        tail: Spans = ()
        if number in self.closed:
            last = self.folds[number]
            tail = ((f" … {last - number - 1:,} lines … ", "dim"), (self.lines[last].strip(), "dim"))
        words = number < self.careful
        return Piece(((self.lines[number], block.role),), block.indent, block.syntax, words, 0, tail, tuple(marks))


class Spot(NamedTuple):
    """What stands in a row: its section, the number of the line there, and which row of that line it is."""

    section: Section
    line: int
    row: int

    @property
    def foldable(self) -> bool:
        """True for the line of a fold."""
        return self.section.leaf.own is not None or self.line in self.section.folds


@dataclass(frozen=True, slots=True)
class Layout:
    """A document at a width: its sections, the row where each begins, and how many rows there are."""

    width: int
    sections: Sequence[Section] = ()
    starts: Sequence[int] = ()
    rows: int = 0
    foldable: bool = False
    places: Mapping[int, int] = field(default_factory=dict)

    def at(self, y: int) -> Spot | None:
        """What stands in a row; None below the end."""
        if not 0 <= y < self.rows:
            return None
        at = bisect_right(self.starts, y) - 1
        section = self.sections[at]
        y -= self.starts[at]
        index = bisect_right(section.starts, y) - 1
        return Spot(section, section.number(index), y - section.starts[index])

    def row(self, y: int, marks: Marks | None = None) -> Spans:
        """The spans of a row, indent included; empty below the end."""
        spot = self.at(y)
        if spot is None:
            return ()
        section, number = spot.section, spot.line
        piece = section.piece(number, marks.get((section.leaf.number, number), ()) if marks else ())
        lines = _wrapped(piece, max(1, self.width - piece.indent))
        if spot.row >= len(lines):
            return ()
        return (*_gutter(section, number, piece.indent, first=not spot.row), *lines[spot.row])

    def row_of(self, leaf: int, line: int, at: int = 0) -> int | None:
        """The row that holds a character of a line; None while it is folded away."""
        place = self.places.get(leaf)
        if place is None:
            return None
        section = self.sections[place]
        index = line if section.shown is None else bisect_left(section.shown, line)
        if index >= len(section.starts) or section.number(index) != line:
            return None
        piece = section.piece(line)
        text = "".join(t for t, _ in piece.spans)
        room = max(1, self.width - piece.indent)
        inner = 0 if piece.cut else row_of(text, at, room, words=piece.words, hang=piece.hang)
        return self.starts[place] + section.starts[index] + inner


def lay_out(
    document: Iterable[Block], width: int, folds: Folds | None = None, *, before: Layout | None = None
) -> Layout:
    """Where every line of a document stands. Quick for tens of megabytes; safe to run in a thread.

    Args:
        before: An earlier layout: sections of texts that did not change are taken from it.
    """
    folds = folds or Folds()
    sections: list[Section] = []
    starts: list[int] = []
    places: dict[int, int] = {}
    rows, careful, foldable = 0, CAREFUL, False
    for leaf in leaves(document, folds):
        if not leaf.shown:
            continue
        section = _again(before, leaf, width, folds)
        if section is None:
            section, careful = _section(leaf, max(1, width - leaf.block.indent), careful, folds)
        places[leaf.number] = len(sections)
        sections.append(section)
        starts.append(rows)
        rows += section.rows
        foldable = foldable or leaf.own is not None or bool(section.folds)
    return Layout(width, sections, starts, rows, foldable, places)


def lines_of(block: Head | Body) -> list[str]:
    """The cleaned lines of a leaf as they are shown, very long ones in parts."""
    if isinstance(block, Head):
        return ["".join(clean(text) for text, _ in block.spans)]
    return [part for line in block.text.split("\n") for part in _parts(line)]


def _again(before: Layout | None, leaf: Leaf, width: int, folds: Folds) -> Section | None:
    """The section of the same text in an earlier layout."""
    if before is None or before.width != width or isinstance(leaf.block, Head):
        return None
    place = before.places.get(leaf.number)
    if place is None:
        return None
    section = before.sections[place]
    same = section.leaf.block == leaf.block and section.closed == folds.closed.get(leaf.number, frozenset())
    return section._replace(leaf=leaf) if same else None


def _section(leaf: Leaf, room: int, careful: int, folds: Folds) -> tuple[Section, int]:
    """A leaf's section, and how much care is left."""
    block = leaf.block
    if isinstance(block, Head):
        piece = Section(leaf, (), (0,), 1, 1).piece(0)
        return Section(leaf, (), (0,), len(_wrapped(piece, room)), 1), careful
    lines = lines_of(block)
    foldable = json_folds(lines) if block.syntax == "json" and block.whole and len(lines) > 2 else {}
    closed = frozenset(n for n in folds.closed.get(leaf.number, ()) if n in foldable)
    shown = _shown(len(lines), foldable, closed) if closed else None
    kept = lines if shown is None else [lines[n] for n in shown]
    heights, upto, careful = _heights(kept, block, room, careful)
    careful_line = len(lines) if upto >= len(kept) else upto if shown is None else shown[upto]
    if closed and shown is not None:
        bare = Section(leaf, lines, (), 0, careful_line, shown, foldable, closed)
        for index, number in enumerate(shown):
            if number in closed:
                heights[index] = len(_wrapped(bare.piece(number), room))
    starts = list(accumulate(heights, initial=0))
    rows = starts.pop()
    return Section(leaf, lines, starts, rows, careful_line, shown, foldable, closed), careful


def _shown(count: int, foldable: Mapping[int, int], closed: frozenset[int]) -> list[int]:
    """The numbers of the lines that are left when these are closed."""
    shown: list[int] = []
    number = 0
    while number < count:
        shown.append(number)
        number = foldable[number] + 1 if number in closed else number + 1
    return shown


def _heights(lines: Sequence[str], block: Body, room: int, careful: int) -> tuple[list[int], int, int]:
    """Rows of every line, the first line that is not wrapped at words, and how much care is left."""
    heights = [-(-len(line) // room) or 1 for line in lines]
    upto = len(lines)
    for index, line in enumerate(lines):
        if heights[index] == 1 and line.isascii():
            continue
        if careful <= 0:
            upto = index
            break
        careful -= len(line)
        piece = Piece(((line, block.role),), block.indent, block.syntax)
        heights[index] = len(_wrapped(piece, room))
    for index in range(upto, len(lines)):
        if not lines[index].isascii():
            heights[index] = _height(lines[index], room)
    return heights, upto, careful


def _gutter(section: Section, number: int, indent: int, *, first: bool) -> Spans:
    """The blanks before a line; where a part of a JSON text can be folded, the sign of it."""
    if not indent:
        return ()
    if not first or number not in section.folds or indent < 2:
        return ((" " * indent, "text"),)
    closed = number in section.closed
    return ((" " * (indent - 2), "text"), (CLOSED if closed else OPEN, "accent" if closed else "faint"))


def _parts(line: str) -> Sequence[str]:
    """A cleaned line, very long ones in parts."""
    whole = "".join(map(_cleaned, _blocks(line))) if len(line) > BLOCK else _cleaned(line)
    if len(whole) <= CHUNK:
        return (whole,)
    return [whole[at : at + CHUNK] for at in range(0, len(whole), CHUNK)]


def _blocks(line: str) -> Iterator[str]:
    """A very long line in blocks that end at a blank where one is near: what belongs together stays together."""
    start = 0
    while start < len(line):
        end = min(len(line), start + BLOCK)
        space = line.rfind(" ", end - 1000, end) if end < len(line) else -1
        end = space if space > start else end
        yield line[start:end]
        start = end


def _cleaned(line: str) -> str:
    if line.isascii() and line.isprintable():
        return line
    return clean(line.removesuffix("\r"), multiline=True)


def _height(text: str, room: int) -> int:
    """Rows of a text that is cut at the edge: exact for ASCII, else enough."""
    if text.isascii():
        return max(1, -(-len(text) // room))
    return max(1, -(-(len(text) + len(_WIDE.findall(text))) // max(1, room - 1)))


@lru_cache(maxsize=512)
def _wrapped(piece: Piece, room: int) -> list[Spans]:
    spans = coloured(piece.spans[0][0], piece.spans[0][1]) if piece.syntax == "json" else piece.spans
    spans = (*spans, *piece.tail)
    if piece.marks:
        spans = marked(spans, piece.marks)
    if piece.cut:
        return [fit(spans, room)]
    return wrap(spans, room, words=piece.words, hang=piece.hang)
