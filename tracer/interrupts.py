"""Ctrl+c while DuckDB works: it takes the signal for itself and, working in several threads, forgets some of them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any
from weakref import WeakSet

_open: WeakSet[Any] = WeakSet()


def known(con: Any) -> Any:
    """A DuckDB connection whose work ctrl+c is to end; the same connection."""
    _open.add(con)
    return con


@contextmanager
def heeded() -> Iterator[None]:
    """Inside, SIGINT also ends what the known connections work on; one that is ignored, or somebody's own, stays so."""
    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_number: int, _frame: FrameType | None) -> None:
    for con in list(_open):
        with suppress(Exception):  # closed meanwhile
            con.interrupt()
    raise KeyboardInterrupt
