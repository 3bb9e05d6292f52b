"""Turns as a list shows them: small rows without texts, batch by batch, for runs of tens of thousands of turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..model import Usage
from . import place
from .rows import Connection
from .text import decode, encode, loads

BATCH = 1000
"""Turns that are made at a time: so few that another thread never waits long for its turn."""

_TURNS = """
  select number, status, model, stop_reason, started_at, generate_ms, execute_ms, coalesce(user_turn, false),
    coalesce(inherited, false) or duplicate_of is not null, request_flags_json, response_flags_json, left(error, 500),
    cost_usd::double, coalesce(tries, 0), input, cache_read, cache_write_5m, cache_write_1h, output, reasoning,
    coalesce(usage_origin, 'missing'), coalesce(usage_partial, false)
  from base.turns left join (
    select turn, count(*) as tries from base.attempts where run = $run and turn between $first and $last group by turn
  ) on turn = number
  where run = $run and number between $first and $last{place} order by number
"""
_CALLS = """
  select turn, left(name, 200), is_error, coalesce(valid, false), state, origin, child_run from base.calls
  where run = $run and turn between $first and $last{place} order by turn, position
"""
_STAND = """
  select (select [count(*), bit_xor(hash(number, status, stop_reason, user_turn, inherited, duplicate_of, request_flags_json,
      response_flags_json, error, cost_usd, generate_ms, execute_ms, input, cache_read, cache_write_5m, cache_write_1h, output))]
    from base.turns where run = $run and number <= $last{place}),
  (select [count(*), bit_xor(hash(turn, position, name, is_error, valid, state, origin, child_run))]
    from base.calls where run = $run and turn <= $last{place})
"""


class CallRow(NamedTuple):
    """A tool call without arguments and result; ``state`` as in ToolCall. Equal ones are one object."""

    name: str
    is_error: bool | None
    valid: bool
    state: str
    origin: str
    child_run: str | None


class TurnRow(NamedTuple):
    """A turn without its texts; fields as in Turn, ``attempts`` how many there were.

    A named tuple, since a list of 30,000 of them is made while somebody waits for it.
    """

    number: int
    status: str
    model: str | None
    stop_reason: str | None
    started_at: int | None
    generate_ms: float | None
    execute_ms: float | None
    user_turn: bool
    inherited: bool
    flags: tuple[str, ...]
    error: str | None
    cost_usd: float | None
    attempts: int
    input: int | None
    cache_read: int | None
    cache_write_5m: int | None
    cache_write_1h: int | None
    output: int | None
    reasoning: int | None
    usage_origin: str
    usage_partial: bool
    tool_calls: tuple[CallRow, ...]

    @property
    def usage(self) -> Usage:
        """The tokens in their buckets."""
        return Usage(*self[13:21])


def turn_rows(con: Connection, run: str, first: int | None, last: int | None) -> list[TurnRow]:
    """Turns of a run in order, ``first`` and ``last`` included."""
    return [row for batch in batches(con, run, first, last) for row in batch]


def batches(con: Connection, run: str, first: int | None, last: int | None) -> Iterator[list[TurnRow]]:
    """The same, ``BATCH`` turns at a time. The connection is good for other questions meanwhile."""
    lying, lives = place.look_up(con, run)
    values = {"run": encode(run), "first": first or 0, "last": last if last is not None else 2**31 - 1}
    with con.cursor() as of_turns, con.cursor() as of_calls:
        of_turns.execute(_TURNS.format(place=lying), values)
        of_calls.execute(_CALLS.format(place=lying), values)
        calls = _Calls(of_calls, lives)
        flags: dict[tuple[str | None, str | None], tuple[str, ...]] = {(None, None): ()}
        while rows := of_turns.fetchmany(BATCH):
            yield [_turn(row, flags, calls.of(row[0]), lives) for row in rows]


def stand(con: Connection, run: str, last: int) -> object:
    """What equals itself as long as no row of a run up to turn ``last`` says something else; costs a few milliseconds."""
    lying, lives = place.look_up(con, run)
    found = con.execute(_STAND.format(place=lying), {"run": encode(run), "last": last}).fetchone()
    return lives, str(found)


class _Calls:
    """The calls of a run in the order of its turns, taken turn by turn."""

    def __init__(self, found: Connection, lives: bool) -> None:
        self._found, self._lives = found, lives
        self._rows: list[tuple[object, ...]] = []
        self._at = 0
        self._known: dict[tuple[object, ...], CallRow] = {}
        self._few: dict[tuple[CallRow, ...], tuple[CallRow, ...]] = {}

    def of(self, turn: int) -> tuple[CallRow, ...]:
        """The calls of a turn; later turns may be asked for only."""
        taken: list[CallRow] = []
        while (row := self._next()) is not None and row[0] <= turn:  # type: ignore[operator]
            if row[0] == turn:
                told = row[1:]
                taken.append(self._known.get(told) or self._make(told))
            self._at += 1
        made = tuple(taken)
        return self._few.setdefault(made, made) if len(made) < 3 else made

    def _next(self) -> tuple[object, ...] | None:
        if self._at == len(self._rows):
            self._rows, self._at = self._found.fetchmany(BATCH), 0
        return self._rows[self._at] if self._rows else None

    def _make(self, told: tuple[object, ...]) -> CallRow:
        call = CallRow(*told)  # type: ignore[arg-type]
        if call.state in ("requested", "running") and not self._lives and call.origin != "provider":
            call = call._replace(state="no_result")
        call = call._replace(name=decode(call.name))
        self._known[told] = call
        return call


def _turn(
    row: tuple[object, ...],
    known: dict[tuple[str | None, str | None], tuple[str, ...]],
    calls: tuple[CallRow, ...],
    lives: bool,
) -> TurnRow:
    number, status, model, stop, started, generate, execute, user, inherited, asked, answered, error, *rest = row
    if (flags := known.get((asked, answered))) is None:  # type: ignore[arg-type]
        flags = known[asked, answered] = _flags(asked, answered)  # type: ignore[index, arg-type]
    if status == "open" and not lives:
        status = "interrupted"
    model, stop, error = (t if t.__class__ is not str or t.isascii() else decode(t) for t in (model, stop, error))
    return TurnRow._make((number, status, model, stop, started, generate, execute, user, inherited, flags, error, *rest, calls))  # fmt: skip


def _flags(*texts: str | None) -> tuple[str, ...]:
    found: list[str] = []
    for text in texts:
        found += (loads(text) or ()) if text else ()
    return tuple(dict.fromkeys(found))
