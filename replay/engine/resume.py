"""Goes on with a run of the built-in loop that was interrupted or ended at a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...tracer import observers
from ...tracer.errors import LooptapeError, UsageError
from ...tracer.live import OpenRun
from ...tracer.model import Run, Turn
from ...tracer.process import recorder as process_recorder
from ...tracer.recorder import Recorder
from ..fork.rebuild import rebuild
from ..fork.start import KnownResult, OpenCall, Start
from .loop import run as run_loop
from .making import model_of, toolbox_of
from .models.protocol import Model
from .outcome import Outcome
from .policy import Hooks, Policy, from_json
from .record import ENGINE, RunRecord
from .toolbox import Toolbox
from .tools.recorded import RecordedTools
from .tools.telling import Failure

if TYPE_CHECKING:
    from ...tracer.store import Store

MAY_HAVE_RUN = "the run was stopped while this tool ran: it may have done its work or not"


@dataclass(frozen=True, slots=True)
class Resumption:
    """Everything that is needed to go on with a run, read from the store: that may be closed before `go`."""

    start: Start
    model: Model
    tools: Toolbox
    policy: Policy
    run: Run
    counted: Mapping[str, Any]
    last: int

    def go(self, *, hooks: Hooks | None = None, recorder: Recorder | None = None) -> Outcome:
        """Goes on with the run until something ends it."""
        active = recorder or process_recorder()
        opened = _opened(self.run, self.last)
        opened.limits = self.policy.limits()
        record = RunRecord(opened, self.start.api, active)
        run = self.run
        record.open(source=run.source, project=run.project, title=run.title, task=run.task)
        record.goes_on()
        return run_loop(
            self.start, self.model, self.tools, self.policy,
            hooks=hooks, opened=opened, recorder=active, resumed=self.counted,
        )  # fmt: skip


def prepare(
    store: Store,
    run_id: str,
    *,
    model: Model | None = None,
    tools: Toolbox | None = None,
    policy: Policy | None = None,
) -> Resumption:
    """Reads what going on needs.

    A call that was running when the run stopped is run again only where that does no harm (a tool that reads, or that
    takes an idempotency key); else the model is told that it may have done its work. Limits go on counting, but the time.

    Args:
        model, tools, policy: Instead of those the run was begun with.

    Raises:
        UsageError: There is no such run, the built-in loop did not make it, it runs, or it is over for good.
        LooptapeError: Its content was not recorded.
    """
    run = store.run(run_id)
    saved = settings_of(store, run)
    _refuse(run)
    turns = store.turns(run_id)
    if not turns:
        raise UsageError("nothing-to-resume", f"run {run_id} has no turn to go on from", "Fork it again")
    toolbox = tools or toolbox_of(saved["tools"], _recorded(store, saved))
    own = [t for t in turns if not t.inherited]
    answering = (model or _model(store, saved)).fresh(sum(t.status == "ok" for t in own))
    start = _start(store, run, turns, toolbox)
    states = [e.detail for e in store.events(run_id) if e.kind == observers.STATE]
    counted = {**_counted(own), "start": saved["start"], "guard": states}
    return Resumption(start, answering, toolbox, policy or from_json(saved["policy"]), run, counted, turns[-1].number)


def resume(
    store: Store, run_id: str, *, hooks: Hooks | None = None, recorder: Recorder | None = None, **instead: Any
) -> Outcome:
    """`prepare` and `Resumption.go` in one, for a store that nobody else waits for."""
    return prepare(store, run_id, **instead).go(hooks=hooks, recorder=recorder)


def settings_of(store: Store, run: Run) -> Mapping[str, Any]:
    """What the loop saved of the run: ``start``, ``model``, ``tools``, ``policy``.

    Raises:
        UsageError: ``not-the-loops``: another program made the run.
    """
    found = [e.detail for e in store.events(run.id) if e.kind == ENGINE]
    if not found:
        raise UsageError(
            "not-the-loops",
            f"run {run.id} was not made by the built-in loop",
            f"Go on from its last turn in a new run: looptape fork {run.id}:{run.turns + 1}",
        )
    return found[-1]


def _model(store: Store, saved: Mapping[str, Any]) -> Model:
    """The model that the run was begun with."""
    if saved["model"].get("kind") != "recorded":
        return model_of(saved["model"])
    from .forks.answers import recorded_model

    origin = saved["start"]
    return recorded_model(store, rebuild(store, origin["run"], origin["turn"], api=origin["api"]))


def _refuse(run: Run) -> None:
    if run.status == "running":
        raise UsageError("still-running", f"run {run.id} is running", "Wait for it, or stop it first")
    if run.status == "completed":
        raise UsageError(
            "run-is-over", f"run {run.id} is complete ({run.reason})", f"Fork it: looptape fork {run.id}:{run.turns}"
        )


def _recorded(store: Store, saved: Mapping[str, Any]) -> RecordedTools | None:
    """The results of the run that was forked, where that is still here."""
    source = saved.get("start", {}).get("run")
    try:
        return RecordedTools(store.turns(source), source=f"run {source}") if source and store.run(source) else None
    except LooptapeError:
        return None


def _start(store: Store, run: Run, turns: Sequence[Turn], toolbox: Toolbox) -> Start:
    """Where the record ends: the failed or open turn again, else what follows the last answer."""
    last = turns[-1]
    if last.status != "ok":
        found = rebuild(store, run.id, last.number)
        return replace(found, inherited=last.number)
    found = rebuild(store, run.id, last.number + 1, run_open=True)
    return _without_doubles(found, last, toolbox) if found.stage == "execute" else found


def _without_doubles(start: Start, last: Turn, toolbox: Toolbox) -> Start:
    """Calls that had begun and may have done something are not begun again."""
    safe = {d.name for d in toolbox.definitions() if d.repeatable}
    begun = {
        c.id for c in last.tool_calls if c.started_at is not None and c.timing == "measured" and c.name not in safe
    }
    told = Failure("cancelled", MAY_HAVE_RUN, "cancelled", retry="look first whether it did").result()
    known = {**start.known}
    pending: list[OpenCall] = []
    for call in start.pending:
        if call.id in begun:
            known[call.id] = KnownResult(call, told.content, is_error=True, origin="error")
        else:
            pending.append(call)
    return replace(start, known=known, pending=tuple(pending))


def _opened(run: Run, last: int) -> OpenRun:
    opened = OpenRun(id=run.id, explicit=True, name=run.name, session=run.session, agent=run.agent)
    opened.source = run.source
    if run.parent is not None:
        opened.parent = {
            "run": run.parent.run, "turn": run.parent.turn, "call": run.parent.call, "kind": run.parent.kind,
        }  # fmt: skip
    opened.turns = last
    return opened


def _counted(own: Sequence[Turn]) -> dict[str, Any]:
    """What the run used before: its limits go on from there."""
    return {
        "turns": len(own),
        "tokens": sum((t.usage.context or 0) + (t.usage.output or 0) for t in own),
        "usd": [t.cost_usd for t in own],
        "calls": sum(len(t.tool_calls) for t in own),
    }
