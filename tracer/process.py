"""This process's recorder: made at the first use, told of forks and of the end, and never felt by the agent."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .live import Where, where
from .recorder import Recorder

P = ParamSpec("P")
T = TypeVar("T")

_recorder: Recorder | None = None
_lock = threading.Lock()
_said = False


def recorder() -> Recorder | None:
    """The recorder of this process; None while recording is off (`LOOPTAPE=off`)."""
    global _recorder
    if os.environ.get("LOOPTAPE", "").lower() in ("off", "0", "false", "no"):
        return None
    if _recorder is None:
        with _lock:
            if _recorder is None:
                _recorder = Recorder()
                atexit.register(_exit)
                os.register_at_fork(after_in_child=_forked)
    return _recorder


def replace(fresh: Recorder | None) -> Recorder | None:
    """Puts another recorder in place (tests, a replay into another store) and gives the former one."""
    global _recorder
    former, _recorder = _recorder, fresh
    return former


def here() -> Where | None:
    """The run and call of this context; through a fork it is a child run of them in this process."""
    place = where.get()
    if place is None or place.run.pid == os.getpid():
        return place
    active = recorder()
    if active is None:
        return None
    adopted = Where(active.adopt(place.run))
    where.set(adopted)
    return adopted


def quietly(function: Callable[P, T]) -> Callable[P, T | None]:
    """Lets no Exception of ours reach the agent; the first one is said in one line."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # recording must never break the loop it watches
            _trouble(function.__qualname__, error)
            return None

    return guarded


def _exit() -> None:
    if _recorder is not None:
        quietly(_recorder.at_exit)()


def _forked() -> None:
    global _lock
    _lock = threading.Lock()
    if _recorder is not None:
        _recorder.after_fork()


def _trouble(place: str, error: Exception) -> None:
    global _said
    if _said:
        return
    _said = True
    try:
        sys.stderr.write(
            f"looptape: recording had trouble in {place} ({type(error).__name__}: {error}); your program is not affected\n"
        )
    except Exception:  # a closed stderr is no reason to disturb the agent
        pass
