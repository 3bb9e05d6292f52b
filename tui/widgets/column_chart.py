"""Values over time as columns of cells: a chart a few lines high, with its scale and its ends named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from .cells import Span, Spans, fit
from .painted import Bar

_EIGHTHS = " ▁▂▃▄▅▆▇█"
SCALE = 9
"""Cells left of the columns: the value at the top and in the middle."""


class ColumnChart(Bar):
    """Columns, one a value or, where there is no room, one for several that follow each other (summed)."""

    DEFAULT_CSS = "ColumnChart { height: 7; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._values: Sequence[float] = ()
        self._names: Sequence[str] = ()
        self._written: Callable[[float], str] = str
        self._title = ""
        self._marked: int | None = None

    def show(
        self,
        values: Sequence[float],
        names: Sequence[str],
        written: Callable[[float], str],
        title: str,
        marked: int | None = None,
    ) -> None:
        """The values with a name each; ``marked``: the one that stands out."""
        self._values, self._names, self._written = values, names, written
        self._title, self._marked = title, marked
        self.refresh()

    def spans_of(self, y: int, width: int) -> Spans:
        """A title, the lines of the columns, the names of both ends."""
        height = self.size.height - 2
        if not self._values or height < 1 or width < SCALE + 4:
            return ()
        room = width - SCALE - 3
        sums, marked, each = grouped(self._values, room, self._marked)
        most = max(sums)
        if y == 0:
            note = f"  {each} to a column" if each > 1 else ""
            return ((" ", "text"), (self._title, "dim"), (note, "faint"))
        wide = max(1, min(6, room // len(sums)))
        if y == self.size.height - 1:
            return self._ends(len(sums) * wide)
        line = height - y  # from below
        scale = self._written(most) if line == height - 1 else self._written(most / 2) if height > 3 and line == height // 2 else ""  # fmt: skip
        spans: list[Span] = [*fit(((scale, "dim"),), SCALE, right=True), (" ▏", "faint")]
        for place, value in enumerate(sums):
            eighths = max(1, round(value / most * height * 8)) if value > 0 and most else 0
            block = _EIGHTHS[min(8, max(0, eighths - 8 * line))]
            text = block * (wide - 1) + " " if wide > 1 else block
            spans.append((text, "accent_strong" if place == marked else "bar"))
        return tuple(spans)

    def _ends(self, wide: int) -> Spans:
        first, last = self._names[0], self._names[-1]
        gap = wide - len(first) - len(last)
        names = f"{first}{' ' * gap}{last}" if gap > 0 and len(self._names) > 1 else first
        return ((" " * (SCALE + 2), "text"), (names, "dim"))


def grouped(values: Sequence[float], room: int, marked: int | None) -> tuple[list[float], int | None, int]:
    """The values in at most ``room`` columns: sums of neighbours; where the marked one went; how many are in one."""
    each = -(-len(values) // max(1, room))
    edges = [*range(0, len(values), each), len(values)]
    sums = [sum(values[a:b]) for a, b in pairwise(edges)]
    return sums, None if marked is None else marked // each, each
