"""A deliberate stop reaches the person as its own few lines: no traceback, in no thread, task or group."""

from __future__ import annotations

import logging
import sys
import threading
from types import TracebackType
from typing import Any

from ...tracer.errors import LooptapeStop
from ...tracer.fork_lock import ForkLock

_told: set[str] = set()
_telling = ForkLock()


def install() -> None:
    """Puts itself before the hooks that print uncaught exceptions: main program, threads, asyncio's log."""
    _told.clear()
    former, former_thread = sys.excepthook, threading.excepthook

    def main(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        found = stop_in(error)
        if found is None:
            former(kind, error, trace)
        else:
            tell(found)

    def thread(args: Any) -> None:
        found = stop_in(args.exc_value)
        if found is None:
            former_thread(args)
        else:
            tell(found)

    sys.excepthook, threading.excepthook = main, thread
    logging.getLogger("asyncio").addFilter(_no_stop)


def stop_in(error: BaseException | None) -> LooptapeStop | None:
    """The stop that an exception is, or that its group consists of; None where something else was raised too."""
    if isinstance(error, LooptapeStop):
        return error
    if not isinstance(error, BaseExceptionGroup):
        return None
    stops, others = error.split(LooptapeStop)
    if stops is None or others is not None:
        return None
    first: BaseException = stops
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first if isinstance(first, LooptapeStop) else None


def tell(stop: LooptapeStop) -> None:
    """Its lines on stderr, once: the same stop arrives in every thread that asks for more."""
    text = str(stop) or type(stop).__name__
    with _telling:
        if text in _told:
            return
        _told.add(text)
    try:
        sys.stderr.write(f"{text}\n" if text.startswith("looptape: ") else f"looptape: {text}\n")
        sys.stderr.flush()
    except Exception:  # a closed stderr: the verdict says it again
        pass


def _no_stop(record: logging.LogRecord) -> bool:
    """Keeps asyncio from logging the traceback of a stop in a task that nobody awaited."""
    error = record.exc_info[1] if record.exc_info else None
    found = stop_in(error)
    if found is None:
        return True
    tell(found)
    return False
