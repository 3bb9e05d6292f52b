"""Runs a program against a recording, in its own processes or behind the proxy, and judges what happened."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...tracer import facts, substitute
from ...tracer.clock import new_id
from ...tracer.inject import command_of, injected, started, why_not_inside
from ...tracer.proxy import run_behind_proxy
from ...tracer.proxy.child import run
from .. import offline
from ..player import events as told
from ..player.player import Player
from ..player.settings import ReplaySettings
from ..verdict import Verdict, judge
from .recorder import home_for, recording_to, usual_home
from .spec import VARIABLE, Spec, opened
from .tape import Recording

BAD, USAGE, INTERRUPTED = 1, 2, 130


@dataclass(frozen=True, slots=True)
class Rerun:
    """What came of a program that ran against a recording.

    Attributes:
        code: The program's own exit code (128 plus the signal that ended it).
        verdict: The judgement over all its processes.
        runs: Ids of the new runs, in order.
        events: What the processes told.
    """

    code: int
    verdict: Verdict
    runs: tuple[str, ...]
    events: tuple[Mapping[str, Any], ...]

    @property
    def exit_code(self) -> int:
        """1 for a bad verdict, 2 where it stopped before turn 1 for unwrapped tools, else the program's."""
        if self.code == INTERRUPTED:
            return INTERRUPTED
        if any(e.get("event") == "unwrapped" for e in self.events):
            return USAGE
        return self.code if self.verdict.ok else BAD


def rerun(
    recording: Recording,
    argv: Sequence[str],
    how: ReplaySettings,
    *,
    proxy: bool = False,
    into: Path | None = None,
    verb: str = "replay RUN",
    output: int | None = None,
) -> Rerun:
    """Runs a command with its model calls and wrapped tools answered from a recording.

    Args:
        recording: What answers.
        argv: The command and its arguments.
        how: The settings of the replay.
        proxy: Use the proxy also where the program could be answered in its own process.
        into: Store directory of the new run; the usual one otherwise.
        verb: The command of ours that an error names.
        output: Descriptor that the program's stdout goes to; ours otherwise.

    Raises:
        UsageError: There is no such command, or it cannot be started.
    """
    command = command_of(argv, verb)
    with (
        tempfile.TemporaryDirectory(prefix="looptape-replay-", ignore_cleanup_errors=True) as folder,
        home_for(into) as home,
    ):
        given = _environment(home)
        handed = _hand_over(recording, how, Path(folder))
        environment = {**injected(given), VARIABLE: str(handed)}
        reason = "asked for with --proxy" if proxy else why_not_inside(command, injected(given))
        with started(command):
            if reason is None:
                code = run(command, environment, output=output)
            else:
                # what a launcher starts may be a Python that is answered in its own process
                launcher = command.python is None and not proxy
                given = environment if launcher else given
                with _answering(recording, how, given, Path(folder)):
                    code = run_behind_proxy(command, reason, given, doing="replaying", output=output)
        happened = tuple(told.read(Path(folder) / "events"))
    return Rerun(code, judge(recording.runs, how, happened), tuple(opened(happened)), happened)


def _hand_over(recording: Recording, how: ReplaySettings, folder: Path) -> Path:
    events = folder / "events"
    events.mkdir()
    return Spec(recording.written(folder / "tape.jsonl"), events, how).write(folder / "spec.json")


def _environment(home: Path | None) -> dict[str, str]:
    """The program's environment: recording is on in it, whatever the settings say."""
    given = {k: v for k, v in os.environ.items() if k != VARIABLE}
    given |= {"LOOPTAPE": "on", "LOOPTAPE_CONTENT": "full"}
    return given if home is None else {**given, "LOOPTAPE_HOME": str(home)}


@contextmanager
def _answering(
    recording: Recording, how: ReplaySettings, environment: Mapping[str, str], folder: Path
) -> Iterator[None]:
    """The player stands in for the model in this process, which the program's proxy will be in."""
    events = told.Events(folder / "events" / f"{os.getpid()}-{new_id()}.jsonl")
    home = Path(environment["LOOPTAPE_HOME"]) if environment.get("LOOPTAPE_HOME") else usual_home()
    with ExitStack() as undo:
        undo.callback(facts.describe, name=None, source=None, versions=None)
        undo.enter_context(recording_to(home))
        undo.callback(substitute.install, substitute.install(Player(recording.runs, how, events)))
        if how.is_closed:
            undo.enter_context(offline.closed(lambda address: events.add("network", address=address, blocked=True)))
        yield
