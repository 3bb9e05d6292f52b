"""The first screen: all runs, live."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from textual import events
from textual.app import ComposeResult
from textual.containers import Container

from ... import keymap
from ...data import runs_reading
from ...data.views import RunsWanted
from ...messages import Failed, RunsLoaded, Unchanged
from ...place import Place, Scope, Subject
from ...widgets.bars import HeadBar, KeyBar, NoticeBar
from ...widgets.cells import Spans
from ...widgets.filter_bar import FilterBar
from ...widgets.virtual_list import VirtualList
from ...widgets.welcome import Welcome
from ..menu import Choice, Menu
from . import head as runs_head
from . import table as runs_table
from .filling import Filling
from .lines import HEAD, Row, RunLines
from .offers import Offers

EVERY = 1.0
"""Seconds between two looks at whether there is something new (a look at file sizes, no reading)."""
GROUPINGS = {
    "list": "as a list",
    "lineage": "by lineage: forks and sub-agents below their parents",
    "project": "by project",
}

_WORDS = {"demo": "demo", "import_found": "import", "back": "quit"}
_EMPTY_KEYS = tuple(
    replace(k, short=_WORDS[k.action], shown="d" if k.action == "demo" else k.shown)
    for k in keymap.RUNS
    if k.action in _WORDS
)


class RunsScreen(Offers, Filling):
    """All runs of the store: sorted by any column, filtered, grouped; live without moving the selection.

    Args:
        demo: The store is the demo's; nothing is remembered of how one looks at it.
    """

    KEYS = (*keymap.RUNS, *keymap.HERE)
    OPENS = "open"
    BINDINGS = keymap.bindings(KEYS)
    SIGNS = runs_table.MEANT

    def __init__(self, *, demo: Path | None = None) -> None:
        super().__init__()
        self._demo = demo
        self._version: object = None
        self._again = False
        self._wanted = RunsWanted(grouping="lineage")
        self._trouble = ""
        self._follow = False
        self._rest_until = 0.0
        self._ticks = 0

    def compose(self) -> ComposeResult:
        """Head, filter, list or welcome, notices, keys."""
        yield HeadBar()
        yield FilterBar("words, or error:yes turns:>20 cost:>1 model:claude* since:7d cycle:yes tag.NAME:VALUE")
        with Container(id="runs-body"):
            yield VirtualList[Row](runs_table.COLUMNS, lambda row: row.key, self._cells, id="runs")
            yield Welcome()
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Begin to read, and keep looking."""
        self.listing.display = False
        self.query_one(Welcome).waiting()
        self._remembered()
        self._head()
        self.reload()
        self.set_interval(EVERY, self._tick)

    @property
    def listing(self) -> VirtualList[Row]:
        """The list."""
        return self.query_one("#runs", VirtualList)

    @property
    def wanted(self) -> RunsWanted:
        """What the list is to show."""
        return self._wanted

    @property
    def rows(self) -> RunLines | None:
        """What it shows."""
        rows = self.listing.rows
        return rows if isinstance(rows, RunLines) else None

    @property
    def waiting(self) -> bool:
        """True while a reading is on its way, or due."""
        return super().waiting or self._again

    # reading

    def _tick(self) -> None:
        if not self.is_current:
            return
        self._ticks += 1
        if self._view is not None and (self._view.listing.shown.running or self._ticks % 20 == 0):
            self.listing.repaint()  # "2m" becomes "3m"
        if time.monotonic() >= self._rest_until:
            self.reload()
        self.fill_on()

    def reload(self, *, force: bool = False) -> None:
        """Look for news; read again in any case where it is forced."""
        if "runs" in self._busy:
            self._again = self._again or force
            return
        known, source, wanted = None if force else self._version, self.source, self._wanted

        def job() -> RunsLoaded | Unchanged:
            began = time.monotonic()
            before = source.version()
            if known is not None and before == known:
                return Unchanged()
            view = source.runs(wanted)
            version = (before[0], source.version()[1])
            # Where reading is slow, look less often: at most a fifth of the time.
            self._rest_until = time.monotonic() + 4 * (time.monotonic() - began)
            return RunsLoaded(view, wanted, version)

        self.poll(job, "runs")

    def on_runs_loaded(self, message: RunsLoaded) -> None:
        """Show what was read, unless something else is wanted by now."""
        self._version = message.version
        if self._next_reading() and message.wanted != self._wanted:
            return
        first = self._view is None
        self._view = message.view
        self.tell_notices()
        self._show(first=first)
        if message.wanted.first and message.wanted == self._wanted:  # that was the first look: now all of them
            self._wanted = replace(self._wanted, first=0)
            self.reload(force=True)
        self.call_after_refresh(self.fill_on)

    def on_unchanged(self, _message: Unchanged) -> None:
        """Nothing new; perhaps something else is wanted."""
        self._next_reading()

    def on_failed(self, _message: Failed) -> None:
        """Keep the list; without one say that it is not empty but unreadable. (The page says why.)"""
        self._again = False
        self._version = None
        self._rest_until = time.monotonic() + 2
        if self._view is None:
            self.query_one(Welcome).unreadable()

    def _next_reading(self) -> bool:
        if not self._again:
            return False
        self._again = False
        self.reload(force=True)
        return True

    def _want(self, **changes: object) -> None:
        """Show something else; what is wanted is remembered."""
        at = self.listing.selected_key or self._wanted.at
        self._wanted = replace(self._wanted, **changes, at=at, first=0)  # type: ignore[arg-type]
        if self._demo is None:
            runs_reading.remember(self.loop_app.memory, self._wanted)
        self.reload(force=True)

    def _remembered(self) -> None:
        self._wanted = RunsWanted(grouping="lineage", first=runs_reading.FIRST)
        if self._demo is not None:
            return
        memory = self.loop_app.memory
        if trouble := runs_reading.wrong(memory.get("runs.filter", "")):
            self.say(f"the filter of last time is left out: {trouble}")
        self._wanted = runs_reading.remembered(memory, first=runs_reading.FIRST)
        if self._wanted.filter:
            self.query_one(FilterBar).put(self._wanted.filter)

    # showing

    def _show(self, *, first: bool = False) -> None:
        view = self._view
        if view is None:
            return
        found, listing, welcome = view.listing, self.listing, self.query_one(Welcome)
        rows = RunLines(found, view.lines, self.rows, self._wanted.folded)
        if not found.every.runs:
            welcome.empty(view.found)
        elif not rows:
            welcome.nothing_matches(self._wanted.filter)
        had_keys = self.focused is None or listing.has_focus
        self.query_one(KeyBar).show(self.foot(self.KEYS) if found.every.runs else (*_EMPTY_KEYS, *keymap.EVERYWHERE))
        listing.display, welcome.display = bool(rows), not rows
        order = runs_table.order_named(self._wanted.sort)
        listing.sorted_by, listing.falling = order.column, order.falling != self._wanted.backwards
        self._lay_out()
        select = found.shown.newest if self._follow else self._wanted.at if first or not listing.rows else None
        listing.show(rows, select=select if select is not None and rows.place_of(select) is not None else None)
        if rows and had_keys:
            self.set_focus(listing)
        self._head()

    def _lay_out(self) -> None:
        if self._view is not None:
            shown = self._view.listing.shown
            self.listing.set_columns(runs_table.columns(shown, self._wanted.grouping, self.size.width))

    def _cells(self, row: Row, column: str) -> Spans:
        if column == "run":
            self.seen(row)
        marked = {place.run for place in self.loop_app.marks} if column == "run" else ()
        wide = column == "signs" and any(slot.column.key == "outcome" for slot in self.listing.slots)
        return runs_table.cells(row, column, self.source.now(), marked, outcome_elsewhere=wide)

    def _head(self) -> None:
        width, view = self.size.width, self._view
        facts = runs_head.facts(view, self._wanted, width, follow=self._follow, filling=self.filling)
        room = width - 70 if view is not None and view.listing.every.runs else width
        self.query_one(HeadBar).show((runs_head.left(self.source.place, room, self._demo is not None), facts))

    def tell_notices(self) -> None:
        """What the store has to say, and what is being done."""
        lines = list(self._view.notices) if self._view is not None else []
        if self._demo is not None:
            lines.append(f"this is the demo, in a store of its own: {self._demo}; q leads back to your runs")
        self.notices([self.doing, *lines] if self.doing else lines)
        if self._trouble:
            self.query_one(NoticeBar).trouble(self._trouble)

    def head_changed(self) -> None:
        """Something of what the head tells is another."""
        self._head()

    def on_resize(self, _event: events.Resize) -> None:
        """The head and the columns take the room there is."""
        self._head()
        self._lay_out()

    def marks_changed(self) -> None:
        """Marks stand in the rows."""
        self.listing.repaint()

    # keys

    def on_filter_bar_changed(self, message: FilterBar.Changed) -> None:
        """Filter while typing; what is wrong is said, and the list is what the words before it pick."""
        text = message.text.strip()
        self._trouble = runs_reading.wrong(text)
        self.tell_notices()
        if self._trouble:
            text = text.rpartition(" ")[0].strip()
            if runs_reading.wrong(text):
                return
        if text != self._wanted.filter:
            self._want(filter=text)

    def on_filter_bar_left(self) -> None:
        """Back to the list."""
        self.query_one(FilterBar).settle()
        self.set_focus(self.listing)

    def on_virtual_list_opened(self, message: VirtualList.Opened) -> None:
        """Open the run; fold or unfold the project."""
        key = message.key
        if key is None:
            return
        if key.startswith(HEAD):
            self._want(folded=self._wanted.folded ^ {key})
        else:
            self.loop_app.open_run(key)

    def on_virtual_list_moved(self, message: VirtualList.Moved) -> None:
        """Who moves away from the newest run does not follow any more."""
        newest = self._view.listing.shown.newest if self._view else None
        if self._follow and message.key != newest:
            self._follow = False
            self._head()
        if self._demo is None and message.key is not None:
            self.loop_app.memory.put("runs.selected", message.key if self.listing.cursor else "")

    def on_virtual_list_sorted(self, message: VirtualList.Sorted) -> None:
        """A title was clicked: by that column, or the other way round."""
        order = next((o for o in runs_table.ORDERS if o.column == message.column), None)
        if order is None:
            self.say(f"{message.column} is no order")
        else:
            self.sort_by(order.sort)

    def action_filter(self) -> None:
        """Type a filter."""
        self.query_one(FilterBar).open()

    def filter_by(self, text: str) -> None:
        """Take a filter."""
        self.query_one(FilterBar).put(text)

    def sort_columns(self) -> Sequence[str]:
        """What can be sorted by."""
        return [order.sort for order in runs_table.ORDERS]

    def sort_by(self, name: str) -> None:
        """Sort by a column; by the same one again: the other way round."""
        same = name == self._wanted.sort
        self._want(sort=name, backwards=same and not self._wanted.backwards)
        self.say(
            f"sorted by {runs_table.order_named(name).says}"
            + (", the other way round" if self._wanted.backwards else "")
        )

    def action_sort(self) -> None:
        """Choose a column."""
        now = self._wanted.sort
        choices = [
            Choice(o.sort, o.says, note="now; again: the other way round" if o.sort == now else "")
            for o in runs_table.ORDERS
        ]
        Menu("sort by", choices, verb="sort", selected=now).ask(self.app, self.sort_by)

    def action_reverse(self) -> None:
        """The other way round."""
        self.sort_by(self._wanted.sort)

    def action_group(self) -> None:
        """As a list, by lineage, by project."""
        names = list(GROUPINGS)
        name = names[(names.index(self._wanted.grouping) + 1) % len(names)]
        self._want(grouping=name)
        self.say(GROUPINGS[name])

    def action_cycles(self) -> None:
        """Only runs that go in circles, or all again."""
        words = self._wanted.filter.split()
        words = [w for w in words if w != "cycle:yes"] if "cycle:yes" in words else [*words, "cycle:yes"]
        self.query_one(FilterBar).put(" ".join(words))

    def action_error(self, step: int) -> None:
        """The next run with errors."""
        text, at = self._wanted.filter, self.listing.cursor

        def found(bad: frozenset[str]) -> None:
            keys = self.rows.found.keys if self.rows is not None else ()
            places = range(at + 1, len(keys)) if step > 0 else range(at - 1, -1, -1)
            place = next((i for i in places if keys[i] in bad), None)
            if place is None:
                self.say("no more runs with errors " + ("below" if step > 0 else "above"))
            else:
                self.listing.choose(place)

        self.ask(lambda store: runs_reading.with_errors(store, text), found, "errors")

    def action_follow(self) -> None:
        """Stay on the newest run."""
        self._follow = not self._follow
        if self._follow and self._view is not None and (newest := self._view.listing.shown.newest):
            self.listing.choose_key(newest)
        self._head()

    def subject(self) -> Subject:
        """The selected run."""
        row = self.listing.selected
        if row is None or row.key.startswith(HEAD):
            return Subject()
        return Subject(Place(row.key))

    def scope(self) -> Scope:
        """The runs of the filter; of one project where its line is selected."""
        row = self.listing.selected
        project = row.key.removeprefix(HEAD) if row is not None and row.key.startswith(HEAD) else ""
        if project and '"' not in project and "project:" not in self._wanted.filter:
            return Scope(filter=f'{self._wanted.filter} project:"{project}"'.strip())
        return Scope(filter=self._wanted.filter)

    def action_diff(self) -> None:
        """Compare with what is marked; where nothing is recorded yet: the demo."""
        if self._view is not None and not self._view.listing.every.runs:
            self.action_demo()
        else:
            super().action_diff()

    def action_back(self) -> None:
        """First the filter goes, then the screen."""
        if self.query_one(FilterBar).text:
            self.query_one(FilterBar).clear()
            self.set_focus(self.listing)
        else:
            self.loop_app.back()
