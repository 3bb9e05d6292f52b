"""A list that paints only what is seen: 30,000 rows cost what 40 cost. Selection is kept by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from .. import keymap
from .cells import GAP, Column, Slot, Spans, fit, lay_out, segments
from .painted import PaintedScroll

Row = TypeVar("Row")

MARGIN = 2
"""Cells left of the first column: the mark of the selected row and a blank."""


def found_again(keys: Callable[[int], str], count: int, key: str | None, before: int) -> int:
    """Where the selection stands after the rows changed: at its key, else near where it was.

    Args:
        keys: The key of the row at an index.
        before: The index it had; rows seldom move far, so the search begins there.
    """
    if count == 0:
        return 0
    near = min(max(before, 0), count - 1)
    if key is None:
        return near
    low, high = near, near + 1
    while low >= 0 or high < count:
        if low >= 0:
            if keys(low) == key:
                return low
            low -= 1
        if high < count:
            if keys(high) == key:
                return high
            high += 1
    return near


class VirtualList(PaintedScroll, Generic[Row], can_focus=True):
    """Rows in columns with one of them selected.

    Args:
        columns: What there is to show; ``lay_out`` chooses what fits.
        key_of: A row's key, stable across refreshes.
        cells: A row's spans for a column's key.
        head: Show the column titles in the first line.
        gap: Blanks between columns.
    """

    KEYS: Sequence[keymap.Key] = keymap.LIST
    BINDINGS = keymap.bindings(KEYS)

    class Moved(Message):
        """Another row is selected (or the same one has new content)."""

        def __init__(self, source: VirtualList[Any], key: str | None) -> None:
            super().__init__()
            self.list = source
            self.key = key

    class Opened(Moved):
        """The selected row was asked for: Enter, or a click on it."""

    class Sorted(Message):
        """A column's title was clicked."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    def __init__(
        self,
        columns: Sequence[Column],
        key_of: Callable[[Row], str],
        cells: Callable[[Row, str], Spans],
        *,
        head: bool = True,
        gap: int = GAP,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._columns = tuple(columns)
        self._key_of = key_of
        self._cells = cells
        self._head = 1 if head else 0
        self._gap = gap
        self._rows: Sequence[Row] = ()
        self._slots: tuple[Slot, ...] = ()
        self._cursor = 0
        self._strips: dict[tuple[int, bool, bool], Strip] = {}
        self.sorted_by = ""
        self.falling = True

    # what it holds

    @property
    def rows(self) -> Sequence[Row]:
        """The rows, as shown."""
        return self._rows

    @property
    def cursor(self) -> int:
        """Index of the selected row."""
        return self._cursor

    @property
    def selected(self) -> Row | None:
        """The selected row, None when the list is empty."""
        return self._rows[self._cursor] if self._cursor < len(self._rows) else None

    @property
    def selected_key(self) -> str | None:
        """Key of the selected row."""
        row = self.selected
        return None if row is None else self._key_of(row)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The columns that are shown, with their places."""
        return self._slots

    @property
    def top(self) -> int:
        """Index of the first row on the screen."""
        return min(int(self.scroll_offset.y), max(0, len(self._rows) - 1))

    @property
    def in_sight(self) -> int:
        """Rows that the screen has room for."""
        return max(1, self.size.height - self._head)

    def show(self, rows: Sequence[Row], *, select: str | None = None) -> None:
        """Replace the rows. The selection stays on its key (or goes to ``select``), at its place on screen.

        Where one has scrolled away from the selection, the first row on the screen stays the first.
        """
        before, top = self._cursor, self.scroll_offset.y
        away = bool(self._rows) and not top <= before < top + self.in_sight and not select
        held = min(int(top), len(self._rows) - 1) if away else before
        held_key = self._key_of(self._rows[held]) if away else None
        key, first = select or self.selected_key, not self._rows
        self._rows = rows
        self._cursor = self._found(key, before)
        self._measure()
        if away:
            self.jump(self._found(held_key, held) if top else 0)
        else:
            if top and not first:
                self.jump(self._cursor - (before - top))
            self._reveal()
        self.refresh()
        self.post_message(self.Moved(self, self.selected_key))

    def _found(self, key: str | None, before: int) -> int:
        """Where a key is among the rows; rows that know it themselves (``place_of``) are asked."""
        ask = getattr(self._rows, "place_of", None)
        if ask is not None and key is not None:
            place = ask(key)
            return place if place is not None else min(max(before, 0), max(0, len(self._rows) - 1))
        return found_again(lambda i: self._key_of(self._rows[i]), len(self._rows), key, before)

    def choose(self, index: int) -> None:
        """Select the row at an index (clamped) and show it."""
        index = min(max(index, 0), max(0, len(self._rows) - 1))
        before, self._cursor = self._cursor, index
        self._reveal()
        if index != before:
            for changed in (before, index):  # what has scrolled is painted anew anyway
                self.refresh_line(changed + self._head)
            self.post_message(self.Moved(self, self.selected_key))

    def choose_key(self, key: str) -> bool:
        """Select the row of that key; False when there is none."""
        place = self._found(key, self._cursor)
        if place >= len(self._rows) or self._key_of(self._rows[place]) != key:
            return False
        self.choose(place)
        return True

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Other columns for the same rows."""
        self._columns = tuple(columns)
        self._measure()
        self.refresh()

    def repaint(self) -> None:
        """The same rows, said anew: what a cell says may depend on the clock."""
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        """Another theme."""
        self._strips.clear()
        super().notify_style_update()

    # painting

    def render_line(self, y: int) -> Strip:
        """The line at ``y`` of the widget: titles, a row, or blank."""
        width = self.size.width
        if self._head and y == 0:
            return self._titles(width)
        index = self.scroll_offset.y + y - self._head
        if not 0 <= index < len(self._rows):
            return self.blank(width)
        look = (index, index == self._cursor, self.has_focus)
        strip = self._strips.get(look)
        if strip is None or strip.cell_length != width:
            if len(self._strips) > 1000:
                self._strips.clear()
            strip = self._strips[look] = self._row(index, width)
        return strip

    def _titles(self, width: int) -> Strip:
        """The titles; that of the column one sorts by has an arrow, before it where numbers stand right."""
        spans: list[tuple[str, str]] = []
        before = " " * MARGIN
        for slot in self._slots:
            column, title, room = slot.column, slot.column.title, slot.width
            on, arrow = column.key == self.sorted_by, "▼" if self.falling else "▲"
            if on and room > len(title) + (0 if column.right else 1):
                title = arrow + title if column.right else f"{title} {arrow}"
            elif on and before:
                before = before[:-1] + arrow
            spans.append((before, "accent" if on else "head"))
            spans += fit(((title, "accent" if on else "head"),), room, right=column.right)
            before = " " * self._gap
        return self.strip(tuple(spans), width)

    def _row(self, index: int, width: int) -> Strip:
        row = self._rows[index]
        chosen = index == self._cursor
        background = ("selected" if self.has_focus else "selected_off") if chosen else "page"
        base = self.looks[background] + (Style(bold=True) if chosen and self.has_focus else Style.null())
        spans: list[tuple[str, str]] = [("▌ " if chosen else "  ", "accent" if self.has_focus else "dim")]
        for place, slot in enumerate(self._slots):
            if place:
                spans.append((" " * self._gap, "text"))
            spans += fit(self._cells(row, slot.column.key), slot.width, right=slot.column.right)
        return Strip(segments(fit(tuple(spans), width), self.looks, base), width)

    # moving

    def on_resize(self, _event: events.Resize) -> None:
        """Other room: other columns."""
        self._measure()
        self._reveal()

    def on_focus(self) -> None:
        """The mark of the selected row changes."""
        self.refresh()

    def on_blur(self) -> None:
        """The mark of the selected row changes."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """A click selects, a second one opens; a click on a column's title asks to sort by it."""
        index = self.scroll_offset.y + event.y - self._head
        if event.y < self._head:
            slot = next((s for s in self._slots if s.x <= event.x - MARGIN < s.x + s.width), None)
            if slot is not None:
                self.post_message(self.Sorted(slot.column.key))
            return
        if not 0 <= index < len(self._rows):
            return
        if index == self._cursor and event.chain > 1:
            self.action_open()
        else:
            self.choose(index)

    def action_move(self, lines: int) -> None:
        """Down (or up) by so many rows."""
        self.choose(self._cursor + lines)

    def action_page(self, pages: int) -> None:
        """Down (or up) by so many screens."""
        self.choose(self._cursor + pages * max(1, self.in_sight - 1))

    def action_top(self) -> None:
        """To the first row."""
        self.choose(0)

    def action_bottom(self) -> None:
        """To the last row."""
        self.choose(len(self._rows) - 1)

    def action_open(self) -> None:
        """Ask for the selected row."""
        if self.selected is not None:
            self.post_message(self.Opened(self, self.selected_key))

    def _measure(self) -> None:
        self._strips.clear()
        self._slots = lay_out(self._columns, max(1, self.size.width - MARGIN - 2), self._gap)
        self.virtual_size = Size(self.size.width, len(self._rows) + self._head)

    def _reveal(self) -> None:
        top = self.scroll_offset.y
        if self._cursor < top:
            self.jump(self._cursor)
        elif self._cursor >= top + self.in_sight:
            self.jump(self._cursor - self.in_sight + 1)
