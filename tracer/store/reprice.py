"""Costs anew by the prices of now: what `sync --reprice` does, and what that changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ..model import BUCKETS
from .derive import cost_columns, retotal
from .rows import Connection, Row, select
from .text import encode

_RUNS_AT_ONCE = 200
_WRITTEN = ("price_source", "price_matched", "price_why", "price_assumed_json")
_TURNS = f"""
  select run, number, provider, model, request_model, url, started_at, ended_at, served_json, cost_usd,
    inherited or duplicate_of is not null as counted_elsewhere, {", ".join(BUCKETS)}, {", ".join(_WRITTEN)}
  from base.turns where ended_at is not null and run in (select unnest(?::varchar[]))
"""  # noqa: S608 - made of our own words
_UPDATE = f"""
  update base.turns as t set cost_usd = k.usd::decimal(24, 12), {", ".join(f"{n} = k.{n}" for n in _WRITTEN)}
  from (select unnest($1::varchar[]) as run, unnest($2::integer[]) as n, unnest($3::varchar[]) as usd,
    {", ".join(f"unnest(${i}::varchar[]) as {name}" for i, name in enumerate(_WRITTEN, 4))}) as k
  where t.run = k.run and t.number = k.n
"""  # noqa: S608


@dataclass(slots=True)
class ModelChange:
    """What changed for one model. ``turns``: those with another cost than before."""

    turns: int = 0
    before: Decimal = Decimal(0)
    after: Decimal = Decimal(0)
    now_priced: int = 0
    now_unpriced: int = 0


@dataclass(slots=True)
class Repriced:
    """What a repricing did. Sums are of all turns, each counted once; ``changed`` is by model."""

    turns: int = 0
    before: Decimal = Decimal(0)
    after: Decimal = Decimal(0)
    unpriced: int = 0
    changed: dict[str, ModelChange] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The same for scripts; money in US dollars."""
        return {
            "turns": self.turns,
            "changed_turns": sum(c.turns for c in self.changed.values()),
            "before_usd": float(self.before),
            "after_usd": float(self.after),
            "unpriced_turns": self.unpriced,
            "models": [
                {
                    "model": model,
                    "turns": c.turns,
                    "before_usd": None if c.now_priced == c.turns else float(c.before),
                    "after_usd": None if c.now_unpriced == c.turns else float(c.after),
                    "now_priced": c.now_priced,
                    "now_unpriced": c.now_unpriced,
                }
                for model, c in sorted(self.changed.items())
            ],
        }


def reprice(con: Connection, tell: Callable[[str], None] = lambda _: None) -> Repriced:
    """Works out the cost of every turn again, at the time when it was made. Inside one transaction of the caller."""
    done = Repriced()
    runs = [r["id"] for r in select(con, "select id from base.runs order by id")]
    for start in range(0, len(runs), _RUNS_AT_ONCE):
        tell(f"pricing run {start + 1:,} of {len(runs):,}")
        some = [encode(r) for r in runs[start : start + _RUNS_AT_ONCE]]
        rows = [(row, cost_columns(row)) for row in select(con, _TURNS, [some])]
        for row, new in rows:
            _count(done, row, new["cost_usd"])
        changed = [(row, new) for row, new in rows if any(row[k] != v for k, v in new.items())]
        if changed:
            _write(con, changed)
            retotal(con, {row["run"] for row, _ in changed})
    return done


def _count(done: Repriced, row: Row, after: Decimal | None) -> None:
    before: Decimal | None = row["cost_usd"]
    if row["counted_elsewhere"]:
        return
    done.turns += 1
    done.before += before or 0
    done.after += after or 0
    uses = row["input"] is not None or row["output"] is not None
    done.unpriced += after is None and uses
    if before != after:
        change = done.changed.setdefault(row["model"] or row["request_model"] or "", ModelChange())
        change.turns += 1
        change.before += before or 0
        change.after += after or 0
        change.now_priced += before is None
        change.now_unpriced += after is None


def _write(con: Connection, changed: list[tuple[Row, Row]]) -> None:
    """The new columns into the rows, many at once."""
    keys = [[encode(r["run"]) for r, _ in changed], [r["number"] for r, _ in changed]]
    money = [None if new["cost_usd"] is None else str(new["cost_usd"]) for _, new in changed]
    texts = [[None if new[name] is None else encode(new[name]) for _, new in changed] for name in _WRITTEN]
    con.execute(_UPDATE, [*keys, money, *texts])
