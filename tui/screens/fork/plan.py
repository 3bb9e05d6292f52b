"""The plan of a fork: the turn, its edits, who answers; what all that comes to."""

from __future__ import annotations

from dataclasses import replace

from ....replay.engine.forks.order import Order
from ....replay.engine.toolbox import Definition
from ....replay.fork.parts import Part, edit_of, excludes, place_of
from ....tracer.errors import LooptapeError
from ...format import counted, run_title
from ...messages import Failed
from ...outside.editable import MOST, editable
from ...place import Place
from ...widgets.bars import HeadBar, NoticeBar
from ...widgets.text_pane import TextPane
from ...widgets.virtual_list import VirtualList
from ..page import Page
from . import choices as fork_choices
from . import reading as fork_reading
from .bars import PlanBar, plan_lines
from .editor import TextEditor
from .outside import edited_outside
from .reading import Reading, Sketch, SourcesRead, TurnRead
from .rows import Row, Sketched, rows, whole

_BEGUN = "the fork has begun: Esc goes back to the plan"


class ForkPlan(Page):
    """What a screen has that plans a fork: the lines, the text of the selected one, and their keys."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.reading: Reading | None = None
        self.sketch = Sketch(Order())
        self.edits: dict[str, tuple[Part, str]] = {}
        self.able: tuple[Definition, ...] = ()
        self.stale = True
        self.awaited = False  # another turn, or sources of live tools, are being read: what is shown is not what counts
        self.wanted = False

    @property
    def planning(self) -> bool:
        """True while nothing has begun."""
        return True

    @property
    def listing(self) -> VirtualList[Row]:
        """The lines of the plan."""
        return self.query_one("#fork-rows", VirtualList)

    @property
    def pane(self) -> TextPane:
        """The selected line, whole."""
        return self.query_one("#fork-text", TextPane)

    def action_start(self) -> None:
        """Start it."""
        raise NotImplementedError

    # reading

    def _read(self, number: int | None) -> None:
        source, run = self.source, self.place.run
        self.read(lambda: fork_reading.read(source, run, number), "turn")

    def on_turn_read(self, message: TurnRead) -> None:
        """The turn is here; edits of what stands in it unchanged are kept."""
        known = {p.path: p for p in message.reading.parts} if self.edits else {}
        kept = {
            path: (p, text)
            for path, (p, text) in self.edits.items()
            if known.get(path) == p or (p.kind == "parameter" and not p.there)
        }
        lost = len(self.edits) - len(kept)
        self.awaited = False
        self.reading, self.edits = message.reading, kept
        self.place = Place(self.place.run, message.reading.number)
        if lost:
            self.say(f"{counted(lost, 'edit')} of the other turn's own taken back")
        self._think()

    def on_failed(self, _message: Failed) -> None:
        """The page says what could not be read; nothing more comes, and nothing starts by itself."""
        self.awaited = self.wanted = False
        if self.reading is None:
            self.stale = False
            self.query_one(PlanBar).show([(("There is nothing to go on from here.", "dim"),)])

    def change(self, wanted: Order) -> None:
        """Another order: see what it comes to."""
        self.sketch = replace(self.sketch, order=wanted)
        self._think()

    def _think(self) -> None:
        reading, able, wanted, edits = self.reading, self.able, self.sketch.order, dict(self.edits)
        if reading is None:
            return

        def job() -> Sketched:
            made = fork_reading.sketch(reading, wanted, edits, able)
            return Sketched(made, rows(reading, made, edits))

        self.stale = True
        self.read(job, "sketch")

    def on_sketched(self, message: Sketched) -> None:
        """Show it."""
        self.sketch, self.stale = message.sketch, False
        self.listing.show(message.rows, select=self.listing.selected_key or "@model")
        if self.listing.cursor < self.listing.size.height:
            self.listing.jump(0)  # what is lacking stands at the top
        if self.planning:
            self.query_one(PlanBar).show(plan_lines(self.sketch))
        self._head()
        if self.wanted and not self.awaited:
            self.action_start()

    def try_sources(self, wanted: Order) -> None:
        """An order with other sources of live tools, once they are loaded."""
        self.awaited = True
        self.say("loading the tools …")
        self.read(lambda: fork_reading.read_sources(wanted), "sources")

    def on_sources_read(self, message: SourcesRead) -> None:
        """The sources are there; what only a source that went away could run is recorded again."""
        self.able, self.awaited = message.able, False
        names = {d.name for d in message.able}
        named = {k: v for k, v in message.order.named.items() if v != "live" or k in names}
        self.query_one(NoticeBar).lasting()
        count = counted(len(names), "tool")
        self.say(f"{count} could run live; each runs only where you choose it" if names else "no live tools")
        self.change(replace(message.order, named=named))

    def _head(self) -> None:
        left = [("run on from ", "dim")]
        facts = []
        if self.reading is None:
            left.append((self.place.written, "accent_strong"))
        else:
            run = self.reading.run
            number = self.reading.number
            last = self.reading.plan.turns[-1].number
            where = f"  turn {number}" if number <= last else f"  after turn {last}"
            left += [(run_title(run), "accent_strong"), (f"  {run.id[:8]}", "faint"), (where, "strong")]
            left.append((f" of {last}", "dim"))
            facts = [((f"{counted(len(self.edits), 'edit')}", "accent" if self.edits else "dim"),)]
        self.query_one(HeadBar).show((tuple(left), facts))

    def on_virtual_list_moved(self, message: VirtualList.Moved) -> None:
        """Show the selected line whole."""
        row = self.listing.selected
        if message.list is self.listing and row is not None:
            edited = self.edits.get(row.id)
            self.pane.show(whole(row, self.sketch, self.edits), name="" if edited is None else row.id)

    def on_virtual_list_opened(self, message: VirtualList.Opened) -> None:
        """Enter on a line."""
        message.stop()
        self.opened(message)

    def opened(self, message: VirtualList.Opened) -> None:
        """Enter: edit or choose. (Not the handler itself: Textual calls those of all base classes.)"""
        self.action_edit()

    # editing

    def action_edit(self) -> None:
        """Edit what is selected, or choose what answers."""
        self.wanted = False
        row = self.listing.selected
        if row is None or not self.planning:
            self.say("nothing to edit here" if row is None else _BEGUN)
        elif row.part is not None:
            self._edit_here(row.part)
        elif row.fact is not None:
            fork_choices.tool(self, row.fact)
        elif row.words:
            self.say("this is only told; nothing here to edit")
        elif row.id == "@seen":
            self.change(replace(self.sketch.order, seen_tools=not self.sketch.order.seen_tools))
        else:
            _CHOICES[row.id](self)

    def _edit_here(self, part: Part) -> None:
        text = self.edits.get(part.path, (part, part.text))[1]
        if len(text) > MOST:
            self.say(f"{len(text):,} characters are too many for the editor here: E opens it in $EDITOR")
            return
        given = editable(text, json=part.json)
        mistake = place_of if part.json else lambda _text: None
        self.app.push_screen(
            TextEditor(part.path, given, lambda edited: edit_of(part, edited), mistake),
            lambda edited: self.take(part, edited),
        )

    def action_edit_outside(self) -> None:
        """Edit what is selected in $EDITOR."""
        self.wanted = False
        row = self.listing.selected
        if not self.planning or row is None or row.part is None:
            self.say("choose a text of the request or of the answer: E opens it in $EDITOR")
            return
        part = row.part
        text = edited_outside(self, part, self.edits.get(part.path, (part, part.text))[1])
        if text is not None:
            self.take(part, text)

    def take(self, part: Part, text: str | None) -> None:
        """An edited text; the same as before is no edit, and a whole takes the place of its parts."""
        if text is None:
            return
        try:
            if edit_of(part, text) is None:
                self.say(
                    "nothing changed" if self.edits.pop(part.path, None) is None else "as it was: the edit is gone"
                )
            else:
                gone = [k for k, (other, _) in self.edits.items() if other != part and excludes(part, other)]
                for path in gone:
                    del self.edits[path]
                if gone:
                    self.say(f"this takes the place of the edit of {', '.join(gone)}")
                self.edits[part.path] = (part, text)
        except LooptapeError as error:
            self.say(f"{error.what}. Nothing is taken")
        self._think()

    def add_parameter(self, name: str, value: str) -> None:
        """A parameter that was not sent."""
        known = next((p for p in self.reading.parts if p.steps == ("params", name)), None) if self.reading else None
        self.take(known or fork_reading.new_parameter(name), value)

    def action_undo(self) -> None:
        """Take the edit or the choice back."""
        self.wanted = False
        row = self.listing.selected
        wanted = self.sketch.order
        if row is None or not self.planning:
            self.say("nothing to take back here")
        elif row.id in self.edits:
            del self.edits[row.id]
            self.say("taken back")
            self._think()
        elif row.fact is not None and row.fact.name in wanted.named:
            fork_choices.put_tool(self, row.fact.name, "recorded")
        elif (fresh := fork_choices.fresh(wanted, row.id)) != wanted:
            self.say("taken back")
            self.change(fresh)
        else:
            self.say("nothing to take back here")

    def action_turn(self, step: int) -> None:
        """From another turn."""
        self.wanted = False
        if not self.planning or self.reading is None:
            self.say("not read yet" if self.planning else _BEGUN)
            return
        known = [t.number for t in self.reading.plan.turns]  # a recording can have holes
        beyond = [n for n in (*known, known[-1] + 1) if (n - self.reading.number) * step > 0]
        if beyond:
            self.awaited = True
            self._read(beyond[0] if step > 0 else beyond[-1])
        else:
            self.say("there is no turn " + ("after this" if step > 0 else "before this"))

    def action_section(self, step: int) -> None:
        """To the next kind of thing."""
        found = [i for i, row in enumerate(self.listing.rows) if row.first]
        at = self.listing.cursor
        beyond = [i for i in found if (i - at) * step > 0]
        self.listing.choose((beyond[0] if step > 0 else beyond[-1]) if beyond else at)

    def action_detail(self, pages: int) -> None:
        """Scroll the text."""
        self.pane.action_page(pages)


_CHOICES = {
    "@model": fork_choices.model,
    "@sources": fork_choices.sources,
    "@limits": fork_choices.limits,
    "@add": fork_choices.parameter,
    "@drop": fork_choices.dropped,
}
