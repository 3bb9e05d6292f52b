"""A pane for reading: wraps, scrolls, folds, searches; opens 20 MB at once, for only the rows on screen are made."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from textual import events
from textual.actions import SkipAction
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.worker import WorkType

from .. import keymap
from .blocks import Block, Document, Fold, Folds
from .cells import segments
from .document import Layout, Spot, lay_out
from .painted import PaintedScroll
from .text_search import Hits, search
from .unfolding import beginning, chosen, folded_all, folds_of, reaching, toggled

AT_ONCE = 30_000
"""Characters up to which a document is laid out at once; of larger ones the beginning, and the rest in a thread."""
KEPT = 300
"""Documents whose folds and place are remembered."""


@dataclass
class _Standing:
    """How a document was left: folds, the chosen row, and on which row of the screen it was."""

    folds: dict[str, bool] = field(default_factory=dict)
    closed: dict[int, frozenset[int]] = field(default_factory=dict)
    row: int = 0
    rest: int = 0


class TextPane(PaintedScroll, can_focus=True):
    """Shows a document (see ``blocks``). ``show`` again with the same ``name`` keeps the place.

    Where there is something to fold, a mark at the left edge says what Enter is about. It rides along while one
    scrolls, and goes on alone where the text ends.
    """

    KEYS: Sequence[keymap.Key] = keymap.TEXT
    BINDINGS = keymap.bindings(KEYS)
    MARGIN = 1

    class Folded(Message):
        """A lasting fold was opened or closed."""

        def __init__(self, key: str, is_open: bool) -> None:
            super().__init__()
            self.key, self.is_open = key, is_open

    class Searched(Message):
        """A search came to its end, or another hit was chosen."""

        def __init__(self, hits: Hits) -> None:
            super().__init__()
            self.hits = hits

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._document: Document = ()
        self._layout = Layout(0)
        self._name = ""
        self._round = 0
        self._partial = False
        self._goal: int | None = None
        self._left: OrderedDict[str, _Standing] = OrderedDict()
        self._now = _Standing()
        self.lasting: dict[str, bool] = {}
        self.hits = Hits()
        self._seeking = 0

    @property
    def at_end(self) -> bool:
        """True when the last row is on screen."""
        return not self._partial and self.scroll_offset.y + self.size.height >= self._layout.rows

    @property
    def spot(self) -> Spot | None:
        """What is chosen: the row with the mark."""
        return self._layout.at(self._now.row)

    @property
    def chosen(self) -> Fold | None:
        """The innermost fold around the chosen row that has a value; in a text without a mark, of the first row."""
        return chosen(self.spot)

    def show(self, document: tuple[Block, ...], *, name: str = "", keep: bool = False) -> None:
        """Another document; at its top, unless it is the one shown before under this name.

        Args:
            keep: A document that was shown some time ago under this name stands where it was left.
        """
        stay = bool(name) and name == self._name
        if not stay:
            self._now = self._left.get(name, _Standing()) if name else _Standing()
            if not keep:
                self._now.row = self._now.rest = 0
            if name:
                self._left[name] = self._now
                self._left.move_to_end(name)
            while len(self._left) > KEPT:
                self._left.popitem(last=False)
            self._layout = Layout(0)
        self._document, self._name = document, name
        self._goal = self._now.row if not stay else None
        self._arrange()
        if self.hits.needle:
            self.search(self.hits.needle, stay=True)

    def render_line(self, y: int) -> Strip:
        """One row of the document, or blank."""
        width = self.size.width
        row = self.scroll_offset.y + y
        spans = self._layout.row(row, self.hits.marks)
        marked = self._layout.foldable and row == self._now.row and self.has_focus
        if not spans and not marked:
            return self.blank(width)
        margin = ("▌", "accent") if marked else (" " * self.MARGIN, "text")
        line = segments((margin, *spans), self.looks, self.looks["page"])
        return Strip(line).adjust_cell_length(width, self.looks["page"])

    def on_resize(self, _event: events.Resize) -> None:
        """Other width, other rows."""
        if self._layout.width != self._room:
            self._arrange()
        elif not 0 <= self._now.row - self.scroll_offset.y < self.size.height:
            self._go(self._now.row)  # a line below took the room of the chosen row

    def on_click(self, event: events.Click) -> None:
        """A click takes the keys here; on the line of a fold it folds."""
        self.focus()
        row = self.scroll_offset.y + event.y
        spot = self._layout.at(row)
        if spot is not None and self._layout.foldable:
            self._now.row, self._now.rest = row, event.y
            if spot.foldable and not spot.row:
                self._fold(spot)
            self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The wheel, the scroll bar: the chosen row stays at its height on screen."""
        super().watch_scroll_y(old_value, new_value)
        offset = round(new_value)
        if not offset <= self._now.row < offset + max(1, self.size.height):
            self._now.row = max(0, min(offset + self._now.rest, self._layout.rows - 1))

    # keys

    def action_move(self, lines: int) -> None:
        """Scroll by lines."""
        self._go(self._now.row + lines)

    def action_page(self, pages: int) -> None:
        """Scroll by screens."""
        self._go(self._now.row + pages * max(1, self.size.height - 2))

    def action_top(self) -> None:
        """To the first row."""
        self._now.rest = 0
        self._go(0)

    def action_bottom(self) -> None:
        """To the last row."""
        if self._partial:
            self._goal = -1
        self._go(self._layout.rows - 1)

    def action_fold(self) -> None:
        """Fold or unfold the chosen line; elsewhere fold what is around it."""
        spot = self.spot
        if not self._layout.foldable or spot is None:
            raise SkipAction
        self._fold(spot)

    def action_fold_step(self, step: int) -> None:
        """To the next line that folds, or the one before."""
        row = self._now.row + step
        while (spot := self._layout.at(row)) is not None and not (spot.foldable and not spot.row):
            row += step
        if spot is not None:
            self._go(row)

    def action_fold_all(self, close: bool) -> None:
        """Fold or unfold everything."""
        before = self.spot
        self._now.folds, self._now.closed = folded_all(self._document, self._layout, close=close)
        self._told()
        self._arrange()
        if before is not None:
            self._go(self._layout.row_of(before.section.leaf.number, before.line) or 0)

    # searching

    def search(self, needle: str, *, stay: bool = False) -> None:
        """Look for words; the first hit from the chosen row on is gone to. Empty words take the marks away.

        Args:
            stay: Only mark the hits.
        """
        self._seeking += 1
        turn = self._seeking
        self._aside(partial(self._search_aside, needle, turn, stay), "search")

    def hit(self, step: int) -> bool:
        """The next hit, or the one before; False when there is none."""
        if not self.hits.found:
            return False
        hits, spot = self.hits, self.spot
        if hits.at < 0 and spot is not None:
            hits.choose(hits.first_from(spot.section.leaf.number, spot.line))
        else:
            hits.choose(hits.at + step)
        self._to_hit()
        return True

    async def _search_aside(self, needle: str, turn: int, stay: bool) -> None:
        document, layout = self._document, self._layout
        hits = await asyncio.to_thread(search, document, layout, needle, lambda: turn == self._seeking)
        if hits is None or turn != self._seeking:
            return
        self.hits = hits
        spot = self.spot
        if hits.found and not stay:
            hits.choose(hits.first_from(spot.section.leaf.number, spot.line) if spot is not None else 0)
            self._to_hit()
        else:
            self.refresh()
            if not stay:
                self.post_message(self.Searched(hits))

    def _to_hit(self) -> None:
        """The current hit comes into view; what it is folded into opens."""
        hit = self.hits.found[self.hits.at]
        if self._layout.row_of(hit.leaf, hit.line, hit.start) is None:
            reaching(self._document, self._layout, self._now.folds, self._now.closed, hit.leaf, hit.line)
            self._told()
            self._arrange()
        row = self._layout.row_of(hit.leaf, hit.line, hit.start)
        if row is not None:
            if not self.scroll_offset.y <= row < self.scroll_offset.y + self.size.height:
                self._now.rest = self.size.height // 3
            else:
                self._now.rest = row - self.scroll_offset.y
            self._go(row)
        self.refresh()
        self.post_message(self.Searched(self.hits))

    # inside

    def _fold(self, spot: Spot) -> None:
        line = toggled(spot, self._now.folds, self._now.closed, self._folds())
        if line is None:
            return
        self._told()
        self._arrange()
        row = self._layout.row_of(*line)
        if row is not None:
            self._go(row)

    def _told(self) -> None:
        """Folds that last are known by all documents, and told to the screen."""
        mine = self._now.folds
        for fold in folds_of(self._document):
            if fold.lasting and fold.key in mine:
                is_open = mine.pop(fold.key)
                if self.lasting.get(fold.key, fold.open) != is_open:
                    self.lasting[fold.key] = is_open
                    self.post_message(self.Folded(fold.key, is_open))

    def _folds(self) -> Folds:
        return Folds({**self.lasting, **self._now.folds}, dict(self._now.closed))

    def _go(self, row: int) -> None:
        """Choose a row; it keeps its height on screen as far as the text reaches."""
        most = max(0, self._layout.rows - max(1, self.size.height))
        self._now.row = max(0, min(row, self._layout.rows - 1 if self._layout.foldable else most + self._now.rest))
        self.jump(min(most, self._now.row - self._now.rest))
        self.refresh()

    @property
    def _room(self) -> int:
        return max(1, self.size.width - 2 * self.MARGIN - 1)

    def _arrange(self) -> None:
        self._round += 1
        first, whole = beginning(self._document, self._layout, AT_ONCE)
        self._partial = not whole
        folds, before = self._folds(), self._layout
        self._take(lay_out(first, self._room, folds, before=before), self._round)
        if not whole:
            document, width, turn = self._document, self._room, self._round
            self._aside(partial(self._arrange_aside, document, width, folds, before, turn), "layout")

    def _aside(self, work: WorkType[None], group: str) -> None:
        """Run it beside the keys; a newer one of the group takes its place."""
        self.run_worker(work, exclusive=True, group=group, description=group)  # else Textual writes out the document

    async def _arrange_aside(self, document: Document, width: int, folds: Folds, before: Layout, turn: int) -> None:
        layout = await asyncio.to_thread(lay_out, document, width, folds, before=before)
        if turn == self._round:
            self._partial = False
            self._take(layout, turn)

    def _take(self, layout: Layout, turn: int) -> None:
        if turn != self._round:
            return
        self._layout = layout
        self.virtual_size = Size(self.size.width, layout.rows)
        goal = self._goal
        if goal is not None and (goal < layout.rows or not self._partial):
            self._goal = None
            self._go(layout.rows - 1 if goal < 0 else goal)
        self.refresh()
