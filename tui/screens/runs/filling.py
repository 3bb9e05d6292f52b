"""What the list of runs fills in while one looks: lines that come into sight, and facts that nobody looked for yet."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from textual.message import Message
from textual.worker import get_current_worker

from ....tracer.errors import LooptapeError
from ...data import runs_reading
from ...data.views import RunsWanted
from ...messages import Answered, Failed
from ...widgets.virtual_list import VirtualList
from ..page import Page
from .lines import Row, RunLines

if TYPE_CHECKING:
    from ....replay.listing import Line
    from ....tracer.store import Store

T = TypeVar("T")
RUNNING = 15.0
"""Seconds after which a run that goes on is looked at again."""
HELD = 60.0
"""Seconds to wait where the store could not be written."""
OF_ALL = ("cycles", "wasted", "findings", "context")
"""Orders that need facts of all runs."""


class Filling(Page):
    """Lines and facts for the list of runs, read in threads, a moment at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.filling = ""
        self._looked: dict[str, tuple[object, float]] = {}
        self._all_of: object = None
        self._wait_until = 0.0
        self._fetching = False
        self._unfinished = False

    @property
    @abstractmethod
    def listing(self) -> VirtualList[Row]:
        """The list."""

    @property
    @abstractmethod
    def rows(self) -> RunLines | None:
        """What it shows."""

    @property
    @abstractmethod
    def wanted(self) -> RunsWanted:
        """What it is to show."""

    @abstractmethod
    def reload(self, *, force: bool = False) -> None:
        """Read the list anew."""

    @abstractmethod
    def head_changed(self) -> None:
        """Tell in the head what is another."""

    @property
    def waiting(self) -> bool:
        """True while a reading is on its way, and between two of the moments that looking for facts takes."""
        return super().waiting or self._unfinished

    def ask(self, question: Callable[[Store], T], then: Callable[[T], None], group: str) -> None:
        """The answer to a question about the store, given to ``then`` on the screen."""
        source = self.source

        def job() -> Message:
            answer = source.ask(question)
            return Answered(lambda: then(answer))

        self.read(job, group)

    # lines

    def seen(self, row: Row) -> None:
        """A row is painted; if it is not read, it will be soon."""
        rows = self.rows
        if rows is not None and not self._fetching and not rows.is_read(row.key):
            self._fetching = True
            self.call_later(self._fetch)

    def _fetch(self) -> None:
        rows, top, visible = self.rows, self.listing.top, self.listing.in_sight
        keys = rows.unread(top - runs_reading.AROUND, top + visible + runs_reading.AROUND) if rows is not None else []
        if rows is None or not keys:
            self._fetching = False
            return

        def filled(lines: dict[str, Line]) -> None:
            self._fetching = False
            rows.fill(lines, keys)
            if self.rows is rows:
                self.listing.repaint()
                self.fill_on()

        self.ask(lambda store: runs_reading.around(store, keys), filled, "lines")

    def on_failed(self, _message: Failed) -> None:
        """No lines are on their way any more: what is painted next asks for them again."""
        self._fetching = False

    # facts

    def fill_on(self) -> None:
        """Look at what is in sight, or at all runs where the filter or the order needs it; nothing while it rests."""
        if not self.is_current or time.monotonic() < self._wait_until or "facts" in self._busy:
            return
        if keys := self._unlooked():
            self._look(lambda store: runs_reading.look(store, keys), lambda left: self._done(keys, left))
            return
        wanted = self.wanted
        if ("cycle:" in wanted.filter or wanted.sort in OF_ALL) and self._all_of != self._standing():
            self._look(lambda store: runs_reading.look_all(store, wanted), self._done_all)
            return
        self._unfinished = False

    def _unlooked(self) -> list[str]:
        """Runs on the screen that were not looked at as they stand now."""
        rows, top = self.rows, self.listing.top
        if rows is None:
            return []
        now, keys = time.monotonic(), []
        for line in rows.read(top, top + self.listing.in_sight):
            run = line.run
            known, at = self._looked.get(run.id, (None, -RUNNING))
            if known != (run.turns, run.status, run.ended_at) and not (run.status == "running" and now - at < RUNNING):
                keys.append(run.id)
        return keys

    def _look(self, work: Callable[[Store], tuple[int, int]], then: Callable[[tuple[int, int]], None]) -> None:
        source = self.source

        def job() -> Message:
            began = time.monotonic()
            try:
                found = source.change(work)
            except LooptapeError:
                return Answered(lambda: self._rest(HELD))  # facts are no news: nothing is said
            if get_current_worker().is_cancelled:
                return Answered(lambda: None)
            if found[1]:  # there is more: half of the time belongs to whoever uses the keys
                self._wait_until = 2 * time.monotonic() - began
            return Answered(lambda: self._looked_at(found, then))

        self.poll(job, "facts")

    def _rest(self, seconds: float) -> None:
        self._unfinished = False
        self._wait_until = time.monotonic() + seconds

    def _looked_at(self, found: tuple[int, int], then: Callable[[tuple[int, int]], None]) -> None:
        self._unfinished = bool(found[1])
        then(found)

    def _done(self, keys: list[str], found: tuple[int, int]) -> None:
        done, left = found
        if not left:
            known = {line.run.id: line.run for line in (self.rows.lines_of(keys) if self.rows is not None else ())}
            for key in keys:
                if (run := known.get(key)) is not None:
                    self._looked[key] = ((run.turns, run.status, run.ended_at), time.monotonic())
        if done:
            self.reload(force=True)
        else:
            self.fill_on()

    def _done_all(self, found: tuple[int, int]) -> None:
        done, left = found
        what = "findings" if self.wanted.sort in ("findings", "context") else "cycles"
        self.filling = f"looking for {what}: {left:,} runs to go" if left else ""
        self.head_changed()
        if not left:
            self._all_of = self._standing()
        if done:
            self.reload(force=True)
        else:
            self.fill_on()

    def _standing(self) -> object:
        """What the facts of all runs were looked for in."""
        rows, wanted = self.rows, self.wanted
        every = rows.found.every if rows is not None else None
        return (wanted.filter, wanted.sort, every and (every.runs, every.turns, every.newest))
