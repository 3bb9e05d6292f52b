"""Ctrl+c and what else ends a command: DuckDB takes the signal for itself and, working in several threads, forgets some."""

from __future__ import annotations

import os
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


def is_interruption(error: BaseException) -> bool:
    """True for the error that DuckDB makes of a ctrl+c which it took."""
    return type(error).__name__ == "InterruptException" or str(error) == "Query interrupted"


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


@contextmanager
def at_once() -> Iterator[None]:
    """Inside, SIGINT ends the process there and then: for loading beside a thread that reads.

    An interrupt in the middle of an import can leave the lock of all imports held, and an interpreter that ends with
    a thread inside DuckDB is aborted. Nothing is lost: what is half read is read again.
    """
    former = signal.getsignal(signal.SIGINT)
    own = threading.current_thread() is threading.main_thread()
    if not own or former not in (signal.default_int_handler, _end):
        yield
        return
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(130))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


@contextmanager
def told_to_end() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP are an interrupt: what was started is ended, what runs says how it ended."""
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    for number in numbers:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _end(_number: int, _frame: FrameType | None) -> None:
    for con in _known():
        with suppress(Exception):  # closed meanwhile
            con.interrupt()
    raise KeyboardInterrupt


def _known() -> list[Any]:
    """The connections of now. A thread may open one in that very moment; a lock could be held by who is interrupted."""
    while True:
        try:
            return list(_open)
        except RuntimeError:  # it grew while we looked
            continue
