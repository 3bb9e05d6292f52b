"""drain.lock: one drainer at a time, waiting in line instead of polling the database."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import time
from pathlib import Path

from .. import paths
from ..errors import LooptapeError


def unusable(home: Path, error: OSError) -> LooptapeError:
    """The error of a store directory that cannot be made or written to."""
    blocked = next((p for p in (home, *home.parents) if p.exists() and not p.is_dir()), None)
    if error.errno == errno.ENOSPC:
        return LooptapeError("disk-full", f"no space left in {home}", "Make room and run it again; nothing is lost")
    why = f"{blocked} is a file" if blocked else (error.strerror or str(error))
    return LooptapeError(
        "home-unusable",
        f"the store cannot be kept in {home}: {why}",
        "Set LOOPTAPE_HOME to a folder that you can write",
    )


def writable(home: Path) -> None:
    """Looks whether the store directory can be written, or made where it is missing; leaves nothing behind.

    Raises:
        LooptapeError: It cannot (``home-unusable``).
    """
    try:
        folder = next(p for p in (home, *home.parents) if p.exists())
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise unusable(home, error) from None


class DrainLock:
    """Holds drain.lock until `release`.

    Raises:
        LooptapeError: ``store-held`` when another looptape drains for longer than `deadline` seconds,
            ``home-unusable`` when the folder cannot be made or written.
    """

    def __init__(self, home: Path, deadline: float) -> None:
        try:
            paths.make_private(home)
            self._fd = os.open(paths.lock_file(home), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unusable(home, error) from None
        end = time.monotonic() + deadline
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= end:
                    who = self._holder()
                    os.close(self._fd)
                    raise LooptapeError(
                        "store-held",
                        f"the store is busy: {who} is writing to it",
                        "Try again in a moment; recording goes on and nothing is lost",
                    ) from None
            time.sleep(0.02)
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, str(os.getpid()).encode(), 0)
        except OSError as error:
            self.release()
            raise unusable(home, error) from None

    def release(self) -> None:
        """Lets the next one in."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _holder(self) -> str:
        try:
            pid = os.pread(self._fd, 20, 0).decode()
        except (OSError, ValueError):
            pid = ""
        return f"another looptape (PID {pid})" if pid.isdigit() else "another looptape"
