"""`looptape.replaying(RUN)`: in its block this process's model calls and wrapped tools are answered from a recording."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from ..tracer import substitute
from ..tracer.errors import UsageError
from ..tracer.hook import instrumented
from . import offline
from .player.settings import Match, OnMiss, ReplaySettings

if TYPE_CHECKING:
    from .player.recorded import RecordedRuns
    from .verdict import Verdict


def replaying(
    run: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    match: Match = "normalised",
    on_miss: OnMiss = "stop",
    from_turn: int | None = None,
    model: str = "recorded",
    tools: str = "recorded",
    tool: Mapping[str, str] | None = None,
    unwrapped: Literal["stop", "run"] = "stop",
    max_turns: int | None = None,
    max_cost_usd: float | None = None,
    network: Literal["closed", "open"] = "closed",
    normalisers: Sequence[str] = (),
    into: str | os.PathLike[str] | None = None,
) -> Replaying:
    """Runs the code of its block against a recording, offline by default.

        with looptape.replaying("revenue") as tape:
            main()
        assert tape.verdict.ok, tape.verdict

    Every client of the process is answered, whoever made it, and every wrapped tool. What happens is
    recorded as a new run that knows its parent.

    Args:
        run: A reference (id, name, ``last``, ``RUN:7`` for ``from_turn=7``) or the path of a tape; or several, where
            the code makes several runs.
        match: How alike a request must be: ``normalised``, ``exact`` or ``dialogue``.
        on_miss: ``stop`` raises `ReplayMismatch`, ``warn`` goes on with the nearest, ``live`` asks the model.
        from_turn: Turns before it are answered from the recording; from it on ``model`` and ``tools`` hold.
        model: ``recorded``, ``live``, or the name of another model (live).
        tools: ``recorded`` or ``live`` (those that change nothing; others by name in ``tool``).
        tool: Per tool: ``recorded``, ``live``, ``stub:TEXT``.
        unwrapped: What to do where the recording has calls of tools that are not wrapped here: ``stop`` or ``run``.
        max_turns: Turns that may be live.
        max_cost_usd: US dollars that live turns may cost.
        network: ``closed`` refuses connections off this machine while nothing live is asked for.
        normalisers: More of your own, each ``module:function``, text to text.
        into: Another store directory for the new run.

    Raises:
        UsageError: There is no such run, or choices do not fit; nothing has run then.
        LooptapeError: The recording cannot be replayed (``recording-unusable``).
    """
    settings = ReplaySettings(
        match, on_miss, from_turn, model, tools, dict(tool or {}), unwrapped, max_turns, max_cost_usd, network,
        tuple(normalisers),
    )  # fmt: skip
    named = [run] if isinstance(run, (str, os.PathLike)) else list(run)
    return Replaying([os.fspath(one) for one in named], settings, Path(into) if into is not None else None)


class Replaying:
    """A replay in this process; made by `replaying`.

    Attributes:
        verdict: What came of it; None until the block is left.
        settings: How it is done.
    """

    def __init__(self, references: Sequence[str], settings: ReplaySettings, into: Path | None = None) -> None:
        self.settings = settings
        self.verdict: Verdict | None = None
        self._references = references
        self._into = into
        self._undo = contextlib.ExitStack()

    @property
    def run(self) -> str | None:
        """Id of the new run (the first that was opened), None while there is none."""
        return self.runs[0] if self.runs else None

    @property
    def runs(self) -> tuple[str, ...]:
        """Ids of every run that was opened, in order."""
        from .program.spec import opened

        return tuple(opened(self._events.all()))

    @property
    def recorded(self) -> RecordedRuns:
        """What answers: the runs of the recording. Known inside the block and after it."""
        return self._recorded

    def so_far(self) -> Verdict:
        """The judgement over what happened until now, inside the block."""
        from .player.events import read
        from .verdict import judge

        return self.verdict or judge(self._recorded, self.settings, read(self._told))

    def __enter__(self) -> Replaying:
        from .player.events import Events
        from .player.player import Player
        from .program.recorder import home_for, recording_to
        from .program.spec import normalisers
        from .program.tape import joined, recording_of, starting_at
        from .reference import project_of

        if self.verdict is not None:
            raise UsageError("usage", "this replay is over", "Call looptape.replaying() again for another")
        here = project_of(Path.cwd())
        recording = joined([recording_of(one, here) for one in self._references])
        settings = replace(self.settings, normalisers=normalisers(self.settings.normalisers))
        self.settings = starting_at(settings, recording.first)
        self._recorded = recording.runs
        with contextlib.ExitStack() as undo:
            folder = tempfile.TemporaryDirectory(prefix="looptape-replay-", ignore_cleanup_errors=True)
            self._told = Path(undo.enter_context(folder))
            self._events = Events(self._told / "main.jsonl")
            player = Player(self._recorded, self.settings, self._events)
            home = undo.enter_context(home_for(self._into))
            if home is not None:
                undo.enter_context(recording_to(home))
            undo.callback(substitute.install, substitute.install(player))
            undo.enter_context(instrumented())
            if self.settings.is_closed:
                undo.enter_context(offline.closed(self._refused))
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from .player.events import read
        from .verdict import judge

        happened = read(self._told)  # forked processes have told theirs there too
        self._undo.close()
        self.verdict = judge(self._recorded, self.settings, happened)

    def _refused(self, address: str) -> None:
        self._events.add("network", address=address, blocked=True)
