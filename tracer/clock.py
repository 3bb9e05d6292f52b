"""Time and fresh ids, from one place: a recording that must come out the same twice brings its own source."""

from __future__ import annotations

import itertools
import time
import uuid


class Source:
    """The machine's clock and random ids."""

    def __init__(self) -> None:
        self._ahead = 0

    def now(self) -> int:
        """Microseconds since the epoch. Where the machine's clock is set back, it goes on from where it was: what comes
        later in a recording is never earlier."""
        wall = time.time_ns()
        steady = time.monotonic_ns()  # the later of the two: a pause between them makes the difference only smaller
        self._ahead = max(self._ahead, wall - steady)
        return (steady + self._ahead) // 1000

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    def new_id(self) -> str:
        """A fresh run id: 16 hex digits."""
        return uuid.uuid4().hex[:16]


class FixedSource(Source):
    """A clock that moves only when it is told to, and ids that count: the same program records the same tape.

    Args:
        start: Microseconds since the epoch.
        ids: Prefix of the run ids, hex digits; a counter fills them up to 16.
        tick: Microseconds that pass with every look at the clock, so that order stays visible.
    """

    def __init__(self, start: int, *, ids: str = "", tick: int = 10) -> None:
        self._now = start
        self._tick = tick
        self._ids = ids
        self._count = itertools.count(1)

    def now(self) -> int:
        """The time, after one tick."""
        self._now += self._tick
        return self._now

    def monotonic(self) -> float:
        """The same clock in seconds, without a tick."""
        return self._now / 1e6

    def new_id(self) -> str:
        """The next id."""
        return f"{self._ids}{next(self._count):0{16 - len(self._ids)}x}"

    def pass_seconds(self, seconds: float) -> None:
        """Lets time go by."""
        self._now += int(seconds * 1e6)


_source: Source = Source()


def use(source: Source) -> Source:
    """Puts another source in place and gives the former one."""
    global _source
    former, _source = _source, source
    return former


def now() -> int:
    """Microseconds since the epoch."""
    return _source.now()


def monotonic() -> float:
    """Seconds that never run backwards."""
    return _source.monotonic()


def new_id() -> str:
    """A fresh run id: 16 hex digits."""
    return _source.new_id()
