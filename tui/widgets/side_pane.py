"""A pane that shows two texts side by side, row for row; narrow panes show one above the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from textual import events
from textual.geometry import Size
from textual.strip import Strip

from .. import keymap
from .cells import Spans, cleaned, fit
from .painted import PaintedScroll
from .wrapping import wrap

MARGIN = 1
NARROW = 64
"""Cells below which two columns would be too narrow to read."""


@dataclass(frozen=True, slots=True)
class SideRow:
    """What stands on one line.

    Attributes:
        a, b: The two sides; None where one has nothing there.
        sign: What the line is: blank, ``≠``, ``-`` or ``+``.
        whole: The line goes over both sides: a heading, a note; only ``a`` counts.
    """

    a: Spans | None = None
    b: Spans | None = None
    sign: str = " "
    whole: bool = False


def heading(*spans: tuple[str, str]) -> SideRow:
    """A line over both sides."""
    return SideRow(tuple(spans), whole=True)


class SidePane(PaintedScroll, can_focus=True):
    """Shows rows of two sides. ``show`` again with the same ``name`` keeps the place."""

    KEYS: Sequence[keymap.Key] = keymap.TEXT
    BINDINGS = keymap.bindings(KEYS)
    DEFAULT_CSS = "SidePane { background: $background; scrollbar-background: $background; scrollbar-color: $panel; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: Sequence[SideRow] = ()
        self._lines: list[Spans] = []
        self._name = ""
        self._width = 0

    def show(self, rows: Sequence[SideRow], *, name: str = "") -> None:
        """Other rows; from the top, unless it is what was shown before under this name."""
        stay = bool(name) and name == self._name
        self._rows, self._name = rows, name
        self._arrange()
        if not stay:
            self.jump(0)

    @property
    def at_end(self) -> bool:
        """True when the last row is on screen."""
        return self.scroll_offset.y + self.size.height >= len(self._lines)

    def render_line(self, y: int) -> Strip:
        """One line, or blank."""
        y += self.scroll_offset.y
        width = self.size.width
        return self.strip(self._lines[y], width) if y < len(self._lines) else self.blank(width)

    def on_resize(self, _event: events.Resize) -> None:
        """Other room, other lines."""
        if self.size.width != self._width:
            self._arrange()

    def on_click(self) -> None:
        """A click takes the keys here."""
        self.focus()

    def action_move(self, lines: int) -> None:
        """Scroll by lines."""
        self.jump(self.scroll_offset.y + lines)

    def action_page(self, pages: int) -> None:
        """Scroll by screens."""
        self.jump(self.scroll_offset.y + pages * max(1, self.size.height - 2))

    def action_top(self) -> None:
        """To the first row."""
        self.jump(0)

    def action_bottom(self) -> None:
        """To the last row."""
        self.jump(len(self._lines))

    def _arrange(self) -> None:
        self._width = self.size.width
        room = max(8, self._width - 2 * MARGIN - 1)
        self._lines = [line for row in self._rows for line in laid_out(row, room)]
        self.virtual_size = Size(self._width, len(self._lines))
        self.refresh()


def laid_out(row: SideRow, room: int) -> list[Spans]:
    """The lines of a row in ``room`` cells."""
    lead = (" " * MARGIN, "text")
    if row.whole:
        return [(lead, *line) for line in wrap(cleaned(row.a or ()), room, hang=2)]
    if room < NARROW:
        return [(lead, *line) for line in _stacked(row, room)]
    half = (room - 3) // 2
    a, b = (_side(side, half) for side in (row.a, row.b))
    lines = []
    for place, (one, two) in enumerate(zip_longest(a, b, fillvalue=())):
        sign = row.sign if not place else " "
        role = "faint" if row.sign == " " else "accent_strong"
        lines.append((lead, *fit(one, half), (f" {sign if sign != ' ' else '│'} ", role), *fit(two, half)))
    return lines


def _stacked(row: SideRow, room: int) -> list[Spans]:
    """Left over right, each with its sign; a line that is the same stands once."""
    if row.sign == " ":
        return [(("  ", "text"), *line) for line in _side(row.a, room - 2)]
    found: list[Spans] = []
    for sign, side in (("-", row.a), ("+", row.b)):
        if side is not None:
            found += [((f"{sign} ", "accent_strong"), *line) for line in _side(side, room - 2)]
    return found


def _side(spans: Spans | None, room: int) -> list[Spans]:
    return [()] if spans is None else wrap(cleaned(spans), room)
