"""The fork screen: go on from a turn with something changed, see what will run, watch it beside its parent."""

from __future__ import annotations

from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Container

from ....replay.engine.forks.telling import LIVE
from ... import keymap
from ...format import counted
from ...place import Place, Subject
from ...widgets.bars import HeadBar, KeyBar, NoticeBar
from ...widgets.text_pane import TextPane
from ...widgets.virtual_list import VirtualList
from ..menu import Choice, Menu
from .bars import PlanBar, plan_lines, question
from .plan import ForkPlan
from .reading import Sketch
from .rows import COLUMNS, Row, cells
from .watch import ForkWatch

_HERE = tuple(k for k in keymap.HERE if k.action in ("mark", "diff", "copy", "open_in"))
_ONLY_PLAN = ("edit", "edit_outside", "undo", "turn(1)", "turn(-1)", "section(1)", "section(-1)")
_WIDE = 110


class ForkScreen(ForkPlan):
    """Go on from a turn with something changed, as a new run.

    Args:
        place: The turn; a run without a turn: after its end.
    """

    KEYS = (*keymap.FORK, *_HERE)
    BINDINGS = keymap.bindings(KEYS)
    DEFAULT_CSS = """
    ForkScreen #fork-plan { height: 1fr; layout: vertical; }
    ForkScreen #fork-plan.wide { layout: horizontal; }
    ForkScreen #fork-rows { height: 3fr; width: 1fr; }
    ForkScreen #fork-text { height: 2fr; width: 1fr; border-top: solid $panel; }
    ForkScreen .wide #fork-rows { height: 1fr; width: 56%; }
    ForkScreen .wide #fork-text { height: 1fr; border-top: none; border-left: vkey $panel; }
    ForkScreen ForkWatch { height: 1fr; display: none; }
    """

    def compose(self) -> ComposeResult:
        """Head, the plan or the watch, what would happen, notices, keys."""
        yield HeadBar()
        with Container(id="fork-plan"):
            yield VirtualList[Row](COLUMNS, lambda r: r.id, cells, head=False, id="fork-rows")
            yield TextPane(id="fork-text")
        yield ForkWatch()
        yield PlanBar()
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Read the turn."""
        self._head()
        self.query_one(PlanBar).show(plan_lines(self.sketch))
        self.set_focus(self.listing)
        self.keys_changed()
        self._read(self.place.turn)

    def on_resize(self) -> None:
        """Side by side where there is room."""
        self.query_one("#fork-plan").set_class(self.size.width >= _WIDE, "wide")

    @property
    def planning(self) -> bool:
        """True while nothing has begun."""
        return not self.beside.display

    @property
    def beside(self) -> ForkWatch:
        """The fork beside its parent, once it runs."""
        return self.query_one(ForkWatch)

    # running

    def opened(self, message: VirtualList.Opened) -> None:
        """Enter: edit or choose; of a fork that ended, open it."""
        if message.list is self.listing:
            self.action_edit()
        else:
            self.beside.open_chosen()

    def action_detail(self, pages: int) -> None:
        """Scroll the text."""
        if self.planning:
            super().action_detail(pages)
        else:
            self.beside.pane.action_page(pages)

    def action_start(self) -> None:
        """Start it; asks first when something would run live."""
        ready, trouble = self.sketch.ready, self.sketch.trouble
        sketch, unread = self.sketch, self.stale or self.awaited
        self.wanted = unread and not self.beside.running
        if self.beside.running:
            self.say("it runs already")
        elif unread:
            self.say("it starts when it is read" if self.reading is not None else "not read yet")
        elif ready is None:
            self.say(f"it cannot run: {trouble.what}" if trouble is not None else "there is nothing to run")
        elif asked := question(sketch):
            choices = (Choice("no", "no, not now", "n"), Choice("yes", "yes, run it live", "y"))
            self.app.push_screen(
                Menu("this runs live", choices, words=asked),
                lambda word: self._start(sketch) if word == "yes" else None,  # what was asked about, nothing newer
            )
        else:
            self._start(sketch)

    def _start(self, sketch: Sketch) -> None:
        if sketch.ready is None or self.beside.running:
            return
        self.query_one("#fork-plan").display = False
        live = frozenset(f.name for f in sketch.facts if f.how == LIVE)
        self.beside.begin(sketch.ready, live)
        self.keys_changed()

    def action_stop(self) -> None:
        """Stop the fork that runs."""
        if self.beside.running:
            self.beside.stop()
        else:
            self.say("nothing runs here")

    def action_diff(self) -> None:
        """Compare the parent with the fork; before there is one, what is marked."""
        if self.beside.display and not self.beside.running:
            self.beside.compare()
        else:
            super().action_diff()

    def action_back(self) -> None:
        """Out of here; while a fork runs it asks, from its end back to the plan."""
        if self.beside.running:
            choices = (
                Choice("stay", "stay here", "s"), Choice("leave", "stop it and leave", "l", "it is recorded as stopped by you"),
            )  # fmt: skip
            self.app.push_screen(Menu("the fork still runs", choices), self._leave)
        elif self.beside.display:
            self.beside.display = False
            self.query_one("#fork-plan").display = True
            self.query_one(PlanBar).show(plan_lines(self.sketch))
            self.set_focus(self.listing)
            self.keys_changed()
        elif self.edits:
            words = f"{counted(len(self.edits), 'edit')} would be lost"
            choices = (Choice("stay", "stay here", "s"), Choice("leave", "leave", "l", words))
            self.app.push_screen(Menu("leave the fork?", choices), self._leave)
        else:
            self.dismiss(None)

    def _leave(self, word: str | None) -> None:
        if word == "leave":
            self.dismiss(None)  # the watch goes with the screen, and stops the fork

    def show_run(self, run: str, turn: int | None) -> None:
        """Open a run over this screen."""
        self.loop_app.open_run(run, turn)

    def show_compare(self, left: Place, right: Place) -> None:
        """Two runs side by side, over this screen."""
        self.loop_app.open_compare(left, right)

    def keys_changed(self) -> None:
        """Other keys are valid now: those of the plan, or those of a fork that runs or is over."""
        self.query_one(KeyBar).show((*self._own_keys(), *keymap.EVERYWHERE))

    def _own_keys(self) -> tuple[keymap.Key, ...]:
        if not self.beside.display:
            return tuple(k for k in self.KEYS if k.action != "stop")
        opens = replace(keymap.LIST[-1], short="open the new run")
        again = replace(next(k for k in self.KEYS if k.action == "start"), short="again")
        kept = [k for k in self.KEYS if k.action not in (*_ONLY_PLAN, "start", "stop")]
        if self.beside.running:
            return (next(k for k in self.KEYS if k.action == "stop"), *kept)
        diff, back = (next(k for k in kept if k.action == a) for a in ("diff", "back"))
        diff = replace(diff, short="compare", help="compare the parent with the new run")
        rest = (k for k in kept if k.action not in ("diff", "back"))
        return (opens, diff, again, replace(back, short="plan", help="back to the plan"), *rest)

    def all_keys(self) -> tuple[keymap.Key, ...]:
        """Every key valid now."""
        return (*self._own_keys(), *keymap.LIST, *keymap.EVERYWHERE)

    def subject(self) -> Subject:
        """The turn, and the text that is selected; of a fork that ended, the new run."""
        if self.beside.display and self.beside.run:
            return Subject(Place(self.beside.run))
        row = self.listing.selected
        if row is None or row.part is None:
            return Subject(self.place)
        return Subject(self.place, self.edits.get(row.id, (row.part, row.part.text))[1], row.part.title)
