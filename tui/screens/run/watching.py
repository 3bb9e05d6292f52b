"""How the turns of a run come to the screen and stay up to date, and what replay says of them; all read in threads."""

from __future__ import annotations

import time

from textual.message import Message

from ....tracer.errors import LooptapeError
from ...data import run_reading
from ...data.source import Source
from ...data.views import RunView
from ...messages import Failed, Unchanged
from ..patience import Patience
from . import answers as run_answers
from .answers import SeenTold, Why, WhyTold
from .turns import Turns, TurnsRead, turns_of
from .views import Views

EVERY = 1.0
"""Seconds between two looks at a run for what is new in it."""
AGAIN = 10.0
"""Seconds after which a question is asked again that could not be answered."""


class Watching(Views):
    """A page that reads the turns of one run, and again what is new in it. Subclasses draw them.

    Args:
        run: The id of the run.
        turn: The turn to stand on at first.
    """

    def __init__(self, run: str, turn: int | None = None) -> None:
        super().__init__(run)
        self.first = turn
        self.why = Why()
        self.following = False
        self.read_to = 0
        self._version: object = None
        self._asked: object = None
        self._patience = Patience()
        self._rest_until = self._ask_after = self._again_at = 0.0

    def watch_run(self) -> None:
        """Begin to read, and keep looking while the run goes on."""
        self._reload()
        self.set_interval(EVERY, self._tick)

    def draw_signs(self) -> None:
        """Take what is known of the turns into their list."""

    def forget(self, old: Turns | None, new: Turns) -> None:
        """Other turns take the place of those that were there."""

    @property
    def at_end(self) -> bool:
        """True on the last turn."""
        return self.listing.cursor >= len(self.listing.rows) - 1

    def _tick(self) -> None:
        if not self.is_current:
            return
        if time.monotonic() >= self._rest_until:
            self._reload()
        if self.turns is not None and self.turns.view.whole:
            self._ask()

    def _reload(self) -> None:
        turns, version, source, run, first = self.turns, self._version, self.source, self.run_id, self.first or 1

        def job() -> Message:
            began = time.monotonic()
            if turns is None:
                return TurnsRead(turns_of(_begin(source, run, first)), None)
            before = source.version()
            if version is not None and before == version:
                return Unchanged()
            view = source.run(run, turns.view)
            made = turns if view == turns.view else turns_of(view)
            self._rest_until = time.monotonic() + 4 * (time.monotonic() - began)
            return TurnsRead(made, (before[0], source.version()[1]))

        self.poll(job, "run")

    def on_turns_read(self, message: TurnsRead) -> None:
        """Show the turns; those that may have changed are read again."""
        before, turns = self.turns, message.turns
        first = before is None
        self._patience.went_well()
        self._version = message.version
        if before is turns:
            self._ask()
            return
        self.forget(before, turns)
        select = self._selected_after(before, turns)
        self.turns = turns
        self.notices(turns.view.notices)
        self.draw_signs()
        self.listing.show(turns.rows, select=select)
        if turns.view.whole and (before is None or not before.view.whole or self.at_end):
            self.read_to = turns.last
        self.head_changed()
        if self.aside is not None:
            self.aside.show(turns.view, self.place.turn)
        if first:
            self._reload()  # what is new, and of a long run the other turns
        elif turns.view.whole:
            self._ask()

    def on_failed(self, _message: Failed) -> None:
        """What cannot be read (a run that left the store) is asked for ever less often."""
        self._rest_until = self._patience.failed()

    def on_unmount(self) -> None:
        """The turns of a long run may be forgotten."""
        if self.turns is not None:
            run_reading.let_go(self.turns.view)

    def _selected_after(self, before: Turns | None, turns: Turns) -> str | None:
        """Where to stand when others take the place of the turns; None stays."""
        if before is None:
            return None if self.first is None else str(self.first)
        if not turns.rows:
            return None
        at, rows = self.listing.cursor, before.rows
        if not before.view.whole and len(rows) > 1 and at in (0, len(rows) - 1):
            return str(turns.numbers[0 if at == 0 else -1])  # first and last were meant, and are known now
        return str(turns.last) if self.following else None

    def _ask(self) -> None:
        """What replay says of the run as it stands; a run that goes on is not asked about all the time."""
        run = self.turns.view.run if self.turns is not None else None
        if run is None or self._asked == run_answers.state(run) or "seen" in self._busy or "why" in self._busy:
            return
        if time.monotonic() < (self._ask_after if run.status == "running" else self._again_at):
            return
        self._asked, source = run_answers.state(run), self.source
        self.poll(lambda: run_answers.why(source, run), "why")
        self.poll(lambda: run_answers.seen(source, run), "seen")

    def on_why_told(self, message: WhyTold) -> None:
        """The two lines at the head."""
        self.why = message.why
        self._answered(message.seconds, message.why.trouble)
        self.head_changed()

    def _answered(self, seconds: float, trouble: str) -> None:
        """When to ask again: not all the time, and what could not be answered once more."""
        now = time.monotonic()
        self._ask_after = now + max(5.0, 10 * seconds)
        if trouble:
            self._asked, self._again_at = None, now + AGAIN

    def on_seen_told(self, message: SeenTold) -> None:
        """Brackets, signs, and the notes above the turn."""
        self.seen = message.seen
        self._answered(message.seconds, message.seen.trouble)
        self.signs_changed()


def _begin(source: Source, run: str, turn: int) -> RunView:
    """The first reading: at once, or with all that waits to come in where the run is not there yet."""
    try:
        return source.run(run, around=turn)
    except LooptapeError:
        return source.run(run)
