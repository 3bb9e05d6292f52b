"""Tools: calls, time and errors of each; those that were offered and never called; pairs that are confused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...tracer.store import Filter
from .answers import Field, Table, table
from .scope import Scope

if TYPE_CHECKING:
    from ...tracer.store import Store

_MINE = "{mine}"  # which calls: see _asked
_NOT_OWN = "select run, number from base.turns where inherited or duplicate_of is not null"
_CALLS = f"""
  select c.name as tool, count(*) as calls, count(distinct c.run) as runs,
    count(*) filter (c.is_error) as errors, count(*) filter (c.is_error) / count(*) as error_rate,
    count(*) filter (not c.valid) as invalid,
    quantile_cont((c.ended_at - c.started_at) / 1000.0, 0.5) as ms_p50,
    quantile_cont((c.ended_at - c.started_at) / 1000.0, 0.95) as ms_p95,
    sum(c.ended_at - c.started_at) / 1000.0 as ms_total,
    avg(coalesce(c.returned_length, c.seen_length))::bigint as result_length
  from base.calls as c {_MINE} group by c.name order by calls desc, tool
"""  # noqa: S608 - our own words
_CALLED = f"select distinct c.name from base.calls as c {_MINE}"  # noqa: S608 - our own words
_OFFERED = """
  select b.text, o.turns, o.runs from (
    select t.tools_blob as id, count(*) as turns, count(distinct t.run) as runs from base.turns as t
    where {condition} and t.tools_blob is not null group by t.tools_blob
  ) as o join base.blobs as b on b.id = o.id where b.text is not null
"""
_FIELDS = (
    Field("tool", "text"),
    Field("calls", "count"),
    Field("runs", "count"),
    Field("errors", "count"),
    Field("error_rate", "share"),
    Field("invalid", "count"),
    Field("ms_p50", "ms"),
    Field("ms_p95", "ms"),
    Field("ms_total", "ms"),
    Field("result_length", "count"),
)
# A call of one tool that failed, and in the next turn a call of another with one of its values that worked.
_CONFUSED = f"""
  select a.name as tool, b.name as then_called, count(*) as times, count(distinct a.run) as runs,
    min(a.run || ':' || a.turn) as example
  from (
    select c.run, c.turn, c.position, c.name, c.arguments_raw from base.calls as c {_MINE} and (c.is_error or not c.valid)
  ) as a join base.calls as b on b.run = a.run and b.turn = a.turn + 1 and b.name <> a.name
  where b.valid and not coalesce(b.is_error, false) and list_has_any(
    list_filter(try(json_extract_string(a.arguments_raw::json, '$.*')), lambda v: length(v) > 1),
    try(json_extract_string(b.arguments_raw::json, '$.*')))
  group by 1, 2 order by times desc, 1, 2
"""  # noqa: S608 - our own words


def tools(store: Store, given: Filter | None = None) -> Table:
    """Every tool that was called: how often, how long, how often wrong. Calls of own turns only."""
    return table(_FIELDS, store.rows(*_asked(given, _CALLS)))


def confused(store: Store, given: Filter | None = None) -> Table:
    """Pairs of tools that the model takes for each other: a call that failed, then another tool with the same value."""
    fields = (Field("tool", "text"), Field("then_called", "text"), Field("times", "count"), Field("runs", "count"), Field("example", "text"))  # fmt: skip
    return table(fields, store.rows(*_asked(given, _CONFUSED)))


def never_called(store: Store, given: Filter | None = None) -> Table:
    """Tools that requests offered and no run ever called, those that were sent most often first.

    ``characters`` is the size of the definition, sent again in each of the ``turns``.
    """
    offered: dict[str, dict[str, Any]] = {}
    for row in store.rows(*_asked(given, _OFFERED)):
        for name, size in _names(row["text"]):
            known = offered.setdefault(name, {"tool": name, "turns": 0, "runs": 0, "characters": 0})
            known["turns"] += row["turns"]
            known["runs"] += row["runs"]
            known["characters"] = max(known["characters"], size)
    called = {r["name"] for r in store.rows(*_asked(given, _CALLED))}
    rows = sorted((r for n, r in offered.items() if n not in called), key=lambda r: (-r["turns"], r["tool"]))
    return table((Field("tool", "text"), Field("turns", "count"), Field("runs", "count"), Field("characters", "count")), rows)  # fmt: skip


def _names(text: str) -> list[tuple[str, int]]:
    """Names and sizes of the tools that a request's list offers, in any provider's form."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return []
    found = []
    for one in given if isinstance(given, list) else ():
        inner = one.get("functionDeclarations", one.get("function_declarations")) if isinstance(one, dict) else None
        for tool in inner if isinstance(inner, list) else [one]:
            function = tool.get("function") if isinstance(tool, dict) else None
            holder = function if isinstance(function, dict) else tool if isinstance(tool, dict) else {}
            if isinstance(name := holder.get("name"), str):
                found.append((name, len(json.dumps(tool))))
    return found


def _asked(given: Filter | None, query: str) -> tuple[str, list[Any]]:
    """A query with its conditions: on turns, or on calls of own turns (without a join where no time is asked for)."""
    scope = Scope(given or Filter())
    condition, values = scope.turns()
    mine = f"join base.turns as t on t.run = c.run and t.number = c.turn where {condition}"
    if "{mine}" in query and scope.given.since is None:
        picked = "true" if scope.everything else "c.run in (select id from chosen)"
        mine = f"anti join ({_NOT_OWN}) as n on n.run = c.run and n.number = c.turn where {picked}"
    head = ""
    before: list[Any] = []
    if not scope.everything:
        chosen, before = scope.chosen()
        head = f"with recursive {chosen}"
    return f"{head} {query.replace('{condition}', condition).replace('{mine}', mine)}", [*before, *values]
