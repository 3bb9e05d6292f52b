"""What is usual: the median of the runs of the same task or name, or one run that was named."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ...tracer.errors import UsageError
from ...tracer.model import Run
from .account import _READ, DOLLARS, TOKENS, Child, child_amount, children

if TYPE_CHECKING:
    from ...tracer.store import Store

# Forks and resumed sessions own only a part of the job, replays cost nothing, running ones are not done.
_PEERS = """
  select r.id, r.status, r.project from base.runs as r
  where coalesce(r.task, r.name) = coalesce(?, ?) and r.id <> ? and r.turns > 0 and r.status <> 'running'
    and coalesce(r.source, '') <> 'replay' and coalesce(r.parent_kind, '') not in ('fork', 'resume')
    and (coalesce(r.parent_kind, '') = 'sub-agent') = (? = 'sub-agent')
"""
_AMOUNTS = f"""
  select r.id, r.cost_usd as usd, coalesce(r.unpriced_turns, 0) as unpriced,
    {_READ} + coalesce(r.output, 0) as tokens, coalesce(r.started_at, 0) as started_at,
    (select count(*) from base.turns as t where t.run = r.id and not t.inherited and t.duplicate_of is null) as turns
  from base.runs as r where r.id in (select unnest(?::varchar[]))
"""  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class Usual:
    """What a run is compared with.

    Attributes:
        kind: ``task`` or ``name`` (the median of its runs), ``run`` (one that was named), ``none``.
        name: The task, the name, or the run's id.
        runs: Ids of the runs it was made from.
        unit: ``usd``, or ``tokens`` where a price is not known.
        amount, turns: The median with sub-agents, and the median of the own turns; None where there is none.
        nearest: The run that is compared turn by turn: the one nearest to the median.
        notes: What a reader must know of the choice.
    """

    kind: str
    name: str | None = None
    runs: tuple[str, ...] = ()
    unit: str = DOLLARS
    amount: Decimal | None = None
    turns: Decimal | None = None
    nearest: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Peer:
    id: str
    amount: dict[str, Decimal]
    turns: int
    unpriced: int
    started_at: int


def usual(store: Store, run: Run, against: Run | None = None) -> Usual:
    """What is usual for a run.

    Raises:
        UsageError: `against` has no turns.
    """
    me = _peers(store, [run.id])[0]
    if against is not None:
        if not against.turns:
            raise UsageError("nothing-to-compare", f"{against.id} has no turns", "Name a run that has some")
        other = _peers(store, [against.id])
        notes = _unpriced_notes(me, [] if other[0].unpriced else other)
        unit = TOKENS if notes else DOLLARS
        return _median("run", against.id, other, unit, notes)
    kind, name = ("task", run.task) if run.task else ("name", run.name)
    ids, notes = _ids(store, run)
    peers = _peers(store, ids) if ids else []
    if not peers:
        said = f"there is no other run of {kind} {name}" if name else "the run has neither task nor name"
        cured = "" if name else ": give it one with looptape.run(NAME, task=TASK)"
        lacks = _unpriced_notes(me, [me])
        text = f"nothing to compare with ({said}{cured})"
        return Usual("none", name, unit=TOKENS if lacks else DOLLARS, notes=(text, *lacks))
    priced = [p for p in peers if not p.unpriced]
    lacks = _unpriced_notes(me, priced)
    if lacks:
        return _median(kind, name, peers, TOKENS, notes + lacks)
    if len(priced) < len(peers):
        left = len(peers) - len(priced)
        notes += (f"{left} other {'run has' if left == 1 else 'runs have'} unpriced turns and {'is' if left == 1 else 'are'} left out",)  # fmt: skip
    return _median(kind, name, priced, DOLLARS, notes)


def _median(kind: str, name: str | None, peers: list[_Peer], unit: str, notes: tuple[str, ...]) -> Usual:
    amount = statistics.median(p.amount[unit] for p in peers)
    turns = Decimal(statistics.median(Decimal(p.turns) for p in peers))
    near = min(peers, key=lambda p: (abs(p.amount[unit] - amount), abs(p.turns - turns), -p.started_at, p.id))
    return Usual(kind, name, tuple(p.id for p in peers), unit, amount, turns, near.id, notes)


def _unpriced_notes(me: _Peer, priced: list[_Peer]) -> tuple[str, ...]:
    if me.unpriced:
        turns = "1 turn" if me.unpriced == 1 else f"{me.unpriced:,} turns"
        return (f"{turns} of it cannot be priced: compared in tokens",)
    return () if priced else ("none of the other runs can be priced: compared in tokens",)


def _ids(store: Store, run: Run) -> tuple[list[str], tuple[str, ...]]:
    kind = run.parent.kind if run.parent else None
    rows = store.rows(_PEERS, [run.task, run.name, run.id, kind or ""])
    here = [r for r in rows if r["project"] == run.project]
    notes: tuple[str, ...] = ()
    if rows and not here:
        notes = ("the other runs are of other projects",)
    chosen = here or rows
    done = [r for r in chosen if r["status"] == "completed"]
    if done and len(done) < len(chosen):
        notes += (f"{len(chosen) - len(done)} that did not complete left out",)
    return [r["id"] for r in done or chosen], notes


def _peers(store: Store, ids: list[str]) -> list[_Peer]:
    below = children(store, ids)

    def peer(row: dict[str, Any]) -> _Peer:
        mine: list[Child] = below.get(row["id"], [])
        own = {DOLLARS: row["usd"] or Decimal(0), TOKENS: Decimal(row["tokens"] or 0)}
        whole = {unit: sum((child_amount(c, unit) for c in mine), own[unit]) for unit in own}
        return _Peer(row["id"], whole, row["turns"], row["unpriced"] + sum(c.unpriced for c in mine), row["started_at"])

    return [peer(row) for row in store.rows(_AMOUNTS, [ids])]
