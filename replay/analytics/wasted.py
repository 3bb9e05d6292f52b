"""What cycles wasted, over many runs: found once for each run and kept in the store beside it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...tracer.store import Filter
from ...tracer.store.text import encode
from .answers import Field, Table, table
from .scope import Scope

if TYPE_CHECKING:
    from ...tracer.store import Store
    from ..cycles import CycleFinding

VERSION = "cycles-1"
"""Of what is kept: another one is found anew."""

_MISSING = """
  select r.id, r.last_at, r.turns from base.runs as r
  where r.id in (select id from chosen) and r.turns > 2
    and r.id not in (select run from base.derived where kind = 'wasted' and version = ? || ':' || coalesce(r.last_at, 0) || ':' || r.turns)
  order by coalesce(r.started_at, 0) desc
"""
_KEPT = """
  select r.id as run, coalesce(r.task, r.name) as task, d.cycles, d.turns, d.tokens, d.usd
  from base.runs as r join (
    select run, try_cast(value_json->>'cycles' as bigint) as cycles, try_cast(value_json->>'turns' as bigint) as turns,
      try_cast(value_json->>'tokens' as bigint) as tokens, try_cast(value_json->>'usd' as double) as usd
    from base.derived where kind = 'wasted'
  ) as d on d.run = r.id
  where r.id in (select id from chosen) and d.cycles > 0 order by d.usd desc nulls last, d.turns desc, r.id
"""


def keep_cycles(store: Store, given: Filter | None = None, *, seconds: float | None = None, tell: Callable[[str], None] | None = None) -> int:  # fmt: skip
    """Looks for cycles in the runs that were not looked at since they changed; returns how many are left.

    Args:
        seconds: When to stop; None looks at all.
        tell: Is told the progress.
    """
    chosen, values = Scope(given or Filter()).chosen()
    missing = store.rows(f"with recursive {chosen} {_MISSING}", [*values, VERSION])
    end = None if seconds is None else time.monotonic() + seconds
    found: list[tuple[str, str, str]] = []
    done = 0
    for row in missing:
        if end is not None and time.monotonic() > end:
            break
        found.append((row["id"], version(row), json.dumps(_of_run(store, row["id"]))))
        done += 1
        if tell is not None:
            tell(f"looking for cycles: {done:,} of {len(missing):,} runs")
    if found:
        keep(store, "wasted", found)
    return len(missing) - done


def version(row: Mapping[str, Any], of: str = VERSION) -> str:
    """The version of a fact kept of a run's row (``last_at``, ``turns``): another one when the run went on."""
    return f"{of}:{row['last_at'] or 0}:{row['turns']}"


def wasted(store: Store, given: Filter | None = None) -> Table:
    """Runs with cycles and what those wasted: turns after the first lap, their tokens and money. See `keep_cycles`."""
    chosen, values = Scope(given or Filter()).chosen()
    rows = store.rows(f"with recursive {chosen} {_KEPT}", values)
    fields = (
        Field("run", "text"),
        Field("task", "text"),
        Field("cycles", "count"),
        Field("turns", "count"),
        Field("tokens", "tokens"),
        Field("usd", "money"),
    )
    return table(fields, rows)


def told(found: Iterable[CycleFinding]) -> dict[str, Any]:
    """What is kept of a run's cycles: how many, and what they wasted in all."""
    findings = [f for f in found if f.wasted.turns]
    return {
        "cycles": len(findings),
        "turns": sum(f.wasted.turns for f in findings),
        "tokens": _known(f.wasted.tokens for f in findings),
        "usd": _known(f.wasted.usd for f in findings),
    }


def _of_run(store: Store, run: str) -> dict[str, Any]:
    from ..cycles import find_cycles
    from ..recording import load

    return told(find_cycles(load(store, store.run(run))))


def _known(values: Iterable[float | None]) -> float | None:
    """The sum of what is known, None when nothing is."""
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def keep(store: Store, kind: str, found: Sequence[tuple[str, str, str]]) -> None:
    """Keeps facts of one kind as (run, version, JSON), in place of those that were kept of these runs."""

    def work(con: Any) -> None:
        runs, versions, values = ([f[i] for f in found] for i in range(3))
        runs = [encode(run) for run in runs]
        con.execute("delete from base.derived where kind = ? and run in (select unnest(?::varchar[]))", [kind, runs])
        con.execute(
            "insert into base.derived (run, kind, version, value_json) "
            "select unnest(?::varchar[]), ?, unnest(?::varchar[]), unnest(?::varchar[])",
            [runs, kind, versions, values],
        )

    store.write(work)
