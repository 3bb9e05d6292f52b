"""Turns as a list shows them: small rows without texts, read column by column, for runs of tens of thousands of turns."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Usage
from . import place
from .read import usage_of
from .rows import Connection, Row, select
from .text import encode, loads

_TURNS = """
  select number, status, model, stop_reason, started_at, generate_ms, execute_ms, user_turn, inherited, duplicate_of,
    request_flags_json, response_flags_json, left(error, 500) as error, cost_usd, input, cache_read, cache_write_5m,
    cache_write_1h, output, reasoning, usage_origin, usage_partial
  from base.turns where run = ? and number between ? and ?{place} order by number
"""
_CALLS = """
  select turn, left(name, 200) as name, is_error, valid, state, origin, child_run from base.calls
  where run = ? and turn between ? and ?{place} order by turn, position
"""
_TRIES = "select turn, count(*) as tries from base.attempts where run = ? and turn between ? and ? group by turn"


@dataclass(frozen=True, slots=True)
class CallRow:
    """A tool call without arguments and result; ``state`` as in ToolCall."""

    name: str
    is_error: bool | None
    valid: bool
    state: str
    origin: str
    child_run: str | None


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn without its texts; fields as in Turn, ``attempts`` how many there were."""

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
    usage: Usage
    attempts: int
    tool_calls: tuple[CallRow, ...]


def turn_rows(con: Connection, run: str, first: int | None, last: int | None) -> list[TurnRow]:
    """Turns of a run in order, ``first`` and ``last`` included."""
    values = [encode(run), first or 0, last if last is not None else 2**31 - 1]
    lying = place.of_run(con, run)
    rows = select(con, _TURNS.format(place=lying), values)
    if not rows:
        return []
    found = con.execute("select status = 'running' from base.runs where id = ?", [encode(run)]).fetchone()
    lives = bool(found and found[0])
    calls: dict[int, list[CallRow]] = {}
    for row in select(con, _CALLS.format(place=lying), values):
        calls.setdefault(row["turn"], []).append(_call(row, lives))
    tries = {row["turn"]: row["tries"] for row in select(con, _TRIES, values)}
    return [_turn(row, tuple(calls.get(row["number"], ())), tries.get(row["number"], 0), lives) for row in rows]


def _turn(row: Row, calls: tuple[CallRow, ...], attempts: int, lives: bool) -> TurnRow:
    plain = ("number", "model", "stop_reason", "started_at", "generate_ms", "execute_ms", "error")
    flags: list[str] = []
    for name in ("request_flags_json", "response_flags_json"):
        flags += (loads(row[name]) or ()) if row[name] else ()
    return TurnRow(
        **{name: row[name] for name in plain},
        status="interrupted" if row["status"] == "open" and not lives else row["status"],
        user_turn=bool(row["user_turn"]),
        inherited=bool(row["inherited"] or row["duplicate_of"]),
        flags=tuple(dict.fromkeys(flags)),
        cost_usd=None if row["cost_usd"] is None else float(row["cost_usd"]),
        usage=usage_of(row),
        attempts=attempts,
        tool_calls=calls,
    )


def _call(row: Row, lives: bool) -> CallRow:
    open_ = row["state"] in ("requested", "running") and not lives and row["origin"] != "provider"
    return CallRow(
        row["name"],
        row["is_error"],
        bool(row["valid"]),
        "no_result" if open_ else row["state"],
        row["origin"],
        row["child_run"],
    )
