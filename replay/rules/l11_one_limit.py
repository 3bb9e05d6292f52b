"""L11: one limit of turns for tasks that need very different numbers of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from .group import Group, RunLight
from .rule import Finding, Said, Unknown

ID = "L11"
TITLE = "One limit for all tasks"
RUNS, TASKS = 20, 3
"""Fewer runs or tasks show no pattern."""
A_FEW_RUNS, A_FEW_TASKS = 8, 2
"""From here on a first hint may be given."""
HITS = 0.1
"""Share of a task's runs that end at the cap: beyond one in ten the cap, not the work, decides."""
IDLE = 0.25
"""Share of the cap that another task stays below: for it the same cap is no limit at all."""
MARGIN = 1.5
"""What a task's own limit is its 95th percentile times."""
LEAST = 3
"""Runs of a task from which its percentile is worth saying."""
THRESHOLDS = {
    "runs": RUNS, "tasks": TASKS, "a_few_runs": A_FEW_RUNS, "a_few_tasks": A_FEW_TASKS, "hits": HITS, "idle": IDLE,
    "margin": MARGIN, "least": LEAST,
}  # fmt: skip


def check_group(group: Group) -> Iterator[Said]:
    """Tasks with the same cap, of which one runs into it and another stays far below."""
    at = group.thresholds(ID, THRESHOLDS)
    tasks = {task: runs for task, runs in group.by_task.items() if len(runs) >= at["least"]}
    total = sum(map(len, tasks.values()))
    if total < at["a_few_runs"] or len(tasks) < at["a_few_tasks"]:
        return
    if all(r.cap is None for runs in tasks.values() for r in runs):
        if total >= at["runs"] and len(tasks) >= at["tasks"]:
            yield Unknown(ID, _newest(tasks.values()).run.id, ("run.limits.turns",))
        return
    caps = {task: _cap(runs) for task, runs in tasks.items()}
    for cap in sorted({c for c in caps.values() if c is not None}):
        yield from _among({t: tasks[t] for t, c in caps.items() if c == cap}, cap, at)


def _cap(runs: Sequence[RunLight]) -> int | None:
    """The cap that all runs of a task have; None when they differ or one has none."""
    found = {r.cap for r in runs}
    return found.pop() if len(found) == 1 else None


def _among(tasks: dict[str, tuple[RunLight, ...]], cap: int, at: dict[str, float]) -> Iterator[Finding]:
    total = sum(map(len, tasks.values()))
    if total < at["a_few_runs"] or len(tasks) < at["a_few_tasks"]:
        return
    tight = {t: runs for t, runs in tasks.items() if _hit_rate(runs, cap) > at["hits"]}
    loose = {t: runs for t, runs in tasks.items() if t not in tight and _p95(runs) < at["idle"] * cap}
    if not tight or not loose:
        return
    enough = total >= at["runs"] and len(tasks) >= at["tasks"]
    worst = max(tight, key=lambda t: _hit_rate(tight[t], cap))
    hit = _hits(tight[worst], cap)
    light = min(loose, key=lambda t: _p95(loose[t]))
    advice = ", ".join(f"{t}: {math.ceil(_p95(runs) * at['margin'])}" for t, runs in sorted(loose.items())[:4])
    yield Finding(
        ID, "warning" if enough else "info", hit[-1].run.id, 0, 0,
        f"{len(tasks)} tasks share the limit of {cap} turns: {worst} runs into it in {len(hit)} of {len(tight[worst])} runs, "
        f"{light} needs {_p95(loose[light]):g} in 95 of 100",
        tuple(f"{t}: {len(r)} runs, {len(_hits(r, cap))} at the limit, 95th percentile {_p95(r):g} turns" for t, r in sorted(tasks.items())[:6]),
        confidence=0.8 if enough else 0.5,
        fix=f"Give each task a limit of its own: 95th percentile times {at['margin']:g} ({advice}); raise that of {worst}, "
        "with a soft limit that stops only what repeats itself. looptape.limits_from_history does it.",
    )  # fmt: skip


def _hits(runs: Sequence[RunLight], cap: int) -> list[RunLight]:
    """The runs that the limit of turns ended; other limits end runs too."""
    return [r for r in runs if r.hit_cap and r.run.turns >= cap]


def _hit_rate(runs: Sequence[RunLight], cap: int) -> float:
    return len(_hits(runs, cap)) / len(runs)


def _p95(runs: Sequence[RunLight]) -> float:
    """The 95th percentile of turns, the value at its rank."""
    turns = sorted(r.run.turns for r in runs)
    return float(turns[max(0, math.ceil(0.95 * len(turns)) - 1)])


def _newest(groups: Iterable[Sequence[RunLight]]) -> RunLight:
    return max((r for runs in groups for r in runs), key=lambda r: r.run.started_at or 0)
