"""The database kept awake for a moment after a question: to open it costs twenty times what most answers cost."""

from __future__ import annotations

import atexit
import threading
import time
from pathlib import Path
from typing import Any

from ...tracer import paths
from ...tracer.errors import LooptapeError

KEPT = 0.5
"""Seconds that it stays open after a question."""
MOST = 1.0
"""Seconds in a row, however many questions come: another program that wants to write waits for two."""
REST = 0.3
"""Seconds after that in which each question opens the file for itself, so that the others get in."""


class Warm:
    """An idle reading connection; while it is there, DuckDB gives further ones to the same open database.

    Args:
        home: The folder of the store.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._con: Any = None
        self._since = 0.0
        self._until = 0.0
        self._rests_until = 0.0

    def keep(self) -> None:
        """A question is about to be asked: stay open from now on. What hinders it, the question will run into too."""
        from ...tracer.store.store import open_reading

        with self._lock:
            now = time.monotonic()
            if self._con is not None:
                self._until = min(now + KEPT, self._since + MOST)
                return
            file = paths.store_file(self._home)
            if now < self._rests_until or not file.exists():
                return
            try:
                self._con = open_reading(file, self._home, 0.0)
            except LooptapeError:
                return
            self._since, self._until = now, now + KEPT
            atexit.register(self.let_go)  # an interpreter that ends must find no thread inside DuckDB
            threading.Thread(target=self._watch, args=(self._con,), name="looptape-warm", daemon=True).start()

    def let_go(self) -> None:
        """Close it now: somebody here is about to write."""
        with self._lock:
            self._close()

    def _watch(self, con: Any) -> None:
        while True:
            with self._lock:
                if self._con is not con:
                    return
                left = self._until - time.monotonic()
                if left <= 0:
                    self._close()
                    return
            time.sleep(left)

    def _close(self) -> None:
        con, self._con = self._con, None
        if con is not None:
            atexit.unregister(self.let_go)
            if time.monotonic() >= self._since + MOST:
                self._rests_until = time.monotonic() + REST
            con.close()
