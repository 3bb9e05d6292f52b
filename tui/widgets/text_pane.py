"""A pane for reading: wraps, scrolls, opens 20 MB at once, because only the rows on screen are made."""

from __future__ import annotations

import asyncio

from textual import events
from textual.geometry import Size
from textual.strip import Strip

from .. import keymap
from .cells import segments
from .document import Block, Body, Document, Layout, lay_out
from .painted import PaintedScroll

AT_ONCE = 150_000
"""Characters up to which a document is laid out at once; larger ones are laid out in a thread."""


class TextPane(PaintedScroll, can_focus=True):
    """Shows a document (see ``document``). ``show`` again with the same ``name`` keeps the place."""

    BINDINGS = keymap.bindings(keymap.TEXT)
    MARGIN = 1

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._document: Document = ()
        self._layout = Layout(0)
        self._name = ""
        self._round = 0

    @property
    def layout_now(self) -> Layout:
        """Where the lines stand."""
        return self._layout

    @property
    def at_end(self) -> bool:
        """True when the last row is on screen."""
        return self.scroll_offset.y + self.size.height >= self._layout.rows

    def show(self, document: tuple[Block, ...], *, name: str = "") -> None:
        """Another document; at its top, unless it is the one shown before under this name."""
        stay = bool(name) and name == self._name
        self._document, self._name = document, name
        if not stay:
            self.jump(0)
        self._arrange()

    def render_line(self, y: int) -> Strip:
        """One row of the document, or blank."""
        width = self.size.width
        spans = self._layout.row(self.scroll_offset.y + y)
        if not spans:
            return self.blank(width)
        line = segments(((" " * self.MARGIN, "text"), *spans), self.looks, self.looks["page"])
        return Strip(line).adjust_cell_length(width, self.looks["page"])

    def on_resize(self, _event: events.Resize) -> None:
        """Other width, other rows."""
        if self._layout.width != self._room:
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
        self.jump(self._layout.rows)

    @property
    def _room(self) -> int:
        return max(1, self.size.width - 2 * self.MARGIN - 1)

    def _arrange(self) -> None:
        self._round += 1
        size = sum(len(b.text) for b in self._document if isinstance(b, Body) and not b.most)
        if size <= AT_ONCE:
            self._take(lay_out(self._document, self._room), self._round)
        else:
            self.run_worker(
                self._arrange_aside(self._document, self._room, self._round), exclusive=True, group="layout"
            )

    async def _arrange_aside(self, document: Document, width: int, turn: int) -> None:
        self._take(await asyncio.to_thread(lay_out, document, width), turn)

    def _take(self, layout: Layout, turn: int) -> None:
        if turn != self._round:
            return
        self._layout = layout
        self.virtual_size = Size(self.size.width, layout.rows)
        self.refresh()
