"""A fork from a reference to its outcomes: rebuilt, edited, opened as new runs, run by the built-in loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ....tracer.errors import LooptapeError, UsageError
from ....tracer.live import OpenRun
from ....tracer.model import Turn
from ....tracer.process import recorder
from ....tracer.recorder import Recorder
from ...fork.draft import Draft, draft
from ...fork.edits import Edit, apply
from ...fork.faithful import start
from ...fork.inherited import of_run
from ...fork.lineage import open_fork
from ...fork.showing import diff
from ...fork.start import Start

if TYPE_CHECKING:
    from ....tracer.store import Store
    from ..models.protocol import Model
    from ..outcome import Outcome, Spread
    from ..policy import Hooks, Policy
    from ..toolbox import Toolbox


@dataclass(frozen=True, slots=True)
class Plan:
    """What a fork would do; nothing has run.

    Attributes:
        before, after: The request as recorded, and edited.
        turns: All turns of the recorded run, whose results may answer.
    """

    before: Draft
    after: Draft
    turns: tuple[Turn, ...]

    def diff(self) -> list[str]:
        """What the edits change."""
        return diff(self.before, self.after)

    def start(self, *, api: str | None = None, seen_tools: bool = False) -> Start:
        """Where the loop begins, in a wire format; see `faithful.start`."""
        made = start(self.after, seen=seen_tools, api=api)
        spoken = [t.number for t in self.turns if t.user_turn and t.number > made.inherited + 1]
        if not spoken:
            return made
        again = f"turn {spoken[0]}" if len(spoken) == 1 else f"{len(spoken)} turns (the first: {spoken[0]})"
        note = f"in the recording a person spoke again at {again}: the built-in loop ends where the model stops"
        return replace(made, notes=(*made.notes, note))


def plan(store: Store, run: str, number: int, edits: Sequence[Edit] = (), drop: Sequence[int] = ()) -> Plan:
    """Rebuilds a turn and edits it.

    Raises:
        UsageError: There is no such turn, or an edit leads nowhere.
        LooptapeError: The content was not recorded (exit 3).
    """
    before = draft(store, run, number)
    return Plan(before, apply(before, edits, drop), tuple(store.turns(run)))


def active_recorder() -> Recorder:
    """The recorder of this process. Raises UsageError where recording is off: a fork is a recorded run."""
    found = recorder()
    if found is None:
        raise UsageError("recording-off", "a fork is a recorded run, and recording is off", "Unset LOOPTAPE=off")
    return found


def opened(store: Store, begin: Start, policy: Policy, count: int) -> list[OpenRun]:
    """The new runs, with what they inherit. The store is not needed any more then."""
    active = active_recorder()
    taped = list(of_run(store, begin.run, begin.inherited)) if count > 1 else None
    return [open_fork(active, store, begin, limits=policy.limits(), taped=taped) for _ in range(count)]


def carry_out(
    begin: Start,
    runs: Sequence[OpenRun],
    model: Model,
    tools: Toolbox,
    policy: Policy,
    *,
    check: str | None = None,
    told: Callable[[int, Outcome], None] | None = None,
    hooks: Hooks | None = None,
) -> Spread:
    """Runs each of the opened runs to its end; what could not run at all says so in its record too.

    Args:
        hooks: Who watches the turns, and how it is stopped.
    """
    from ..samples import samples

    active = active_recorder()
    try:
        return samples(
            begin, len(runs), model, tools, policy,
            check=check, hooks=hooks, opened=lambda place: runs[place - 1], recorder=active, told=told,
        )  # fmt: skip
    finally:
        model.close()
        tools.close()
        for run in runs:
            if not run.ended:
                with active.lock:
                    active.end_run(run, "failed", "the built-in loop could not begin")


def refuse_miss(spread: Spread) -> None:
    """Raises LooptapeError when not one of the runs could begin."""
    if spread.failures and not spread.outcomes:
        raise LooptapeError("fork-failed", spread.failures[0], exit_code=1)
