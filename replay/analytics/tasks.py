"""Tasks: how many turns and how much money a run of each takes, p50 and p95, and what a success costs; one's history."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from ...tracer.store import Filter
from ...tracer.store.filters import matching
from .answers import Field, Table, table
from .groups import list_price, listed_note
from .scope import FAMILY, Scope

if TYPE_CHECKING:
    from ...tracer.store import Store

SUCCESS = ("pass", "passed", "success", "succeeded", "resolved", "correct", "ok")
"""Verdicts of an outcome that mean that it went well."""

_GOOD = f"lower(coalesce(verdict, '')) in {SUCCESS}"
# Money and unpriced turns of a run with all its sub-agents; its own turns without inherited ones.
_WHOLE = f"""
  {FAMILY},
  whole as (
    select f.root as id, sum(r.cost_usd) as cost_usd, sum(coalesce(r.unpriced_turns, 0)) as unpriced_turns
    from family as f join base.runs as r on r.id = f.id group by f.root
  ),
  own as (
    select t.run as id, count(*) as turns from base.turns as t
    where not t.inherited and t.duplicate_of is null group by t.run
  ),
  jobs as (
    select r.id, coalesce(r.task, r.name) as task, r.status, r.reason, r.started_at, r.ended_at, r.list_price as listed,
      coalesce(r.source, '') <> 'replay' and coalesce(r.parent_kind, '') not in ('fork', 'resume') as from_the_start,
      json_extract_string(r.outcome_json, '$.verdict') as verdict, own.turns, r.tool_calls, r.errors, r.models_json,
      whole.unpriced_turns, case when whole.unpriced_turns = 0 then whole.cost_usd end as cost_usd,
      whole.cost_usd as priced_usd
    from base.runs as r join whole on whole.id = r.id join own on own.id = r.id
    where r.id in (select id from chosen) and (?::bigint is null or coalesce(r.started_at, r.ended_at) >= ?)
  )
"""  # noqa: S608 - our own words
_TASKS = f"""
  select task, count(*) as runs, count(*) filter ({_GOOD}) as successes,
    count(*) filter ({_GOOD}) / nullif(count(*) filter (verdict is not null), 0) as success_rate,
    quantile_cont(turns, 0.5) filter (from_the_start) as turns_p50, quantile_cont(turns, 0.95) filter (from_the_start) as turns_p95,
    quantile_cont(cost_usd::double, 0.5) filter (from_the_start) as cost_p50, quantile_cont(cost_usd::double, 0.95) filter (from_the_start) as cost_p95,
    quantile_cont(turns, 0.5) filter ({_GOOD} and from_the_start) as success_turns_p50,
    quantile_cont(turns, 0.95) filter ({_GOOD} and from_the_start) as success_turns_p95,
    quantile_cont(cost_usd::double, 0.5) filter ({_GOOD} and from_the_start) as success_cost_p50,
    quantile_cont(cost_usd::double, 0.95) filter ({_GOOD} and from_the_start) as success_cost_p95,
    sum(priced_usd) as cost_usd, sum(priced_usd) / nullif(count(*) filter ({_GOOD}), 0) as cost_per_success,
    sum(unpriced_turns)::bigint as unpriced_turns,
    count(*) filter (not from_the_start) as others
  from jobs where task is not null group by task order by cost_usd desc nulls last, task
"""  # noqa: S608 - our own words
_FIELDS = (
    Field("task", "text"),
    Field("runs", "count"),
    Field("successes", "count"),
    Field("success_rate", "share"),
    *(Field(f"turns_p{p}", "number") for p in (50, 95)),
    *(Field(f"cost_p{p}", "money") for p in (50, 95)),
    *(Field(f"success_turns_p{p}", "number") for p in (50, 95)),
    *(Field(f"success_cost_p{p}", "money") for p in (50, 95)),
    Field("cost_usd", "money"),
    Field("cost_per_success", "money"),
    Field("unpriced_turns", "count"),
)
_HISTORY = (
    Field("started_at", "time"),
    Field("run", "text"),
    Field("status", "text"),
    Field("outcome", "text"),
    Field("turns", "count"),
    Field("tool_calls", "count"),
    Field("errors", "count"),
    Field("cost_usd", "money"),
    Field("unpriced_turns", "count"),
    Field("models", "list"),
)


def tasks(store: Store, given: Filter | None = None) -> Table:
    """One row a task (or name, where a run has no task): every run of it with its sub-agents counts once.

    Runs with unpriced turns are left out of the cost quantiles and are partial in the sums.
    """
    scope = Scope(given or Filter())
    rows = store.rows(*_asked(scope, _TASKS))
    notes = ["runs with unpriced turns are not in the cost quantiles"] if any(r["unpriced_turns"] for r in rows) else []
    if any(r["others"] for r in rows):
        notes.append(
            "forks, resumed sessions and replays did a part of the job: they are in the sums, not in the quantiles"
        )
    return table(_FIELDS, rows, [*notes, *(list_price(store, scope) if rows else ())])


def history(store: Store, task: str, given: Filter | None = None) -> Table:
    """The runs of a task in the order of time, each with its sub-agents; ``*`` in the name stands for any text."""
    compared, value = matching(task)
    query = f"""
      select make_timestamp(started_at) as started_at, id as run, status, verdict as outcome, turns, tool_calls, errors,
        priced_usd::double as cost_usd, unpriced_turns::bigint as unpriced_turns,
        models_json::json::varchar[] as models, listed, from_the_start
      from jobs where task {compared} order by jobs.started_at nulls first, id
    """  # noqa: S608 - our own words
    scope = Scope(given or Filter())
    text, values = _asked(scope, query)
    rows = store.rows(text, [*values, value])
    notes = ["runs with unpriced turns: their cost is partial (≥)"] if any(r["unpriced_turns"] for r in rows) else []
    if rows:
        whole = [r for r in rows if r["from_the_start"]] or rows
        known = [r["cost_usd"] for r in whole if r["cost_usd"] is not None and not r["unpriced_turns"]]
        money = f", ${statistics.median(known):,.4f}" if known else ""
        listed = [bool(r["listed"]) for r in rows]
        notes += listed_note(every=all(listed), some=any(listed))
        notes.insert(0, f"median of {len(whole):,}: {statistics.median(r['turns'] for r in whole):g} turns{money}")
    return table(_HISTORY, rows, notes)


def _asked(scope: Scope, query: str) -> tuple[str, list[object]]:
    chosen, values = scope.chosen()
    since = scope.given.since
    return f"with recursive {chosen}, {_WHOLE} {query}", [*values, since, since]
