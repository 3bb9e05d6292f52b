"""What is told of a run as text with places: passages behind their marks, cut short or longer. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..report import Part, Styled
from ..safe_text import clean, width
from ..told.telling import Call, Line, Passage, Said
from .blocks import Block, Body, Head
from .cells import Span, Spans
from .document import Layout, lay_out

LONG, LONG_LINES = 20_000, 400
"""Characters and lines of a text where long texts are asked for; the turn shows all of it."""
_ROLES = {"bold": "strong", "dim": "dim", "accent": "accent_strong", "bad": "bad", "warn": "strong", "good": "accent"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage as the screen keeps it: never more than ``LONG`` characters of it. ``left``: what is left out."""

    mark: str
    role: str
    indent: int
    short: str
    short_left: int
    long: str
    long_left: int


Telling = tuple[Line | Piece, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A telling at a width."""

    layout: Layout
    marks: Sequence[tuple[str, str, int] | None]

    @property
    def rows(self) -> int:
        """How many rows it takes."""
        return self.layout.rows

    def row(self, y: int) -> Spans:
        """The spans of a row; a mark stands before the first row of its passage."""
        spans = self.layout.row(y)
        at = bisect_right(self.layout.starts, y) - 1
        mark = self.marks[at] if 0 <= at < len(self.marks) and self.layout.starts[at] == y else None
        if mark is None or not spans:
            return spans
        text, role, indent = mark
        return ((" " * indent, "text"), (text, role), *spans[1:])


def kept(said: Iterable[Said]) -> Telling:
    """What is told, without holding on to whole texts."""
    out: list[Line | Piece] = []
    for item in said:
        if isinstance(item, Call):
            out.append(item.line(whole=False))
        elif isinstance(item, Line):
            out.append(item)
        elif item.text.strip():
            out.append(_piece(item))
        else:
            out.append(Line((Styled(item.mark, "dim"), Styled("empty", "dim")), item.indent))
    return tuple(out)


def placed(telling: Telling, room: int, *, long: bool = False) -> Place:
    """Where every row stands at a width."""
    blocks: list[Block] = []
    marks: list[tuple[str, str, int] | None] = []
    for item in telling:
        if isinstance(item, Line):
            blocks.append(Head(_spans(item.parts), item.indent, 4))
            marks.append(None)
            continue
        mark = clean(item.mark, limit=24)
        indent = item.indent + width(mark)
        blocks.append(Body(item.long if long else item.short, item.role, indent))
        role = "bad_strong" if item.role == "bad" else "accent_strong" if item.mark == "> " else "dim"
        marks.append((mark, role, item.indent) if mark else None)
        left = item.long_left if long else item.short_left
        if left:
            blocks.append(Head(((f"… {left:,} more characters: {'Enter' if long else 'z'}", "faint"),), indent))
            marks.append(None)
    return Place(lay_out(blocks, room), marks)


def plain(telling: Telling) -> str:
    """The telling as one text, to copy."""
    lines = []
    for item in telling:
        if isinstance(item, Line):
            lines.append(" " * item.indent + "".join(p if isinstance(p, str) else p.text for p in item.parts))
        else:
            left = f"\n… {item.long_left:,} more characters" if item.long_left else ""
            lines.append(" " * item.indent + item.mark + item.long + left)
    return "\n".join(lines)


def _piece(passage: Passage) -> Piece:
    text = passage.text.rstrip("\n")
    short = passage.shortened.rstrip("\n")
    long = "\n".join(text[:LONG].split("\n")[:LONG_LINES])
    role = _ROLES.get(passage.style or "", "text")
    return Piece(passage.mark, role, passage.indent, short, len(text) - len(short), long, len(text) - len(long))


def _spans(parts: Sequence[Part]) -> Spans:
    spans: list[Span] = []
    for part in parts:
        text, role = (part, "text") if isinstance(part, str) else (part.text, _ROLES.get(part.style, "text"))
        if text:
            spans.append((text, role))
    return tuple(spans)
