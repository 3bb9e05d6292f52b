"""The turn list of a run out of the store: around a turn, whole, or only what is new since it was read last."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from ...tracer.observers import STATE
from ...tracer.store.quiet_gc import fewer_collections
from .views import RunView, TurnRow, rows_of

if TYPE_CHECKING:
    from ...tracer.store import Store

LONG = 3_000
"""Turns from which on a run is long: its first picture is made of the turns around the selected one."""
AROUND = 400
"""Turns read on each side of it."""
UNSETTLED = 16
"""Turns at the end of a run that are read again each time: results come back to them."""


def read(store: Store, run: str, known: RunView | None = None, around: int | None = None) -> RunView:
    """A run and its turn list.

    Args:
        known: What was read before: the turns in it that still stand as they did are not read again.
        around: Of a long run read only the turns around this one (``whole`` is False then).
    """
    found = store.run(run)
    events = tuple(e for e in store.events(run) if e.kind != STATE)
    if around is not None and found.turns > LONG:
        near = rows_of(store.turn_rows(run, max(1, around - AROUND), around + AROUND))
        if near:
            return RunView(found, tuple(near), events, whole=False)
    kept = _kept(store, run, known)
    rows = _read(store, run, kept[-1].number + 1 if kept else None)
    turns = (*kept, *rows)
    last = max(0, turns[-1].number - UNSETTLED) if turns else 0
    return RunView(found, turns, events, settled=(last, store.stand(run, last)) if last else (0, None))


def let_go(view: RunView) -> None:
    """The screen of a run is gone: its turns are the collector's again, and so is what they hold."""
    if len(view.turns) > LONG:
        gc.unfreeze()


def _kept(store: Store, run: str, known: RunView | None) -> tuple[TurnRow, ...]:
    """The turns that need not be read again."""
    if known is None or not known.settled[0]:
        return ()
    last, stood = known.settled
    if store.stand(run, last) != stood:
        return ()
    end = next((i for i in range(len(known.turns), 0, -1) if known.turns[i - 1].number <= last), 0)
    return known.turns[:end]


def _read(store: Store, run: str, first: int | None) -> list[TurnRow]:
    rows: list[TurnRow] = []
    with fewer_collections():
        for batch in store.turn_batches(run, first):
            rows += rows_of(batch)
    if len(rows) > LONG:
        gc.freeze()  # they stay as long as the screen: no later collection need look at them
    return rows
