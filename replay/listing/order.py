"""The list of all runs, however many: their order as keys, groups and totals by SQL; whole rows only of those looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...tracer.model import Run
from ...tracer.store import Filter
from ...tracer.store.filters import CIRCLING, TOKENS, join, order, where
from .facts import Facts, kept

if TYPE_CHECKING:
    from ...tracer.store import Store

GROUPINGS = ("list", "lineage", "project")
"""Flat; children (forks, sub-agents, resumes) below their parents; by project."""
HEAD = "\x00"
"""Begins the key of a project's line; no run's id does."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over runs, each run's own (children are runs of their own, each counted once).

    Attributes:
        cost_usd: What is priced.
        unpriced: Runs that have a turn without a price.
        circling: Runs that are known to go round in circles.
        context, cached, output: Tokens read, of these from the cache, and written; None when no run says.
        newest: The run that began last.
        projects, tasks, outcomes: Runs that say one (a task: another one than their name).
    """

    runs: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    running: int = 0
    circling: int = 0
    turns: int = 0
    calls: int = 0
    errors: int = 0
    context: int | None = None
    cached: int | None = None
    output: int | None = None
    newest: str | None = None
    projects: int = 0
    tasks: int = 0
    outcomes: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """The lines of a list of runs by their keys.

    Attributes:
        keys: Run ids, and ``HEAD`` with a project's name before its runs.
        depths: How deep a run stands below its parent; the others are not in it.
        projects: Totals by the key of a project's line.
        shown, every: Totals of what the filter picks, and of all runs.
    """

    keys: Sequence[str] = ()
    depths: Mapping[str, int] = field(default_factory=dict)
    projects: Mapping[str, Totals] = field(default_factory=dict)
    shown: Totals = Totals()
    every: Totals = Totals()


@dataclass(frozen=True, slots=True)
class Line:
    """One run with what is kept beside it; ``facts`` holds None for what nobody looked for yet."""

    run: Run
    facts: Facts = field(default_factory=Facts)


def listing(
    store: Store, given: Filter, grouping: str = "list", folded: frozenset[str] = frozenset(), *, first: int = 0
) -> Listing:
    """The order of the runs that pass a filter, all of them.

    Args:
        given: Its limit is left aside.
        grouping: One of ``GROUPINGS``.
        folded: Keys of projects whose runs are left out.
        first: Only so many keys, for a first look (with the totals of all); 0 for all. By project there are always all.
    """
    every = _totals(store, Filter())[0][1]
    plain = replace(given, sort="time", backwards=False, limit=0) == Filter(limit=0)
    shown = every if plain else _totals(store, given)[0][1]
    given = replace(given, limit=first)
    if grouping == "project":
        heads, projects = _by_project(store, replace(given, limit=0), folded)
        return Listing(heads, {}, projects, shown, every)
    keys: list[str] = store.ids(given)
    depths: dict[str, int] = {}
    if grouping == "lineage":
        keys, depths = _family(keys, _parents(store, replace(given, ids=tuple(keys)) if first else given))
    return Listing(keys, depths, {}, shown, every)


def lines(store: Store, ids: Sequence[str]) -> dict[str, Line]:
    """Runs whole, with what is kept of them; ids that are not there are not in it."""
    if not ids:
        return {}
    facts = kept(store, ids)
    runs = store.runs(Filter(ids=tuple(ids), limit=0))
    return {run.id: Line(run, facts.get(run.id, Facts())) for run in runs}


_KNOWN = "coalesce(r.input, r.cache_read, r.cache_write_5m, r.cache_write_1h)"
_SUMS = f"""
  count(*) as runs, coalesce(sum(r.cost_usd), 0)::double as cost_usd,
  count(*) filter (r.unpriced_turns > 0) as unpriced,
  count(*) filter (r.status = 'running') as running,
  count(*) filter ({CIRCLING}) as circling,
  coalesce(sum(r.turns), 0)::bigint as turns, coalesce(sum(r.tool_calls), 0)::bigint as calls, coalesce(sum(r.errors), 0)::bigint as errors,
  sum({TOKENS}) filter ({_KNOWN} is not null)::bigint as context,
  sum(r.cache_read)::bigint as cached, sum(r.output)::bigint as output,
  arg_max(r.id, coalesce(r.started_at, r.ended_at)) as newest, count(r.project) as projects,
  count(*) filter (r.task is not null and r.task is distinct from r.name) as tasks, count(r.outcome_json) as outcomes
"""


def _totals(store: Store, given: Filter, by: str = "") -> list[tuple[Any, Totals]]:
    condition, values = where(given)
    head, tail = (f"{by} as part, ", f" group by {by}") if by else ("", "")
    rows = store.rows(f"select {head}{_SUMS} from base.runs as r where {condition}{tail}", values)  # noqa: S608
    return [(row.pop("part", None), Totals(**row)) for row in rows]


def _by_project(store: Store, given: Filter, folded: frozenset[str]) -> tuple[list[str], dict[str, Totals]]:
    """The project of the first run first, with its runs in their order, and so on."""
    condition, values = where(given)
    rows = store.rows(
        f"select id, project from (select r.id, r.project from base.runs as r {join(given)}where {condition} order by {order(given)})",  # noqa: S608
        values,
    )
    runs: dict[str, list[str]] = {}
    for row in rows:
        runs.setdefault(HEAD + (row["project"] or ""), []).append(row["id"])
    keys: list[str] = []
    for head, ids in runs.items():
        keys.append(head)
        if head not in folded:
            keys += ids
    return keys, {HEAD + (project or ""): sums for project, sums in _totals(store, given, "coalesce(r.project, '')")}


def _parents(store: Store, given: Filter) -> list[dict[str, Any]]:
    """Children with their parents, the oldest first."""
    condition, values = where(given)
    query = f"""
      select r.id, r.parent_run from base.runs as r
      where r.parent_run is not null and r.parent_run <> r.id and {condition} order by r.started_at, r.id
    """  # noqa: S608 - our own words
    return store.rows(query, values)


def _family(keys: list[str], parents: list[dict[str, Any]]) -> tuple[list[str], dict[str, int]]:
    """Children right below their parents where both are listed; nobody is lost, even where parents stand in a circle."""
    here = set(keys) if parents else set()
    children: dict[str, list[str]] = {}
    for row in parents:
        if row["parent_run"] in here:
            children.setdefault(row["parent_run"], []).append(row["id"])
    if not children:
        return keys, {}
    under = {child for born in children.values() for child in born}
    out: list[str] = []
    depths: dict[str, int] = {}
    for key in keys:
        if key in children:
            if key not in under:
                _descend(key, children, out, depths)
        elif key not in under:
            out.append(key)
    for key in keys:  # parents in a circle: only broken data has that, and it is shown all the same
        if key in under and key not in depths:
            out.append(key)
    return out, depths


def _descend(head: str, children: Mapping[str, Sequence[str]], out: list[str], depths: dict[str, int]) -> None:
    waiting = [(head, 0)]
    while waiting:
        key, depth = waiting.pop()
        out.append(key)
        if depth:
            depths[key] = depth
        waiting += [(child, depth + 1) for child in reversed(children.get(key, ())) if child not in depths]
