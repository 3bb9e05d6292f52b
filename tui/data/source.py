"""The app's only door to data: short readings of the store, each given back as a frozen snapshot.

Nothing here is called on the UI thread. A source may raise ``LooptapeError``; the app shows it as a line.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...tracer import paths
from ...tracer.errors import LooptapeError, UsageError
from .views import Found, RunsView, RunsWanted, RunView, TurnView, WireView
from .warm import Warm

if TYPE_CHECKING:
    from ...tracer.store import Store
    from .ahead import Ahead
    from .sessions import Folder

T = TypeVar("T")


class Source(Protocol):
    """What the app asks of its data."""

    place: str

    @property
    def home(self) -> Path | None:
        """The folder of the store, where the screen keeps what it remembers; None: nowhere."""

    def version(self) -> tuple[object, object]:
        """Two cheap tokens, of the journals and of the store; either differs when there may be something new.

        The first is taken before a reading and the second after it: what is written meanwhile shows next
        time, and what the reading itself moved into the store does not count as news.
        """

    def now(self) -> int:
        """Microseconds since the epoch; a picture has a clock that stands."""

    def runs(self, wanted: RunsWanted) -> RunsView:
        """The list of runs, with what came in until now. Raises UsageError for a wrong filter."""

    def find(self, reference: str) -> str:
        """The id of the run that a reference means. Raises UsageError when there is none."""

    def run(self, run: str, known: RunView | None = None, around: int | None = None) -> RunView:
        """A run and its turn list.

        Args:
            known: What was read before: only what is new since then is read.
            around: At once, without looking for news; of a long run only the turns around this one.
        """

    def turn(self, run: str, number: int, *, fresh: bool = False) -> TurnView:
        """One turn whole; ``fresh``: of its request only the messages that were new in it."""

    def wire(self, run: str, number: int) -> WireView:
        """What one turn was on the wire."""

    def ask(self, question: Callable[[Store], T]) -> T:
        """What a question about the store answers, the store open while it lasts (in a thread, like all readings).

        The answer must not hold on to the store.
        """

    def change(self, work: Callable[[Store], T]) -> T:
        """The same for work that keeps something in the store: nobody reads here meanwhile, so let it be short."""


class StoreSource:
    """The store under a home folder. Every reading opens it, takes a snapshot and closes it.

    Args:
        home: The folder of the store.
        place: What the first line calls it; the working directory by default.
        opener: For tapes given as files: a function that gives a store instead of opening ``home``.
    """

    def __init__(
        self,
        home: Path,
        *,
        place: str = "",
        opener: Callable[[], AbstractContextManager[Any]] | None = None,
    ) -> None:
        self._home = home
        self.place = place or shortened(Path.cwd())
        self._opener = opener
        self._gate = Gate()
        self._warm = Warm(home)
        self._ahead: Ahead | None = None

    @property
    def home(self) -> Path | None:
        """The folder of the store."""
        return self._home

    def now(self) -> int:
        """This machine's clock."""
        return time.time_ns() // 1000

    def version(self) -> tuple[object, object]:
        """Names, sizes and times of what comes in (journals, followed session files), and of the store file."""
        from . import sessions

        return (_marks(self._home / "journal"), sessions.standing() if self._follows else ()), _marks(self._home)

    def look_ahead(self) -> None:
        """Begin now, in a thread, to read what the list will ask for first."""
        from .ahead import first_look

        self._ahead = first_look(self._home, self._runs)

    def runs(self, wanted: RunsWanted) -> RunsView:
        """The list of runs; on an empty store also what lies around."""
        ahead, self._ahead = self._ahead, None
        return (ahead.take(wanted) if ahead is not None else None) or self._runs(wanted)

    def _runs(self, wanted: RunsWanted) -> RunsView:
        from . import runs_reading

        with self._open() as store:
            said = self._in_step(store)
            view = runs_reading.read(store, wanted)
            notices = (*store.notices, *said)
        return replace(view, notices=notices, found=() if view.listing.every.runs else found_sessions())

    def find(self, reference: str) -> str:
        """The id of the newest run that is meant; an exact id or a unique prefix comes first."""
        with self._open() as store:
            found = store.find(reference)
        if not found:
            raise UsageError("no-run", f"There is no run {reference!r}", "looptape runs lists them")
        return str(found[0].id)

    def run(self, run: str, known: RunView | None = None, around: int | None = None) -> RunView:
        """A run and its turn list."""
        from . import run_reading

        with self._open(drain=around is None) as store:
            said = self._in_step(store) if around is None else []
            view = run_reading.read(store, run, known, around)
            return replace(view, notices=(*store.notices, *said))

    def turn(self, run: str, number: int, *, fresh: bool = False) -> TurnView:
        """One turn with the request that the model saw."""
        with self._open(drain=False) as store:
            found = store.run(run)
            turns = {turn.number: turn for turn in store.turns(run, max(1, number - 1), number)}
            if number not in turns:
                raise UsageError("no-turn", f"There is no turn {number} in run {run}")
            try:
                request, trouble = store.request(run, number, fresh=fresh), None
            except LooptapeError as error:
                request, trouble = None, str(error)
            return TurnView(found, turns[number], request, turns.get(number - 1), found.turns, trouble, fresh)

    def ask(self, question: Callable[[Store], T]) -> T:
        """The answer to a question; the journals are not looked at for it."""
        with self._open(drain=False) as store:
            return question(store)

    def change(self, work: Callable[[Store], T]) -> T:
        """The same for work that keeps something in the store."""
        if self._opener is not None:
            return self.ask(work)
        from ...tracer.store import open_store

        with self._gate.alone():
            self._warm.let_go()
            with open_store(self._home, drain=False) as store:
                return work(store)

    def wire(self, run: str, number: int) -> WireView:
        """The request and response texts and the chunks of one turn."""
        with self._open(drain=False) as store:
            wire = store.wire(run, number)
        return WireView(run, number, wire.request_text, wire.response_text, tuple(wire.chunks))

    @property
    def _follows(self) -> bool:
        """True for the store into which remembered folders go."""
        return self._opener is None and self._home == paths.home()

    def _in_step(self, store: Any) -> list[str]:
        """Takes in what session files gained; what there is to say of it."""
        from . import sessions

        said: list[str] = []
        if self._follows and sessions.remembered():
            sessions.in_step(store, said.append)
        return [text for text in said if not text.startswith("importing")]

    @contextmanager
    def _open(self, *, drain: bool = True) -> Iterator[Any]:
        if self._opener is not None:
            with self._gate.alone(), self._opener() as store:
                yield store
            return
        from ...tracer.store import open_store

        with self._gate.alone() if drain else self._gate.shared():
            if drain:
                self._warm.let_go()
            else:
                self._warm.keep()
            with open_store(self._home, drain=drain) as store:
                yield store


class Gate:
    """Many may read at a time; who may write is alone, since DuckDB has no second connection with other settings."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Inside with other readers."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside with nobody else."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone and not self._readers)
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()


def _marks(folder: Path) -> tuple[tuple[str, int, int], ...]:
    marks = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file() and not entry.name.endswith((".lock", ".wal")):
                    stat = entry.stat()
                    marks.append((entry.name, stat.st_size, stat.st_mtime_ns))
    except OSError:
        return ()
    return tuple(sorted(marks))


def found_sessions() -> tuple[Found, ...]:
    """What other tools left on this machine, counted by file names only (nothing is read)."""
    from . import sessions

    return tuple(map(offered, sessions.found()))


def offered(folder: Folder) -> Found:
    """A folder of sessions in words, and the command that imports it."""
    from ..format import counted, size

    what = f"{counted(len(folder.files), f'{folder.program} session')}, {size(folder.octets)}"
    return Found(what, f"looptape import {folder.option}")


def shortened(path: Path, home: Path | None = None) -> str:
    """A path with ``~`` for the home folder."""
    try:
        inside = path.relative_to(home or Path.home())
    except (ValueError, RuntimeError):
        return str(path)
    return "~" if str(inside) == "." else f"~/{inside}"
