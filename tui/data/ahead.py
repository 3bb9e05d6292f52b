"""The first look at the list of runs, begun before the screen's library is loaded: while one waits the other works."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from ..memory import Memory
from .views import RunsView, RunsWanted


class Ahead:
    """A reading in a thread of its own, given out once."""

    def __init__(self, wanted: RunsWanted, read: Callable[[RunsWanted], RunsView]) -> None:
        self._wanted = wanted
        self._read = read
        self._view: RunsView | None = None
        # no daemon: an interpreter that ends must find no thread inside DuckDB
        self._thread = threading.Thread(target=self._work, name="first-look")
        self._thread.start()

    def take(self, wanted: RunsWanted) -> RunsView | None:
        """What was read, if it is this that is wanted and it went well."""
        self._thread.join()
        view, self._view = self._view, None
        return view if wanted == self._wanted else None

    def _work(self) -> None:
        try:
            self._view = self._read(self._wanted)
        except Exception:  # whoever asks reads again, and says what is wrong
            self._view = None


def first_look(home: Path, read: Callable[[RunsWanted], RunsView]) -> Ahead:
    """Begin to read the list as it was looked at the last time."""
    from . import runs_reading

    return Ahead(runs_reading.remembered(Memory(home), first=runs_reading.FIRST), read)
