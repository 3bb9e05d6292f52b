"""The first screen: all runs, live."""

from __future__ import annotations

import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from textual import events
from textual.app import ComposeResult
from textual.containers import Container

from ...tracer.model import Run
from .. import keymap
from ..format import counted, money
from ..messages import Failed, RunsLoaded, Unchanged
from ..safe_text import clean
from ..source import RunsView
from ..widgets.bars import HeadBar, KeyBar, NoticeBar
from ..widgets.cells import Span, Spans
from ..widgets.filter_bar import FilterBar
from ..widgets.virtual_list import VirtualList
from ..widgets.welcome import Welcome
from . import runs_table
from .page import Page

EVERY = 1.0
"""Seconds between two looks at whether there is something new (a look at file sizes, no reading)."""

_WORDS = {"demo": "demo", "import_found": "import", "back": "quit"}
_EMPTY_KEYS = tuple(replace(k, short=_WORDS[k.action]) for k in keymap.RUNS if k.action in _WORDS)


class RunsScreen(Page):
    """Runs by time, cost, turns or errors; a filter; live without moving the selection."""

    KEYS = keymap.RUNS
    BINDINGS = keymap.bindings(KEYS)

    def __init__(self) -> None:
        super().__init__()
        self._view: RunsView | None = None
        self._version: object = None
        self._hays: list[str] | None = None
        self._under: AbstractSet[str] = frozenset()
        self._every = runs_table.sums(())
        self._order = runs_table.ORDERS[0]
        self._follow = False
        self._rest_until = 0.0

    def compose(self) -> ComposeResult:
        """Head, filter, list or welcome, notices, keys."""
        yield HeadBar()
        yield FilterBar()
        with Container(id="runs-body"):
            yield VirtualList[Run](
                runs_table.COLUMNS,
                lambda r: r.id,
                lambda r, c: runs_table.cells(r, c, self.source.now(), self._under),
                id="runs",
            )
            yield Welcome()
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Begin to read, and keep looking."""
        self.listing.display = False
        self.query_one(Welcome).waiting()
        self._head()
        self._reload()
        self.set_interval(EVERY, self._tick)

    @property
    def listing(self) -> VirtualList[Run]:
        """The list."""
        return self.query_one("#runs", VirtualList)

    # reading

    def _tick(self) -> None:
        if self.is_current:
            self.listing.repaint()  # "2m" becomes "3m"
            if time.monotonic() >= self._rest_until:
                self._reload()

    def _reload(self) -> None:
        known, source = self._version, self.source

        def job() -> RunsLoaded | Unchanged:
            began = time.monotonic()
            before = source.version()
            if known is not None and before == known:
                return Unchanged()
            view = source.runs()
            self._version = (before[0], source.version()[1])
            # Where reading is slow, look less often: at most a fifth of the time.
            self._rest_until = time.monotonic() + 4 * (time.monotonic() - began)
            return RunsLoaded(view)

        self.poll(job, "runs")

    def on_runs_loaded(self, message: RunsLoaded) -> None:
        """Show what was read."""
        self._view = message.view
        self._hays = None
        self._every = runs_table.sums(message.view.runs)
        self.notices(message.view.notices)
        self._show()

    def on_failed(self, message: Failed) -> None:
        """Keep the list; without one say that it is not empty but unreadable."""
        super().on_failed(message)
        self._version = None
        self._rest_until = time.monotonic() + 2
        if self._view is None:
            self.query_one(Welcome).unreadable()

    def _show(self) -> None:
        view = self._view
        if view is None:
            return
        text = self.query_one(FilterBar).text
        rows: Sequence[Run] = runs_table.ordered(self._filtered(view.runs, text), self._order)
        self._under = frozenset()
        if self._order == "time":
            rows, self._under = runs_table.family(rows)
        welcome = self.query_one(Welcome)
        if not view.runs:
            welcome.empty(view.found)
        elif not rows:
            welcome.nothing_matches(text)
        had_keys = self.focused is None or self.listing.has_focus
        self.query_one(KeyBar).show((*(_EMPTY_KEYS if not view.runs else self.KEYS), *keymap.EVERYWHERE))
        self.listing.display = bool(rows)
        welcome.display = not rows
        newest = rows[0].id if rows and self._follow else None
        self.listing.sorted_by = runs_table.SORTED_COLUMN[self._order]
        self.listing.show(rows, select=newest)
        if rows and had_keys:
            self.set_focus(self.listing)
        self._head()

    def _filtered(self, runs: Sequence[Run], text: str) -> Sequence[Run]:
        if not text.strip():
            return runs
        if self._hays is None:
            self._hays = [runs_table.hay(run) for run in runs]
        return runs_table.filtered(runs, self._hays, text)

    def _head(self) -> None:
        left: list[Span] = [
            ("looptape", "accent_strong"),
            (f"  {clean(self.source.place, limit=min(48, max(10, self.size.width - 68)))}", "dim"),
        ]
        facts: list[Spans] = []
        if self._view is not None:
            shown = self.listing.rows
            every = self._every
            some = every if len(shown) == every.runs else runs_table.sums(shown)
            if self._order != "time":
                facts.append(((f"by {self._order}", "accent"),))
            if self._follow:
                facts.append((("▶ following", "accent"),))
            part = f"{some.runs:,} of " if some.runs != every.runs else ""
            facts.append(((part + counted(every.runs, "run"), "strong"),))
            if every.runs:
                unpriced = f" + {some.unpriced:,} unpriced" if some.unpriced else ""
                facts.append(((money(some.cost_usd), "text"), (unpriced, "dim")))
            if every.running:
                facts.append(((f"● {every.running:,} running", "accent"),))
        self.query_one(HeadBar).show((tuple(left), facts))

    def on_resize(self, _event: events.Resize) -> None:
        """The head takes the room there is."""
        self._head()

    # keys

    def on_filter_bar_changed(self, message: FilterBar.Changed) -> None:
        """Filter while typing."""
        self._show()

    def on_filter_bar_left(self) -> None:
        """Back to the list."""
        self.query_one(FilterBar).settle()
        self.set_focus(self.listing)

    def on_virtual_list_opened(self, message: VirtualList.Opened) -> None:
        """Open the run."""
        if message.key is not None:
            self.loop_app.open_run(message.key)

    def action_filter(self) -> None:
        """Type a filter."""
        self.query_one(FilterBar).open()

    def action_sort(self) -> None:
        """The next order."""
        at = runs_table.ORDERS.index(self._order)
        self._order = runs_table.ORDERS[(at + 1) % len(runs_table.ORDERS)]
        self._show()
        self.say(f"sorted by {self._order}")

    def action_error(self, step: int) -> None:
        """The next run with errors."""
        rows, at = self.listing.rows, self.listing.cursor + step
        while 0 <= at < len(rows):
            if rows[at].errors:
                self.listing.choose(at)
                return
            at += step
        self.say("no more runs with errors " + ("below" if step > 0 else "above"))

    def action_follow(self) -> None:
        """Stay on the newest run."""
        self._follow = not self._follow
        self._show()

    def action_copy(self) -> None:
        """Copy the id of the selected run."""
        run = self.listing.selected
        if run is not None:
            self.copy(run.id)

    def action_demo(self) -> None:
        """Say what to run."""
        self.say("leave with q and run: looptape demo")

    def action_import_found(self) -> None:
        """Say what to run."""
        found = self._view.found if self._view else ()
        if found:
            self.say(f"leave with q and run: {found[0].command}")
        else:
            self.say("leave with q and run: looptape import PATH (a tape, or a folder of Claude Code sessions)")

    def action_back(self) -> None:
        """First the filter goes, then the app."""
        if self.query_one(FilterBar).text:
            self.query_one(FilterBar).clear()
            self.set_focus(self.listing)
        else:
            self.app.exit(0)
