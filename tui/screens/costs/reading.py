"""What the screen of costs asks of the store, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from textual.message import Message

from ....replay import analytics
from ....replay.analytics import Table
from ....replay.filters import parse, ready
from ....tracer.errors import LooptapeError
from ...data.source import Source
from ...place import Scope
from ...told.stats_text import Days, days_of
from .table import bars_of

if TYPE_CHECKING:
    from ....tracer.store import Filter, Store

BY = ("model", "tool", "day", "project", "task", "outcome", "run")
"""What costs are shown by, in the order of the tabs."""
SECONDS = 0.5
"""How long cycles are looked for before others may read again."""


@dataclass(frozen=True, slots=True)
class Wasted:
    """What cycles wasted, as far as it is known; ``missing``: runs not looked at yet."""

    runs: int
    turns: int
    usd: float | None
    missing: int = 0


class Summed(Message):
    """The whole of the runs in one row, and its days."""

    def __init__(self, scope: Scope, whole: Mapping[str, Any], days: Days | None, notes: tuple[str, ...]) -> None:
        super().__init__()
        self.scope = scope
        self.whole = whole
        self.days = days
        self.notes = notes


class Tabled(Message):
    """The table of a tab, and what its bars show; ``names`` of runs by id."""

    def __init__(self, scope: Scope, by: str, table: Table, names: Mapping[str, str]) -> None:
        super().__init__()
        self.scope = scope
        self.by = by
        self.table = table
        self.bars = bars_of(table)
        self.names = names


class Cycled(Message):
    """What cycles wasted is known for some more runs."""

    def __init__(self, scope: Scope, wasted: Wasted, trouble: str = "") -> None:
        super().__init__()
        self.scope = scope
        self.wasted = wasted
        self.trouble = trouble


def wanted_of(scope: Scope, now: int) -> Filter:
    """The filter of a scope. Raises UsageError where its text cannot be read."""
    found = replace(parse(scope.filter, now), limit=0)
    return replace(found, ids=scope.runs) if scope.runs else found


def summed(source: Source, scope: Scope) -> Summed:
    """All turns of the runs in one row, and by day."""
    wanted = wanted_of(scope, source.now())

    def question(store: Store) -> tuple[Table, Table]:
        ready(store, wanted)
        return analytics.stats(store, (), wanted), analytics.costs(store, ("day",), wanted)

    whole, days = source.ask(question)
    return Summed(scope, next(iter(whole)), days_of(days), whole.notes)


def tabled(source: Source, scope: Scope, by: str) -> Tabled:
    """The table of a tab."""
    wanted = wanted_of(scope, source.now())

    def question(store: Store) -> tuple[Table, dict[str, str]]:
        ready(store, wanted)
        if by == "tool":
            return analytics.tools(store, wanted), {}
        if by == "task":
            return analytics.tasks(store, wanted), {}
        found = analytics.stats(store, (by,), wanted)
        return found, _names(store, found.column("run")) if by == "run" else {}

    table, names = source.ask(question)
    return Tabled(scope, by, table, names)


def cycled(source: Source, scope: Scope, post: Callable[[Message], object], stopped: Callable[[], bool]) -> Cycled:
    """Looks for cycles in the runs that were not looked at yet, a little at a time; posts what is known each time."""
    wanted = wanted_of(scope, source.now())
    while True:
        trouble, missing = "", 0
        try:
            missing = source.ask(lambda store: analytics.keep_cycles(store, wanted, seconds=SECONDS))
        except LooptapeError as error:
            trouble = f"cycles of new runs could not be kept: {error.what}"
        found = Cycled(scope, _wasted(source.ask(lambda store: analytics.wasted(store, wanted)), missing), trouble)
        if not missing or trouble or stopped():
            return found
        post(found)


def _wasted(table: Table, missing: int) -> Wasted:
    known = [v for v in table.column("usd") if v is not None]
    return Wasted(len(table.rows), sum(table.column("turns")), sum(known) if known else None, missing)


def _names(store: Store, runs: list[str]) -> dict[str, str]:
    rows = store.rows(
        "select id, coalesce(name, title, agent, id) as name from base.runs where id in (select unnest(?::varchar[]))",
        [runs],
    )
    return {row["id"]: row["name"] for row in rows}
