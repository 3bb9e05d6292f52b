"""Our own trouble is never the agent's: it is caught here and said in one line, once per process."""

from __future__ import annotations

import functools
import itertools
import signal
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_lines = itertools.count()  # only the first is said; two threads never get the same number


def quietly(function: Callable[P, T]) -> Callable[P, T | None]:
    """Lets no Exception of ours reach the agent; the first one is said in one line."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # recording must never break the loop it watches
            if theirs(error):
                raise
            trouble(function.__qualname__, error)
            return None

    return guarded


def theirs(error: BaseException) -> bool:
    """True for what a signal handler of the program raised while we worked (a time limit): the program waits for it."""
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(getattr(h, "__func__", h), "__code__", None) for h in handlers} - {None}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def words(error: BaseException) -> str:
    """An exception's text; one whose text cannot be made has none."""
    try:
        return str(error)
    except Exception:  # it holds an object that will not be printed
        return ""


def trouble(place: str, error: Exception) -> None:
    """Says that something did not work."""
    say(f"recording had trouble in {place} ({type(error).__name__}: {words(error)}); your program is not affected")


def say(line: str) -> None:
    """One line on stderr; the second time nothing."""
    if next(_lines):
        return
    try:
        sys.stderr.write(f"looptape: {line}\n")
    except Exception:  # a closed stderr is no reason to disturb the agent
        pass


def forget() -> None:
    """As if nothing had been said (a forked child, tests)."""
    global _lines
    _lines = itertools.count()
