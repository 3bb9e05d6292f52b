"""Puts the split together: two accounts side by side, every cause with its amount, its turns and its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from ...tracer.model import Run
from . import wording
from .account import DOLLARS, Account, Entry, account
from .breaks import uncached
from .causes import CAUSES, Part
from .sorting import pairs, set_aside
from .stepping import own_steps, steps
from .usual import Usual, usual

if TYPE_CHECKING:
    from ...tracer.store import Store


@dataclass(frozen=True, slots=True)
class Explanation:
    """A run's cost and turns beside what is usual.

    Attributes:
        unit: ``usd``, or ``tokens`` where a price is not known.
        amount, turns: The run's, with its sub-agents; its own turns.
        difference: What is above the usual; the whole amount where nothing is usual. The parts sum to it exactly.
        turns_above: The same in turns.
        parts: The largest first, what is unexplained last; a cause without a share is left out.
        notes: What a reader must know of the comparison.
    """

    run: Run
    unit: str
    usual: Usual
    amount: Decimal
    turns: int
    difference: Decimal
    turns_above: Decimal
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()

    @property
    def unexplained(self) -> Decimal:
        """The amount that no cause explains."""
        return sum((p.amount for p in self.parts if p.cause == "unexplained"), Decimal(0))


@dataclass(slots=True)
class Sums:
    """Amounts by cause and turn as they come; ``elsewhere`` lies in no turn of this run."""

    at: dict[str, dict[int, Decimal]] = field(default_factory=lambda: {c: {} for c in CAUSES})
    elsewhere: dict[str, Decimal] = field(default_factory=lambda: dict.fromkeys(CAUSES, Decimal(0)))
    turns: dict[str, Decimal] = field(default_factory=lambda: dict.fromkeys(CAUSES, Decimal(0)))

    def add(self, cause: str, amount: Decimal, turn: int | None = None, turns: int = 0) -> None:
        """Adds to a cause; ``turns``: how many more turns it makes."""
        if turn is None:
            self.elsewhere[cause] += amount
        else:
            self.at[cause][turn] = self.at[cause].get(turn, Decimal(0)) + amount
        self.turns[cause] += turns

    def total(self, cause: str) -> Decimal:
        """What a cause comes to."""
        return sum(self.at[cause].values(), self.elsewhere[cause])


def explain(store: Store, run: Run, against: Run | None = None) -> Explanation:
    """Where a run's cost and turns above the usual went.

    Args:
        against: Compare with this run, rather than with the median of the runs of the same task or name.

    Raises:
        UsageError: `run` or `against` has no turns.
    """
    common = usual(store, run, against)
    mine = account(store, run, common.unit)
    other = account(store, store.run(common.nearest), common.unit) if common.nearest else None
    sums, mine = split(mine, other)
    if other is not None:  # the median may lie between two runs
        sums.add("unexplained", other.total - (common.amount or 0))
        sums.turns["unexplained"] += len(other.entries) - (common.turns or 0)
    turns = len(mine.entries)
    return Explanation(
        run, common.unit, common, mine.total, turns,
        mine.total - (common.amount or 0), Decimal(turns) - (common.turns or 0),
        tuple(_parts(sums, mine, other)), _notes(common, mine),
    )  # fmt: skip


def split(mine: Account, other: Account | None) -> tuple[Sums, Account]:
    """The difference of two runs by cause, or one run's own cost; and the account with the breaks that were counted.

    The sums of all causes are exactly ``mine.total - other.total``, or ``mine.total``.
    """
    sums = Sums()
    if other is not None:
        return sums, _compare(sums, mine, other)
    _alone(sums, mine)
    return sums, mine


def _alone(sums: Sums, mine: Account) -> None:
    """Nothing is usual: the run's own cost, split."""
    aside = set_aside(mine)
    for entry in mine.entries:
        if cause := aside.get(entry.number):
            sums.add(cause, entry.amount, entry.number, 1)
            continue
        for cause, amount in own_steps(entry, mine.unit, mine.breaks.get(entry.number)):
            sums.add(cause, amount, entry.number)
    _children(sums, mine)


def _compare(sums: Sums, mine: Account, other: Account) -> Account:
    """The difference of two runs; returns the account with the breaks that were looked at."""
    theirs_aside = set_aside(other)
    theirs = [e for e in other.entries if e.number not in theirs_aside]
    aside = set_aside(mine, len(theirs))
    for entry in (e for e in mine.entries if e.number in aside):
        sums.add(aside[entry.number], entry.amount, entry.number, 1)
    for entry in (e for e in other.entries if e.number in theirs_aside):
        sums.add(theirs_aside[entry.number], -entry.amount, None, -1)
    if _caches(other.entries) and not _caches(mine.entries):
        mine = replace(mine, breaks=uncached([e.turn for e in mine.entries]))
    for ours, usual_one in pairs([e for e in mine.entries if e.number not in aside], theirs):
        if ours is not None and usual_one is not None:
            broken = mine.breaks.get(ours.number), other.breaks.get(usual_one.number)
            for cause, amount in steps(ours, usual_one, mine.unit, *broken):
                sums.add(cause, amount, ours.number)
        elif ours is not None:
            sums.add("extra_turns", ours.amount, ours.number, 1)
        elif usual_one is not None:
            sums.add("extra_turns", -usual_one.amount, None, -1)
    _children(sums, mine)
    sums.add("sub_agents", -other.children_total)
    return mine


def _children(sums: Sums, mine: Account) -> None:
    for child in mine.children:
        sums.add("sub_agents", child.usd if mine.unit == DOLLARS else child.tokens, child.turn)


def _caches(entries: Sequence[Entry]) -> bool:
    return any(e.turn.usage.cache_read for e in entries)


def _parts(sums: Sums, mine: Account, other: Account | None) -> list[Part]:
    refused = wording.refused_words(mine)
    parts = []
    for cause in CAUSES:
        amount, turns = sums.total(cause), sums.turns[cause]
        if not amount and not (turns and other is not None) and not (cause == "retries" and refused):
            continue
        at = named(sums.at[cause], whole=cause in wording.WHOLE_TURNS)
        what = wording.what(cause, at, amount, turns, mine, other)
        parts.append(Part(cause, amount, turns, at, wording.callers_at(mine, at), what))
    return sorted(parts, key=lambda p: (p.cause == "unexplained", -abs(p.amount)))


def named(amounts: Mapping[int, Decimal], *, whole: bool) -> tuple[int, ...]:
    """The turns that a part names: all that belong to it, or those that make nine tenths of what it adds."""
    if whole:
        return tuple(sorted(amounts))
    sign = 1 if sum(amounts.values(), Decimal(0)) >= 0 else -1
    share = {n: a * sign for n, a in amounts.items() if a * sign > 0}
    left = sum(share.values(), Decimal(0)) * Decimal("0.9")
    found = []
    for number in sorted(share, key=lambda n: (-share[n], n)):
        if left <= 0:
            break
        found.append(number)
        left -= share[number]
    return tuple(sorted(found))


def _notes(common: Usual, mine: Account) -> tuple[str, ...]:
    notes = list(common.notes)
    run = mine.run
    if run.parent is not None and run.parent.kind in ("fork", "resume"):
        notes.append(f"a {run.parent.kind} of {run.parent.run}: only its own turns are counted")
    if run.status == "running":
        notes.append("still running")
    if run.usage.partial:
        notes.append("some usage is not known: figures are lower bounds")
    if run.list_price:
        notes.append("list price: clients like this one are often paid by subscription")
    return tuple(notes)
