"""Two runs or two turns side by side, aligned, the first difference selected."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from ... import keymap
from ...place import Place, Scope, Subject
from ...widgets.bars import HeadBar, NoticeBar, TabBar
from ...widgets.side_pane import SidePane, SideRow, heading
from ...widgets.virtual_list import VirtualList
from ..page import Page
from . import look as compare_look
from .detail import Look, detail
from .reading import Compared, CompareView, compare, swapped
from .rows import VIEWS, Line, fold

AROUND = (0, 1, 3, 10, 30, 1_000_000)
"""How much of what is equal stands around a difference, from { to }."""


class Detailed(Message):
    """A line was told whole."""

    def __init__(self, name: str, rows: tuple[SideRow, ...]) -> None:
        super().__init__()
        self.name = name
        self.rows = rows


class CompareScreen(Page):
    """What differs between two places."""

    KEYS = (*keymap.COMPARE, *keymap.HERE)
    OPENS = "whole"
    BINDINGS = keymap.bindings(KEYS)
    CSS = """
    #compare-text { height: 1fr; border-top: solid $panel; }
    #compare-text:focus { border-top: solid $primary; }
    #compare-body.whole #compare-lines { display: none; }
    #compare-body.lines #compare-text { display: none; }
    """

    def __init__(self, left: Place, right: Place, view: str = "") -> None:
        super().__init__()
        self._places = (left, right)
        self._at = VIEWS.index(view) if view in VIEWS else 0
        self._view: CompareView | None = None
        self._compared: tuple[Place, ...] = ()
        self._side = 1
        self._opened: dict[str, frozenset[str]] = {}
        self._raw = False
        self._keys: dict[str, str] = {}
        self._shown = ""
        self._room = 1

    def compose(self) -> ComposeResult:
        """Head, views, lines, the selected line whole, notices, keys."""
        yield HeadBar()
        yield TabBar(self._names())
        with Vertical(id="compare-body"):
            yield VirtualList[Line](compare_look.columns("turns", "runs"), lambda r: r.key, compare_look.cells, gap=1, id="compare-lines")  # fmt: skip
            yield SidePane(id="compare-text")
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Read both sides."""
        self._around = min(max(int(self.loop_app.memory.get("compare.around", 2)), 0), len(AROUND) - 1)
        self.query_one(HeadBar).show(((("  comparing …", "dim"),), ()), ((), ()), ((), ()))
        self.query_one(TabBar).choose(self._at)
        self.set_focus(self.listing)
        source, (left, right) = self.source, self._places
        self.read(lambda: compare(source, left, right), "compare")

    @property
    def listing(self) -> VirtualList[Line]:
        """The lines."""
        return self.query_one("#compare-lines", VirtualList)

    @property
    def pane(self) -> SidePane:
        """The selected line whole."""
        return self.query_one("#compare-text", SidePane)

    # what is shown

    def on_compared(self, message: Compared) -> None:
        """Show it, the first difference selected."""
        if message.places != self._places:
            return  # swapped again meanwhile
        self._view = view = message.view
        self._compared = message.places
        lines = view.lines
        self.query_one(TabBar).note({i: f"{n:,} ≠" for i, v in enumerate(VIEWS[:-1]) if (n := sum(not x.same for x in lines[v]))})  # fmt: skip
        self._head()
        if not self._differs(VIEWS[self._at]) and self._differs(VIEWS[0]):
            self._at = 0  # the view that was asked for has no difference, another has
            self.query_one(TabBar).choose(0)
        self._show(first=True)

    def _show(self, *, first: bool = False) -> None:
        if self._view is None:
            return
        name, kind = VIEWS[self._at], self._view.diff.kind
        lines = self._view.lines[name]
        key = self._keys.get(name) or (self._first(lines) if first or name not in self._keys else None)
        rows = self._folded(name, key)
        self.listing.set_columns(compare_look.columns(name, kind))
        self.query_one("#compare-body").set_class(name == "totals", "lines")
        self._share(len(rows))
        self.listing.show(rows, select=key)
        self.call_after_refresh(self._centre)
        if not rows:
            self.pane.show((heading((_EMPTY.get(name, "nothing to compare"), "dim")),))

    def _differs(self, view: str) -> bool:
        return self._view is not None and any(not line.same for line in self._view.lines[view])

    def _centre(self) -> None:
        """Lines above the selected one are seen too."""
        self.listing.jump(self.listing.cursor - self._room // 3)

    def _share(self, rows: int) -> None:
        """The lines take what they need, at most a good half; the texts the rest."""
        self._room = min(rows + 1, max(5, (self.size.height - 5) * 11 // 20))
        self.listing.styles.height = self._room

    def _first(self, lines: tuple[Line, ...]) -> str | None:
        """The line of the turns that were asked for, else the first that differs."""
        pair = self._view.pair if self._view is not None else (None, None)
        if pair != (None, None):
            side = 0 if pair[0] is not None else 1
            found = next((line.key for line in lines if line.numbers[side] == pair[side]), None)
            if found is not None:
                return found
        return next((line.key for line in lines if not line.same), None)

    def _folded(self, name: str, key: str | None) -> list[Line]:
        """The lines of a view, folded; the fold in which the wanted line stands is open."""
        lines = self._view.lines[name] if self._view is not None else ()
        around = AROUND[self._around] if name != "totals" else AROUND[-1]
        opened = self._opened.get(name, frozenset())
        rows = fold(lines, around, opened)
        if key is None or any(row.key == key for row in rows):
            return rows
        places = {line.key: place for place, line in enumerate(lines)}
        wanted = places.get(key, -1)
        for row in rows:
            first = places.get(row.key.removeprefix("fold "), 0)
            if row.folded and first <= wanted < first + row.folded:
                self._opened[name] = opened | {row.key}
                return fold(lines, around, self._opened[name])
        return rows

    def on_virtual_list_moved(self, _message: VirtualList.Moved) -> None:
        """Tell the selected line whole."""
        line = self.listing.selected
        if line is None or self._view is None or VIEWS[self._at] == "totals":
            return
        self._keys[VIEWS[self._at]] = line.key
        name = f"{VIEWS[self._at]} {line.key} {self._around} {self._raw}"
        if name == self._shown:
            return
        self._shown = name
        found, look = self._view.diff, Look(AROUND[self._around], self._raw)
        if sum(len(str(v)) for c in line.changes for v in (c.a, c.b)) < _AT_ONCE:
            self.pane.show(detail(line, found, look), name=name)
            return
        self.pane.show((heading(("comparing …", "dim")),))
        self.read(lambda: Detailed(name, detail(line, found, look)), "detail")

    def on_detailed(self, message: Detailed) -> None:
        """Show it if it is still the selected line."""
        if message.name == self._shown:
            self.pane.show(message.rows, name=message.name)

    def _head(self) -> None:
        if self._view is not None:
            self.query_one(HeadBar).show(
                *compare_look.head(self._view.diff, self._side, self.source.now(), self.size.width)
            )

    def on_resize(self, _event: events.Resize) -> None:
        """Head and lines take the room there is."""
        self._head()
        self._share(len(self.listing.rows))

    def _names(self) -> tuple[str, ...]:
        both = all(p.turn is not None for p in self._places)
        return ("all", "request", *VIEWS[2:]) if both else VIEWS

    # keys

    def on_virtual_list_opened(self, _message: VirtualList.Opened) -> None:
        """A fold unfolds; a pair of turns opens with its requests; of two turns the line is shown alone."""
        line = self.listing.selected
        if line is None or self._view is None:
            return
        name = VIEWS[self._at]
        if line.folded:
            self._opened[name] = self._opened.get(name, frozenset()) | {line.key}
            self._keys[name] = line.key.removeprefix("fold ")
            self._show()
        elif name == "totals":
            self.say("v or 1 leads to what differs")
        elif self._view.diff.kind == "turns":
            self.query_one("#compare-body").add_class("whole")
            self.set_focus(self.pane)
        elif line.numbers[0] is None or line.numbers[1] is None:
            side = 0 if line.numbers[0] is not None else 1
            self.loop_app.open_turn(Place(self._run(side), line.numbers[side]))
        else:
            a, b = (Place(self._run(i), line.numbers[i]) for i in (0, 1))
            self.loop_app.open_compare(a, b, name)

    def action_change(self, step: int) -> None:
        """The next difference."""
        rows, at = self.listing.rows, self.listing.cursor + step
        while 0 <= at < len(rows):
            if not rows[at].same:
                self.listing.choose(at)
                return
            at += step
        self.say("no more differences " + ("below" if step > 0 else "above"))

    def action_more(self, step: int) -> None:
        """More or less of what is equal."""
        wanted = min(max(self._around + step, 0), len(AROUND) - 1)
        if wanted == self._around:
            self.say("nothing is left out" if step > 0 else "only what differs is shown")
            return
        self._around = wanted
        self._opened.clear()
        self.loop_app.memory.put("compare.around", wanted)
        self._show()
        self.say("everything is shown" if wanted == len(AROUND) - 1 else f"{AROUND[wanted]} equal around a difference")

    def action_side(self, _step: int) -> None:
        """The keys y, r, e, o and m are about the other side."""
        self._side = 1 - self._side
        self._head()
        self.say(f"{'AB'[self._side]}: y e o m r are about the {'right' if self._side else 'left'} side")

    def action_view(self) -> None:
        """The next view."""
        self._choose(self._at + 1)

    def action_tab_at(self, number: int) -> None:
        """That view."""
        self._choose(number - 1)

    def on_tab_bar_chosen(self, message: TabBar.Chosen) -> None:
        """A click on a view."""
        self._choose(message.index)

    def _choose(self, index: int) -> None:
        self._at = index % len(VIEWS)
        self.query_one(TabBar).choose(self._at)
        self._show()

    def action_swap(self) -> None:
        """Left becomes right."""
        view = self._view
        if view is None:
            return
        self._places = self._places[::-1]
        self._side = 1 - self._side
        self._keys.clear()
        self._opened.clear()
        self._shown = ""
        left, right = self._places
        if (left, right) == self._compared:  # a second time before the first was answered: what is shown stands so
            self.read(lambda: Compared(view, (left, right)), "compare")
        else:
            self.read(lambda: swapped(view, left, right), "compare")

    def action_raw(self) -> None:
        """Raw or pretty."""
        self._raw = not self._raw
        self._show()
        self.say("raw" if self._raw else "pretty: JSON with a member a line")

    def action_detail(self, pages: int) -> None:
        """Scroll the text below."""
        self.pane.action_page(pages)

    def subject(self) -> Subject:
        """The selected turn of the side that the keys are about."""
        line, place = self.listing.selected, self._places[self._side]
        if line is None:
            return Subject(place)
        number = line.numbers[self._side]
        if number is not None:
            place = Place(place.run, number)
        change = line.changes[0] if line.changes else None
        return Subject(place, *compare_look.value(line, change, self._side))

    def scope(self) -> Scope:
        """Both runs."""
        return Scope(runs=tuple(dict.fromkeys(p.run for p in self._places)))

    def action_back(self) -> None:
        """From a line alone to the lines, then back."""
        body = self.query_one("#compare-body")
        if body.has_class("whole") or self.pane.has_focus:
            body.remove_class("whole")
            self.set_focus(self.listing)
        else:
            self.loop_app.back()

    def _run(self, side: int) -> str:
        return self._places[side].run


_AT_ONCE = 20_000
"""Characters that are compared while a key waits; more are compared in a thread."""
_EMPTY = {"results": "no tool was called on either side", "requests": "no request is recorded on either side"}
