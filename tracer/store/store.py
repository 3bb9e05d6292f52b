"""The store: one DuckDB file that readers drain, ask and close again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from ..errors import LooptapeError, UsageError
from ..model import Event, Request, Run, Turn
from ..tape import VERSION, Record
from . import attached, connect, copying, light, query, read, requests, scan, schema, tables, times, windows
from .contradictions import Contradictions
from .filters import Filter
from .gone import mark_interrupted
from .ingest import IngestReport, Place, ingest
from .lock import DrainLock
from .rows import Connection, select
from .text import encode

T = TypeVar("T")
SHARE_AFTER = 1.0  # seconds after which a writer lets others have a turn


class Store:
    """Everything that was recorded. From `open_store` or `memory_store`; use it briefly, then close it.

    Attributes:
        notices: What the user should know of this opening ("as of 14:02, 3 journals waiting: ...").
    """

    def __init__(self, home: Path | None, file: Path | None, deadline: float) -> None:
        self.notices: list[str] = []
        self._home = home
        self._file = file
        self._deadline = deadline
        self._con: Connection | None = None
        self._lock: DrainLock | None = None
        self._since = 0.0
        self._wrote = False
        self._attached: attached.Attached | None = None
        self._later = ExitStack()
        if file is None:
            self._con = connect.memory()
            schema.migrate(self._con)

    # -- asking ----------------------------------------------------------------------------------------------

    def runs(self, given: Filter | None = None) -> list[Run]:
        """Runs that pass the filter, newest first unless it says otherwise."""
        return read.runs(self._reading(), given or Filter())

    def ids(self, given: Filter | None = None) -> list[str]:
        """The ids of the runs that pass the filter, in its order: for those that need no more of them."""
        return read.ids(self._reading(), given or Filter())

    def count(self, given: Filter | None = None) -> int:
        """How many runs pass the filter, its limit left aside."""
        return read.count(self._reading(), given or Filter())

    def run(self, run: str) -> Run:
        """The run with exactly this id.

        Raises:
            UsageError: There is none (``no-such-run``).
        """
        found = read.runs(self._reading(), Filter(ids=(run,), limit=1))
        if not found:
            raise UsageError("no-such-run", f"there is no run {run}", "`looptape runs` lists them")
        return found[0]

    def turns(self, run: str, first: int | None = None, last: int | None = None) -> list[Turn]:
        """Turns of a run in order, `first` and `last` included."""
        return read.turns(self._reading(), run, first, last)

    def turn_rows(self, run: str, first: int | None = None, last: int | None = None) -> list[light.TurnRow]:
        """Turns of a run as a list shows them, without any text: fast for runs of tens of thousands."""
        return light.turn_rows(self._reading(), run, first, last)

    def turn_batches(
        self, run: str, first: int | None = None, last: int | None = None
    ) -> Iterator[list[light.TurnRow]]:
        """The same a thousand at a time; the store must stay open meanwhile."""
        return light.batches(self._reading(), run, first, last)

    def stand(self, run: str, last: int) -> object:
        """Equal as long as the rows of a run up to turn ``last`` say the same: whoever has them need not read them again."""
        return light.stand(self._reading(), run, last)

    def turn_times(self, run: str, first: int | None = None, last: int | None = None) -> list[times.TurnTimes]:
        """When everything in these turns happened, without any text."""
        return times.turn_times(self._reading(), run, first, last)

    def events(self, run: str) -> list[Event]:
        """What happened in a run that is no turn."""
        return read.events(self._reading(), run)

    def turns_of(self, runs: Sequence[str]) -> dict[str, list[Turn]]:
        """The turns of several runs by their ids: much faster than one by one."""
        return read.turns_of(self._reading(), runs)

    def events_of(self, runs: Sequence[str]) -> dict[str, list[Event]]:
        """The events of several runs by their ids."""
        return read.events_of(self._reading(), runs)

    def find(self, text: str) -> list[Run]:
        """Runs that a reference may mean: the one with that id or unique prefix, else all of that name (newest
        first), else all whose id begins so."""
        con = self._reading()
        coded = encode(text)
        rows = select(
            con,
            "select id, name from base.runs where (? <> '' and starts_with(id, ?)) or name = ? "
            "order by started_at desc nulls last, id",
            [coded, coded, coded],
        )
        begin = [r["id"] for r in rows if r["id"].startswith(text) and text]
        named = [r["id"] for r in rows if r["name"] == text]
        ids = [text] if text in begin else begin if len(begin) == 1 else named or begin
        found = {r.id: r for r in read.runs(con, Filter(ids=tuple(ids), limit=0))} if ids else {}
        return [found[i] for i in ids]

    def request(self, run: str, turn: int, *, fresh: bool = False) -> Request:
        """What the model really saw in a turn, also where the server held the earlier messages; ``fresh``: only the
        messages that were new in it (then ``kept`` is 0), which is quick also late in a long run."""
        return requests.request(self._reading(), run, turn, fresh=fresh)

    def steps(self, run: str, last: int | None = None) -> list[windows.Step]:
        """How each turn's window comes from the one before, in order, up to turn ``last``."""
        return list(windows.steps(self._reading(), run, last))

    def said(self, run: str) -> list[Turn]:
        """The turns of a run as far as a window needs them: models, usage, flags, words and calls; no results."""
        return windows.said(self._reading(), run)

    def wire(self, run: str, turn: int) -> requests.Wire:
        """The texts that were on the wire in a turn."""
        return requests.wire(self._reading(), run, turn)

    def sql(self, text: str, limit: int | None = None) -> tuple[list[str], list[str], list[tuple[Any, ...]]]:
        """Column names, types and rows of a SELECT over the documented views; nothing else is in reach.

        Raises:
            UsageError: The SQL is wrong or asks for more than that; the message names the place.
        """
        if self._lock is not None:
            self._release()  # never with a connection that could write
        return query.run(self._reading(), text, limit, self._attached)

    def attach(self, path: Path) -> attached.Attached:
        """Lets `sql` read one file besides the views, until the store is written to or closed; nothing else opens.

        Raises:
            LooptapeError: There is no such file, or it is none that can be read (exit 2).
        """
        if self._home is None or self._file is None:
            raise LooptapeError(
                "bad-attachment", "a store in memory takes no file", "Import the tape first", exit_code=2
            )
        self._release()
        con = open_reading(self._file, self._home, self._deadline, files=True)
        try:
            found = attached.attach(con, path, query.VIEWS)
        except BaseException:
            con.close()
            raise
        self._con, self._attached = con, found
        return found

    def scan(self) -> scan.Scan:
        """A way to look for a text in what runs hold; good until the store is written to or closed."""
        return scan.Scan(self._reading())

    def rows(self, text: str, values: Iterable[Any] = ()) -> list[dict[str, Any]]:
        """Rows of one of our own queries over `base` tables, as dicts (for export and analytics)."""
        return select(self._reading(), text, list(values))

    def table(self, name: str, given: Filter, turns: tuple[int, int] | None = None) -> tables.Batches:
        """Column names, types and rows (in batches) of a documented view, of the runs that pass the filter."""
        return tables.batches(self._reading(), *tables.statement(name, given, turns))

    def frame(self, name: str, given: Filter, method: str) -> Any:
        """The same as a frame that DuckDB makes: ``pl``, ``df`` or ``to_arrow_table``, its library installed."""
        return tables.frame(self._reading(), *tables.statement(name, given), method)

    def copy_to(self, path: Path) -> None:
        """A copy of all that is stored as a DuckDB file of its own. Nobody can write meanwhile.

        Raises:
            LooptapeError: The file is there already, or cannot be written (exit 2).
        """
        copying.copy(self._reading(), self._file, path, self._later)

    # -- writing ---------------------------------------------------------------------------------------------

    def ingest(
        self,
        records: Iterable[Record],
        *,
        source: str | None = None,
        accept: Callable[[IngestReport], None] | None = None,
    ) -> IngestReport:
        """Takes records in, in one transaction; the same records again change nothing.

        A turn that is here and complete is not changed by records that say something else (``differs``).

        Args:
            records: Tape records, in any order as long as a blob precedes its first reference.
            source: Where runs come from that do not say it themselves.
            accept: Sees the report before anything is committed; what it raises undoes all.
        """

        def work(con: Connection) -> IngestReport:
            report = _ingest(con, records, source)
            if accept is not None:
                accept(report)
            return report

        return self.write(work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Does work inside one writing transaction.

        Raises:
            LooptapeError: ``store-held`` when another process keeps the store open too long.
        """
        import duckdb

        con = self._writing()
        con.begin()
        try:
            result = work(con)
            con.commit()
        except BaseException as error:
            _roll_back(con)
            if isinstance(error, duckdb.Error) and self._home is not None:
                raise write_trouble(error, self._home) from None
            raise
        self._wrote = True
        if self._file is not None:
            connect.private(self._file)
        if self._lock is not None and time.monotonic() - self._since > SHARE_AFTER:
            self._release()
        return result

    def put_together(self) -> list[str]:
        """Makes runs of the OpenTelemetry spans that came in; gives lines for people."""
        from .reassemble import reassemble

        con = self._writing()
        self._wrote = True
        return reassemble(con)

    def checkpoint(self) -> None:
        """Brings everything into the store file and lets drained journals go."""
        from .drain import checkpoint

        if self._home is not None:
            checkpoint(self._writing(), self._home)

    def close(self) -> None:
        """Gives the file free. What this store wrote is checkpointed."""
        if self._home is None:
            if self._con is not None:
                self._con.close()
            self._con = None
            return
        try:
            if self._wrote:
                self.checkpoint()
        except LooptapeError:
            pass  # somebody else has the store now; all is committed, the next command does the checkpoint
        finally:
            self._release()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def adopt(self, con: Connection) -> None:
        """Takes over a reading connection that is open already."""
        self._con = con

    def _reading(self) -> Connection:
        if self._con is None:
            if self._home is None or self._file is None:
                raise LooptapeError("store-closed", "the store is closed")
            self._con = open_reading(self._file, self._home, self._deadline)
        return self._con

    def _writing(self) -> Connection:
        if self._home is None or self._file is None or self._lock is not None:
            return self._reading()
        self._release()
        self._lock = DrainLock(self._home, self._deadline)
        try:
            self._con = open_writing(self._file, self._home, self._deadline, self.notices)
        except BaseException:
            self._release()
            raise
        self._since = time.monotonic()
        return self._con

    def _release(self) -> None:
        con, self._con = self._con, None
        self._attached = None
        lock, self._lock = self._lock, None
        try:
            if con is not None:
                con.close()
        finally:
            self._later.close()
            if lock is not None:
                lock.release()


def open_reading(file: Path, home: Path, deadline: float, *, files: bool = False) -> Connection:
    """A read-only connection to a store whose schema we can read. Raises LooptapeError."""
    try:
        con = connect.reading(file, home, deadline, files=files)
    except connect.Held as held:
        raise store_held(held) from None
    try:
        schema.check(con, write=False)
    except BaseException:
        con.close()
        raise
    return con


def open_writing(file: Path, home: Path, deadline: float, notices: list[str]) -> Connection:
    """A writing connection to a store of our schema; the caller holds drain.lock. Raises LooptapeError."""
    try:
        con = connect.writing(file, home, deadline, notices)
    except connect.Held as held:
        raise store_held(held) from None
    try:
        schema.migrate(con)
    except BaseException:
        con.close()
        raise
    return con


def store_held(held: connect.Held) -> LooptapeError:
    """The error that names who holds the store."""
    who = held.who if held.pid is None else f"{held.who} (PID {held.pid})"
    return LooptapeError(
        "store-held",
        f"the store is held open by {who}",
        "Close it there and try again; recording goes on and nothing is lost",
    )


def refuse_newer(record: Record) -> None:
    """Raises LooptapeError ``tape-newer`` for the header of a format that we do not know."""
    version = record.get("version")
    if isinstance(version, int) and version > VERSION:
        raise LooptapeError(
            "tape-newer", f"tape format {version} is newer than this looptape reads ({VERSION})", "Upgrade looptape"
        )


def write_trouble(error: Exception, home: Path) -> LooptapeError:
    """The error of a write that DuckDB could not do; what was committed before stays."""
    first = str(error).splitlines()[0][:200]
    if "No space left" in first or "could not write" in first.lower():
        return LooptapeError("disk-full", f"no space left in {home}", "Make room and run it again; nothing is lost")
    return LooptapeError(
        "store-unwritable", f"the store in {home} could not be written ({first})", "Try again; nothing is lost"
    )


def _ingest(con: Connection, records: Iterable[Record], source: str | None) -> IngestReport:
    writers: dict[str, None] = {}

    def located() -> Iterable[tuple[Place, Record]]:
        for position, record in enumerate(records, 1):
            if record.get("kind") == "header":
                refuse_newer(record)
                if isinstance(record.get("journal"), str):
                    writers[record["journal"]] = None
            yield Place(position, source or ""), record

    report = ingest(con, located(), source=source, kept=Contradictions())
    if writers:  # a journal that comes as a file has no writer any more
        mark_interrupted(con, list(writers), report.runs)
    return report


def _roll_back(con: Connection) -> None:
    try:
        con.rollback()
    except Exception:  # the transaction is gone already; the first error is the one to tell
        pass
