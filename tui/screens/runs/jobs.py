"""What the list of runs does in threads besides reading: sessions of this machine brought in, the demo made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ....tracer import paths
from ....tracer.errors import LooptapeError
from ...data import demo_store, sessions
from ...data.source import Source
from ...data.source import offered as told
from ...format import counted

if TYPE_CHECKING:
    from ....tracer.store import Store

CHUNK = 2.0
"""Seconds of one piece of an import; the list is read between them."""


def offered(source: Source) -> tuple[list[str], list[Path]]:
    """What other tools left on this machine and is not kept in step yet: in words, and as folders.

    Raises:
        LooptapeError: This list is of another store than theirs go into, or there is nothing.
    """
    if source.home != paths.home():
        raise LooptapeError(
            "not-here", "sessions go into your own store, this list is of another", "q leads back to it"
        )
    known = set(sessions.remembered())
    found = [f for f in sessions.found() if f.path.absolute() not in known]
    if found:
        return [told(f).what for f in found], [f.path for f in found]
    if known:
        raise LooptapeError("in-step", f"{counted(len(known), 'folder')} kept in step already", "")
    raise LooptapeError(
        "no-sessions", "no Claude Code or Codex sessions on this machine", "looptape import PATH takes any other file"
    )


def bring_in(source: Source, folders: list[Path], tell: Callable[[str], None], stopped: Callable[[], bool]) -> str:
    """Imports these folders piece by piece, and keeps them in step from now on; says what came of it."""
    before_all = source.ask(_count)
    for folder in folders:
        sessions.remember(folder)
    whole = left = sessions.waiting()
    said = ""
    while left and not stopped():
        tell(f"importing: {whole - left:,} of {counted(whole, 'session file')}")
        said = source.change(_piece)
        before, left = left, sessions.waiting()
        if left >= before or said:
            break
    what = f"{counted(source.ask(_count) - before_all, 'run')} from {counted(whole - left, 'session file')}"
    if left:
        return f"{what}; {left:,} left: {said or 'looptape sync brings them in'}"
    return f"{what}; kept in step from now on"


def _piece(store: Store) -> str:
    """Takes in some files; why no more came in, where it is not the time."""
    said: list[str] = []
    sessions.in_step(store, said.append, everything=True, seconds=CHUNK)
    return next((line for line in said if not line.startswith("importing")), "")


def _count(store: Store) -> int:
    from ....tracer.store import Filter

    return store.count(Filter())


def make_demo(source: Source, stopped: Callable[[], bool]) -> Path:
    """The demo's store, made anew beside this one.

    Raises:
        LooptapeError: It could not be made.
    """
    return demo_store.make(source.home or paths.home(), stopped)
