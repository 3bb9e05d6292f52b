"""The ways through a run: errors, cycles, findings, calls of a tool, words of the user, search hits, other runs."""

from __future__ import annotations

from collections.abc import Sequence

from ...data.views import TurnRow
from ...format import counted
from ...messages import Failed
from ...place import Place
from ...widgets.filter_bar import FilterBar
from ...widgets.virtual_list import VirtualList
from ..menu import Choice, Menu
from ..page import Page
from .answers import Seen
from .search import Hits, Searched, search
from .turns import Turns, beyond


class Jumps(Page):
    """A page over the turns of one run. Subclasses read them and show them."""

    def __init__(self, run: str) -> None:
        super().__init__()
        self.run_id = run
        self.turns: Turns | None = None
        self.seen = Seen()
        self.hits = Hits()
        self.searching = False

    @property
    def listing(self) -> VirtualList[TurnRow]:
        """The turns."""
        return self.query_one("#turns", VirtualList)

    @property
    def row(self) -> TurnRow | None:
        """The selected turn."""
        return self.listing.selected

    def go(self, number: int) -> bool:
        """Select a turn; False when it is not (yet) among those that were read."""
        at = self.turns.index(number) if self.turns is not None else None
        if at is not None:
            self.listing.choose(at)
        return at is not None

    def signs_changed(self) -> None:
        """What is drawn beside the turns changed."""

    def take_keys(self) -> None:
        """The keys go back to what is shown."""

    def _jump(self, numbers: Sequence[int], step: int, what: str) -> None:
        """To the next of these turns, or say that there is none."""
        row = self.row
        if row is None or self.turns is None:
            return
        there = beyond(numbers, row.number, step)
        if there is None or not self.go(there):
            side = "below" if step > 0 else "above"
            self.say(f"no more {what} {side}" if self.turns.view.whole else f"no {what} {side} yet: reading goes on")

    def action_error(self, step: int) -> None:
        """The next turn with an error."""
        self._jump(self.turns.errors if self.turns else (), step, "errors")

    def action_user(self, step: int) -> None:
        """The next turn with a word of the user."""
        self._jump(self.turns.users if self.turns else (), step, "words of the user")

    def action_cycle(self, step: int) -> None:
        """The first turn of the next cycle."""
        if "seen" in self._busy:
            self.say("still looking for cycles")
        else:
            self._jump(sorted({c.first_turn for c in self.seen.cycles}), step, "cycles")

    def action_finding(self, step: int) -> None:
        """The next turn at which a finding begins."""
        if "seen" in self._busy:
            self.say("still looking for findings")
        elif self.seen.findings is None:
            self.say("findings of a run as long as this are not looked for by themselves: ! does it")
        else:
            self._jump(self.seen.found_at, step, "findings")

    def action_peer(self, step: int) -> None:
        """The next turn that calls the same tool as the selected one."""
        row = self.row
        if row is None or self.turns is None:
            return
        if not row.calls:
            self.say("no tool is called in this turn")
            return
        name = row.calls[0].name
        self._jump(self.turns.tools.get(name, ()), step, f"calls of {name}")

    # search

    def action_search(self) -> None:
        """Type what to look for."""
        self.query_one(FilterBar).open()

    def on_filter_bar_left(self, message: FilterBar.Left) -> None:
        """Enter looks for it, Esc takes it away."""
        message.stop()
        bar = self.query_one(FilterBar)
        bar.settle()
        self.take_keys()
        text = bar.text.strip()
        if not text:
            self.clear_search()
            return
        self.searching = True
        self.signs_changed()
        source, run = self.source, self.run_id
        self.read(lambda: Searched(source.ask(lambda store: search(store, run, text))), "search")

    def clear_search(self) -> None:
        """No search, no hits."""
        self.query_one(FilterBar).clear()
        self.hits = Hits()
        self.signs_changed()

    def on_searched(self, message: Searched) -> None:
        """Mark the hits and go to the first at or below the selected turn."""
        self.searching = False
        self.hits = hits = message.hits
        self.signs_changed()
        if not hits.count:
            self.say(f"{hits.text} is nowhere in this run")
            return
        self.say(
            f"{counted(hits.count, 'match', 'matches')} in {counted(len(hits.numbers), 'turn')}; n and N step through them"
        )
        row = self.row
        if row is not None:
            self.go(beyond(hits.numbers, row.number - 1, 1) or hits.numbers[0])

    def on_failed(self, _message: Failed) -> None:
        """A search that failed is over. (The page says why.)"""
        if self.searching:
            self.searching = False
            self.signs_changed()

    def action_hit(self, step: int) -> None:
        """The next turn with a hit."""
        if self.hits.text:
            self._jump(self.hits.numbers, step, f"turns with {self.hits.text}")
        else:
            self.say("/ searches in this run")

    # other runs

    def action_child(self) -> None:
        """Into the sub-agent that the selected turn started; with several of them, ask which."""
        row = self.row
        runs = list(dict.fromkeys(c.child for c in row.calls if c.child)) if row is not None else []
        if not runs:
            self.say("no sub-agent was started in this turn")
        elif len(runs) == 1:
            self.loop_app.open_run(runs[0])
        else:
            known = {c.run: c for c in self.seen.children.get(row.number, ())} if row is not None else {}
            choices = []
            for key, run in enumerate(runs, 1):
                child = known.get(run)
                name = child.name if child is not None and child.name else run[:8]
                choices.append(
                    Choice(run, name, str(key) if key < 10 else "", counted(child.turns, "turn") if child else "")
                )
            Menu("which sub-agent", choices, verb="go into it").ask(self.app, self.loop_app.open_run)

    def action_parent(self) -> None:
        """To the run that started this one, at the turn that did."""
        parent = self.turns.view.run.parent if self.turns is not None else None
        if parent is None:
            self.say("no other run started this one")
            return
        below = self.app.screen_stack[-2] if len(self.app.screen_stack) > 1 else None
        if isinstance(below, Jumps) and below.run_id == parent.run:
            self.loop_app.back()
        else:
            self.loop_app.open_run(parent.run, parent.turn)

    @property
    def place(self) -> Place:
        """Where one stands."""
        row = self.row
        return Place(self.run_id, None if row is None else row.number)
