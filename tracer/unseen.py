"""Says that a program under `looptape record` has ended and nothing of it was recorded, and what to try."""

from __future__ import annotations

import atexit
import os
import time

FIRST = "LOOPTAPE_RECORD_PID"
"""In the program's environment: the process that `looptape record` became. Those it starts leave the word to it."""

_INSIDE = "A client of its own, or another HTTP library? Try: looptape record --proxy -- COMMAND"
BEHIND = "Does it ask the addresses in ANTHROPIC_BASE_URL and OPENAI_BASE_URL?"
_TICK = 50_000_000  # ns; a file's time may lie a little before the clock's


def tell_at_exit() -> None:
    """In the process that `looptape record` became: looks when the program has ended by itself."""
    if os.environ.get(FIRST) == str(os.getpid()):
        atexit.register(_ended, os.getpid(), time.time_ns())


def tell(since: int, cure: str = _INSIDE) -> None:
    """One line on stderr if no journal was written to since then (ns), nor the store, which may have taken one in and
    away; nothing where recording is off."""
    from pathlib import Path

    from . import paths, quiet, settings
    from .errors import LooptapeError

    try:
        said = settings.effective()
        if said["recording"].value == "off":
            return
        home = Path(said["home"].value)
        folders = [f for f in (paths.journal_dir(home), paths.done_dir(home)) if f.is_dir()]
        files = [*(file for folder in folders for file in folder.glob("*.jsonl")), paths.store_file(home)]
        times = [file.stat().st_mtime_ns for file in files if file.exists()]
    except (LooptapeError, OSError):
        return  # said by others; a journal that goes while it is looked at was written by somebody
    if not any(at > since - _TICK for at in times):
        quiet.say(f"nothing was recorded: no model call of the program was seen. {cure}")


def _ended(process: int, since: int) -> None:
    if os.getpid() == process:  # not in a forked child
        tell(since)
