"""Watching a fork: its turns beside its parent's as they come, and the verdict at the end."""

from __future__ import annotations

import time
from typing import Protocol, cast

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.timer import Timer

from ....replay.engine.forks.beside import ForkVerdict, Said
from ....replay.engine.forks.order import Ready
from ...data.source import Source
from ...place import Place
from ...widgets.text_pane import TextPane
from ...widgets.virtual_list import VirtualList
from ..page import told
from .bars import PlanBar, running_line, verdict_lines
from .running import COLUMNS, Broke, Ended, ForkRun, Opened, TurnCame, TurnLine, both, line_cells, lines

_TICK = 0.5


class Stage(Protocol):
    """The screen it stands on."""

    @property
    def source(self) -> Source:
        """Where the data comes from."""

    def say(self, text: str) -> None:
        """A line that stays until the next key."""

    def keys_changed(self) -> None:
        """The fork began or is over."""

    def show_run(self, run: str, turn: int | None) -> None:
        """Open a run."""

    def show_compare(self, left: Place, right: Place) -> None:
        """Two runs side by side."""


class ForkWatch(Vertical):
    """The list of both runs' turns, and the selected turn of both, whole."""

    DEFAULT_CSS = """
    ForkWatch #fork-beside { height: 3; }
    ForkWatch #fork-said { height: 1fr; border-top: solid $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.run = ""
        self.running = False
        self._fork: ForkRun | None = None
        self._ready: Ready | None = None
        self._verdict: ForkVerdict | None = None
        self._here = False
        self._came: list[Said] = []
        self._live: frozenset[str] = frozenset()
        self._began = 0.0
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """List and text."""
        yield VirtualList[TurnLine](COLUMNS, lambda line: str(line.pair.number), line_cells, id="fork-beside")
        yield TextPane(id="fork-said")

    @property
    def listing(self) -> VirtualList[TurnLine]:
        """The turns."""
        return self.query_one("#fork-beside", VirtualList)

    @property
    def pane(self) -> TextPane:
        """The selected turn of both."""
        return self.query_one("#fork-said", TextPane)

    @property
    def page(self) -> Stage:
        """The screen it stands on."""
        return cast("Stage", self.screen)

    @property
    def is_watched(self) -> bool:
        """False once the screen is being left: what is said by then comes when its other widgets may be gone."""
        return self.screen.is_running

    def begin(self, ready: Ready, live: frozenset[str]) -> None:
        """Start a fork and watch it."""
        self.run, self.running, self._here, self._verdict = "", True, False, None
        self._ready, self._live, self._came = ready, live, []
        self._began = time.monotonic()
        self.listing.set_columns(COLUMNS if ready.model.live else COLUMNS[:-1])
        self.display = True
        self.screen.set_focus(self.listing)
        self._show(follow=True)
        self._tick()
        self._timer = self.set_interval(_TICK, self._tick)
        self._fork = ForkRun(self.page.source, ready, self.post_message)
        self._fork.begin()

    def stop(self) -> None:
        """End the fork at the next possible moment."""
        if self._fork is not None and self.running:
            self._fork.stop()
            self._tick()

    def on_resize(self) -> None:
        """Other room, another share for the list."""
        self._show(follow=False)

    def on_unmount(self) -> None:
        """Nobody watches any more: it ends."""
        if self._fork is not None:
            self._fork.stop()

    def on_opened(self, message: Opened) -> None:
        """The new run has its id."""
        message.stop()
        self.run = message.run
        if self.is_watched:
            self._tick()

    def on_turn_came(self, message: TurnCame) -> None:
        """A turn is over."""
        message.stop()
        if not self.is_watched:
            return
        follows = self.listing.selected is None or self.listing.selected.asked
        self._came.append(message.said)
        self._show(follow=follows)
        self._tick()

    def on_ended(self, message: Ended) -> None:
        """The fork is over: its verdict."""
        message.stop()
        if not self.is_watched:
            return
        self._over()
        self._verdict, self._here = message.verdict, message.here
        lines = verdict_lines(message.verdict)
        if message.verdict.outcome.reason == "miss":
            lines.append((("Esc goes back to the plan: say there who answers, live or with a stub", "text"),))
        if not message.here:
            lines.append(((f"The new run is in your store: looptape show {message.verdict.outcome.run}", "text"),))
        self._plan.show(lines)

    def on_broke(self, message: Broke) -> None:
        """It could not run."""
        message.stop()
        if not self.is_watched:
            return
        self._over()
        self._plan.show([(("! ", "bad_strong"), (told(message.trouble), "bad"))])

    def on_virtual_list_moved(self, message: VirtualList.Moved) -> None:
        """Show the selected turn whole."""
        line = self.listing.selected
        if line is not None:
            message.stop()
            self.pane.show(both(line), name=str(line.pair.number))

    def open_chosen(self) -> None:
        """Open the new run, at the selected turn where it has one."""
        line = self.listing.selected
        if self.running:
            self.page.say("it still runs; ctrl+x stops it")
        elif not self._here:
            self.page.say("there is no new run to open here" if not self.run else f"looptape show {self.run} shows it")
        else:
            number = line.pair.number if line is not None and line.pair.fork is not None else None
            self.page.show_run(self.run, number)

    def compare(self) -> None:
        """The parent beside the new run."""
        if self._here and self._ready is not None:
            self.page.show_compare(Place(self._ready.start.run), Place(self.run))
        else:
            self.page.say("there is no new run to compare here")

    @property
    def _plan(self) -> PlanBar:
        return self.screen.query_one(PlanBar)

    def _over(self) -> None:
        follow = self.listing.selected is None or self.listing.selected.asked
        self.running = False
        if self._timer is not None:
            self._timer.stop()
        self._show(follow=follow)
        self.page.keys_changed()

    def _show(self, *, follow: bool) -> None:
        if self._ready is None:
            return
        found = lines(self._ready, self._came, self._live, running=self.running)
        last = str(self._came[-1].number) if self._came and not self.running else None
        asked = next((str(one.pair.number) for one in found if one.asked), last)
        self.listing.styles.height = max(3, min(len(found) + 1, self.size.height * 3 // 5))
        self.listing.show(found, select=asked if follow else None)

    def _tick(self) -> None:
        if self.running and self.is_watched and self._ready is not None and self._fork is not None:
            asked = next((one.pair.number for one in self.listing.rows if one.asked), self._ready.start.turn)
            note = f"   run {self.run}" if self.run else ""
            seconds = time.monotonic() - self._began
            self._plan.show(running_line(asked, seconds, stopping=self._fork.stopping, note=note))
