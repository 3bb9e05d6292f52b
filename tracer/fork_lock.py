"""A lock that a forked child finds free: the thread of the parent that held it is not there to give it back."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from weakref import WeakSet

_known: WeakSet[ForkLock] = WeakSet()


class ForkLock:
    """For `with`; not to be entered twice by one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _known.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Free, whoever holds it."""
        self._lock = threading.Lock()


def _forked() -> None:
    for lock in list(_known):
        lock.renew()


os.register_at_fork(after_in_child=_forked)
