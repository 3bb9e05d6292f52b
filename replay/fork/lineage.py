"""The new run of a fork: its parent, the turns it inherits, and the number that it goes on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...tracer.clock import new_id
from ...tracer.errors import LooptapeError
from ...tracer.live import OpenRun, PendingCall, call_key
from ...tracer.recorder import Recorder
from ...tracer.tape import Record
from .inherited import Copy, loads, records
from .start import OpenCall, Start

if TYPE_CHECKING:
    from ...tracer.store import Store


def new_run(store: Store, start: Start, *, limits: Mapping[str, Any] | None = None) -> OpenRun:
    """The run of a fork, not written yet: it knows its parent, and that it has ``start.inherited`` turns already."""
    origin = store.run(start.run)
    run = OpenRun(id=new_id(), explicit=True, name=origin.name, session=origin.session, agent=origin.agent)
    run.parent = {"run": start.run, "turn": start.turn, "call": None, "kind": "fork"}
    run.limits = dict(limits or {})
    run.turns = start.inherited
    return run


def facts(store: Store, start: Start, *, tags: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a fork has of the run it comes from: it is listed with it, under the same project, title and task."""
    origin = store.run(start.run)
    found: dict[str, Any] = {"source": "fork", "title": origin.title, "task": origin.task}
    if origin.project:
        found["project"] = origin.project
    if origin.list_price:
        found["list_price"] = True
    return {**found, "tags": {**origin.tags, **(tags or {})}}


def open_fork(
    active: Recorder,
    store: Store,
    start: Start,
    *,
    limits: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
    taped: Sequence[Record] | None = None,
) -> OpenRun:
    """Writes a new run with the inherited turns; the recorder goes on with the next turn (``place=Where(run)``).

    Calls of turn N that are still to be run stand in the run's ``pending``. The original is only read.

    Args:
        taped: What `inherited.of_run` gives for this start, where several forks of it are opened.

    Raises:
        LooptapeError: The journal takes nothing (``journal-unwritable``).
    """
    run = new_run(store, start, limits=limits)
    with active.lock:
        active.open_run(run, **facts(store, start, tags=tags))
        for batch in records(store, Copy(run.id, start, active.content), taped):
            if not active.journal.write(batch):
                raise LooptapeError(
                    "journal-unwritable", "the fork's inherited turns could not be written", "Make room, then try again"
                )
        for call in _awaited(start):
            key = call_key(call.name, loads(call.arguments_raw))
            pending = PendingCall(call.id, call.name, key, run, start.turn)
            run.pending[call.id] = pending
            active.pending.setdefault(key, []).append(pending)
    return run


def _awaited(start: Start) -> tuple[OpenCall, ...]:
    """Calls of turn N whose results the next request will bring: those to be run, and those that are known."""
    if start.stage != "execute":
        return ()
    return (*start.pending, *(k.call for k in start.known.values()))
