"""What runs cost: figures of all of them, a chart of the days, and tables by model, tool, day and the like."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.worker import get_current_worker

from ....replay.analytics import ordered
from ... import keymap
from ...format import counted, money
from ...messages import Failed
from ...place import Place, Scope, Subject
from ...told.stats_text import LIST_PRICE, titled
from ...widgets.bars import HeadBar, NoticeBar, TabBar
from ...widgets.cells import Column, Spans
from ...widgets.column_chart import ColumnChart
from ...widgets.filter_bar import FilterBar
from ...widgets.virtual_list import VirtualList
from ..menu import Choice, Menu
from ..page import Page
from . import table as costs_table
from .reading import BY, Cycled, Summed, Tabled, Wasted, cycled, summed, tabled
from .table import Row

REST = 0.25
"""Seconds after the last key in the filter before the store is asked."""


class CostsScreen(Page):
    """Costs of the runs of a scope."""

    KEYS = (*keymap.COSTS, *keymap.HERE)
    OPENS = "its runs"
    BINDINGS = keymap.bindings(KEYS)
    CSS = """
    #costs { height: 1fr; }
    CostsScreen ColumnChart { height: 8; }
    CostsScreen.low ColumnChart { height: 5; }
    CostsScreen.quiet ColumnChart { display: none; }
    """

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = scope
        self._by = BY[0]
        self._summed: Summed | None = None
        self._tables: dict[str, Tabled] = {}
        self._wasted: Wasted | None = None

    def compose(self) -> ComposeResult:
        """Head, filter, chart, tabs, table, notices, keys."""
        yield HeadBar()
        yield FilterBar("error:yes turns:>20 model:claude* since:7d")
        yield ColumnChart()
        yield TabBar(BY)
        yield VirtualList[Row]((Column("by", "", 10),), costs_table.key_of, self._cells, id="costs")
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Begin to read."""
        by = self.loop_app.memory.get("costs.by", BY[0])
        self._by = by if by in BY else BY[0]
        self.query_one(TabBar).choose(BY.index(self._by))
        if self._scope.filter:
            self.query_one(FilterBar).put(self._scope.filter)
        self.set_focus(self.listing)
        self.add_class("quiet")
        self._head()
        self._read()

    @property
    def listing(self) -> VirtualList[Row]:
        """The table."""
        return self.query_one("#costs", VirtualList)

    # reading

    def _read(self) -> None:
        """Everything anew: another filter."""
        self._tables.clear()
        self._wasted = None
        source, scope = self.source, self._scope
        self.read(lambda: summed(source, scope), "summed")
        self._read_table()

        def job() -> Cycled:
            worker = get_current_worker()
            return cycled(source, scope, self.post_message, lambda: worker.is_cancelled)

        self.read(job, "cycled")

    def _read_table(self) -> None:
        source, scope, by = self.source, self._scope, self._by
        if by in self._tables:
            self._show()
        else:
            self.read(lambda: tabled(source, scope, by), "table")

    def on_summed(self, message: Summed) -> None:
        """The figures at the head and the chart."""
        if message.scope == self._scope:
            self._summed = message
            self._head()
            self._chart()

    def on_tabled(self, message: Tabled) -> None:
        """A table."""
        if message.scope == self._scope:
            self._tables[message.by] = message
            self._show()

    def on_cycled(self, message: Cycled) -> None:
        """What cycles wasted, as far as it is known."""
        if message.scope == self._scope:
            self._wasted = message.wasted
            if message.trouble:
                self.say(message.trouble)
            self._head()

    def on_failed(self, message: Failed) -> None:
        """Say it; the last table stays."""
        self._head()

    # showing

    def _show(self) -> None:
        found = self._tables.get(self._by)
        if found is None:
            return
        table = found.table
        by = self.loop_app.memory.get(f"costs.sort.{self._by}", "")
        if by in costs_table.orders(table):
            table = ordered(table, by)
        self.listing.set_columns(costs_table.columns(table, self._by, found.names))
        self.listing.sorted_by = by
        self.listing.show(list(table))
        self.notices([" · ".join(table.notes)] if table.notes else [])
        if not table.rows:
            self.say(f"nothing to count by {self._by}")
        self._head()
        self._chart()

    def _cells(self, row: Row, column: str) -> Spans:
        found = self._tables.get(self._by)
        return costs_table.cells(row, column, found.table, found.names, found.bars) if found is not None else ()

    def _chart(self) -> None:
        days = self._summed.days if self._summed is not None else None
        height = self.size.height
        self.set_class(days is None or len(days.days) < 2 or height < 20, "quiet")
        self.set_class(height < 32, "low")
        if days is None:
            return
        marked = None
        if self._by == "day" and (row := self.listing.selected) is not None and row.get("day") in days.days:
            marked = days.days.index(row["day"])
        title = "cost by day" if days.priced else "turns by day"
        self.query_one(ColumnChart).show(days.values, [str(d) for d in days.days], days.written, title, marked)

    def _head(self) -> None:
        about = counted(len(self._scope.runs), "run") if self._scope.runs else self._scope.filter.strip() or "all runs"
        left: Spans = (("costs", "accent_strong"), (f"  {about}", "strong"))
        if self._summed is None:
            self.query_one(HeadBar).show((left, [(("reading …", "dim"),)]), ((), ()))
            return
        whole = self._summed.whole
        total = costs_table.total(whole, listed=any(LIST_PRICE in note for note in self._summed.notes))
        runs = ((counted(whole["runs"], "run"), "dim"),)
        line = costs_table.overview(whole, self.size.width - 2)
        self.query_one(HeadBar).show((left, [runs, self._cycles(), total]), (line, ()))

    def _cycles(self) -> Spans:
        found = self._wasted
        if found is None:
            return (("↻ looking for cycles …", "dim"),)
        usd = f" {money(found.usd)}" if found.usd is not None else ""
        left = f" ({found.missing:,} runs not looked at yet)" if found.missing else ""
        if not found.runs:
            return ((f"↻ no cycles{left}", "dim"),)
        return ((f"↻ {counted(found.turns, 'turn')}{usd} in cycles", "accent"), (left, "dim"))

    def on_virtual_list_moved(self, _message: VirtualList.Moved) -> None:
        """The day that is selected stands out in the chart."""
        if self._by == "day":
            self._chart()

    def on_resize(self, _event: events.Resize) -> None:
        """Head and chart take the room there is."""
        self._head()
        self._chart()

    # keys

    def action_by(self, step: int) -> None:
        """The next table."""
        self._choose(BY[(BY.index(self._by) + step) % len(BY)])

    def action_tab_at(self, number: int) -> None:
        """The table of that number."""
        self._choose(BY[number - 1])

    def on_tab_bar_chosen(self, message: TabBar.Chosen) -> None:
        """A click on a tab."""
        self._choose(BY[message.index])

    def _choose(self, name: str) -> None:
        """Costs by something else."""
        self._by = name
        self.loop_app.memory.put("costs.by", name)
        self.query_one(TabBar).choose(BY.index(name))
        if name not in self._tables:
            self.listing.show(())
        self._read_table()

    def action_filter(self) -> None:
        """Type a filter."""
        self.query_one(FilterBar).open()

    def on_filter_bar_changed(self, message: FilterBar.Changed) -> None:
        """Ask the store when no key came for a moment."""
        text = message.text
        self.set_timer(REST, lambda: self._narrow(text))

    def _narrow(self, text: str) -> None:
        if text == self.query_one(FilterBar).text and text.strip() != self._scope.filter.strip():
            self._scope = Scope(self._scope.runs, text.strip())
            self._read()

    def on_filter_bar_left(self) -> None:
        """Back to the table."""
        self.query_one(FilterBar).settle()
        self.set_focus(self.listing)

    def sort_columns(self) -> Sequence[str]:
        """What this table can be sorted by."""
        found = self._tables.get(self._by)
        return costs_table.orders(found.table) if found is not None else ()

    def sort_by(self, name: str) -> None:
        """Sort by a column."""
        if name not in self.sort_columns():
            self.say(f"no column {name}; there are {', '.join(self.sort_columns())}")
            return
        self.loop_app.memory.put(f"costs.sort.{self._by}", name)
        self._show()

    def action_sort(self) -> None:
        """Choose a column."""
        choices = [Choice(name, titled(name.replace("_p50", " (median)")).replace("_p95", " (95th percentile)")) for name in self.sort_columns()]  # fmt: skip
        now = self.loop_app.memory.get(f"costs.sort.{self._by}", "")
        Menu("sort by", choices, verb="sort", selected=now).ask(self.app, self.sort_by)

    def on_virtual_list_sorted(self, message: VirtualList.Sorted) -> None:
        """A title was clicked."""
        self.sort_by(message.column)

    def on_virtual_list_opened(self, _message: VirtualList.Opened) -> None:
        """The runs behind a row; of the runs themselves the run."""
        row = self.listing.selected
        if row is None:
            return
        if self._by == "run" or len(self._scope.runs) == 1:
            self.loop_app.open_run(str(row["run"]) if self._by == "run" else self._scope.runs[0])
            return
        text = costs_table.runs_filter(self._by, row)
        if text is None:
            self.say(f"the filter of the runs cannot say: no {self._by}")
        else:
            rest = self._scope.filter if not self._scope.runs else ""
            self.loop_app.open_runs(costs_table.combined(rest, text))

    def subject(self) -> Subject:
        """The selected run, or the run that all is about."""
        row = self.listing.selected
        if self._by == "run" and row is not None:
            return Subject(Place(str(row["run"])))
        place = Place(self._scope.runs[0]) if len(self._scope.runs) == 1 else None
        return Subject(place, None if row is None else costs_table.key_of(row), self._by)

    def scope(self) -> Scope:
        """The same runs."""
        return self._scope

    def action_costs(self) -> None:
        """They are here."""
        self.say("these are the costs; ! leads to the findings of the same runs")

    def action_back(self) -> None:
        """First a filter that was typed goes, then back."""
        if self.query_one(FilterBar).has_keys:
            self.on_filter_bar_left()
        else:
            self.loop_app.back()
