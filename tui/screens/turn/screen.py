"""One turn whole, in tabs: made in threads, so that a large one never holds the keys up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.worker import get_current_worker

from ... import keymap
from ...data.views import TurnView, row_of
from ...format import duration, money, run_title, short_tokens
from ...messages import Failed, TurnLoaded, Unchanged
from ...place import Place, Subject
from ...safe_text import clean
from ...widgets.bars import HeadBar, NoticeBar, TabBar
from ...widgets.blocks import Document, Head
from ...widgets.filter_bar import FilterBar
from ...widgets.text_pane import TextPane
from ..page import Page
from ..patience import Patience
from ..turn_sign import mark
from . import answer as turn_answer
from . import context as turn_context
from . import findings as turn_findings
from . import reading as turn_reading
from . import request as turn_request
from . import usage as turn_usage
from . import wire as turn_wire
from .changes import AROUND
from .conversation import conversation
from .marks import marks
from .reading import LONG, NEEDS, SLOW, Built, Findings, Sought, Want
from .subject import subject_of

Maker = Callable[[TurnView, Mapping[str, Any], Want], Document]
MAKERS: Mapping[str, Maker] = {
    "conversation": lambda view, _extras, want: conversation(view, raw=want.raw),
    "request": turn_request.request,
    "response": turn_answer.response,
    "calls": turn_answer.calls,
    "usage": turn_usage.usage,
    "context": turn_context.context,
    "wire": turn_wire.wire,
    "findings": turn_findings.findings,
}
TABS = tuple(MAKERS)
_NARROW = {"conversation": "talk", "findings": "finds"}
SETTLE = 0.12
"""Seconds that a turn must stand before what may take long is asked for it: a held key asks nothing."""
LATE = 300
"""Turn from which what is new in a turn is shown before the messages that came earlier are read: they are many."""
OF_NEW = ("conversation", "response", "calls", "usage")
"""Tabs that can be made before the earlier messages are there."""
_LOADING: Document = (Head((("reading …", "dim"),)),)


class TurnScreen(Page):
    """Everything about one turn; steps to its neighbours without going back.

    Args:
        tab: The tab to open; the one that was looked at last where it is empty.
        known: What was read of the turn already: shown until all of it is read.
    """

    KEYS = (*keymap.TURN, *keymap.HERE)
    BINDINGS = keymap.bindings(KEYS)

    def __init__(self, place: Place, tab: str = "", known: TurnView | None = None) -> None:
        super().__init__()
        self._run = place.run
        self._number = place.turn or 1
        self._tab = tab
        self._before_context = TABS[0]
        self._raw = False
        self._around = 0
        self._view: TurnView | None = None
        self._given = known
        self._known: TurnView | None = None
        self._extras: dict[str, Any] = {}
        self._version: object = None
        self._patience, self._again_at = Patience(), math.inf
        self._making: Want | None = None

    def compose(self) -> ComposeResult:
        """Head, tabs, text, search, notices, keys."""
        yield HeadBar()
        yield TabBar(TABS, narrow=_NARROW)
        yield TextPane(id="text")
        yield FilterBar("search in this text; Esc takes the marks away")
        yield NoticeBar()
        yield self.key_bar()

    def on_mount(self) -> None:
        """Read the turn."""
        memory = self.loop_app.memory
        tab = self._tab or memory.get("turn.tab", TABS[0])
        self.tabs.choose(TABS.index(tab) if tab in TABS else 0)
        self.pane.lasting.update({k: bool(v) for k, v in memory.get("fold.turn", {}).items()})
        self.set_focus(self.pane)
        given, self._given = self._given, None
        self._load(given)
        self.set_interval(1.0, self._tick)

    def on_resize(self, _event: events.Resize) -> None:
        """The title takes a third of the line."""
        self._head()

    @property
    def pane(self) -> TextPane:
        """The text."""
        return self.query_one("#text", TextPane)

    @property
    def tabs(self) -> TabBar:
        """The tabs."""
        return self.query_one(TabBar)

    @property
    def tab(self) -> str:
        """The name of the chosen tab."""
        return TABS[self.tabs.active]

    # reading

    def _load(self, given: TurnView | None = None) -> None:
        self._view = None
        self._extras = {k: v for k, v in self._extras.items() if isinstance(v, Findings)}  # they are of the run
        self._head()
        source, run, number, post = self.source, self._run, self._number, self.post_message
        known = given is not None and (given.run.id, given.turn.number, given.turn.mode) == (run, number, "full")
        if given is not None and known:
            self.on_turn_loaded(TurnLoaded(given))

        def job() -> Message:
            if known or number > LATE:
                if not known:
                    post(TurnLoaded(source.turn(run, number, fresh=True)))
                time.sleep(SETTLE)
                if self._number != number:
                    return Unchanged()
            return TurnLoaded(source.turn(run, number))

        self.read(job, "turn")

    def on_failed(self, _message: Failed) -> None:
        """A turn that could not be read is asked for again, ever less often."""
        if self._view is None:
            self._again_at = self._patience.failed()

    def _tick(self) -> None:
        """While the run goes on: read again what may have changed."""
        view = self._view
        if self.is_current and view is None and time.monotonic() >= self._again_at:
            self._again_at = math.inf
            self._load()
        if not self.is_current or view is None or view.run.status != "running":
            return
        source, run, number, known = self.source, self._run, self._number, self._version

        def job() -> Message:
            now = source.version()
            if now == known:
                return Unchanged()
            return TurnLoaded(source.turn(run, number), now)

        self.poll(job, "again")

    def on_turn_loaded(self, message: TurnLoaded) -> None:
        """Show it."""
        view = message.view
        if view.turn.number != self._number:
            return
        self._version = message.stood
        if view == self._view or (view.fresh and self._view is not None):
            return
        if self._view is None:
            self.notices(())  # a trouble there was is over
        self._view = self._known = view
        self._patience.went_well()
        self._extras = {k: v for k, v in self._extras.items() if isinstance(v, Findings)}
        self._notes()
        self._head()
        self._make()

    def _want(self) -> Want:
        return Want(self._number, self.tab, self._raw, self._around)

    def _make(self) -> None:
        """Make the document of the chosen tab in a thread; what it needs beyond the turn is read there."""
        view, want, have, source = self._view, self._want(), dict(self._extras), self.source
        self._making = want
        if view is None or (view.fresh and want.tab not in OF_NEW):
            self.pane.show(_LOADING)
            return
        make, post = MAKERS[want.tab], self.post_message

        def wanted() -> bool:  # asked in the thread, where no widget may be looked for: this one may be gone
            return self._view is view and self._making == want and not get_current_worker().is_cancelled

        def job() -> Message:
            if turn_reading.takes_time(view) and not want.raw:
                post(
                    Built(view, want, make(view, have, replace(want, raw=True)), dict(have))
                )  # as it is, until it is indented
            needed = [name for name in NEEDS.get(want.tab, ()) if name not in have]
            if want.tab == "request" and want.number > LONG:
                needed = [name for name in needed if name != "context"]
            for name in needed:
                if name in SLOW:
                    post(Built(view, want, make(view, have, want), dict(have)))
                    time.sleep(SETTLE)
                    if not wanted():
                        return Unchanged()
                have[name] = turn_reading.read(name, source, view, wanted)
            if not wanted():
                return Unchanged()
            return Built(view, want, make(view, have, want), have)

        self.read(job, "tab")

    def on_built(self, message: Built) -> None:
        """Show what was made, if it is still wanted; of a turn that was read again meanwhile nothing is kept."""
        if message.view is not self._view:
            return
        self._extras |= message.extras
        self._notes()
        self._head()
        if message.want == self._want():
            want = message.want
            name = f"{self._run}:{want.number}.{want.tab}{'.raw' if want.raw else ''}"
            self.pane.show(message.document, name=name, keep=True)

    def _notes(self) -> None:
        view = self._view
        if view is None:
            return
        found = self._extras.get("findings")
        here = len(found.at(self._number)) if isinstance(found, Findings) else 0
        calls, request = len(view.turn.tool_calls), view.request
        messages = len(request.messages) if request is not None and not view.fresh else 0
        counts = {"calls": calls, "findings": here, "request": messages}
        self.tabs.note({TABS.index(name): f"{n:,}" for name, n in counts.items() if n})

    def _head(self) -> None:
        known = self._known
        if known is None:
            self.query_one(HeadBar).show((((f"reading turn {self._number} …", "dim"),), ()))
            return
        run = known.run
        title = clean(run_title(run), limit=max(20, self.size.width // 3))
        left = [(title, "accent_strong"), (f"  {run.id[:8]}", "faint"), (f"  turn {self._number:,}", "strong")]
        left.append((f" of {known.last:,}", "dim"))
        if self._view is None:
            self.query_one(HeadBar).show((tuple(left), ()))
            return
        turn = self._view.turn
        facts = [turn.model or turn.request_model or "", f"{short_tokens(turn.usage.context)} in"]
        facts += [f"{short_tokens(turn.usage.output)} out", money(turn.cost_usd), duration(turn.generate_ms)]
        left += [("  ", "dim"), *mark(row_of(turn))]
        said = marks(self._view, self._extras)
        second = [((("⚠ ", "accent_strong"), (" · ".join(said), "text")), ())] if said else []
        self.query_one(HeadBar).show((tuple(left), [((fact, "dim"),) for fact in facts if fact]), *second)

    # tabs

    def action_tab(self, step: int) -> None:
        """The next tab."""
        self._choose(self.tabs.active + step)

    def action_tab_at(self, number: int) -> None:
        """The tab of that number."""
        self._choose(number - 1)

    def on_tab_bar_chosen(self, message: TabBar.Chosen) -> None:
        """A click on a tab."""
        self._choose(message.index)

    def action_context(self) -> None:
        """What fills the window, and back."""
        if self.tab == "context":
            self._choose(TABS.index(self._before_context))
        else:
            self._before_context = self.tab
            self._choose(TABS.index("context"))

    def _choose(self, index: int) -> None:
        self.tabs.choose(index)
        self.loop_app.memory.put("turn.tab", self.tab)
        self._make()

    # other turns

    def action_turn(self, step: int) -> None:
        """The turn beside this one."""
        there = self._number + step
        if self._known is not None and 1 <= there <= self._known.last:
            self._go(there)
        else:
            self.say("this is the last turn" if step > 0 else "this is the first turn")

    def action_error(self, step: int) -> None:
        """The next turn with an error."""
        source, run, number = self.source, self._run, self._number
        self.read(lambda: turn_reading.error_beside(source, run, number, step), "sought")

    def action_peer(self, step: int) -> None:
        """The next turn that calls the same tool."""
        source, run, view = self.source, self._run, self._view
        if view is None or not view.turn.tool_calls:
            self.say("this turn calls no tool")
            return
        turn = view.turn
        self.read(lambda: turn_reading.peer_beside(source, run, turn, step), "sought")

    def on_sought(self, message: Sought) -> None:
        """Go there."""
        if message.number is None:
            self.say(f"no more {message.what} " + ("below" if message.step > 0 else "above"))
        else:
            self._go(message.number)

    def _go(self, number: int) -> None:
        self._number = number
        self._load()

    # searching

    def action_search(self) -> None:
        """Type the words to look for."""
        self.query_one(FilterBar).open()

    def on_filter_bar_changed(self, message: FilterBar.Changed) -> None:
        """Look for them while they are typed."""
        self.pane.search(message.text)

    def on_filter_bar_left(self, _message: FilterBar.Left) -> None:
        """The keys go back to the text."""
        self.query_one(FilterBar).settle()
        self.set_focus(self.pane)

    def action_hit(self, step: int) -> None:
        """The next hit, or the one before."""
        if not self.pane.hits.needle:
            self.say("nothing is searched for: / and the words")
        elif not self.pane.hit(step):
            self.say(self.pane.hits.said)

    def on_text_pane_searched(self, message: TextPane.Searched) -> None:
        """Say which hit this is."""
        self.say(message.hits.said if message.hits.needle else "")

    # the text

    def on_text_pane_folded(self, message: TextPane.Folded) -> None:
        """Remember how a fold stands that other turns have too."""
        stand = dict(self.loop_app.memory.get("fold.turn", {}))
        stand.pop(message.key, None)
        stand[message.key] = message.is_open
        self.loop_app.memory.put("fold.turn", dict(list(stand.items())[-100:]))

    def action_more(self, step: int) -> None:
        """More or less of what did not change around what did."""
        if self.tab != "request":
            self.say("} and { are for the request tab (2)")
            return
        wanted = max(0, min(len(AROUND) - 1, self._around + step))
        if wanted == self._around:
            self.say("all is shown" if step > 0 else "only what changed is shown")
            return
        self._around = wanted
        self._make()

    def action_raw(self) -> None:
        """Raw or pretty."""
        self._raw = not self._raw
        self._make()
        self.say("raw" if self._raw else "pretty")

    def subject(self) -> Subject:
        """The turn, and what is chosen in its text (else the main thing of the tab)."""
        view = self._view if self._view is None or not self._view.fresh or self.tab in OF_NEW else None
        return subject_of(Place(self._run, self._number), view, self.tab, self.pane.chosen, self._extras)

    def action_back(self) -> None:
        """Back to the run, which then stands on this turn."""
        self.dismiss(self._number)
