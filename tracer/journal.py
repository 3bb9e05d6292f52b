"""This process's journal: an append-only tape in the store directory, one write per batch of records.

Standard library only. Nothing here raises into the agent: what cannot be written is counted and
said once. The protocol (locks, torn writes, fork, rotation) is described in docs/tape-format.md.
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from . import clock, outgoing, paths, tape
from .quiet import theirs, words
from .version import __version__

ROTATE_BYTES = 64 << 20
CAP_BYTES = 2 << 30
_LAST_WORDS = ("run_update", "run_end")


class Journal:
    """Appends records for one process. ``generation`` grows when earlier records may be missing
    from what follows (a failed write, a fork): then whoever refers to them must say them again."""

    def __init__(
        self,
        home: Path | None = None,
        *,
        rotate_bytes: int = ROTATE_BYTES,
        cap_bytes: int = CAP_BYTES,
        content: bool | None = None,
    ) -> None:
        self._home = home or paths.home()
        self._rotate_bytes = rotate_bytes
        self._cap_bytes = cap_bytes
        self.content = keeps_content() if content is None else content
        self._lock = threading.RLock()  # a stream that is collected while we write may write too
        self._fd: int | None = None
        self._file = (0, 0)
        self._torn = False
        self._size = 0
        self._piece = 0
        self._stopped = False
        self._warned = False
        self._id = uuid.uuid4().hex
        self.generation = 0
        self.dropped = 0

    @property
    def path(self) -> Path:
        """The file that is written now."""
        name = self._id if self._piece == 0 else f"{self._id}.{self._piece}"
        return paths.journal_dir(self._home) / f"{name}.jsonl"

    def write(self, records: Sequence[tape.Record]) -> bool:
        """Appends the records in one write; False when they did not get there (never raises)."""
        try:
            data = outgoing.lines(records, content=self.content)
            with self._lock:
                return self._append(data, records)
        except Exception as error:  # the agent must not feel our trouble
            self._failed(len(records), error)
            if theirs(error):
                raise
            return False

    def close(self) -> None:
        """Ends the journal; its lock goes, so that a drainer may take it away."""
        with self._lock:
            fd, self._fd = self._fd, None
            if fd is not None and self._ours(fd) is not None:
                os.close(fd)
            self._stopped = True

    def after_fork(self) -> None:
        """In a forked child: leave the parent's file alone and begin a new one at the next write."""
        inherited, self._fd = self._fd, None
        if inherited is not None and self._ours(inherited) is not None:
            os.close(inherited)
        self._lock = threading.RLock()
        self._id, self._piece, self._size, self._torn = uuid.uuid4().hex, 0, 0, False
        self._warned = self._stopped = False
        self.dropped = 0
        self.generation += 1

    def _append(self, data: bytes, records: Sequence[tape.Record]) -> bool:
        try:
            self._ready(len(data))
            # after the cap was reached runs still say how they ended
            if self._fd is None or (self._stopped and any(r["kind"] not in _LAST_WORDS for r in records)):
                self.dropped += len(records)
                return False
            whole = b"\n" + data if self._torn else data
            written = os.write(self._fd, whole)
        except OSError as error:
            self._failed(len(records), error)
            return False
        self._size += written
        self._torn = written != len(whole)
        if self._torn:
            # the complete lines before the tear are good; what follows must not lean on the rest
            self._failed(len(records), OSError(0, "short write"))
            return False
        return True

    def _ready(self, size: int) -> None:
        """Opens a file, or the next one; raises OSError."""
        if self._fd is not None:
            stat = self._ours(self._fd)
            if stat is None or stat.st_nlink == 0:
                fd, self._fd, self._id, self._piece = self._fd, None, uuid.uuid4().hex, 0
                if stat is not None:
                    os.close(fd)
                    raise OSError(0, "the journal was deleted; a new one is begun")
        if self._stopped:
            return
        if self._fd is None:
            self._open()
        elif self._size + size > self._rotate_bytes:
            self._rotate()

    def _ours(self, fd: int) -> os.stat_result | None:
        """What our open file is now. None where the program closed it, as daemons close all that is open: the number may
        be that of a file of its own by now, and is neither written to nor closed."""
        try:
            stat = os.fstat(fd)
        except OSError:
            return None
        return stat if (stat.st_dev, stat.st_ino) == self._file else None

    def _open(self) -> None:
        """Begins a piece: locked and headed before anything else is in it; raises OSError, and then it is not there."""
        folder = paths.make_private(paths.journal_dir(self._home))
        if self._cap_bytes and _folder_bytes(folder) > self._cap_bytes:
            self._stopped = True
            self._say(
                f"the journals in {folder} hold more than {self._cap_bytes >> 20} MB: recording stops here. "
                "Run `looptape sync` to move them into the store"
            )
            return
        path, head = self.path, self._head()
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _lock(fd)
            if os.write(fd, head) != len(head):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except BaseException:  # ctrl+c too: a file that stays would be in the way for ever
            os.close(fd)
            with suppress(OSError):  # somebody was faster, or the folder is gone
                os.unlink(path)
            raise
        stat = os.fstat(fd)
        self._fd, self._file, self._size, self._torn = fd, (stat.st_dev, stat.st_ino), len(head), False

    def _head(self) -> bytes:
        return tape.line(
            tape.header(
                writer=f"looptape {__version__}",
                python=platform.python_version(),
                pid=os.getpid(),
                host=platform.node(),
                started_at=clock.now(),
                content="full" if self.content else "none",
                journal=self._id,
            )
        )

    def _rotate(self) -> None:
        """Goes on in a new piece. The old lock is let go only when the new one is held: the writer lives."""
        old = self._fd
        self._piece += 1
        try:
            self._open()
        finally:
            if self._fd == old:
                self._piece -= 1
            elif old is not None:
                os.close(old)

    def _failed(self, count: int, error: Exception) -> None:
        self.dropped += count
        self.generation += 1
        reason = getattr(error, "strerror", None) or words(error) or type(error).__name__
        self._say(
            f"records could not be written to {paths.journal_dir(self._home)} ({reason}); your program is not affected"
        )

    def _say(self, message: str) -> None:
        if self._warned:
            return
        self._warned = True
        try:
            sys.stderr.write(f"looptape: {message}\n")
        except Exception:  # a closed stderr is no reason to disturb the agent
            pass


def _lock(fd: int) -> None:
    """Locks a file that was just made. A reader that looks whether it is locked holds it itself for that moment."""
    for left in reversed(range(20)):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not left:
                raise
            time.sleep(0.001)


def keeps_content() -> bool:
    """False with `LOOPTAPE_CONTENT=none`: records then hold only usage, times, names and hashes."""
    return os.environ.get("LOOPTAPE_CONTENT", "").strip().lower() != "none"


def _folder_bytes(folder: Path) -> int:
    size = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl"):
                with suppress(FileNotFoundError):  # drained and moved away just now
                    size += entry.stat().st_size
    return size
