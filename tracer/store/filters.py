"""Which runs to list, as a frozen value and as SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from .text import encode

SORTS = {
    "time": "r.started_at desc nulls last, r.id",
    "cost": "r.cost_usd desc nulls last, r.started_at desc",
    "turns": "r.turns desc, r.started_at desc",
    "errors": "r.errors desc, r.started_at desc",
    "wasted": "coalesce(w.wasted, 0) desc, r.cost_usd desc nulls last, r.started_at desc",
}

_TEXT_CONDITIONS = {
    "model": "list_contains(r.models_json::json::varchar[], ?)",
    "tool": "r.id in (select run from base.calls where name = ?)",
    "outcome": "json_extract_string(r.outcome_json, '$.verdict') = ?",
    "text": "contains(lower(concat_ws(' ', r.id, r.name, r.title, r.task, r.agent)), lower(?))",
}


@dataclass(frozen=True, slots=True)
class Filter:
    """What `Store.runs` lists. Nothing given: the newest 50 runs that have turns.

    Attributes:
        tool: A tool that the run called; `error`: True for runs with errors, False for runs without.
        since: Microseconds since the epoch; runs that began then or later.
        text: Part of name, title, task, agent or id, whatever its case.
        ids: Only these runs. `limit`: 0 for all.
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
    ids: tuple[str, ...] | None = None
    include_empty: bool = False
    sort: str = "time"
    limit: int = 50


def where(given: Filter) -> tuple[str, list[Any]]:
    """The condition on `base.runs as r` and its values."""
    parts: list[str] = []
    values: list[Any] = []
    for column in ("project", "status", "task", "name", "session"):
        if (value := getattr(given, column)) is not None:
            parts.append(f"r.{column} = ?")
            values.append(encode(value))
    for name, condition in _TEXT_CONDITIONS.items():
        if (value := getattr(given, name)) is not None:
            parts.append(condition)
            values.append(encode(value))
    if given.error is not None:
        parts.append("r.errors > 0" if given.error else "coalesce(r.errors, 0) = 0")
    if given.since is not None:
        parts.append("r.started_at >= ?")
        values.append(given.since)
    if given.ids is not None:
        parts.append("r.id in (select unnest(?::varchar[]))")
        values.append([encode(i) for i in given.ids])
    elif not given.include_empty:
        parts.append("r.turns > 0")
    return " and ".join(parts) or "true", values


def order(given: Filter) -> str:
    """The ORDER BY of a filter's sort."""
    if given.sort not in SORTS:
        raise UsageError("bad-sort", f"runs cannot be sorted by {given.sort!r}", f"Use one of {', '.join(SORTS)}")
    return SORTS[given.sort]
