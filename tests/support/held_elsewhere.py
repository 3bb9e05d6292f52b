"""A lock that another thread holds, as a fork may find it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


@contextmanager
def held_elsewhere(lock: AbstractContextManager[Any]) -> Iterator[None]:
    """Inside, another thread has it."""
    taken, release = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(60)
    try:
        yield
    finally:
        release.set()
        thread.join()
