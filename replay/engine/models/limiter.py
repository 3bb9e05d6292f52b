"""Rate limits that every run of this process respects together: who was told to wait makes all of them wait."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from ....tracer.clock import now
from ..waiting import Waiter

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
WIDEN_AFTER = 10


class Limiter:
    """One server and key. ``at_once`` requests are in flight together; after a refusal half as many, for a while.

    Args:
        at_once: The most requests in flight.
        clock: Seconds, for tests.
    """

    def __init__(self, at_once: int = 8, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = self._allowed = max(1, at_once)
        self._clock = clock
        self._not_before = 0.0
        self._flying = 0
        self._good = 0
        self._changed = threading.Condition()

    @property
    def allowed(self) -> int:
        """How many may be in flight now."""
        return self._allowed

    def wait_seconds(self) -> float:
        """How long nobody may ask, 0 when one may."""
        with self._changed:
            return max(0.0, self._not_before - self._clock())

    @contextmanager
    def turn(self, waiter: Waiter) -> Iterator[None]:
        """A place among the requests in flight, once nobody has to wait any more.

        Raises:
            Interrupted: The run is to end before that.
        """
        self._enter(waiter)
        try:
            yield
        finally:
            with self._changed:
                self._flying -= 1
                self._changed.notify_all()

    def refused(self, seconds: float) -> None:
        """The server asked to come later: nobody asks for so long, and fewer at once."""
        with self._changed:
            self._not_before = max(self._not_before, self._clock() + seconds)
            self._allowed = max(1, self._allowed // 2)
            self._good = 0

    def answered(self, headers: Mapping[str, str]) -> None:
        """A request went well; its headers may say that no further one would."""
        wait = exhausted(headers)
        with self._changed:
            if wait is not None:
                self._not_before = max(self._not_before, self._clock() + wait)
            self._good += 1
            if self._good >= WIDEN_AFTER and self._allowed < self._most:
                self._allowed, self._good = self._allowed + 1, 0
                self._changed.notify_all()

    def _enter(self, waiter: Waiter) -> None:
        while True:
            waiter.check()
            pause = self.wait_seconds()
            if pause > 0:
                waiter.sleep(pause)
                continue
            with self._changed:
                if self._clock() < self._not_before:
                    continue  # another was refused since it was looked at
                if self._flying < self._allowed:
                    self._flying += 1
                    return
                self._changed.wait(0.05)


_shared: dict[str, Limiter] = {}
_lock = threading.Lock()


def shared(name: str, at_once: int = 8) -> Limiter:
    """The limiter of this process for everything of that name."""
    with _lock:
        return _shared.setdefault(name, Limiter(at_once))


def exhausted(headers: Mapping[str, str]) -> float | None:
    """Seconds until requests are allowed again, when the headers of an answer say that none is left."""
    waits = []
    for prefix, left, reset in (
        ("anthropic-ratelimit-", "{}-remaining", "{}-reset"),
        ("x-ratelimit-", "remaining-{}", "reset-{}"),
    ):
        for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
            if headers.get(prefix + left.format(kind)) == "0":
                seconds = _seconds(headers.get(prefix + reset.format(kind), ""))
                if seconds is not None:
                    waits.append(seconds)
    return max(waits) if waits else None


def _seconds(text: str) -> float | None:
    """A moment (RFC 3339) or a span (``6m0s``, ``120ms``, plain seconds) as seconds from now."""
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    parts = _SPAN.findall(text)
    if parts and "".join(a + b for a, b in parts) == text:
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - now() / 1_000_000)
    except ValueError:
        return None
