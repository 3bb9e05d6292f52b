"""Two requests, turns or runs side by side: what changed, and the first place where they part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...tracer.errors import UsageError
from ...tracer.model import Request, Run, Turn
from .align import align
from .changes import NOTHING, Change, edit
from .requests import requests
from .totals import Totals, totals
from .turns import Heads, Seen, answers, seen, turns

if TYPE_CHECKING:
    from ...tracer.store import Store

__all__ = ["NOTHING", "Change", "Diff", "Divergence", "Pair", "Side", "Totals", "diff", "side"]

_ACTS = frozenset({"calls", "arguments"})


@dataclass(frozen=True, slots=True)
class Side:
    """One side, read into memory: a run, some of its turns, or one turn with its whole request.

    Attributes:
        request: What the model saw, where one turn was asked for and its request is recorded.
    """

    run: Run
    turns: tuple[Seen, ...]
    first: int | None = None
    last: int | None = None
    request: Request | None = None

    @property
    def is_turn(self) -> bool:
        """True for one turn, False for a run or a stretch of it."""
        return self.first is not None and self.first == self.last

    @property
    def name(self) -> str:
        """The reference: ``3f2a…``, ``3f2a…:3``, ``3f2a…:3-9``."""
        if self.first is None:
            return self.run.id
        return f"{self.run.id}:{self.first}" + (f"-{self.last}" if self.last != self.first else "")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two turns that stand for each other (by number), or one that stands alone (the other None)."""

    a: int | None
    b: int | None
    changes: tuple[Change, ...] = ()

    @property
    def same(self) -> bool:
        """True when nothing in them differs."""
        return self.a is not None and self.b is not None and not self.changes


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two sides part. ``change`` is None where a whole turn stands alone."""

    a: int | None
    b: int | None
    change: Change | None


@dataclass(frozen=True, slots=True)
class Diff:
    """How ``b`` differs from ``a``.

    Attributes:
        kind: runs or turns.
        request: The changes of two requests, for turns; where one is not recorded, only the model's.
        first: The first difference of any kind; ``first_act``: the first in what was done (calls, arguments, turns).
    """

    kind: str
    a: Side
    b: Side
    pairs: tuple[Pair, ...]
    request: tuple[Change, ...]
    first: Divergence | None
    first_act: Divergence | None
    totals: tuple[Totals, Totals]

    @property
    def same(self) -> bool:
        """True when nothing differs."""
        return self.first is None


def side(store: Store, run: Run, first: int | None = None, last: int | None = None) -> Side:
    """A run, or its turns ``first`` to ``last``, in memory; with the request when that is one turn.

    Raises:
        UsageError: None of these turns is in the record.
    """
    from ...tracer.store.quiet_gc import fewer_collections

    with fewer_collections():
        found = store.turns(run.id, first, last)
        if first is not None and not found:  # within the run, but its recording has a hole there
            which = f"turn {first}" if first == last else f"turns {first} to {last}"
            raise UsageError(
                "no-turn", f"{which} of {run.id} is not in the record", f"looptape show {run.id} lists them"
            )
        one = first is not None and first == last and found[0].message_count is not None
        request = store.request(run.id, found[0].number) if one else None
        return Side(run, tuple(seen(found, store.steps(run.id, last))), first, last, request)


def diff(a: Side, b: Side) -> Diff:
    """How ``b`` differs from ``a``.

    Raises:
        UsageError: One is a turn, the other a run (``diff-unlike``).
    """
    if a.is_turn != b.is_turn:
        raise UsageError(
            "diff-unlike",
            f"{a.name} and {b.name} are a run and a turn",
            "Name two runs, or two turns: looptape diff A:3 B:4",
        )
    sums = totals([s.turn for s in a.turns]), totals([s.turn for s in b.turns])
    if a.is_turn:
        return _turns(a, b, sums)
    heads, pairs = Heads(), []
    for i, j in align(a.turns, b.turns):
        if i is None or j is None:
            pairs.append(Pair(_number(a, i), _number(b, j)))
            continue
        one, two = a.turns[i], b.turns[j]
        pairs.append(Pair(one.turn.number, two.turn.number, (*heads.changes(one, two), *turns(one, two))))
    return Diff("runs", a, b, tuple(pairs), (), _first(pairs, None), _first(pairs, _ACTS), sums)


def _turns(a: Side, b: Side, sums: tuple[Totals, Totals]) -> Diff:
    one, two = a.turns[0].turn, b.turns[0].turn
    known = [] if a.request is None or b.request is None else requests(a.request, b.request)
    request = (*_model(one, two), *known)
    pair = Pair(one.number, two.number, tuple(answers(one, two)))
    whole = Pair(one.number, two.number, (*request, *pair.changes))
    return Diff("turns", a, b, (pair,), request, _first([whole], None), _first([whole], _ACTS), sums)


def _model(a: Turn, b: Turn) -> list[Change]:
    models = [t.model or t.request_model for t in (a, b)]
    if models[0] == models[1]:
        return []
    return [edit("model", "model", *models)]


def _first(pairs: list[Pair], wanted: frozenset[str] | None) -> Divergence | None:
    """The first difference (of the wanted parts); a turn that stands alone is one."""
    for pair in pairs:
        if pair.a is None or pair.b is None:
            return Divergence(pair.a, pair.b, None)
        for change in pair.changes:
            if wanted is None or change.part in wanted:
                return Divergence(pair.a, pair.b, change)
    return None


def _number(side: Side, place: int | None) -> int | None:
    return None if place is None else side.turns[place].turn.number
