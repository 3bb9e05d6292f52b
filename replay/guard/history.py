"""`limits_from_history`: limits for a run from similar runs before it, read once from the store."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ...tracer.errors import LooptapeError, UsageError
from ...tracer.model import Limits

if TYPE_CHECKING:
    from ...tracer.model import Run

MEASURED = ("turns", "seconds", "tokens", "cost_usd")
LATEST = 500
"""Runs that are looked at: older ones were another program."""
PARTS = ("fork", "resume")  # replays are forks too: their turns are another run's, or only the rest of the job
BAD = frozenset({"fail", "failed", "failure", "error", "bad", "wrong", "no", "false"})
"""Verdicts of runs that are no example of what a run needs."""


@dataclass(frozen=True, slots=True)
class LearnedLimits(Limits):
    """Limits and where they come from.

    Attributes:
        n: Runs that they were taken from; 0 when they are the default.
        said: The same in one sentence.
    """

    n: int = 0
    said: str = ""

    def given(self) -> dict[str, int | float]:
        """The caps that are set, by name."""
        return {f.name: v for f in fields(Limits) if (v := getattr(self, f.name)) is not None}


def limits_from_history(
    *,
    task: str,
    default: Limits | None = None,
    margin: float = 1.5,
    percentile: float = 95,
    least: int = 20,
    project: str | None = None,
) -> LearnedLimits:
    """Limits from past runs of a task that ended well: their percentile, times a margin.

    One short read of the store before the run; it drains nothing and waits for nobody. On any trouble (no store yet,
    another process holds it, duckdb is not installed, too few runs) the default is given. What is not measured from
    runs (``consecutive_errors``) and what the runs do not tell is the default's.

    Args:
        task: As `run(task=...)` was given; a ``*`` stands for any text.
        default: What holds without history.
        margin: What the percentile is multiplied with.
        percentile: Of the runs, 0 to 100.
        least: Runs that are needed; from fewer a 95th percentile is only their largest one.
        project: Only runs of this project (a folder); all otherwise.

    Raises:
        UsageError: ``bad-limits``: a margin or percentile that makes no sense.
    """
    if not 0 < percentile <= 100 or not margin > 0 or least < 1:
        raise UsageError("bad-limits", f"percentile {percentile}, margin {margin}, least {least} make no limit")
    given = default or Limits()
    try:
        runs = _past(task, project)
    except LooptapeError as error:
        return _default(given, f"the default: {error.what}")
    except ImportError:
        return _default(given, "the default: duckdb is not installed here")
    except Exception as error:  # whatever it is, the loop begins with the default
        return _default(given, f"the default: the store could not be read ({type(error).__name__})")
    if len(runs) < least:
        return _default(given, f"the default: {len(runs)} finished runs of task {task!r}, {least} are needed")
    return _learned(given, runs, task, margin, percentile, least)


def _past(task: str, project: str | None) -> list[Run]:
    from ...tracer.store import Filter
    from ...tracer.store.reading import glance

    with glance() as store:
        found = store.runs(Filter(task=task, project=project, status="completed", limit=LATEST))
    whole = [r for r in found if r.turns and (r.parent is None or r.parent.kind not in PARTS)]
    return [r for r in whole if str((r.outcome or {}).get("verdict", "")).lower() not in BAD]


def _learned(
    default: Limits, runs: Sequence[Run], task: str, margin: float, percentile: float, least: int
) -> LearnedLimits:
    caps: dict[str, Any] = {f.name: getattr(default, f.name) for f in fields(Limits)}
    learned = []
    for name in MEASURED:
        values = sorted(v for r in runs if (v := _measure(r, name)) is not None)
        if len(values) >= least:
            cap = values[max(0, math.ceil(percentile / 100 * len(values)) - 1)] * margin
            caps[name] = math.ceil(cap) if name in ("turns", "tokens") else round(cap, 6)
            learned.append(name)
    said = f"{', '.join(learned)} from {len(runs)} finished runs of task {task!r}: p{percentile:g} times {margin:g}"
    return LearnedLimits(**caps, n=len(runs), said=said)


def _measure(run: Run, name: str) -> float | None:
    """What a run used, its sub-agents included, as the guard counts it; None when the run does not say."""
    if name == "turns":
        return run.turns
    if name == "seconds":
        known = run.started_at is not None and run.ended_at is not None
        return (run.ended_at - run.started_at) / 1e6 if known else None  # type: ignore[operator]
    if name == "tokens":
        usage = run.inclusive_usage
        return None if usage.context is None and usage.output is None else (usage.context or 0) + (usage.output or 0)
    return run.inclusive_cost_usd


def _default(given: Limits, why: str) -> LearnedLimits:
    return LearnedLimits(**{f.name: getattr(given, f.name) for f in fields(Limits)}, said=why)
