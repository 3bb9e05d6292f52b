"""The app's only door to data: short readings of the store, each given back as a frozen snapshot.

Nothing here is called on the UI thread. A source may raise ``LooptapeError``; the app shows it as a line.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..tracer import paths
from ..tracer.errors import LooptapeError, UsageError
from ..tracer.model import Event, Request, Run, Turn
from ..tracer.observers import STATE

if TYPE_CHECKING:
    from ..tracer.store import light


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that could not be done: what happened, and what to do."""

    what: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """Sessions of another tool on this machine, and the command that imports them."""

    what: str
    command: str


@dataclass(frozen=True, slots=True)
class RunsView:
    """All runs, newest first, with what the store has to say."""

    runs: tuple[Run, ...] = ()
    notices: tuple[str, ...] = ()
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class CallMark:
    """A tool call in a list: its name, whether it failed, whether it is still open, its child run."""

    name: str
    bad: bool = False
    open: bool = False
    child: bool = False
    provider: bool = False


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn as a list shows it: small, whatever the turn holds. Times in milliseconds."""

    number: int
    status: str = "ok"
    calls: tuple[CallMark, ...] = ()
    stop_reason: str | None = None
    context: int | None = None
    output: int | None = None
    cost_usd: float | None = None
    generate_ms: float | None = None
    execute_ms: float | None = None
    attempts: int = 1
    user_turn: bool = False
    inherited: bool = False
    flags: tuple[str, ...] = ()
    error: str | None = None

    @property
    def bad(self) -> bool:
        """True when the model call or one of its tools failed."""
        return self.status == "error" or any(c.bad for c in self.calls)


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with the lines of its turn list."""

    run: Run
    turns: tuple[TurnRow, ...] = ()
    events: tuple[Event, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn whole: what came in, what the model answered, what its tools gave back.

    Attributes:
        before: The turn before it, whose results came in; None for the first.
        last: Number of the run's last turn.
        request_trouble: Why there is no request.
    """

    run: Run
    turn: Turn
    request: Request | None = None
    before: Turn | None = None
    last: int = 0
    request_trouble: str | None = None


@dataclass(frozen=True, slots=True)
class WireView:
    """What went over the wire in one turn, as text; chunks are (offset in µs, text)."""

    run: str
    number: int
    request: str | None = None
    response: str | None = None
    chunks: tuple[tuple[int, str], ...] = ()
    trouble: str | None = None


class Source(Protocol):
    """What the app asks of its data."""

    place: str

    def version(self) -> tuple[object, object]:
        """Two cheap tokens, of the journals and of the store; either differs when there may be something new.

        The first is taken before a reading and the second after it: what is written meanwhile shows next
        time, and what the reading itself moved into the store does not count as news.
        """

    def now(self) -> int:
        """Microseconds since the epoch; a picture has a clock that stands."""

    def runs(self) -> RunsView:
        """All runs, newest first."""

    def find(self, reference: str) -> str:
        """The id of the run that a reference means. Raises UsageError when there is none."""

    def run(self, run: str) -> RunView:
        """A run and its turn list."""

    def turn(self, run: str, number: int) -> TurnView:
        """One turn whole."""

    def wire(self, run: str, number: int) -> WireView:
        """What one turn was on the wire."""


def row_of(turn: Turn | light.TurnRow) -> TurnRow:
    """The line of a turn in a list; the store's light rows are enough for it."""
    return TurnRow(
        number=turn.number,
        status=turn.status,
        calls=tuple(
            CallMark(
                name=call.name[:200],
                bad=call.is_error is True or not call.valid,
                open=call.state in ("requested", "running", "no_result", "incomplete"),
                child=call.child_run is not None,
                provider=call.origin == "provider",
            )
            for call in turn.tool_calls
        ),
        stop_reason=turn.stop_reason,
        context=turn.usage.context,
        output=turn.usage.output,
        cost_usd=turn.cost_usd,
        generate_ms=turn.generate_ms,
        execute_ms=turn.execute_ms,
        attempts=turn.attempts if isinstance(turn.attempts, int) else len(turn.attempts),
        user_turn=turn.user_turn,
        inherited=turn.inherited,
        flags=turn.flags,
        error=(turn.error or "")[:500] or None,
    )


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
        self.home = home
        self.place = place or shortened(Path.cwd())
        self._opener = opener
        self._lock = threading.Lock()

    def now(self) -> int:
        """This machine's clock."""
        return time.time_ns() // 1000

    def version(self) -> tuple[object, object]:
        """Names, sizes and times of what comes in (journals, followed session files), and of the store file."""
        from . import sessions

        return (_marks(self.home / "journal"), sessions.standing() if self._follows else ()), _marks(self.home)

    def runs(self) -> RunsView:
        """All runs of the store, newest first; on an empty store also what lies around."""
        from ..tracer.store import Filter

        with self._open() as store:
            said = self._in_step(store)
            runs = tuple(store.runs(Filter(limit=0)))
            notices = (*store.notices, *said)
        return RunsView(runs, notices, () if runs else found_sessions())

    def find(self, reference: str) -> str:
        """The id of the newest run that is meant; an exact id or a unique prefix comes first."""
        with self._open() as store:
            found = store.find(reference)
        if not found:
            raise UsageError("no-run", f"There is no run {reference!r}", "looptape runs lists them")
        return str(found[0].id)

    def run(self, run: str) -> RunView:
        """A run and its turn list."""
        with self._open() as store:
            said = self._in_step(store)
            found = store.run(run)
            rows = tuple(row_of(turn) for turn in store.turn_rows(run))
            return RunView(found, rows, tuple(e for e in store.events(run) if e.kind != STATE), (*store.notices, *said))

    def turn(self, run: str, number: int) -> TurnView:
        """One turn with the request that the model saw."""
        with self._open(drain=False) as store:
            found = store.run(run)
            turns = {turn.number: turn for turn in store.turns(run, max(1, number - 1), number)}
            if number not in turns:
                raise UsageError("no-turn", f"There is no turn {number} in run {run}")
            try:
                request, trouble = store.request(run, number), None
            except LooptapeError as error:
                request, trouble = None, str(error)
            return TurnView(found, turns[number], request, turns.get(number - 1), found.turns, trouble)

    def wire(self, run: str, number: int) -> WireView:
        """The request and response texts and the chunks of one turn."""
        with self._open(drain=False) as store:
            wire = store.wire(run, number)
        return WireView(run, number, wire.request_text, wire.response_text, tuple(wire.chunks))

    @property
    def _follows(self) -> bool:
        """True for the store into which remembered folders go."""
        return self._opener is None and self.home == paths.home()

    def _in_step(self, store: Any) -> list[str]:
        """Takes in what session files gained; what there is to say of it."""
        from . import sessions

        said: list[str] = []
        if self._follows and sessions.remembered():
            sessions.in_step(store, said.append)
        return [text for text in said if not text.startswith("importing")]

    def _open(self, *, drain: bool = True) -> AbstractContextManager[Any]:
        if self._opener is not None:
            return _Locked(self._lock, self._opener())
        from ..tracer.store import open_store

        return _Locked(self._lock, open_store(self.home, drain=drain))


class _Locked(AbstractContextManager[Any]):
    """One reading at a time: DuckDB refuses a second connection with other settings in one process."""

    def __init__(self, lock: threading.Lock, inner: AbstractContextManager[Any]) -> None:
        self._lock = lock
        self._inner = inner

    def __enter__(self) -> Any:
        self._lock.acquire()
        try:
            return self._inner.__enter__()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *details: Any) -> bool | None:
        try:
            return self._inner.__exit__(*details)
        finally:
            self._lock.release()


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
    from .format import counted, size

    return tuple(
        Found(f"{counted(len(f.files), f'{f.program} session')}, {size(f.octets)}", f"looptape import {f.option}")
        for f in sessions.found()
    )


def shortened(path: Path, home: Path | None = None) -> str:
    """A path with ``~`` for the home folder."""
    try:
        inside = path.relative_to(home or Path.home())
    except (ValueError, RuntimeError):
        return str(path)
    return "~" if str(inside) == "." else f"~/{inside}"
