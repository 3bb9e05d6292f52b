"""Locks that a forked child finds free: the thread of the parent that held one is not there to give it back."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Protocol
from weakref import WeakSet

_known: WeakSet[Renewable] = WeakSet()


class Renewable(Protocol):
    """What holds locks of its own."""

    def renew(self) -> None:
        """In a forked child: new locks, whoever of the parent holds the old ones."""


def renewed_in_children(holder: Renewable) -> None:
    """Has it renewed in every forked child, as long as it lives."""
    _known.add(holder)


class ForkLock:
    """For `with`; not to be entered twice by one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        renewed_in_children(self)

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
    for holder in list(_known):
        holder.renew()


os.register_at_fork(after_in_child=_forked)
