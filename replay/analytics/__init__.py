"""Questions about many runs: cost, turns, time, errors by model, day, task, tool; what was never called; what cycles wasted.

Every turn counts once, with the run that owns it (docs/stats.md). All of it is grouped inside the store, over columns.
"""

from __future__ import annotations

from .answers import Field, Table, ordered
from .groups import DIMENSIONS, costs, stats
from .overview import Overview, overview
from .tasks import history, tasks
from .tools import confused, never_called, tools
from .wasted import keep_cycles, wasted

__all__ = [
    "DIMENSIONS",
    "Field",
    "Overview",
    "Table",
    "confused",
    "costs",
    "history",
    "keep_cycles",
    "never_called",
    "ordered",
    "overview",
    "stats",
    "tasks",
    "tools",
    "wasted",
]
