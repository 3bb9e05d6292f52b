"""Installs a replay in a process that Python starts under `looptape replay -- COMMAND`; the sitecustomize calls it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ...tracer import substitute
from ...tracer.clock import new_id
from ...tracer.fork_lock import ForkLock
from .. import offline
from . import spec as handed
from . import stops

if TYPE_CHECKING:
    from ...tracer.live import OpenRun
    from ...tracer.providers import Provider
    from ...tracer.substitute import Asked, Reply, Substitute, ToolAsked, ToolReply
    from ..player.events import Events


def install(file: str) -> None:
    """Answers this process's model calls and wrapped tools from the recording that a hand-over file names.

    Raises:
        LooptapeError: The hand-over file cannot be read.
    """
    from ..player.events import Events

    given = handed.read(Path(file))
    events = Events(given.events / f"{os.getpid()}-{new_id()}.jsonl")
    stops.install()
    if given.settings.is_closed:
        offline.close(lambda address: events.add("network", address=address, blocked=True))
    substitute.install(Late(given, events))


class Late:
    """Reads the recording when the first call is made: most processes of a program never make one."""

    def __init__(self, given: handed.Spec, events: Events) -> None:
        self._given = given
        self._events = events
        self._made: Substitute | None = None
        self._making = ForkLock()

    def prepare(self, provider: Provider, raw: bytes) -> bytes:
        """As the player does."""
        return self._player().prepare(provider, raw)

    def answer(self, asked: Asked) -> Reply | None:
        """As the player does."""
        return self._player().answer(asked)

    def tool(self, asked: ToolAsked) -> ToolReply | None:
        """As the player does."""
        return self._player().tool(asked)

    def opened(self, run: OpenRun) -> None:
        """As the player does."""
        self._player().opened(run)

    def _player(self) -> Substitute:
        if self._made is None:
            with self._making:  # two first calls at once: two players would give the same answers twice
                if self._made is None:
                    self._made = self._make()
        return self._made

    def _make(self) -> Substitute:
        from ..player import tape_runs
        from ..player.player import Player

        handed.normalisers(self._given.settings.normalisers)  # their modules can be found then
        return Player(tape_runs.read(self._given.tape), self._given.settings, self._events)
