"""Many runs or turns, each compared with one: a line for each, where it parts, and the way to the pair."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.worker import get_current_worker

from ... import keymap
from ...format import count, counted, least_money, run_title, sign
from ...format import duration as took
from ...messages import Unchanged
from ...place import Place, Scope, Subject
from ...widgets.bars import HeadBar, NoticeBar
from ...widgets.cells import Column, Spans
from ...widgets.virtual_list import VirtualList
from ..page import Page
from .reading import Against, ComparedOne, against

COLUMNS = (
    Column("status", " ", 1, keep=9),
    Column("name", "B", 16, grow=2, keep=9, most=40),
    Column("id", "", 12, keep=6),
    Column("turns", "turns", 5, right=True, keep=7),
    Column("calls", "calls", 5, right=True, keep=5),
    Column("errors", "err", 4, right=True, keep=6),
    Column("cost", "$", 8, right=True, keep=7),
    Column("time", "time", 7, right=True, keep=4),
    Column("first", "first difference from A", 20, grow=4, keep=9),
)


class CompareManyScreen(Page):
    """Several against one."""

    KEYS = (keymap.COMPARE[-1], *keymap.HERE)
    OPENS = "open"
    BINDINGS = keymap.bindings(KEYS)

    def __init__(self, base: Place, others: Sequence[Place]) -> None:
        super().__init__()
        self._base = base
        self._others = tuple(others)
        self._rows: dict[Place, Against] = {place: Against(place) for place in others}
        self._title = base.written

    def compose(self) -> ComposeResult:
        """Head, lines, notices, keys."""
        yield HeadBar()
        yield VirtualList[Against](COLUMNS, lambda r: r.place.written, cells, id="compare-many")
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Compare one after the other."""
        self.set_focus(self.listing)
        self._show()
        source, base, others = self.source, self._base, self._others

        def job() -> Unchanged:
            worker = get_current_worker()
            for other in others:
                if worker.is_cancelled:
                    break
                self.post_message(against(source, base, other))
            return Unchanged()

        self.read(job, "compare")

    @property
    def listing(self) -> VirtualList[Against]:
        """The lines."""
        return self.query_one("#compare-many", VirtualList)

    def on_compared_one(self, message: ComparedOne) -> None:
        """One more is known."""
        self._rows[message.found.place] = message.found
        if message.base is not None:
            run, turn = message.base.run, self._base.turn
            self._title = f"{run_title(run)}  {run.id[:8]}" + (f"  turn {turn}" if turn is not None else "")
        self._show()

    def _show(self) -> None:
        self.listing.show(list(self._rows.values()))
        known = [r for r in self._rows.values() if r.run is not None or r.trouble]
        missing = len(self._rows) - len(known)
        same = sum(1 for r in known if r.run is not None and not r.first)
        facts: list[Spans] = [((counted(len(self._rows), "mark"), "strong"),)]
        if same:
            facts.append(((f"{same:,} without difference", "text"),))
        if missing:
            facts.append(((f"{missing:,} still to compare", "accent"),))
        self.query_one(HeadBar).show(((("A ", "accent_strong"), (self._title, "strong")), facts))

    def on_virtual_list_opened(self, _message: VirtualList.Opened) -> None:
        """The pair side by side."""
        row = self.listing.selected
        if row is not None and not row.trouble:
            self.loop_app.open_compare(self._base, row.place)

    def subject(self) -> Subject:
        """The selected one."""
        row = self.listing.selected
        return Subject(self._base if row is None else row.place)

    def scope(self) -> Scope:
        """All of them."""
        return Scope(runs=tuple(dict.fromkeys((self._base.run, *(p.run for p in self._others)))))

    def action_back(self) -> None:
        """Back."""
        self.loop_app.back()


def cells(row: Against, column: str) -> Spans:
    """A line's spans in a column."""
    run, sums = row.run, row.totals
    if column == "name":
        return ((run_title(run) if run is not None else row.place.run, "strong" if run is not None else "dim"),)
    if column == "id":
        return ((row.place.run[:8] + (f":{row.place.turn}" if row.place.turn is not None else ""), "faint"),)
    if column == "first":
        if row.trouble:
            return ((row.trouble, "bad"),)
        return ((row.first or "no difference", "text" if row.first else "dim"),) if run is not None else (("comparing …", "dim"),)  # fmt: skip
    if run is None or sums is None:
        return ()
    if column == "status":
        return ((sign(run.status), "bad" if run.status == "failed" else "dim"),)
    texts = {
        "turns": count(sums.turns),
        "calls": count(sums.tool_calls),
        "errors": count(sums.errors),
        "cost": least_money(sums.cost_usd, sums.unpriced_turns, sign=False),
        "time": took((sums.generate_ms or 0) + (sums.execute_ms or 0)),
    }
    return ((texts[column], "bad" if column == "errors" and sums.errors else "text"),)
