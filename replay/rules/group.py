"""Light facts of many runs, for what one run alone cannot tell: medians of a task, one limit for all, runs begun again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Any

from ...tracer.canonical import canonical
from ...tracer.model import Run
from ..cycles import kinds as tool_kinds

if TYPE_CHECKING:
    from ...tracer.store import Store

FIRST_CALLS = 12
"""Calls at a run's beginning by which a run begun again is known."""
MOST = 20_000
"""Runs that one run is compared with at most; the newest."""


@dataclass(frozen=True, slots=True)
class FirstCall:
    """One of the first calls of a run. ``key``: equal for the same tool with the same arguments."""

    turn: int
    name: str
    key: str
    effect: str


@dataclass(frozen=True, slots=True)
class RunLight:
    """A run as its row in the store says it, with its first calls."""

    run: Run
    first_calls: tuple[FirstCall, ...] = ()

    @property
    def task(self) -> str | None:
        """What kind of work it does: its task, else its name; None when nobody said."""
        return self.run.task or self.run.name

    @property
    def cap(self) -> int | None:
        """The configured limit of turns."""
        value = self.run.limits.get("turns") if self.run.limits else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def hit_cap(self) -> bool:
        """True when a limit ended it."""
        return self.run.status == "limit"


@dataclass(frozen=True)
class Group:
    """Runs that are compared with each other."""

    runs: tuple[RunLight, ...]
    overrides: dict[str, dict[str, float]] = field(default_factory=dict)

    @cached_property
    def by_task(self) -> dict[str, tuple[RunLight, ...]]:
        """The runs of each task; sub-agents and forks, which do a part of one, are left out."""
        found: dict[str, list[RunLight]] = {}
        for light in self.runs:
            if light.task is not None and light.run.parent is None:
                found.setdefault(light.task, []).append(light)
        return {task: tuple(runs) for task, runs in found.items()}

    def median_turns(self, task: str | None, but: str) -> tuple[float, int] | None:
        """Median of turns over the other runs of a task, and how many they are; None without any."""
        others = [r.run.turns for r in self.by_task.get(task or "", ()) if r.run.id != but and r.run.turns]
        return (float(median(others)), len(others)) if others else None

    def thresholds(self, rule: str, defaults: dict[str, float]) -> dict[str, float]:
        """A rule's numbers, with what settings say in place of the defaults."""
        return {**defaults, **self.overrides.get(rule, {})}


def group_of(
    store: Store, runs: Sequence[Run], *, overrides: dict[str, dict[str, float]] | None = None, most: int = MOST
) -> Group:
    """These runs, and those of the store's newest ``most`` that share a task or a project with them."""
    from ...tracer.store import Filter

    projects = {r.project for r in runs}
    tasks = {r.task or r.name for r in runs} - {None}
    newest = (
        "select id, project, task, name from base.runs "
        "order by coalesce(started_at, ended_at) desc nulls last, started_at desc nulls last, id limit ?"
    )
    rows = store.rows(newest, [most]) if runs else []
    alike = tuple(r["id"] for r in rows if r["project"] in projects or (r["task"] or r["name"]) in tasks)
    others = store.runs(Filter(ids=alike, limit=0)) if alike else []  # a whole run is much more than these four
    chosen = {r.id: r for r in (*others, *runs)}
    first = first_calls(store, list(chosen))
    return Group(tuple(RunLight(r, first.get(r.id, ())) for r in chosen.values()), overrides or {})


def first_calls(store: Store, runs: Sequence[str]) -> dict[str, tuple[FirstCall, ...]]:
    """The first own calls of each of the runs."""
    if not runs:
        return {}
    query = (
        "select c.run, c.turn, c.name, c.arguments_raw, c.side_effect from base.calls as c "
        "join base.turns as t on t.run = c.run and t.number = c.turn and not t.inherited "
        "where c.run in (select unnest(?::varchar[])) "
        "qualify row_number() over (partition by c.run order by c.turn, c.position) <= ? order by c.run, c.turn, c.position"
    )
    found: dict[str, list[FirstCall]] = {}
    for row in store.rows(query, [list(runs), FIRST_CALLS]):
        arguments = _decoded(row["arguments_raw"])
        declared = row["side_effect"]
        effect = declared if declared not in (None, "unknown") else tool_kinds.effect_of(row["name"], arguments)
        said = row["arguments_raw"] if arguments is None else canonical(arguments)
        found.setdefault(row["run"], []).append(FirstCall(row["turn"], row["name"], f"{row['name']}\x1f{said}", effect))
    return {run: tuple(calls) for run, calls in found.items()}


def _decoded(raw: str | None) -> Any:
    try:
        return json.loads(raw or "")
    except (ValueError, RecursionError):
        return None
