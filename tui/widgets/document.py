"""A text to read, as blocks; and where its lines stand at a given width, without wrapping what nobody looks at."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from rich.cells import cell_len

from ..safe_text import clean
from .cells import Span, Spans
from .json_text import coloured

CHUNK = 4000
"""Longest piece of a line, in characters: a line of 5 MB is 1,250 pieces, each wrapped when it is seen."""
CAREFUL = 60_000
"""Characters of long lines that are wrapped at words; what comes after them is cut at the edge (much quicker)."""

_WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uffe6\U0001f000-\U0003fffd]"
)


@dataclass(frozen=True, slots=True)
class Head:
    """One line of spans: a heading, a label with a value. Long ones wrap, ``hang`` cells further in."""

    spans: Spans
    indent: int = 0
    hang: int = 2


@dataclass(frozen=True, slots=True)
class Body:
    """A text of any size and any content.

    Attributes:
        syntax: ``json`` colours keys and values lightly.
        most: Lines shown at most, 0 for all; what is left out is counted in a last line.
    """

    text: str
    role: str = "text"
    indent: int = 0
    syntax: str = ""
    most: int = 0


Block = Head | Body
Document = tuple[Block, ...]


class Piece(NamedTuple):
    """A line of a block, or a part of a very long line. ``words``: wrapped at words, else cut at the edge."""

    spans: Spans
    indent: int = 0
    syntax: str = ""
    words: bool = True
    hang: int = 0


class Section(NamedTuple):
    """A block at a width: its lines, the row where each begins, counted from the block's first row.

    ``careful``: index of the first line that is cut at the edge instead of being wrapped at words.
    """

    block: Block
    lines: Sequence[str]
    starts: Sequence[int]
    careful: int

    def piece(self, index: int) -> Piece:
        """A line as it is to be drawn."""
        if isinstance(self.block, Head):
            return Piece(
                tuple((clean(t), role) for t, role in self.block.spans), self.block.indent, hang=self.block.hang
            )
        block = self.block
        return Piece(((self.lines[index], block.role),), block.indent, block.syntax, index < self.careful)


@dataclass(frozen=True, slots=True)
class Layout:
    """A document at a width: its sections, the row where each begins, and how many rows there are."""

    width: int
    sections: Sequence[Section] = ()
    starts: Sequence[int] = ()
    rows: int = 0

    def row(self, y: int) -> Spans:
        """The spans of a row, indent included; empty below the end."""
        if not 0 <= y < self.rows:
            return ()
        at = bisect_right(self.starts, y) - 1
        section = self.sections[at]
        y -= self.starts[at]
        index = bisect_right(section.starts, y) - 1
        piece = section.piece(index)
        lines = _wrapped(piece, max(1, self.width - piece.indent))
        y -= section.starts[index]
        return ((" " * piece.indent, "text"), *lines[y]) if y < len(lines) else ()


def lay_out(document: Iterable[Block], width: int) -> Layout:
    """Where every line of a document stands. Quick for tens of megabytes; safe to run in a thread."""
    sections: list[Section] = []
    starts: list[int] = []
    rows, careful = 0, CAREFUL
    for block in _noted(document):
        room = max(1, width - block.indent)
        if isinstance(block, Head):
            piece = Section(block, (), (0,), 1).piece(0)
            section, height = Section(block, (), (0,), 1), len(_wrapped(piece, room))
        else:
            section, height, careful = _section(block, room, careful)
        sections.append(section)
        starts.append(rows)
        rows += height
    return Layout(width, sections, starts, rows)


def wrap(spans: Spans, width: int, *, words: bool = True, hang: int = 0) -> list[Spans]:
    """Cleaned spans over as many rows of ``width`` cells as they need; at least one.

    ``hang``: blanks before every row but the first.
    """
    text = "".join(t for t, _ in spans)
    if len(text) <= width and cell_len(text) <= width:
        return [spans]
    hang = min(hang, width // 2)
    rows = [_slice(spans, start, end) for start, end in _cuts(text, width, words, width - hang)]
    return [rows[0], *(((" " * hang, "text"), *row) for row in rows[1:])]


def _noted(document: Iterable[Block]) -> Iterable[Block]:
    """The blocks; where one shows only its first lines, a line says how much is left out."""
    for block in document:
        if isinstance(block, Head) or not block.most:
            yield block
            continue
        lines = block.text.split("\n")
        most, note = block.most, ""
        if len(lines) > most + 1:
            note = f"… {len(lines) - most:,} more lines"
        else:
            most = len(lines)
        kept = "\n".join(lines[:most])
        limit = 200 * block.most
        if len(kept) > 2 * limit:
            note = f"… {len(block.text) - limit:,} more characters"
            kept = kept[:limit]
        yield replace(block, text=kept, most=0)
        if note:
            yield Head(((note, "dim"),), block.indent)


def _section(block: Body, room: int, careful: int) -> tuple[Section, int, int]:
    """A body's section, its rows, and how much care is left."""
    lines = [part for line in block.text.split("\n") for part in _parts(line)]
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
    starts = list(accumulate(heights, initial=0))
    rows = starts.pop()
    return Section(block, lines, starts, upto), rows, careful


def _parts(line: str) -> Sequence[str]:
    """A cleaned line, very long ones in parts."""
    if not (line.isascii() and line.isprintable()):
        line = clean(line.removesuffix("\r"), multiline=True)
    if len(line) <= CHUNK:
        return (line,)
    return [line[at : at + CHUNK] for at in range(0, len(line), CHUNK)]


def _height(text: str, room: int) -> int:
    """Rows of a text that is cut at the edge: exact for ASCII, else enough."""
    if text.isascii():
        return max(1, -(-len(text) // room))
    return max(1, -(-(len(text) + len(_WIDE.findall(text))) // max(1, room - 1)))


@lru_cache(maxsize=512)
def _wrapped(piece: Piece, room: int) -> list[Spans]:
    spans = coloured(piece.spans[0][0], piece.spans[0][1]) if piece.syntax == "json" else piece.spans
    return wrap(spans, room, words=piece.words, hang=piece.hang)


def _cuts(text: str, width: int, words: bool, later: int) -> list[tuple[int, int]]:
    """Where the rows begin and end: the first of ``width`` cells, the others of ``later``."""
    if not words and text.isascii() and later == width:
        return [(at, min(at + width, len(text))) for at in range(0, len(text), width)] or [(0, 0)]
    cuts: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        end = _reach(text, start, later if cuts else width)
        if words and end < len(text):
            space = text.rfind(" ", start + 1, end + 1)
            # A break at a space reads better, but not when it leaves most of the row empty.
            if space > start + (end - start) // 3:
                cuts.append((start, space))
                start = space + 1
                continue
        cuts.append((start, end))
        start = end
    return cuts or [(0, 0)]


def _reach(text: str, start: int, width: int) -> int:
    """Index behind the last character that still fits into ``width`` cells from ``start`` on."""
    end = min(len(text), start + width)
    if text[start:end].isascii():
        return end
    while end > start + 1 and cell_len(text[start:end]) > width:
        end -= max(1, (cell_len(text[start:end]) - width) // 2)
    while end < len(text) and (text[end] in _JOINED or cell_len(text[start : end + 1]) <= width):
        end += 1
    return max(end, start + 1)


_JOINED = frozenset("\u200d\ufe0e\ufe0f")


def _slice(spans: Spans, start: int, end: int) -> Spans:
    out: list[Span] = []
    at = 0
    for text, role in spans:
        low, high = max(start - at, 0), min(end - at, len(text))
        if low < high:
            out.append((text[low:high], role))
        at += len(text)
        if at >= end:
            break
    return tuple(out)
