"""The first look: totals, what each model and task costs, days, tools that idle or are confused, money in cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...tracer.store import Filter
from .answers import Table
from .groups import costs, stats
from .tasks import tasks
from .tools import confused, never_called
from .wasted import wasted

if TYPE_CHECKING:
    from ...tracer.store import Store


@dataclass(frozen=True, slots=True)
class Overview:
    """Each a table of its own. ``not_looked_at``: runs in which cycles were not looked for yet."""

    models: Table
    days: Table
    tasks: Table
    never_called: Table
    confused: Table
    cycles: Table
    not_looked_at: int = 0


def overview(store: Store, given: Filter | None = None, *, not_looked_at: int = 0) -> Overview:
    """The tables of a first look at the runs that a filter picks."""
    return Overview(
        stats(store, ("model",), given),
        costs(store, ("day",), given),
        tasks(store, given),
        never_called(store, given),
        confused(store, given),
        wasted(store, given),
        not_looked_at,
    )
