"""One turn whole, in tabs."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult

from .. import keymap
from ..format import duration, money, run_title, short_tokens
from ..messages import TurnLoaded, WireLoaded
from ..source import RunView, TurnView, WireView
from ..widgets.bars import HeadBar, NoticeBar, TabBar
from ..widgets.document import Document, Head
from ..widgets.text_pane import TextPane
from . import turn_tabs, turns_table
from .page import Page
from .turn_text import conversation

TABS = ("conversation", "request", "response", "calls", "usage", "wire")
_WIRE = TABS.index("wire")
_VIEWS: dict[str, Callable[..., Document]] = {
    "conversation": conversation,
    "request": turn_tabs.request,
    "response": turn_tabs.response,
    "calls": turn_tabs.calls,
    "usage": turn_tabs.usage,
}
_LOADING: Document = (Head((("reading …", "dim"),)),)


class TurnScreen(Page):
    """Everything about one turn; steps to its neighbours without going back."""

    KEYS = keymap.TURN
    BINDINGS = keymap.bindings(KEYS)

    def __init__(self, run: RunView, number: int, raw: bool = False) -> None:
        super().__init__()
        self._run_view = run
        self._number = number
        self._raw = raw
        self._view: TurnView | None = None
        self._wire: WireView | None = None

    def compose(self) -> ComposeResult:
        """Head, tabs, text, notices, keys."""
        yield HeadBar()
        yield TabBar(TABS)
        yield TextPane(id="text")
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Read the turn."""
        self.set_focus(self.pane)
        self._load()

    @property
    def pane(self) -> TextPane:
        """The text."""
        return self.query_one("#text", TextPane)

    @property
    def tabs(self) -> TabBar:
        """The tabs."""
        return self.query_one(TabBar)

    def _load(self) -> None:
        self._view = self._wire = None
        self._head()
        source, run, number = self.source, self._run_view.run.id, self._number
        self.read(lambda: TurnLoaded(source.turn(run, number)), "turn")
        if self.tabs.active == _WIRE:
            self._load_wire()

    def _load_wire(self) -> None:
        source, run, number = self.source, self._run_view.run.id, self._number
        self.read(lambda: WireLoaded(source.wire(run, number)), "wire")

    def on_turn_loaded(self, message: TurnLoaded) -> None:
        """Show it."""
        if message.view.turn.number != self._number:
            return
        self._view = message.view
        calls = len(message.view.turn.tool_calls)
        new = message.view.request
        notes = {TABS.index("calls"): str(calls) if calls else ""}
        if new is not None:
            notes[TABS.index("request")] = str(len(new.messages))
        self.tabs.note(notes)
        self._head()
        self._show()

    def on_wire_loaded(self, message: WireLoaded) -> None:
        """Show it."""
        if message.view.number == self._number:
            self._wire = message.view
            self._show()

    def _show(self) -> None:
        tab = TABS[self.tabs.active]
        name = f"{self._number}{tab}{self._raw}"
        if tab == "wire":
            self.pane.show(_LOADING if self._wire is None else turn_tabs.wire(self._wire, raw=self._raw), name=name)
        elif self._view is None:
            self.pane.show(_LOADING)
        else:
            self.pane.show(_VIEWS[tab](self._view, raw=self._raw), name=name)

    def _head(self) -> None:
        run = self._run_view.run
        left = [(run_title(run), "accent_strong"), (f"  {run.id[:8]}", "faint"), (f"  turn {self._number}", "strong")]
        left.append((f" of {len(self._run_view.turns)}", "dim"))
        facts: list[str] = []
        if self._view is not None:
            turn = self._view.turn
            facts = [turn.model or turn.request_model or "", f"{short_tokens(turn.usage.context)} in"]
            facts += [f"{short_tokens(turn.usage.output)} out", money(turn.cost_usd), duration(turn.generate_ms)]
            row = next((r for r in self._run_view.turns if r.number == self._number), None)
            if row is not None:
                left += [("  ", "dim"), *turns_table.mark(row)]
        self.query_one(HeadBar).show((tuple(left), [((fact, "dim"),) for fact in facts if fact]))

    # keys

    def action_tab(self, step: int) -> None:
        """The next tab."""
        self._choose(self.tabs.active + step)

    def action_tab_at(self, number: int) -> None:
        """The tab of that number."""
        self._choose(number - 1)

    def on_tab_bar_chosen(self, message: TabBar.Chosen) -> None:
        """A click on a tab."""
        self._choose(message.index)

    def _choose(self, index: int) -> None:
        self.tabs.choose(index)
        if self.tabs.active == _WIRE and self._wire is None:
            self._load_wire()
        self._show()

    def action_turn(self, step: int) -> None:
        """The turn beside this one."""
        numbers = [r.number for r in self._run_view.turns]
        at = numbers.index(self._number) + step if self._number in numbers else -1
        if 0 <= at < len(numbers):
            self._number = numbers[at]
            self._load()
        else:
            self.say("this is the last turn" if step > 0 else "this is the first turn")

    def action_error(self, step: int) -> None:
        """The next turn with an error."""
        rows = self._run_view.turns if step > 0 else self._run_view.turns[::-1]
        found = next((r for r in rows if r.bad and (r.number - self._number) * step > 0), None)
        if found is None:
            self.say("no more errors " + ("below" if step > 0 else "above"))
            return
        self._number = found.number
        self._load()

    def action_raw(self) -> None:
        """Raw or pretty."""
        self._raw = not self._raw
        self._show()
        self.say("raw" if self._raw else "pretty")

    def action_copy(self) -> None:
        """Copy RUN:N."""
        self.copy(f"{self._run_view.run.id}:{self._number}")

    def action_back(self) -> None:
        """Back to the run, which then stands on this turn."""
        self.dismiss(self._number)
