"""A run's account: its own turns with what each cost to the last digit, and what its sub-agents cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from ...tracer.model import Run, Turn
from ..cycles import CycleFinding, find_cycles
from ..recording import load
from .breaks import Break, cache_breaks

if TYPE_CHECKING:
    from ...tracer.store import Store

TOKENS, DOLLARS = "tokens", "usd"

_TREE = """
  with recursive tree(root, top, turn, call, id) as (
    select parent_run, id, parent_turn, parent_call, id from base.runs
    where parent_kind = 'sub-agent' and parent_run in (select unnest(?::varchar[]))
    union
    select t.root, t.top, t.turn, t.call, r.id from tree as t join base.runs as r on r.parent_run = t.id
    where r.parent_kind = 'sub-agent'
  )
"""
_READ = (
    "coalesce(r.input, 0) + coalesce(r.cache_read, 0) + coalesce(r.cache_write_5m, 0) + coalesce(r.cache_write_1h, 0)"
)
_FAMILY = f"""
  {_TREE}
  select t.root, t.top, any_value(t.turn) as turn, sum(r.cost_usd) as usd, sum(r.unpriced_turns) as unpriced,
    sum({_READ} + coalesce(r.output, 0)) as tokens, sum(r.turns) as turns,
    any_value(r.name) filter (r.id = t.top) as name, any_value(r.agent) filter (r.id = t.top) as agent
  from tree as t join base.runs as r on r.id = t.id where t.id <> t.root group by t.root, t.top order by turn, t.top
"""  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class Child:
    """A sub-agent of a run with all below it: the turn that called it, and what it took."""

    run: str
    name: str | None
    turn: int | None
    turns: int
    usd: Decimal
    tokens: Decimal
    unpriced: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One own turn with its amount in the unit of the account.

    Attributes:
        again: The turn after it sent the same messages again, so that this answer was thrown away.
    """

    turn: Turn
    amount: Decimal
    again: bool = False

    @property
    def number(self) -> int:
        """The turn's number."""
        return self.turn.number


@dataclass(frozen=True, slots=True)
class Account:
    """Everything about a run that the split looks at."""

    run: Run
    unit: str
    entries: tuple[Entry, ...]
    children: tuple[Child, ...]
    cycles: tuple[CycleFinding, ...]
    breaks: dict[int, Break]

    @property
    def total(self) -> Decimal:
        """What the run's own turns and its sub-agents took."""
        return sum((e.amount for e in self.entries), Decimal(0)) + self.children_total

    @property
    def children_total(self) -> Decimal:
        """What its sub-agents took."""
        return sum((child_amount(c, self.unit) for c in self.children), Decimal(0))


def child_amount(child: Child, unit: str) -> Decimal:
    """A sub-agent's amount in a unit."""
    return child.usd if unit == DOLLARS else child.tokens


def children(store: Store, runs: Iterable[str]) -> dict[str, list[Child]]:
    """The direct sub-agents of runs, each with all below it."""
    found: dict[str, list[Child]] = {}
    for row in store.rows(_FAMILY, [list(runs)]):
        found.setdefault(row["root"], []).append(
            Child(
                row["top"],
                row["name"] or row["agent"],
                row["turn"],
                int(row["turns"] or 0),
                row["usd"] or Decimal(0),
                Decimal(row["tokens"] or 0),
                int(row["unpriced"] or 0),
            )
        )
    return found


def account(store: Store, run: Run, unit: str) -> Account:
    """The account of a run, its turns read whole."""
    recording = load(store, run)
    money = {r["number"]: r for r in store.rows("select number, cost_usd, base, keep, message_count from base.turns where run = ?", [run.id])}  # fmt: skip
    same = {n for n, r in money.items() if r["base"] == n - 1 and _same(r, money.get(n - 1))}
    own = [t for t in recording.turns if not t.inherited]
    entries = [Entry(t, _amount(t, money[t.number]["cost_usd"], unit), t.number + 1 in same) for t in own]
    return Account(
        run,
        unit,
        tuple(entries),
        tuple(children(store, [run.id]).get(run.id, ())),
        find_cycles(recording),
        cache_breaks(store, run, recording.turns),
    )


def callers(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Where turns were called from, the most frequent first."""
    return tuple(c for c, _ in Counter(t.caller for t in turns if t.caller).most_common(3))


def _same(row: dict[str, int | None], before: dict[str, int | None] | None) -> bool:
    """True when a request held the messages of the one before and nothing more."""
    count = row["message_count"]
    return before is not None and bool(count) and count == before["message_count"] == row["keep"]


def _amount(turn: Turn, usd: Decimal | None, unit: str) -> Decimal:
    if unit == DOLLARS:
        return usd or Decimal(0)
    return Decimal((turn.usage.context or 0) + (turn.usage.output or 0))
