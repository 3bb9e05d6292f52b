"""One run: its turns on the left and the selected turn on the right; or over time; or as one text."""

from __future__ import annotations

from collections import OrderedDict

from textual import events
from textual.app import ComposeResult
from textual.containers import Container

from ... import keymap
from ...data.views import TurnRow, TurnView
from ...messages import TurnLoaded
from ...place import Place, Subject
from ...widgets.bars import HeadBar, NoticeBar
from ...widgets.blocks import Document, Folds, Head, leaves
from ...widgets.filter_bar import FilterBar
from ...widgets.text_pane import TextPane
from ...widgets.virtual_list import VirtualList
from ..turn.conversation import conversation
from ..turn_sign import MEANT
from . import head as run_head
from . import table as turns_table
from .laps import brackets
from .notes import notes
from .table import Signs
from .transcript import Transcript
from .turns import Turns
from .views import VIEWS
from .watching import Watching
from .waterfall import Waterfall

SETTLE = 0.05
"""Seconds a selection must stand before its turn is read: a held key reads nothing."""
KEPT = 32
"""Turns kept in memory, so that stepping back is immediate."""
SMALL = 500_000
"""Characters of results up to which a turn is kept."""
NARROW = 100
"""Columns below which the turn stands under the list instead of beside it."""
REMEMBERED = 200
"""Runs whose selected turn is remembered."""
_NONE = Head((("This run has no turns yet.", "dim"),))


class RunScreen(Watching):
    """Step through a run; what is shown follows the selection."""

    KEYS = (*keymap.RUN, *keymap.HERE)
    OPENS = "open"
    BINDINGS = keymap.bindings(KEYS)
    SIGNS = (*MEANT, *turns_table.MEANT)
    DEFAULT_CSS = """
    RunScreen #run-body { height: 1fr; layout: horizontal; }
    RunScreen #turns { width: 50%; min-width: 56; max-width: 96; height: 1fr; }
    RunScreen #detail { width: 1fr; height: 1fr; border-left: vkey $panel; }
    RunScreen #detail:focus { border-left: vkey $primary; }
    RunScreen.narrow #run-body { layout: vertical; }
    RunScreen.narrow #turns { width: 1fr; max-width: 100%; height: 3fr; }
    RunScreen.narrow #detail { border-left: none; border-top: hkey $panel; height: 2fr; }
    RunScreen.narrow #detail:focus { border-left: none; border-top: hkey $primary; height: 6fr; }
    """

    def __init__(self, run: str, turn: int | None = None) -> None:
        super().__init__(run, turn)
        self._raw = False
        self._signs = Signs()
        self._kept: OrderedDict[int, TurnView] = OrderedDict()
        self._shown: TurnView | None = None
        self._wanted: int | None = None
        self._columns = turns_table.columns(0, self._signs)

    def compose(self) -> ComposeResult:
        """Head, turns and turn, notices, keys."""
        yield HeadBar()
        with Container(id="run-body"):
            yield VirtualList[TurnRow](
                self._columns,
                lambda r: str(r.number),
                lambda r, c: turns_table.cells(r, c, self._signs),
                gap=1,
                id="turns",
            )
            yield TextPane(id="detail")
        yield Waterfall(id="waterfall")
        yield Transcript(id="transcript")
        yield FilterBar("text as it stands in prompts, answers, arguments, results")
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Begin to read, and keep looking while the run goes on."""
        self._narrow(self.app.size.width)
        blank = ((("reading the run …", "dim"),), ())
        self.query_one(HeadBar).show(((), ()), ((), ()), blank, ((), ()))
        if self.first is None:
            known = self.loop_app.memory.get("run.at", {}).get(self.run_id)
            self.first = known if isinstance(known, int) else None
        view = self.loop_app.memory.get("run.view", VIEWS[0])
        self.view = view if view in VIEWS else VIEWS[0]
        self.show_view()
        self.watch_run()

    @property
    def detail(self) -> TextPane:
        """The turn."""
        return self.query_one("#detail", TextPane)

    # the list

    def forget(self, old: Turns | None, new: Turns) -> None:
        """Drop from memory the turns whose line changed, and their neighbours, to which results came back."""
        if not new.rows:
            self.detail.show((_NONE,))
        for number in list(self._kept):
            near = (number - 1, number, number + 1)
            if old is None or any(old.row(n) != new.row(n) for n in near):
                self._kept.pop(number, None)

    def signs_changed(self) -> None:
        """Draw them; the turn is shown again with what is known of it now."""
        self.draw_signs()
        self.listing.repaint()
        self.head_changed()
        if self._shown is not None:
            self._show_turn(self._shown)

    def marks_changed(self) -> None:
        """The sign of the mark."""
        self.signs_changed()

    def draw_signs(self) -> None:
        """Signs by turn, and the columns that they need."""
        marks = {p.turn for p in self.loop_app.marks if p.run == self.run_id and p.turn is not None}
        longest = self.turns.longest if self.turns is not None else 0.0
        last = self.turns.last if self.turns is not None else 0
        found = frozenset(self.seen.found_at)
        self._signs = Signs(brackets(self.seen.cycles), found, self.hits.by_turn.keys(), marks, longest)
        columns = turns_table.columns(last, self._signs)
        if columns != self._columns:
            self._columns = columns
            self.listing.set_columns(columns)

    def on_virtual_list_moved(self, message: VirtualList.Moved) -> None:
        """Show the selected turn, at once when it is in memory."""
        row = self.row
        if message.list is not self.listing or row is None or self.turns is None:
            return
        before = self.following, self.read_to
        if not self.at_end:
            self.following = False
        elif self.turns.view.whole:
            self.read_to = self.turns.last
        if before != (self.following, self.read_to):
            self.head_changed()
        if self.aside is not None:
            self.aside.choose(row.number)
        seen = self._kept.get(row.number)
        if seen is not None:
            self._show_turn(seen)
        self._wanted = row.number
        self.set_timer(SETTLE, lambda: self._want(row.number))

    @property
    def waiting(self) -> bool:
        """True while a turn is about to be read, too."""
        return super().waiting or self._wanted is not None

    def _want(self, number: int) -> None:
        if self._wanted == number:
            self._wanted = None
        row = self.row
        if row is None or row.number != number:
            return
        self._remember(number)
        if number in self._kept:
            return
        source, run, stood = self.source, self.run_id, self._lines_at(number)
        self.read(lambda: TurnLoaded(source.turn(run, number, fresh=True), stood), "turn")

    def _lines_at(self, number: int) -> object:
        """The lines that tell whether a turn is still the same: its own and its neighbours', to which results come back."""
        return None if self.turns is None else [self.turns.row(n) for n in (number - 1, number, number + 1)]

    def _remember(self, number: int) -> None:
        known = dict(self.loop_app.memory.get("run.at", {}))
        known.pop(self.run_id, None)
        known[self.run_id] = number
        for run in list(known)[:-REMEMBERED]:
            del known[run]
        self.loop_app.memory.put("run.at", known)

    def on_turn_loaded(self, message: TurnLoaded) -> None:
        """Keep it, unless it is large; show it if it is still the selected one. What changed meanwhile is read again."""
        view = message.view
        if message.stood != self._lines_at(view.turn.number):
            self._want(view.turn.number)
            return
        if sum(c.result_length or 0 for t in (view.turn, view.before) if t for c in t.tool_calls) < SMALL:
            self._kept[view.turn.number] = view
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        row = self.row
        if row is not None and row.number == view.turn.number:
            self._show_turn(view)

    def _show_turn(self, view: TurnView) -> None:
        if self.turns is None:
            return
        self._shown = view
        if self.aside is not None:
            return  # laid out when it is to be seen
        turn = view.turn
        where = " · ".join(w for w in (turn.step, turn.agent, turn.caller) if w)
        title = Head(
            (
                (f"turn {turn.number}", "strong"),
                (f" of {max(view.last, self.turns.last)}", "dim"),
                (f"  {where}" if where else "", "faint"),
            )
        )
        noted = notes(turn.number, self.turns, self.seen, self.hits)
        document: Document = (title, Head(()), *noted, *conversation(view, brief=True, raw=self._raw))
        self.detail.show(document, name=f"{turn.number}{self._raw}")

    def show_view(self) -> None:
        """The view that is chosen; beside the list the turn that was selected meanwhile."""
        super().show_view()
        if self._shown is not None:
            self._show_turn(self._shown)

    def head_changed(self) -> None:
        """Say it anew."""
        if self.turns is None:
            return
        new = self.turns.since(self.read_to)[0] if self.read_to else 0
        view = "" if self.view == VIEWS[0] else self.view
        standing = run_head.Standing(self.following, new, view, self.searching)
        lines = run_head.head(self.turns, self.why, self.seen, self.hits, standing, self.size.width, self.source.now())
        self.query_one(HeadBar).show(*lines)

    def on_screen_resume(self) -> None:
        """Marks may have been set elsewhere."""
        if self.turns is not None:
            self.signs_changed()

    def on_resize(self, event: events.Resize) -> None:
        """The curves take the room there is; in a narrow terminal the turn stands below the list."""
        self._narrow(event.size.width)
        self.head_changed()

    def _narrow(self, width: int) -> None:
        self.set_class(width < NARROW, "narrow")

    # keys

    def on_virtual_list_opened(self, message: VirtualList.Opened) -> None:
        """The turn whole."""
        if message.list is self.listing and message.key is not None:
            self.loop_app.open_turn(Place(self.run_id, int(message.key)), back=self.came_back, known=self._shown)

    def action_context(self) -> None:
        """What fills the window at this turn."""
        if self.row is not None:
            self.loop_app.open_turn(self.place, "context", self.came_back)

    def action_pane(self, step: int) -> None:
        """The keys go to the turn beside the list, or back to the list."""
        if self.only_turns():
            self.set_focus(self.detail if step > 0 and not self.detail.has_focus else self.listing)

    def action_detail(self, pages: int) -> None:
        """Scroll the turn without leaving the list; at its end go on with the next."""
        if not self.only_turns():
            return
        if pages > 0 and self.detail.at_end:
            self.listing.action_move(1)
        else:
            self.detail.action_page(pages)

    def action_raw(self) -> None:
        """Raw or pretty."""
        if not self.only_turns():
            return
        self._raw = not self._raw
        if self._shown is not None:
            self._show_turn(self._shown)
        self.say("raw" if self._raw else "pretty")

    def action_follow(self) -> None:
        """To the newest turn, and stay there while new ones come; moving away ends it."""
        if self.following:
            self.following = False
        else:
            self.listing.action_bottom()
            self.following = True
            if self.turns is not None:
                self.read_to = self.turns.last
        self.head_changed()

    def subject(self) -> Subject:
        """The selected turn; its value is what it says, whole."""
        view, number = self._shown, self.place.turn
        if isinstance(self.aside, Transcript):
            return Subject(self.place, self.aside.value(), f"turn {number}")
        if view is None or view.turn.number != number:
            return Subject(self.place)
        return Subject(self.place, _text(conversation(view)), f"turn {number}", view.turn.response, view.turn.caller)

    def action_back(self) -> None:
        """From the turn to the list; then without the search; then back to where one came from."""
        if self.detail.has_focus:
            self.set_focus(self.listing)
        elif self.hits.text:
            self.clear_search()
        else:
            self.loop_app.back()


def _text(document: Document) -> str:
    """What a document says, whole."""
    said = (leaf.block for leaf in leaves(document, Folds()))
    return "\n".join("".join(t for t, _ in b.spans) if isinstance(b, Head) else b.text for b in said)
