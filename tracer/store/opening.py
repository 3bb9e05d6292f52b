"""The ways to open a store: drained first, read-only where somebody else holds it, in memory; and `sync`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import clock, paths
from ..errors import LooptapeError
from . import connect, otlp, schema
from .drain import SyncReport
from .drain import checkpoint as checkpoint_store
from .drain import drain as drain_journals
from .journals import journals, pending
from .lock import DrainLock
from .store import Store, open_reading, open_writing, store_held, write_trouble

CHECKPOINT_BYTES = 16 << 20


def memory_store() -> Store:
    """An empty store in memory, for tape files that are given as references."""
    return Store(None, None, 0)


@contextmanager
def open_store(
    home: Path | None = None, *, drain: bool = True, deadline: float = 2.0, checkpoint: bool = True
) -> Iterator[Store]:
    """A store with everything that was recorded until now. Keep it open only briefly.

    Args:
        home: The store directory; by default `paths.home()`.
        drain: Move what the journals hold into the store first.
        deadline: Seconds to wait for another process that holds the store.
        checkpoint: Checkpoint after draining (a screen that drains every second leaves that to DuckDB).

    Raises:
        LooptapeError: ``store-held`` (another process writes), ``store-newer``, ``store-damaged``, ``home-unusable``.
    """
    home = home or paths.home()
    store = Store(home, paths.store_file(home), deadline)
    report = SyncReport()
    if drain or not paths.store_file(home).exists():
        try:
            _bring_up_to_date(home, deadline, report, checkpoint=checkpoint, store=store)
        except LooptapeError as error:
            _read_anyway(store, home, error)
        store.notices += report.messages
    try:
        yield store
    finally:
        store.close()


def sync(home: Path | None = None, *, deadline: float = 2.0) -> SyncReport:
    """Moves what the journals hold into the store.

    Raises:
        LooptapeError: ``store-held`` when another process keeps the store open, ``store-newer``, ``disk-full``.
    """
    home = home or paths.home()
    report = SyncReport()
    _bring_up_to_date(home, deadline, report, checkpoint=True)
    return report


def _bring_up_to_date(
    home: Path, deadline: float, report: SyncReport, *, checkpoint: bool, store: Store | None = None
) -> None:
    """Drains what there is to drain; where there is nothing, ``store`` goes on with the connection that looked."""
    import duckdb

    if _nothing_to_do(home, deadline, checkpoint=checkpoint, store=store):
        return
    lock = DrainLock(home, deadline)
    try:
        connect.tidy(home)
        con = open_writing(paths.store_file(home), home, deadline, report.messages)
        try:
            drain_journals(con, home, report)
            if checkpoint or _overdue(home):
                checkpoint_store(con, home)
            connect.private(paths.store_file(home))
        finally:
            con.close()
    except duckdb.Error as error:
        raise write_trouble(error, home) from None
    finally:
        lock.release()


def _overdue(home: Path) -> bool:
    """True when so much waits for a checkpoint that even a screen should do one."""
    drained = sum(map(_size, paths.done_dir(home).glob("*.jsonl"))) if paths.done_dir(home).is_dir() else 0
    return drained > CHECKPOINT_BYTES or _size(home / "store.duckdb.wal") > CHECKPOINT_BYTES


def _size(file: Path) -> int:
    found = _stat(file)
    return found.st_size if found else 0


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except OSError:  # not there, or removed just now: the log goes with every checkpoint
        return None


def _nothing_to_do(home: Path, deadline: float, *, checkpoint: bool, store: Store | None) -> bool:
    """True when a glance (read-only, so that others may read too) finds no work."""
    if not paths.store_file(home).exists():
        return False
    try:
        con = connect.reading(paths.store_file(home), home, deadline)
    except connect.Held as held:
        raise store_held(held) from None
    except connect.DamagedLog:
        return False
    free = False
    try:
        found = schema.version(con)
        if found < schema.VERSION:
            return False
        if found > schema.VERSION:
            raise schema.newer(found)
        everything = journals(con, home)
        kept = any(j.path.parent == paths.done_dir(home) for j in everything)
        free = not (pending(everything, home) or (kept and checkpoint) or otlp.waiting(con, clock.now()))
        return free
    finally:
        if free and store is not None:
            store.adopt(con)
        else:
            con.close()


def _read_anyway(store: Store, home: Path, error: LooptapeError) -> None:
    """The store as it is, with a notice of what is missing; the error where it cannot even be read."""
    if (
        error.slug not in ("store-held", "store-newer", "disk-full", "home-unusable")
        or not paths.store_file(home).exists()
    ):
        raise error
    try:
        con = open_reading(paths.store_file(home), home, 0)
    except LooptapeError:
        raise error from None
    store.adopt(con)
    waiting = len(pending(journals(con, home), home))
    written = max((found.st_mtime for f in home.glob("store.duckdb*") if (found := _stat(f))), default=time.time())
    clock = time.strftime("%H:%M", time.localtime(written))
    what = f"{waiting} journal{'' if waiting == 1 else 's'} waiting"
    store.notices.append(f"as of {clock}, {what}: {_why(error)}; nothing is lost")


def _why(error: LooptapeError) -> str:
    holder = error.what.removeprefix("the store is held open by ")
    return error.what if holder == error.what else f"{holder} has the store open"
