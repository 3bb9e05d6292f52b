"""One run: its turns on the left, the selected turn on the right."""

from __future__ import annotations

import time
from collections import OrderedDict

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal

from .. import keymap
from ..messages import RunLoaded, TurnLoaded, Unchanged
from ..source import RunView, TurnRow, TurnView
from ..widgets.bars import HeadBar, NoticeBar
from ..widgets.document import Head
from ..widgets.text_pane import TextPane
from ..widgets.virtual_list import VirtualList
from . import turns_table
from .page import Page
from .turn_text import conversation

SETTLE = 0.05
"""Seconds a selection must stand before its turn is read: a held key reads nothing."""
KEPT = 32
"""Turns kept in memory, so that stepping back is immediate."""


class RunScreen(Page):
    """Step through a run; what is shown follows the selection."""

    KEYS = keymap.RUN
    BINDINGS = keymap.bindings(KEYS)

    def __init__(self, run: str, turn: int | None = None) -> None:
        super().__init__()
        self.run_id = run
        self._first = turn
        self._view: RunView | None = None
        self._version: object = None
        self._longest = 0.0
        self._raw = False
        self._follow = False
        self._rest_until = 0.0
        self._seen: OrderedDict[int, TurnView] = OrderedDict()
        self._shown: TurnView | None = None
        self._wanted: int | None = None

    def compose(self) -> ComposeResult:
        """Head, turns and turn side by side, notices, keys."""
        yield HeadBar()
        with Horizontal(id="run-body"):
            yield VirtualList[TurnRow](
                turns_table.COLUMNS,
                lambda r: str(r.number),
                lambda r, c: turns_table.cells(r, c, self._longest),
                gap=1,
                id="turns",
            )
            yield TextPane(id="detail")
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Begin to read, and keep looking while the run goes on."""
        self.query_one(HeadBar).show(((("reading the run …", "dim"),), ()), ((), ()))
        self.set_focus(self.listing)
        self._reload()
        self.set_interval(1.0, self._tick)

    @property
    def listing(self) -> VirtualList[TurnRow]:
        """The turns."""
        return self.query_one("#turns", VirtualList)

    @property
    def detail(self) -> TextPane:
        """The turn."""
        return self.query_one("#detail", TextPane)

    # reading

    def _tick(self) -> None:
        if self.is_current and time.monotonic() >= self._rest_until:
            self._reload()

    def _reload(self) -> None:
        known, source, run = self._version, self.source, self.run_id

        def job() -> RunLoaded | Unchanged:
            began = time.monotonic()
            before = source.version()
            if known is not None and before == known:
                return Unchanged()
            view = source.run(run)
            self._version = (before[0], source.version()[1])
            self._rest_until = time.monotonic() + 4 * (time.monotonic() - began)
            return RunLoaded(view)

        self.poll(job, "run")

    def on_run_loaded(self, message: RunLoaded) -> None:
        """Show the turns; those that may have changed are read again."""
        first, view = self._view is None, message.view
        if self._view is not None:
            self._forget(self._view, view)
        self._view = view
        self._longest = turns_table.longest(view.turns)
        self.notices(view.notices)
        select = None
        if first and self._first is not None:
            select = str(self._first)
        if self._follow and view.turns:
            select = str(view.turns[-1].number)
        self.listing.show(view.turns, select=select)
        self._head()
        if not view.turns:
            self.detail.show((Head((("This run has no turns yet.", "dim"),)),))

    def _forget(self, old: RunView, new: RunView) -> None:
        """Drop from memory the turns whose line changed, and their followers, to which results came back."""
        before = {r.number: r for r in old.turns}
        for row in new.turns:
            if before.get(row.number) != row:
                for number in (row.number - 1, row.number, row.number + 1):
                    self._seen.pop(number, None)

    def on_virtual_list_moved(self, message: VirtualList.Moved) -> None:
        """Show the selected turn, at once when it is in memory."""
        row = self.listing.selected
        if row is None:
            return
        seen = self._seen.get(row.number)
        if seen is not None:
            self._show_turn(seen)
        else:
            self._wanted = row.number
            self.set_timer(SETTLE, lambda: self._want(row.number))

    @property
    def waiting(self) -> bool:
        """True while a turn is about to be read, too."""
        return super().waiting or self._wanted is not None

    def _want(self, number: int) -> None:
        if self._wanted == number:
            self._wanted = None
        row = self.listing.selected
        if row is None or row.number != number or number in self._seen:
            return
        source, run = self.source, self.run_id
        self.read(lambda: TurnLoaded(source.turn(run, number)), "turn")

    def on_turn_loaded(self, message: TurnLoaded) -> None:
        """Keep it; show it if it is still the selected one."""
        view = message.view
        self._seen[view.turn.number] = view
        while len(self._seen) > KEPT:
            self._seen.popitem(last=False)
        row = self.listing.selected
        if row is not None and row.number == view.turn.number:
            self._show_turn(view)

    def _show_turn(self, view: TurnView) -> None:
        self._shown = view
        turn = view.turn
        where = " · ".join(w for w in (turn.step, turn.agent, turn.caller) if w)
        title = Head(
            (
                (f"turn {turn.number}", "strong"),
                (f" of {max(view.last, len(self.listing.rows))}", "dim"),
                (f"  {where}" if where else "", "faint"),
            )
        )
        document = (title, Head(()), *conversation(view, brief=True, raw=self._raw))
        self.detail.show(document, name=f"{view.turn.number}{self._raw}")

    def _head(self) -> None:
        if self._view is None:
            return
        lines = turns_table.head(self._view, self.size.width, self.source.now())
        if self._follow:
            (left, facts), *rest = lines
            lines = ((left, [*facts, (("▶ following", "accent"),)]), *rest)
        self.query_one(HeadBar).show(*lines)

    def on_resize(self, _event: events.Resize) -> None:
        """The curves take the room there is."""
        self._head()

    # keys

    def on_virtual_list_opened(self, message: VirtualList.Opened) -> None:
        """The turn whole."""
        if message.key is not None and self._view is not None:
            from .turn import TurnScreen

            self.app.push_screen(TurnScreen(self._view, int(message.key), self._raw), self._came_back)

    def _came_back(self, number: int | None) -> None:
        if number is not None:
            self.listing.choose_key(str(number))

    def action_error(self, step: int) -> None:
        """The next turn with an error."""
        rows, at = self.listing.rows, self.listing.cursor + step
        while 0 <= at < len(rows):
            if rows[at].bad:
                self.listing.choose(at)
                return
            at += step
        self.say("no more errors " + ("below" if step > 0 else "above"))

    def action_pane(self, step: int) -> None:
        """The keys go to the turn on the right, or back to the list."""
        self.set_focus(self.detail if step > 0 else self.listing)

    def action_detail(self, pages: int) -> None:
        """Scroll the turn without leaving the list; at its end go on with the next."""
        if pages > 0 and self.detail.at_end:
            self.listing.action_move(1)
        else:
            self.detail.action_page(pages)

    def action_raw(self) -> None:
        """Raw or pretty."""
        self._raw = not self._raw
        if self._shown is not None:
            self._show_turn(self._shown)
        self.say("raw" if self._raw else "pretty")

    def action_follow(self) -> None:
        """Stay on the newest turn."""
        self._follow = not self._follow
        if self._follow:
            self.listing.action_bottom()
        self._head()

    def action_copy(self) -> None:
        """Copy RUN:N."""
        row = self.listing.selected
        self.copy(f"{self.run_id}:{row.number}" if row is not None else self.run_id)

    def action_back(self) -> None:
        """Back to the runs (from the right pane first to the list)."""
        if self.detail.has_focus:
            self.set_focus(self.listing)
        else:
            self.loop_app.back()
