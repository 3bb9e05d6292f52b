"""drain.lock: one drainer at a time, waiting in line instead of polling the database."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from .. import paths
from ..errors import LooptapeError


class DrainLock:
    """Holds drain.lock until `release`.

    Raises:
        LooptapeError: ``store-held`` when another looptape drains for longer than `deadline` seconds.
    """

    def __init__(self, home: Path, deadline: float) -> None:
        paths.make_private(home)
        self._fd = os.open(paths.lock_file(home), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode(), 0)

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
