"""Long lines over rows of so many cells: at words where that reads well, else at the edge. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rich.cells import cell_len

from .cells import Span, Spans

Mark = tuple[int, int, str]
"""Where a stretch of a line begins and ends, in characters, and the role it takes."""


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


def row_of(text: str, at: int, width: int, *, words: bool = True, hang: int = 0) -> int:
    """Which row of the wrapped text holds the character ``at``."""
    if len(text) <= width and cell_len(text) <= width:
        return 0
    cuts = _cuts(text, width, words, width - min(hang, width // 2))
    return max(0, bisect_right([start for start, _ in cuts], at) - 1)


def marked(spans: Spans, marks: Sequence[Mark]) -> Spans:
    """The spans with another role where a mark says so. Marks are in order and do not overlap."""
    out: list[Span] = []
    last = 0
    whole = sum(len(t) for t, _ in spans)
    for start, end, role in marks:
        out += _slice(spans, last, start)
        out += [(text, role) for text, _ in _slice(spans, start, end)]
        last = end
    return (*out, *_slice(spans, last, whole))


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
