"""When to read again what could not be read: ever later, so that a screen of what is gone costs nothing."""

from __future__ import annotations

import time

FIRST, MOST = 1.0, 15.0
"""Seconds between two tries, at first and at most."""


class Patience:
    """Doubles the pause with each failure."""

    def __init__(self) -> None:
        self._pause = FIRST

    def failed(self) -> float:
        """The time (`time.monotonic`) of the next try."""
        pause, self._pause = self._pause, min(2 * self._pause, MOST)
        return time.monotonic() + pause

    def went_well(self) -> None:
        """The next failure is the first again."""
        self._pause = FIRST
