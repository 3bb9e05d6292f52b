"""Opening the DuckDB file: settings, who holds it, a damaged write-ahead log, a file of a newer DuckDB."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import LooptapeError
from ..interrupts import known
from . import schema
from .lock import unusable
from .rows import Connection

MEMORY_LIMIT = 1 << 30
STORAGE = "v1.5.0"
"""The DuckDB whose file format the store is written in."""
_HOLDER = re.compile(r"Conflicting lock is held in (.+?) \(PID (\d+)\)")
_PAUSE = 0.025
_NEW = "new-store-"
_PASSING = ("cannot open file", "no space left", "out of memory", "could not allocate", "interrupted")
"""What also keeps a good log from being read, for a while."""


class Held(Exception):
    """Another process has the file open. ``who`` names it; ``reading``: only for reading."""

    def __init__(self, who: str, pid: int | None, *, reading: bool) -> None:
        self.who, self.pid, self.reading = who, pid, reading
        super().__init__(who)


def settings(home: Path | None) -> dict[str, Any]:
    """DuckDB settings for our connections: bounded memory, spill beside the store, nothing from the network."""
    given: dict[str, Any] = {
        "memory_limit": f"{_memory_limit() >> 20}MiB",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "allow_community_extensions": False,
        "enable_external_access": False,
    }
    if home is not None:
        given["temp_directory"] = str(home / f"spill-{os.getpid()}")
    return given


def memory() -> Connection:
    """A store in memory with no way to files."""
    import duckdb

    return known(duckdb.connect(":memory:", config=settings(None)))


def reading(file: Path, home: Path, deadline: float, *, files: bool = False) -> Connection:
    """A read-only connection that can reach no other file and change no setting.

    Args:
        files: Leave both open for `attached.attach`, which closes them once its file is there.

    Raises:
        Held: Another process writes and went on for longer than `deadline` seconds.
        LooptapeError: The file cannot be read (damaged, made by a newer DuckDB).
    """
    import duckdb

    config = {**settings(home), "enable_external_access": files, "lock_configuration": not files}
    return _patiently(lambda: known(duckdb.connect(str(file), read_only=True, config=config)), file, deadline)


def writing(file: Path, home: Path, deadline: float, notices: list[str]) -> Connection:
    """A connection for writing; the caller holds drain.lock. Makes the file (mode 0600) where there is none.

    A damaged write-ahead log is moved aside, which a notice tells. Raises as `reading` does.
    """
    import duckdb

    config = {**settings(home), "storage_compatibility_version": STORAGE}

    def connect() -> Connection:
        return known(duckdb.connect(str(file), config=config))

    if not file.exists():
        _make(file, home, deadline)
    try:
        con = _patiently(connect, file, deadline)
    except DamagedLog as damage:
        notices.append(_set_log_aside(file, str(damage)))
        con = _patiently(connect, file, deadline)
    private(file)
    con.execute("pragma disable_checkpoint_on_shutdown")
    return con


def tidy(home: Path) -> None:
    """Removes what processes that are gone left beside the store; the caller holds drain.lock."""
    for left in home.glob(f"{_NEW}*"):
        shutil.rmtree(left, ignore_errors=True)
    for left in home.glob("spill-*"):
        pid = left.name.removeprefix("spill-")
        if pid.isdigit() and not _lives(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def private(file: Path) -> None:
    """Store and log are for their owner only (DuckDB makes the log anew after each checkpoint)."""
    for part in (file, _log(file)):
        try:
            part.chmod(0o600)
        except OSError:
            pass  # not there


def _make(file: Path, home: Path, deadline: float) -> None:
    """An empty store with its tables, made beside its place and moved there: who is killed meanwhile leaves no half of one,
    which nobody could open, and who reads finds none or a whole one. The folder is private, since DuckDB gives a file the
    mode that the umask leaves, and the umask is that of every thread of the process."""
    import duckdb

    config = {**settings(home), "storage_compatibility_version": STORAGE}
    try:
        with tempfile.TemporaryDirectory(prefix=_NEW, dir=home, ignore_cleanup_errors=True) as folder:
            part = Path(folder) / file.name
            with _patiently(lambda: known(duckdb.connect(str(part), config=config)), file, deadline) as con:
                schema.migrate(con)
                con.execute("checkpoint")
            private(part)
            _log(file).unlink(missing_ok=True)  # of a store that somebody moved away; DuckDB does the same
            part.rename(file)
    except OSError as error:
        raise unusable(home, error) from None


def _log(file: Path) -> Path:
    return file.with_name(file.name + ".wal")


class DamagedLog(Exception):
    """The write-ahead log beside the file cannot be read."""


def _patiently(connect: Callable[[], Connection], file: Path, deadline: float) -> Connection:
    import duckdb

    end = time.monotonic() + deadline
    while True:
        try:
            return connect()
        except duckdb.Error as error:
            held = _held(error)
            if held is None:
                raise _trouble(error, file) from None
            if time.monotonic() >= end:
                raise held from None
        time.sleep(_PAUSE)


def _held(error: Exception) -> Held | None:
    import duckdb

    message = str(error)
    if isinstance(error, duckdb.ConnectionException) and "different configuration" in message:
        return Held("this process", None, reading=False)
    if not isinstance(error, duckdb.IOException) or "lock" not in message:
        return None
    found = _HOLDER.search(message)
    shared = "read-only" in message
    if found is None:
        return Held("another process", None, reading=shared)
    return Held(Path(found[1]).name, int(found[2]), reading=shared)


def _trouble(error: Exception, file: Path) -> Exception:
    message = str(error)
    log = _log(file)
    replaying = "while replaying WAL" in message and not any(word in message.lower() for word in _PASSING)
    if replaying and log.exists():
        return DamagedLog(message.splitlines()[0])
    if "version number" in message:
        return LooptapeError(
            "store-newer",
            f"{file} was written by a newer DuckDB than this looptape has",
            "Upgrade looptape; recording goes on meanwhile and nothing is lost",
        )
    if "No space left" in message:
        return LooptapeError("disk-full", f"no space left for {file}", "Make room; nothing is lost")
    if any(word in message for word in ("not a valid DuckDB", "Corrupt", "checksum", "enough bytes")):
        return LooptapeError(
            "store-damaged",
            f"{file} is damaged ({message.splitlines()[0][:160]})",
            "Move it away; a new store is made at the next command and what still lies in done/ and journal/ comes back",
        )
    return LooptapeError("store-unreadable", f"{file} cannot be opened ({message.splitlines()[0][:200]})")


def _set_log_aside(file: Path, reason: str) -> str:
    log = _log(file)
    aside = log.with_name(f"{log.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    number = 1
    while aside.exists():
        number += 1
        aside = log.with_name(f"{log.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{number}")
    log.rename(aside)
    return (
        f"the store's write-ahead log was damaged and is now {aside} ({reason[:120]}). Recorded runs come back from their "
        "journals by themselves; what was imported from files since the last checkpoint may be missing: import it again"
    )


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _memory_limit() -> int:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return MEMORY_LIMIT
    return max(128 << 20, min(MEMORY_LIMIT, total // 4))
