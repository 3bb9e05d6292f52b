"""Waiting that an interrupt, a set stop or the run's deadline ends; and how long to wait before a retry."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .policy import Hooks

_chance = random.Random()
POLL = 0.05
"""Seconds between two looks whether the run is to stop, where something else is waited for too."""


class Interrupted(Exception):
    """The user asked for the end, or the run's time is over."""


@dataclass(slots=True)
class Waiter:
    """Waits for one run. ``deadline`` is a moment of ``hooks.clock``, None for no end."""

    hooks: Hooks
    deadline: float | None = None
    jitter: Callable[[], float] = field(default=_chance.random)

    def sleep(self, seconds: float, over: threading.Event | None = None) -> None:
        """Waits so long, not past the deadline.

        Args:
            over: Another event that ends the wait as a set stop does.

        Raises:
            Interrupted: The run is to end.
        """
        left = self.left()
        if left is not None and seconds > left:
            seconds = max(0.0, left)
        if self.hooks.sleep is not None:
            self.hooks.sleep(seconds)
        elif over is None:
            self.hooks.stop.wait(seconds)
        else:
            end = time.monotonic() + seconds
            while (rest := end - time.monotonic()) > 0 and not over.is_set():
                if self.hooks.stop.wait(min(POLL, rest)):
                    break
        if over is not None and over.is_set():
            raise Interrupted("stopped while it waited")
        self.check()

    def check(self) -> None:
        """Raises Interrupted when the run is to end."""
        if self.hooks.stop.is_set():
            raise Interrupted("stopped by the user")
        left = self.left()
        if left is not None and left <= 0:
            raise Interrupted("its time is over")

    def left(self) -> float | None:
        """Seconds until the deadline, None without one."""
        return None if self.deadline is None else self.deadline - self.hooks.clock()

    def backoff(self, attempt: int, base: float, cap: float, asked: float | None = None) -> float:
        """Seconds before the next attempt: what the server asked for, never less; else doubled, jittered.

        Args:
            attempt: 1 after the first failure.
            asked: Retry-After in seconds.
        """
        if asked is not None:
            return asked + 0.1 * self.jitter() * min(asked, base)  # a little later, so that not all come at once
        full: float = min(cap, base * 2.0 ** (attempt - 1))
        return full * (0.5 + 0.5 * self.jitter())
