"""Which runs to list, as a frozen value and as SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from .text import encode

TOKENS = (
    "coalesce(r.input, 0) + coalesce(r.cache_read, 0) + coalesce(r.cache_write_5m, 0) + coalesce(r.cache_write_1h, 0)"
)
"""What the model read in a run; 0 also where nobody knows."""
_NAME = "lower(coalesce(r.name, r.title, r.agent, r.id))"


@dataclass(frozen=True, slots=True)
class Sort:
    """An order of runs: the value it goes by, whether the largest comes first, and the kept facts it needs.

    Attributes:
        join: One of ``JOINS``; empty when the run's own row is enough.
        then: What decides between equals, before time does.
    """

    value: str
    falling: bool = True
    join: str = ""
    then: str = ""


SORTS = {
    "time": Sort("coalesce(r.started_at, r.ended_at)"),
    "cost": Sort("r.cost_usd"),
    "turns": Sort("r.turns"),
    "calls": Sort("r.tool_calls"),
    "errors": Sort("r.errors"),
    "wasted": Sort("coalesce(w.wasted, 0)", join="wasted", then="r.cost_usd desc nulls last, "),
    "cycles": Sort("w.cycles", join="wasted"),
    "findings": Sort("l.findings", join="listed"),
    "context": Sort("l.share", join="listed"),
    "tokens": Sort(f"{TOKENS} + coalesce(r.output, 0)"),
    "input": Sort(f"nullif({TOKENS}, 0)"),
    "cache": Sort(f"r.cache_read / nullif({TOKENS}, 0)"),
    "output": Sort("r.output"),
    "duration": Sort("r.ended_at - r.started_at"),
    "name": Sort(_NAME, falling=False),
    "project": Sort("lower(r.project)", falling=False),
    "task": Sort("lower(r.task)", falling=False),
    "outcome": Sort("json_extract_string(r.outcome_json, '$.verdict')", falling=False),
    "status": Sort("r.status", falling=False),
    "model": Sort("r.models_json", falling=False),
    "source": Sort("r.source", falling=False),
}
"""Every order by its name; what has no value comes last either way."""

JOINS = {
    "wasted": "left join (select run, sum(try_cast(value_json->>'usd' as double)) as wasted, "
    "sum(try_cast(value_json->>'cycles' as bigint)) as cycles "
    "from base.derived where kind = 'wasted' group by run) as w on w.run = r.id",
    "listed": "left join (select run, max(try_cast(value_json->>'findings' as bigint)) as findings, "
    "max(try_cast(value_json->>'share' as double)) as share "
    "from base.derived where kind = 'listed' group by run) as l on l.run = r.id",
}
"""Facts that readers keep beside runs, as far as they were looked for: of cycles, and of what lists show."""

# Conditions on a text; {} is ``= ?``, or ``like ?`` where the value holds a star.
_CONDITIONS = {
    "project": "r.project {}",
    "status": "r.status {}",
    "task": "r.task {}",
    "name": "r.name {}",
    "session": "r.session {}",
    "agent": "r.agent {}",
    "source": "r.source {}",
    "model": "exists (select 1 from (select unnest(r.models_json::json::varchar[]) as m) where m {})",
    "tool": "r.id in (select run from base.calls where name {})",
    "outcome": "json_extract_string(r.outcome_json, '$.verdict') {}",
}
_NUMBERS = {
    "turns": "r.turns",
    "calls": "r.tool_calls",
    "errors": "r.errors",
    "cost": "r.cost_usd",
    "tokens": f"{TOKENS} + coalesce(r.output, 0)",
    "seconds": "(r.ended_at - r.started_at) / 1e6",
}
OPERATORS = (">=", "<=", ">", "<", "=")
CIRCLING = (
    "r.id in (select run from base.derived where kind = 'wasted' and try_cast(value_json->>'cycles' as bigint) > 0)"
)
"""Runs that are known to go round in circles."""
_TEXT = "contains(lower(concat_ws(' ', r.id, r.name, r.title, r.task, r.agent)), lower(?))"
_TAG = "exists (select 1 from json_each(r.tags_json) as t where t.key = ? and json_extract_string(t.value, '$') {})"


NUMBERS = tuple(_NUMBERS)


@dataclass(frozen=True, slots=True)
class Filter:
    """What `Store.runs` lists. Nothing given: the newest 50 runs that have turns.

    A ``*`` in project, model, tool, status, task, outcome, name, session, agent, source or the value of a tag stands
    for any text.

    Attributes:
        tool: A tool that the run called; `error`: True for runs with errors, False for runs without.
        cycle: True for runs that go round in circles, as far as `base.derived` has been filled.
        numbers: Bounds that must all hold: what (one of `NUMBERS`), one of `OPERATORS`, and the number.
        since: Microseconds since the epoch; runs that began then or later.
        text: Part of name, title, task, agent or id, whatever its case.
        ids: Only these runs. `limit`: 0 for all.
        backwards: The sort the other way round; what has no value stays last.
    """

    project: str | None = None
    model: str | None = None
    tool: str | None = None
    error: bool | None = None
    since: int | None = None
    text: str | None = None
    status: str | None = None
    task: str | None = None
    outcome: str | None = None
    name: str | None = None
    session: str | None = None
    agent: str | None = None
    source: str | None = None
    cycle: bool | None = None
    numbers: tuple[tuple[str, str, float], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    ids: tuple[str, ...] | None = None
    include_empty: bool = False
    sort: str = "time"
    limit: int = 50
    backwards: bool = False


def where(given: Filter) -> tuple[str, list[Any]]:
    """The condition on `base.runs as r` and its values."""
    parts: list[str] = []
    values: list[Any] = []
    for name, condition in _CONDITIONS.items():
        if (value := getattr(given, name)) is not None:
            parts.append(condition.format(_compare(value)))
            values.append(_pattern(value))
    for key, value in given.tags:
        parts.append(_TAG.format(_compare(value)))
        values += [encode(key), _pattern(value)]
    _add_facts(given, parts, values)
    if given.since is not None:
        parts.append("coalesce(r.started_at, r.ended_at) >= ?")
        values.append(given.since)
    if given.ids is not None:
        parts.append("r.id in (select unnest(?::varchar[]))")
        values.append([encode(i) for i in given.ids])
    elif not given.include_empty:
        parts.append("r.turns > 0")
    return " and ".join(parts) or "true", values


def _add_facts(given: Filter, parts: list[str], values: list[Any]) -> None:
    """What is neither a text of one column nor a choice of runs."""
    if given.text is not None:
        parts.append(_TEXT)
        values.append(encode(given.text))
    if given.error is not None:
        parts.append("r.errors > 0" if given.error else "coalesce(r.errors, 0) = 0")
    if given.cycle is not None:
        parts.append(CIRCLING if given.cycle else f"not ({CIRCLING})")
    for name, operator, number in given.numbers:
        parts.append(f"{_NUMBERS[name]} {OPERATORS[OPERATORS.index(operator)]} ?")
        values.append(number)


def order(given: Filter) -> str:
    """The ORDER BY of a filter's sort; it may need `join`."""
    found = _sort(given)
    way = "desc" if found.falling != given.backwards else "asc"
    return f"{found.value} {way} nulls last, {found.then}r.started_at desc nulls last, r.id"


def join(given: Filter) -> str:
    """The join with kept facts that a filter's sort needs, with a blank behind it; mostly nothing."""
    found = _sort(given)
    return f"{JOINS[found.join]} " if found.join else ""


def _sort(given: Filter) -> Sort:
    if given.sort not in SORTS:
        raise UsageError("bad-sort", f"runs cannot be sorted by {given.sort!r}", f"Use one of {', '.join(SORTS)}")
    return SORTS[given.sort]


def matching(value: str) -> tuple[str, str]:
    """How a text is compared with a value of a filter: ``= ?``, or ``like ?`` where it holds a star; and the value for it."""
    return _compare(value), _pattern(value)


def _compare(value: str) -> str:
    return "like ? escape '\\'" if "*" in value else "= ?"


def _pattern(value: str) -> str:
    if "*" not in value:
        return encode(value)
    return re.sub(r"([\\%_])", r"\\\1", encode(value)).replace("*", "%")
