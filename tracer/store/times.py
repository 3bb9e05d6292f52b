"""When everything in a run happened, turn by turn, without any text: what a chart over time is drawn from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from . import place
from .rows import Connection, Row, select
from .text import encode, loads

_TURNS = """
  select number, status, started_at, first_chunk_at, ended_at, left(error_type, 100) as error_type,
    left(error, 200) as error, stop_reason from base.turns where run = ? and number between ? and ?{place} order by number
"""
_CALLS = """
  select turn, left(name, 200) as name, left(arguments_raw, 200) as arguments, started_at, ended_at, timing, is_error,
    valid, error_class, left(returned_class, 200) as raised, state, origin, child_run
  from base.calls where run = ? and turn between ? and ?{place} order by turn, position
"""
_TRIES = """
  select turn, status, left(error_type, 100) as error_type, wait_ms, started_at, ended_at from base.attempts
  where run = ? and turn between ? and ?{place} and turn in
    (select turn from base.attempts where run = ? and turn between ? and ?{place} group by turn having count(*) > 1)
  order by turn, number
"""
_EVENTS = """
  select turn, happened_at, detail_json from base.events
  where run = ? and turn between ? and ? and kind = 'api_error' and happened_at is not null order by happened_at
"""
_CHILDREN = """
  select id, coalesce(name, agent, left(title, 100)) as name, turns, status, started_at, ended_at from base.runs
  where id in (select unnest(?::varchar[]))
"""


@dataclass(frozen=True, slots=True)
class ChildTimes:
    """The run that a call started."""

    run: str
    name: str | None
    turns: int
    status: str
    started_at: int | None
    ended_at: int | None


@dataclass(frozen=True, slots=True)
class CallTimes:
    """A tool call: ``measured`` false where its times come from the requests around it.

    Attributes:
        arguments: The first 200 characters of them.
        wrong: A word for what went wrong, None where nothing did.
    """

    name: str
    arguments: str = ""
    started_at: int | None = None
    ended_at: int | None = None
    measured: bool = True
    wrong: str | None = None
    open: bool = False
    provider: bool = False
    child: ChildTimes | None = None


@dataclass(frozen=True, slots=True)
class TryTimes:
    """One exchange of a model call that took several. ``said``: its HTTP status or the error's name."""

    said: str
    failed: bool
    wait_ms: float | None
    started_at: int | None
    ended_at: int | None


@dataclass(frozen=True, slots=True)
class TurnTimes:
    """A turn; times in microseconds since the epoch, None where not known. ``tries`` only where there were several."""

    number: int
    status: str = "ok"
    started_at: int | None = None
    first_chunk_at: int | None = None
    ended_at: int | None = None
    wrong: str | None = None
    stop_reason: str | None = None
    tries: tuple[TryTimes, ...] = ()
    calls: tuple[CallTimes, ...] = ()


def turn_times(con: Connection, run: str, first: int | None = None, last: int | None = None) -> list[TurnTimes]:
    """The times of a run's turns in order, ``first`` and ``last`` included."""
    values = [encode(run), first or 0, last if last is not None else 2**31 - 1]
    lying, lives = place.look_up(con, run)
    rows = select(con, _TURNS.format(place=lying), values)
    if not rows:
        return []
    calls: dict[int, list[CallTimes]] = {}
    found = select(con, _CALLS.format(place=lying), values)
    children = _children(con, [row["child_run"] for row in found if row["child_run"]])
    for row in found:
        calls.setdefault(row["turn"], []).append(_call(row, children, lives))
    tries: dict[int, list[TryTimes]] = {}
    for row in select(con, _TRIES.format(place=lying), values * 2):
        tries.setdefault(row["turn"], []).append(_try(row))
    for row in select(con, _EVENTS, values):
        tries.setdefault(row["turn"], []).append(_refused(row))
    return [_turn(row, tuple(tries.get(row["number"], ())), tuple(calls.get(row["number"], ())), lives) for row in rows]


def _turn(row: Row, tries: tuple[TryTimes, ...], calls: tuple[CallTimes, ...], lives: bool) -> TurnTimes:
    status = "interrupted" if row["status"] == "open" and not lives else row["status"]
    wrong = (row["error_type"] or row["error"] or "error") if status == "error" else None
    plain = ("number", "started_at", "first_chunk_at", "ended_at", "stop_reason")
    return TurnTimes(**{name: row[name] for name in plain}, status=status, wrong=wrong, tries=tries, calls=calls)


def _call(row: Row, children: dict[str, ChildTimes], lives: bool) -> CallTimes:
    provider = row["origin"] == "provider"
    unanswered = row["state"] in ("requested", "running") and not provider
    child = children.get(row["child_run"] or "")
    return CallTimes(
        row["name"],
        row["arguments"] or "",
        row["started_at"],
        row["ended_at"],
        row["timing"] == "measured",
        _wrong(row, unanswered and not lives),
        unanswered and lives,
        provider,
        child or (ChildTimes(row["child_run"], None, 0, "unknown", None, None) if row["child_run"] else None),
    )


def _wrong(row: Row, unanswered: bool) -> str | None:
    if not row["valid"]:
        return "invalid arguments"
    if unanswered or row["state"] == "no_result":
        return "no result"
    if row["state"] in ("incomplete", "cancelled"):
        return str(row["state"])
    if row["is_error"]:
        raised = (row["raised"] or "").rpartition(".")[2]
        return str(raised or row["error_class"] or "error")
    return None


def _try(row: Row) -> TryTimes:
    status = row["status"]
    failed = bool(row["error_type"]) or (status is not None and status >= 400)
    said = str(status) if status is not None else row["error_type"] or "no answer"
    return TryTimes(said, failed or status is None, row["wait_ms"], row["started_at"], row["ended_at"])


def _refused(row: Row) -> TryTimes:
    """A refusal that a session file tells of as an event: when it came, and how long the client then waited."""
    detail: Any = loads(row["detail_json"])
    detail = detail if isinstance(detail, dict) else {}
    error = detail.get("error")
    status = error.get("status") if isinstance(error, dict) else None
    wait = detail.get("retry_ms")
    return TryTimes(
        str(status) if isinstance(status, int) else "API error",
        True,
        float(wait) if isinstance(wait, (int, float)) else None,
        row["happened_at"],
        row["happened_at"],
    )


def _children(con: Connection, runs: list[str]) -> dict[str, ChildTimes]:
    if not runs:
        return {}
    rows = select(con, _CHILDREN, [[encode(run) for run in runs]])
    return {
        r["id"]: ChildTimes(r["id"], r["name"], r["turns"] or 0, r["status"], r["started_at"], r["ended_at"])
        for r in rows
    }


def until(turns: list[TurnTimes], now: int) -> list[TurnTimes]:
    """The same with what goes on still drawn up to ``now``: only the last turn can."""
    if not turns:
        return turns
    last = turns[-1]
    calls = tuple(replace(c, ended_at=max(now, c.started_at)) if c.open and c.started_at else c for c in last.calls)
    ended = max(now, last.started_at) if last.status == "open" and last.started_at else last.ended_at
    return [*turns[:-1], replace(last, calls=calls, ended_at=ended)]
