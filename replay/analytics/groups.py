"""Own turns grouped by model, day, task and the like: money, tokens, time to first token, errors, retries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from ...tracer.errors import UsageError
from ...tracer.store import Filter
from .answers import Field, Table, table
from .scope import BILLED, FAMILY, Scope
from .zone import local_day

if TYPE_CHECKING:
    from ...tracer.store import Store

DIMENSIONS = ("model", "day", "tool", "project", "task", "outcome", "run", "tag", "agent", "provider", "source")
_OF_TURN = {"model": "coalesce(t.model, t.request_model)", "run": "t.run", "provider": "t.provider"}
_OF_RUN = {  # of the run at the head: what a sub-agent does counts with the run that called it
    "project": "r.project",
    "task": "coalesce(r.task, r.name)",
    "outcome": "json_extract_string(r.outcome_json, '$.verdict')",
    "source": "r.source",
    "agent": "own.agent",
    "tag": "tag.key || '=' || json_extract_string(tag.value, '$')",
}
_READ = "coalesce(sum(t.input), 0) + coalesce(sum(t.cache_read), 0) + coalesce(sum(t.cache_write_5m), 0) + coalesce(sum(t.cache_write_1h), 0)"
_SPANS = {  # name: milliseconds
    "first_token_ms": "case when t.stream then (t.first_chunk_at - t.started_at) / 1000.0 end",
    "generate_ms": "t.generate_ms",
    "execute_ms": "t.execute_ms",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of a grouping: what it is called, what kind of figure it is, how it is worked out."""

    name: str
    kind: str
    sql: str


MONEY = (
    Measure("turns", "count", "count(*)"),
    Measure("cost_usd", "money", "sum(t.cost_usd)"),
    Measure("unpriced_turns", "count", f"count(*) filter ({BILLED} and t.cost_usd is null)"),
)
USE = (
    Measure("runs", "count", "count(distinct t.run)"),
    *MONEY,
    *(Measure(n, "tokens", f"sum(t.{n})::bigint") for n in ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")),
    Measure("cache_hit_rate", "share", f"sum(t.cache_read) / nullif({_READ}, 0)"),
    Measure("partial", "flag", "coalesce(bool_or(t.usage_partial), false)"),
)  # fmt: skip
TIME = tuple(Measure(name, "quantiles", f"quantile_cont({span}, [0.5, 0.95])") for name, span in _SPANS.items())
RATES = (
    Measure("error_rate", "share", "count(*) filter (t.status = 'error') / nullif(count(*), 0)"),
    Measure("retry_rate", "share", "count(*) filter (again.turn is not null) / nullif(count(*), 0)"),
)
_AGAIN = (
    "left join (select distinct run, turn from base.attempts where number > 1) as again "
    "on again.run = t.run and again.turn = t.number"
)


def costs(store: Store, by: Sequence[str] = ("model", "day"), given: Filter | None = None) -> Table:
    """What turns cost, the dearest first: only money and how many, which is the quick question."""
    return _grouped(store, by, given or Filter(), MONEY, "cost_usd desc nulls last, turns desc")


def stats(store: Store, by: Sequence[str], given: Filter | None = None) -> Table:
    """Everything there is to say of turns, by one or two dimensions.

    Args:
        by: Of `DIMENSIONS` (but tool, which has `tools`), or ``tag.NAME``; none for one row of all turns.
        given: Picks runs; its ``since`` picks the turns that began since then.

    Raises:
        UsageError: A dimension is not known.
    """
    order = "1, 2" if by and by[0] == "day" else "cost_usd desc nulls last, turns desc"
    return _grouped(store, by, given or Filter(), (*USE, *TIME, *RATES), order)


def _grouped(store: Store, by: Sequence[str], given: Filter, measures: Sequence[Measure], order: str) -> Table:
    scope = Scope(given)
    condition, values = scope.turns()
    names = list(dict.fromkeys(by))
    keys = [_dimension(store, name) for name in names]
    parts: list[str] = []
    given_values: list[Any] = []
    if not scope.everything:
        query, given_values = scope.chosen()
        parts.append(query)
    joins = _AGAIN if any("again." in m.sql for m in measures) else ""
    of_run = {i: sql for i, sql in enumerate(keys) if names[i] not in _OF_TURN and names[i] != "day"}
    if of_run:  # worked out once a run, not once a turn
        parts += [FAMILY, _of_runs(of_run, with_tags="tag" in names)]
        joins += " join of_run as d on d.id = t.run"
    chosen = [f"{('d.key_' + str(i)) if i in of_run else sql} as key_{i}" for i, sql in enumerate(keys)]
    if "agent" in names:
        chosen[names.index("agent")] = f"coalesce(t.agent, d.key_{names.index('agent')}) as key_{names.index('agent')}"
    numbers = ", ".join(str(i + 1) for i in range(len(keys)))
    head = f"with recursive {', '.join(parts)} " if parts else ""
    query = (
        f"{head}select {', '.join([*chosen, *(f'{m.sql} as {m.name}' for m in measures)])} from base.turns as t {joins} "  # noqa: S608 - our own words
        f"where {condition}"
    )
    if keys:
        query += f" group by {numbers} order by {order.replace('1, 2', numbers)}, {numbers}"
    rows = [_row(r, names, measures) for r in store.rows(query, [*given_values, *values])]
    notes = _notes(store, rows, [n for n in names if n == "tag"], scope)
    fields = [Field(name, "date" if name == "day" else "text") for name in names]
    for m in measures:
        fields += (
            [Field(f"{m.name}_p{p}", "ms") for p in (50, 95)] if m.kind == "quantiles" else [Field(m.name, m.kind)]
        )
    return table(fields, rows, notes)


def _of_runs(keys: dict[int, str], *, with_tags: bool) -> str:
    """A WITH query ``of_run``: the keys of every run, those of the run at its head."""
    tags = ", json_each(r.tags_json) as tag" if with_tags else ""
    chosen = ", ".join(f"{sql} as key_{i}" for i, sql in keys.items())
    return f"""
      of_run as (
        select f.id, {chosen} from family as f join base.runs as r on r.id = f.root join base.runs as own on own.id = f.id{tags}
      )
    """  # noqa: S608 - our own words


def _row(row: dict[str, Any], names: Sequence[str], measures: Sequence[Measure]) -> dict[str, Any]:
    """A row with its keys under their names and every quantile in a column of its own."""
    found = {name: _date(row[f"key_{i}"]) if name == "day" else row[f"key_{i}"] for i, name in enumerate(names)}
    for m in measures:
        if m.kind == "quantiles":
            low, high = row[m.name] or (None, None)
            found |= {f"{m.name}_p50": low, f"{m.name}_p95": high}
        else:
            found[m.name] = row[m.name]
    return found


def _date(day: int | None) -> date | None:
    return None if day is None else date(1970, 1, 1) + timedelta(days=day)


def _dimension(store: Store, name: str) -> str:
    if name == "day":
        at = "coalesce(t.started_at, t.ended_at)"
        span = store.rows(f"select min({at}) as first, max({at}) as last from base.turns as t")[0]  # noqa: S608
        return local_day(at, span["first"], span["last"])
    if name.startswith("tag.") and name != "tag.":
        key = name.removeprefix("tag.").replace("'", "''")
        return (
            f"(select json_extract_string(k.value, '$') from json_each(r.tags_json) as k where k.key = '{key}' limit 1)"  # noqa: S608
        )
    found = _OF_TURN.get(name) or _OF_RUN.get(name)
    if found is None:
        raise UsageError(
            "bad-dimension", f"nothing can be counted by {name!r}", f"Use {', '.join(DIMENSIONS)} or tag.NAME"
        )
    return found


def _notes(store: Store, rows: Sequence[dict[str, Any]], tags: Sequence[str], scope: Scope) -> list[str]:
    notes = []
    unpriced = sum(r["unpriced_turns"] for r in rows)
    if "tag" in tags:
        notes.append("a run with several tags stands in several rows; one without tags in none")
    if unpriced:
        notes.append(
            f"{unpriced:,} {'turn' if unpriced == 1 else 'turns'} cannot be priced: sums over them are partial (≥)"
        )
    if any(r.get("partial") for r in rows):
        notes.append("some usage is not known: those tokens and their cost are lower bounds")
    return [*notes, *(list_price(store, scope) if rows else ())]


def list_price(store: Store, scope: Scope) -> list[str]:
    """A note where runs are of clients that are often paid by subscription: what the list says is not what was paid."""
    query, values = ("", []) if scope.everything else scope.chosen()
    head = f"with recursive {query} " if query else ""
    picked = "and id in (select id from chosen)" if query else ""
    found = store.rows(
        f"{head}select bool_and(coalesce(list_price, false)) as every, bool_or(list_price) as some "  # noqa: S608
        f"from base.runs where turns > 0 {picked}",
        values,
    )[0]
    return listed_note(every=found["every"], some=found["some"])


def listed_note(*, every: bool, some: bool) -> list[str]:
    """The note where all or some of the runs are of such clients; none where none is."""
    clients = "clients that are often paid by subscription"
    if not some:
        return []
    return [f"list price: these are runs of {clients}" if every else f"partly list price: some runs are of {clients}"]
