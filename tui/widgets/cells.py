"""Spans of text into exactly so many terminal cells, and columns into a width. Pure; cleans what it draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from ..safe_text import clean
from ..themes import Styles

Span = tuple[str, str]
"""A text and its role (see ``themes.styles``). The text may be anything; it is cleaned when drawn."""
Spans = tuple[Span, ...]

GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list.

    Attributes:
        width: Cells it needs at least.
        right: Numbers stand right.
        keep: Importance; where room is short the lowest goes first.
        grow: Share of the room that is left over; 0 stays at ``width``.
        most: Cells it takes at most when it grows; 0 means no limit.
    """

    key: str
    title: str
    width: int
    right: bool = False
    keep: int = 5
    grow: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class Slot:
    """A column that has a place: ``width`` cells from cell ``x`` on."""

    column: Column
    x: int
    width: int


def lay_out(columns: Sequence[Column], width: int, gap: int = GAP) -> tuple[Slot, ...]:
    """The columns that fit into ``width`` cells, in order; the least important are left out."""
    kept = list(columns)
    while len(kept) > 1 and _needed(kept, gap) > width:
        lowest = min(c.keep for c in kept)
        kept.remove(next(c for c in reversed(kept) if c.keep == lowest))
    widths = _grown(kept, width - _needed(kept, gap))
    slots, x = [], 0
    for column, size in zip(kept, widths, strict=True):
        slots.append(Slot(column, x, size))
        x += size + gap
    return tuple(slots)


def fit(spans: Spans, width: int, *, right: bool = False) -> Spans:
    """The spans in exactly ``width`` cells: cleaned, cut with an ellipsis, padded left or right."""
    out: list[Span] = []
    room = width
    for index, (raw, role) in enumerate(spans):
        if room <= 0:
            break
        text = clean(raw, limit=room)
        size = cell_len(text)
        if size == room and any(more for more, _ in spans[index + 1 :]):
            text = clean(text + "……", limit=room)
            size = cell_len(text)
            out.append((text + " " * (room - size), role))
            room = 0
        elif text:
            out.append((text, role))
            room -= size
    if room > 0:
        pad = (" " * room, "text")
        out = [pad, *out] if right else [*out, pad]
    return tuple(out)


def cleaned(spans: Spans) -> Spans:
    """The spans as they may be shown; whoever wraps them needs that first."""
    return tuple((clean(text), role) for text, role in spans)


def cut(spans: Spans, width: int) -> Spans:
    """The spans, cut with an ellipsis where they take more than ``width`` cells; never padded."""
    return spans if width_of(spans) <= width else fit(spans, width)


def segments(spans: Spans, styles: Styles, base: Style) -> list[Segment]:
    """Cleaned spans as segments. ``base`` gives the background."""
    plain = styles["text"]
    return [Segment(text, base + styles.get(role, plain)) for text, role in spans if text]


def width_of(spans: Spans) -> int:
    """Cells that the spans take when nothing is cut."""
    return sum(cell_len(clean(text)) for text, _ in spans)


def spread(left: Spans, facts: Sequence[Spans], width: int, *, gap: int = 2) -> Spans:
    """A text at the left end of a line and facts at its right end.

    Where room is short the first facts go, so put the important ones last; the last one always stays.
    """
    kept = [f for f in facts if f]
    wanted = min(width_of(left), width * 3 // 4)  # a long name is cut before facts are lost
    while len(kept) > 1 and wanted + gap + width_of(_joined(kept)) > width:
        kept.pop(0)
    right = _joined(kept)
    size = width_of(right)
    if size + gap >= width:
        return fit(right, width)
    return (*fit(left, width - size - gap), (" " * gap, "text"), *fit(right, size))


def _joined(facts: Sequence[Spans]) -> Spans:
    spans: list[Span] = []
    for fact in facts:
        if spans:
            spans.append((" · ", "faint"))
        spans += fact
    return tuple(spans)


def _needed(columns: Sequence[Column], gap: int) -> int:
    return sum(c.width for c in columns) + gap * max(0, len(columns) - 1)


def _grown(columns: Sequence[Column], spare: int) -> list[int]:
    widths = [c.width for c in columns]
    while spare > 0:
        growing = [i for i, c in enumerate(columns) if c.grow and (not c.most or widths[i] < c.most)]
        if not growing:
            break
        shares = sum(columns[i].grow for i in growing)
        given = 0
        for i in growing:
            more = max(1, spare * columns[i].grow // shares)
            limit = columns[i].most or (widths[i] + more)
            more = min(more, limit - widths[i], spare - given)
            widths[i] += more
            given += more
        spare -= given
        if not given:
            break
    return widths
