"""This process's recorder: made at the first use, told of forks and of the end, and never felt by the agent."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

from . import quiet, settings
from .errors import LooptapeError
from .fork_lock import ForkLock
from .journal import Journal
from .live import Where, where
from .quiet import quietly as quietly
from .recorder import Recorder

_recorder: Recorder | None = None
_off = False
_lock = ForkLock()


def recorder() -> Recorder | None:
    """The recorder of this process; None while recording is off (`LOOPTAPE=off`) or impossible."""
    global _recorder, _off
    if _off or os.environ.get("LOOPTAPE", "").lower() in ("off", "0", "false", "no"):
        return None
    if _recorder is None:
        with _lock:
            if _recorder is None and not _off:
                _recorder = _make()
                _off = _recorder is None
    return _recorder


@quietly
def _make() -> Recorder | None:
    """A recorder as the settings say. Settings that cannot be read turn it off: they may ask for no content."""
    try:
        said = settings.effective()
    except LooptapeError as error:
        quiet.say(f"{error}. Recording is off until then")
        return None
    if said["recording"].value == "off":
        return None
    content = said["content"].value != "none"
    journal = Journal(Path(said["home"].value), cap_bytes=int(said["journal_cap_mb"].value) << 20, content=content)
    atexit.register(_exit)
    return Recorder(journal)


def replace(fresh: Recorder | None) -> Recorder | None:
    """Puts another recorder in place (tests, a replay into another store) and gives the former one."""
    global _recorder, _off
    former, _recorder, _off = _recorder, fresh, False
    return former


def here() -> Where | None:
    """The run and call of this context; through a fork it is a child run of them in this process."""
    place = where.get()
    if place is not None and place.call is not None and place.call.left:
        place = Where(place.run)
    while place is not None and place.run.explicit and place.run.ended:
        place = place.run.above  # its block was left in another context (a generator's finaliser)
    if place is None or place.run.pid == os.getpid():
        return place
    active = recorder()
    if active is None:
        return None
    adopted = Where(active.adopt(place.run))
    where.set(adopted)
    return adopted


def _exit() -> None:
    if _recorder is not None:
        quietly(_recorder.at_exit)()


def _forked() -> None:
    quiet.forget()
    if _recorder is not None:
        quietly(_recorder.after_fork)()
    quietly(_end_with_multiprocessing)()


def _end_with_multiprocessing() -> None:
    """A multiprocessing child ends without atexit; its own finalisers say how the runs in it ended."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(_exit, lambda _: util.Finalize(None, _exit, exitpriority=1))


os.register_at_fork(after_in_child=_forked)
