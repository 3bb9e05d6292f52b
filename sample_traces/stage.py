"""Where a loop is played: how long its waiting takes, which clock it sees, and how it is cut off.

The loops wait as any program does (`time.sleep`, `asyncio.sleep`, `asyncio.timeout`, the SDK before it tries again).
On a stage that time is shortened, or only the clock moves.
"""

from __future__ import annotations

import asyncio
import inspect
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn
from unittest import mock

from ..tracer import clock, process
from ..tracer.canonical import digest

_sleep = time.sleep


@dataclass(frozen=True)
class Pace:
    """How time goes by. ``now``: seconds that have passed. ``wait``: lets so many seconds pass."""

    now: Callable[[], float]
    wait: Callable[[float], None]


class Killed(BaseException):
    """The program was killed here."""


@contextmanager
def hurried(share: float) -> Iterator[Pace]:
    """The machine's clock; every wait takes this share of its time."""
    pace = Pace(lambda: time.monotonic() / share, lambda seconds: _sleep(seconds * share))
    with _sleeping(pace):
        yield pace


@contextmanager
def fixed(start: int, ids: str) -> Iterator[Pace]:
    """A clock that begins at ``start`` (microseconds since the epoch) and moves by waiting alone. ``ids``: seed of the ids."""
    source = _FixedSource(start, ids=ids)
    pace = Pace(source.monotonic, source.pass_seconds)
    former = clock.use(source)
    try:
        with _sleeping(pace):
            yield pace
    finally:
        clock.use(former)


@contextmanager
def _sleeping(pace: Pace) -> Iterator[None]:
    """`time.sleep` at this pace for who plays here and the threads that begin meanwhile. Those that were there before sleep
    as ever: they have no part in the play, and would move its clock."""
    others = set(threading.enumerate()) - {threading.current_thread()}

    def sleep(seconds: float) -> None:
        (_sleep if threading.current_thread() in others else pace.wait)(seconds)

    with mock.patch.object(time, "sleep", sleep):
        yield


class _FixedSource(clock.FixedSource):
    """Ids that look like any others: their first digits tell two runs apart."""

    def new_id(self) -> str:
        """The next id."""
        return digest(super().new_id())[:16]


def play(main: Callable[[], Any], pace: Pace) -> None:
    """Runs a loop's ``main``, sync or async, until it ends, fails or is killed; only `Killed` and API errors stay here."""
    import anthropic

    try:
        if inspect.iscoroutinefunction(main):
            with asyncio.Runner(loop_factory=lambda: _EventLoop(pace)) as runner:
                runner.run(main())
        else:
            main()
    except (Killed, anthropic.APIError):
        pass  # how this loop ends is what its recording shows


def kill() -> NoReturn:
    """What `kill -9` does to this process, as far as its recording goes: not one more record."""
    active = process.recorder()
    if active is not None:
        active.journal.close()
    raise Killed


class _EventLoop(asyncio.SelectorEventLoop):
    """An event loop whose time goes by at a pace."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        super().__init__(_Selector(pace))

    def time(self) -> float:
        """The seconds that timers are measured in."""
        return self._pace.now()


class _Selector(selectors.SelectSelector):
    """Waits for sockets and threads as always, for timers at a pace."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready. Nothing ready and a timer set: its time passes."""
        ready = super().select(0 if timeout else timeout)
        if timeout and not ready:
            self._pace.wait(timeout + 2e-6)  # a clock of whole microseconds must not stop just before the timer
            ready = super().select(0)
        return ready
