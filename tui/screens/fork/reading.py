"""What the fork screen asks of the store, and what it is told: a turn to go on from, and what would come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from textual.message import Message

from ....replay.engine.forks import costs, order, telling
from ....replay.engine.forks.forking import Plan, plan
from ....replay.engine.forks.order import Order, Ready
from ....replay.engine.toolbox import Definition
from ....replay.fork.edits import Edit
from ....replay.fork.parts import Part, edit_of, parts
from ....tracer.errors import LooptapeError, UsageError
from ....tracer.model import Run
from ...data.source import Source
from ...data.views import Trouble

if TYPE_CHECKING:
    from ....tracer.store import Store


@dataclass(frozen=True, slots=True)
class Reading:
    """A turn that a fork can begin at, as it was recorded.

    Attributes:
        number: N, as it was asked for; one past the last turn goes on after the end.
    """

    run: Run
    number: int
    plan: Plan
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Sketch:
    """What an order would come to. Where it cannot be, ``trouble`` says why and the rest is as far as it goes."""

    order: Order
    ready: Ready | None = None
    facts: tuple[telling.ToolFact, ...] = ()
    begins: str = ""
    will: telling.WillRun | None = None
    cost: costs.Estimate | None = None
    hindered: str = ""
    trouble: Trouble | None = None


class TurnRead(Message):
    """A turn was read."""

    def __init__(self, reading: Reading) -> None:
        super().__init__()
        self.reading = reading


Edits = Mapping[str, tuple[Part, str]]
"""Edited texts with their parts, by path."""


class SourcesRead(Message):
    """The live tools of an order's sources."""

    def __init__(self, wanted: Order, able: Sequence[Definition]) -> None:
        super().__init__()
        self.order = wanted
        self.able = tuple(able)


def read(source: Source, run: str, number: int | None) -> TurnRead:
    """Reads a turn; without a number the end of the run, or its last turn where it was over with that."""

    def question(store: Store) -> Reading:
        found = store.run(run)
        made = _at(store, run, number, found.turns)
        after = made.before.response is not None
        return Reading(found, made.before.number + after, made, parts(made.before))

    return TurnRead(source.ask(question))


def _at(store: Store, run: str, number: int | None, turns: int) -> Plan:
    if number is not None:
        return plan(store, run, number)
    try:
        return plan(store, run, turns + 1)
    except UsageError:
        return plan(store, run, max(1, turns))


def sketch(reading: Reading, given: Order, edits: Edits, able: Sequence[Definition]) -> Sketch:
    """What an order with these edits comes to; asks no store."""
    wanted = replace(given, edits=_in_order(reading, edits))
    try:
        ready = order.ready(wanted, reading.plan)
    except LooptapeError as error:
        facts = telling.tool_facts(reading.plan, wanted, able)
        return Sketch(wanted, facts=facts, trouble=Trouble(error.what, error.cure))
    facts = telling.tool_facts(ready.plan, wanted, able)
    return Sketch(
        wanted, ready, facts, telling.beginning(ready), telling.will_run(ready, facts), costs.estimate(ready),
        telling.hindered(ready),
    )  # fmt: skip


def _in_order(reading: Reading, edits: Edits) -> tuple[Edit, ...]:
    """The edits as the model reads what they change."""
    if not edits:
        return ()
    places = {p.path: i for i, p in enumerate(reading.parts)}
    listed = sorted(edits.values(), key=lambda e: places.get(e[0].path, len(places)))
    return tuple(e for part, text in listed if (e := edit_of(part, text)) is not None)


def read_sources(wanted: Order) -> SourcesRead:
    """Loads the live tools of an order, to know their names."""
    return SourcesRead(wanted, order.source_tools(wanted))


def new_parameter(name: str) -> Part:
    """A parameter that the request has not: any JSON, else words."""
    return Part(("params", name), "parameter", name, "", there=False)
