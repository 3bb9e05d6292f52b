"""How many are inside at once, for tests of limits: those inside wait for each other, so that luck has no part in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Crowd:
    """Lets nobody go before ``size`` have met inside; from then on everybody passes. ``most``: that were inside together."""

    def __init__(self, size: int) -> None:
        self.most = 0
        self._size = size
        self._inside = 0
        self._changed = threading.Condition()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """One more is inside while the block runs."""
        with self._changed:
            self._inside += 1
            self.most = max(self.most, self._inside)
            self._changed.notify_all()
            met = self._changed.wait_for(lambda: self.most >= self._size, 60)
        assert met, f"{self.most} of {self._size} have met"
        time.sleep(0.02)  # one too many has the time to come: it can only fail where the limit does not hold
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
