"""One run in memory: its turns, its events, and what came in new with each turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..tracer.model import Event, Run, ToolCall, Turn
from ..tracer.observers import STATE
from .message_parts import MessagePart, parts, role

if TYPE_CHECKING:
    from ..tracer.store import Store


@dataclass(frozen=True, slots=True)
class Incoming:
    """Something that came in with a turn's request and is no tool result of a known call.

    Attributes:
        role: user, system, developer, tool; ``assistant`` for words put into the model's mouth.
        number: Its number in the request's messages, from 1.
    """

    role: str
    number: int
    part: MessagePart


@dataclass(frozen=True, slots=True)
class Recording:
    """A run, or some turns of it. ``incoming`` holds per turn number what was new in its request."""

    run: Run
    turns: tuple[Turn, ...]
    events: tuple[Event, ...] = ()
    incoming: Mapping[int, tuple[Incoming, ...]] = field(default_factory=dict)

    def turn(self, number: int) -> Turn:
        """The turn of that number; KeyError when it is not loaded."""
        for turn in self.turns:
            if turn.number == number:
                return turn
        raise KeyError(number)

    def calls(self) -> Iterator[tuple[Turn, ToolCall]]:
        """Every tool call with its turn, in order."""
        for turn in self.turns:
            for call in turn.tool_calls:
                yield turn, call

    def events_at(self, number: int) -> tuple[Event, ...]:
        """The events of that turn that tell a reader something: what a guard saves for later is none."""
        return tuple(e for e in self.events if e.turn == number and e.kind != STATE)


def load(store: Store, run: Run, first: int | None = None, last: int | None = None) -> Recording:
    """A run out of a store, whole or the turns ``first`` to ``last``."""
    turns = tuple(store.turns(run.id, first, last))
    numbers = {t.number for t in turns}
    events = tuple(e for e in store.events(run.id) if first is None or e.turn in numbers)
    known = {call.id for turn in turns for call in turn.tool_calls}
    incoming: dict[int, list[Incoming]] = {}
    for number, place, message in _new_messages(store, run.id, turns):
        incoming.setdefault(number, []).extend(_incoming(place, message, known, first=number == 1))
    return Recording(run, turns, events, {number: tuple(found) for number, found in incoming.items() if found})


def load_many(store: Store, runs: Sequence[Run]) -> Iterator[Recording]:
    """Whole runs in this order, many at a time: a store has no index, so each question costs the same for one as for all."""
    for some in _portions(runs):
        ids = [run.id for run in some]
        turns, events = store.turns_of(ids), store.events_of(ids)
        known = {i: {call.id for turn in turns[i] for call in turn.tool_calls} for i in ids}
        incoming: dict[str, dict[int, list[Incoming]]] = {i: {} for i in ids}
        for row in store.rows(_MESSAGES, [ids]):
            with suppress(ValueError, TypeError, RecursionError):  # content not kept, or no JSON
                run, number = row["run"], row["first_turn"]
                parts_of = _incoming(row["position"], json.loads(row["text"]), known[run], first=number == 1)
                incoming[run].setdefault(number, []).extend(parts_of)
        for run in some:
            came = {number: tuple(found) for number, found in incoming[run.id].items() if found}
            yield Recording(run, tuple(turns[run.id]), tuple(events[run.id]), came)


_PORTION = 1_000  # turns in memory at once; a longer run is alone
_MESSAGES = (
    "select s.run, s.first_turn, s.position, b.text from base.spans as s join base.blobs as b on b.id = s.blob "
    "where s.run in (select unnest(?::varchar[])) and (b.role is distinct from 'assistant' or s.first_turn = 1) "
    "order by s.run, s.first_turn, s.position"
)


def _portions(runs: Sequence[Run]) -> Iterator[list[Run]]:
    some: list[Run] = []
    turns = 0
    for run in runs:
        if some and turns + run.turns > _PORTION:
            yield some
            some, turns = [], 0
        some.append(run)
        turns += run.turns
    if some:
        yield some


def _new_messages(store: Store, run: str, turns: Sequence[Turn]) -> Iterator[tuple[int, int, Any]]:
    """Turn, message number and message of what each turn's request added to the one before: one query for all."""
    if not turns:
        return
    quoted = run.replace("'", "''")
    query = (
        f"select first_turn, position, message from messages where run = '{quoted}' "  # noqa: S608 - a quoted text
        f"and first_turn between {turns[0].number} and {turns[-1].number} order by first_turn, position"
    )
    for number, position, text in store.sql(query)[2]:
        with suppress(ValueError, TypeError, RecursionError):  # content not kept, or no JSON
            yield number, position, json.loads(text)


def _incoming(number: int, message: Any, known: set[str], *, first: bool) -> Iterator[Incoming]:
    who = role(message)
    if who == "assistant" and not first:
        return  # the answer of the turn before, come back
    for part in parts(message):
        if part.kind == "result" and part.call in known:
            continue  # shown with its call
        yield Incoming(who, number, part)
