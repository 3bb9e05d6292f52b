"""Small charts of text: a bar in a table's cell, and a line of columns over time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(value: float, most: float, width: int = 16) -> str:
    """A bar as long as the value's share of the most: ``██████▌``; what is below zero is hollow: ``░░░``."""
    if not most or not value:
        return ""
    eighths = max(1, round(abs(value) / abs(most) * width * 8))
    if value < 0:
        return "░" * max(1, eighths // 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def columns(values: Sequence[float | None], width: int = 60) -> str:
    """Values over time as columns, one a value; ``·`` where nothing is known. Longer rows are summed into ``width``."""
    if len(values) > width:
        edges = [round(i * len(values) / width) for i in range(width + 1)]
        parts = [[v for v in values[a:b] if v is not None] for a, b in pairwise(edges)]
        values = [sum(p) if p else None for p in parts]
    most = max((v for v in values if v is not None), default=0)
    if most <= 0:
        return "·" * len(values)
    from sparklines import sparklines  # type: ignore[import-untyped]

    drawn = sparklines([max(v or 0, 0) for v in values], minimum=0, maximum=most)[0]
    return "".join("·" if v is None else " " if v <= 0 else column for v, column in zip(values, drawn, strict=True))
