"""Rows into the objects of the model: runs with their inclusive totals, turns with calls and attempts, events."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from operator import itemgetter
from typing import Any

from ..model import Attempt, Event, Parent, Run, ToolCall, Turn, TurnPrice, Usage, add_usage
from . import place
from .filters import Filter, join, order, where
from .rows import USAGE, Connection, Row, select
from .text import at_path, decode, encode, loads

_GAP, _MOST_RANGES = 4, 16


def runs(con: Connection, given: Filter) -> list[Run]:
    """Runs that pass the filter, in its order."""
    rows = select(con, *_chosen("r.*", given))
    inclusive = _inclusive(con, rows)
    return [_run(row, inclusive[row["id"]]) for row in rows]


def ids(con: Connection, given: Filter) -> list[str]:
    """The ids of the runs that pass the filter, in its order."""
    query, values = _chosen("r.id", given)
    return [found if found.isascii() else decode(found) for (found,) in con.execute(query, values).fetchall()]


def _chosen(columns: str, given: Filter) -> tuple[str, list[Any]]:
    condition, values = where(given)
    limit = f" limit {int(given.limit)}" if given.limit else ""
    return f"select {columns} from base.runs as r {join(given)}where {condition} order by {order(given)}{limit}", values  # noqa: S608


def count(con: Connection, given: Filter) -> int:
    """How many runs pass the filter, its limit left aside."""
    condition, values = where(given)
    found = con.execute(f"select count(*) from base.runs as r where {condition}", values).fetchone()  # noqa: S608
    return int(found[0])


def turns(con: Connection, run: str, first: int | None, last: int | None) -> list[Turn]:
    """Turns of a run in order, with their calls, results as the model saw them, and attempts."""
    values = [encode(run), first or 0, last if last is not None else 2**31 - 1]
    lying, lives = place.look_up(con, run)
    return _turns(con, "run = ? and {} between ? and ?" + lying, values, [run], {run} if lives else set())[run]


def turns_of(con: Connection, runs: Sequence[str]) -> dict[str, list[Turn]]:
    """The same of several whole runs: one look at each table for all of them, for no index leads to one."""
    wanted = [[encode(r) for r in runs]]
    query = "select id from base.runs where status = 'running' and id in (select unnest(?::varchar[]))"
    live = {row["id"] for row in select(con, query, wanted)}
    return _turns(con, "run in (select unnest(?::varchar[]))", wanted, runs, live)


def _turns(
    con: Connection, where: str, values: list[Any], runs: Sequence[str], live: AbstractSet[str]
) -> dict[str, list[Turn]]:
    """``where`` holds {} for the name of the column with the turn; ``live``: those of the runs that are running."""
    rows = select(con, f"select * from base.turns where {where.format('number')}", values)  # noqa: S608
    calls = select(con, f"select * from base.calls where {where.format('turn')}", values)  # noqa: S608
    tries = select(con, f"select * from base.attempts where {where.format('turn')}", values)  # noqa: S608
    for part, *by in ((rows, "number"), (calls, "turn", "position"), (tries, "turn", "number")):
        part.sort(key=itemgetter(*by))  # sixty columns of a few rows: DuckDB takes a millisecond for it
    wanted = {c["seen_blob"] for c in calls} | {t["response_blob"] for t in rows}
    bodies = texts(con, [b for b in wanted if b is not None])
    decoded: dict[int, Any] = {}
    of_turn: dict[tuple[str, int], list[ToolCall]] = {}
    for call in calls:
        made = _call(call, bodies, decoded, call["run"] in live)
        of_turn.setdefault((call["run"], call["turn"]), []).append(made)
    attempts: dict[tuple[str, int], list[Attempt]] = {}
    for row in tries:
        attempts.setdefault((row["run"], row["turn"]), []).append(_attempt(row))
    found: dict[str, list[Turn]] = {run: [] for run in runs}
    for row in rows:
        key = (row["run"], row["number"])
        found[row["run"]].append(_turn(row, of_turn.get(key, []), attempts.get(key, []), bodies, row["run"] in live))
    return found


def events(con: Connection, run: str) -> list[Event]:
    """Events of a run in order of time."""
    return events_of(con, [run])[run]


def events_of(con: Connection, runs: Sequence[str]) -> dict[str, list[Event]]:
    """Events of several runs, each in order of time."""
    query = (
        "select * from base.events where run in (select unnest(?::varchar[])) "
        "order by happened_at nulls first, turn, kind, detail_json"
    )
    found: dict[str, list[Event]] = {run: [] for run in runs}
    for r in select(con, query, [[encode(run) for run in runs]]):
        detail = loads(r["detail_json"]) or {}
        found[r["run"]].append(Event(kind=r["kind"], at=r["happened_at"], turn=r["turn"], detail=detail))
    return found


def texts(con: Connection, blobs: Sequence[int]) -> dict[int, str]:
    """Texts of blobs by id; those without text are absent."""
    if not blobs:
        return {}
    wanted = set(blobs)
    near = _neighbours(sorted(wanted))
    if len(near) <= _MOST_RANGES:  # ids of one run lie together: found by zone maps, without a join
        within = " or ".join(f"id between {low} and {high}" for low, high in near)
        rows = select(con, f"select id, text from base.blobs where ({within}) and text is not null")  # noqa: S608 - numbers
        return {r["id"]: r["text"] for r in rows if r["id"] in wanted}
    query = "select id, text from base.blobs where id in (select unnest(?::bigint[])) and text is not null"
    return {r["id"]: r["text"] for r in select(con, query, [list(wanted)])}


def _neighbours(ids: list[int]) -> list[list[int]]:
    """Ids in rising order as ranges; a small gap is no end."""
    found: list[list[int]] = []
    for one in ids:
        if found and one - found[-1][1] <= _GAP:
            found[-1][1] = one
        else:
            found.append([one, one])
    return found


def usage_of(row: Row) -> Usage:
    """The usage columns of a turn or run."""
    return Usage(
        **{name: row[name] for name in USAGE},
        origin=row["usage_origin"] or "missing",
        partial=bool(row["usage_partial"]),
        raw=loads(row.get("usage_json")),
    )


def _run(row: Row, inclusive: tuple[Usage, float | None, int]) -> Run:
    parent = None
    if row["parent_run"]:
        parent = Parent(row["parent_run"], row["parent_turn"], row["parent_call"], row["parent_kind"] or "fork")
    return Run(
        **{n: row[n] for n in ("id", "name", "title", "agent", "project", "session", "task", "status", "reason")},
        **{n: row[n] for n in ("started_at", "ended_at", "git_commit")},
        turns=row["turns"] or 0,
        tool_calls=row["tool_calls"] or 0,
        errors=row["errors"] or 0,
        unpriced_turns=row["unpriced_turns"] or 0,
        outcome=loads(row["outcome_json"]),
        source=row["source"] or "unknown",
        models=tuple(loads(row["models_json"]) or ()),
        limits=loads(row["limits_json"]) or {},
        tags=loads(row["tags_json"]) or {},
        warnings=tuple(loads(row["warnings_json"]) or ()),
        versions=loads(row["versions_json"]) or {},
        usage=usage_of(row),
        cost_usd=_money(row["cost_usd"]),
        reported_cost_usd=_reported(row),
        cost_difference_usd=row.get("difference_usd"),
        assumed_turns=row.get("assumed_turns") or 0,
        price_sources=tuple(loads(row.get("price_sources_json")) or ()),
        inclusive_usage=inclusive[0],
        inclusive_cost_usd=inclusive[1],
        inclusive_unpriced_turns=inclusive[2],
        parent=parent,
        list_price=bool(row["list_price"]),
    )


def _reported(row: Row) -> float | None:
    """What the source says that a run cost: of the whole, else of its turns."""
    found: float | None = row["reported_cost_usd"]
    return row.get("reported_turns_usd") if found is None else found


def _inclusive(con: Connection, rows: Sequence[Row]) -> dict[str, tuple[Usage, float | None, int]]:
    """Usage, cost and unpriced turns of each run with its inherited turns and all its sub-agents, each counted once."""
    families = {row["id"]: [row] for row in rows}
    for row in _descendants(con, list(families)):
        families[row["root"]].append(row)
    return {root: _together(root, family) for root, family in families.items()}


def _descendants(con: Connection, ids: list[str]) -> list[Row]:
    """The sub-agents below these runs, however deep, each with its ``root``; most runs have none, which is quick to see."""
    above = "select distinct parent_run as id from base.runs where parent_kind = 'sub-agent' and parent_run in (select unnest(?::varchar[]))"
    heads = [row["id"] for row in select(con, above, [[encode(i) for i in ids]])] if ids else []
    if not heads:
        return []
    query = """
      with recursive tree(root, id) as (
        select id as root, id from base.runs where id in (select unnest(?::varchar[]))
        union
        select t.root, r.id from tree as t join base.runs as r on r.parent_run = t.id
        where r.parent_kind = 'sub-agent'
      )
      select t.root, r.id, r.cost_usd, r.unpriced_turns,
        r.input, r.cache_read, r.cache_write_5m, r.cache_write_1h, r.output, r.reasoning,
        r.usage_origin, r.usage_partial
      from tree as t join base.runs as r on r.id = t.id where r.id <> t.root order by t.root, r.id
    """
    return select(con, query, [[encode(i) for i in heads]])


def _together(root: str, family: Sequence[Row]) -> tuple[Usage, float | None, int]:
    parts: list[tuple[Usage, Decimal | None, int]] = []
    for row in family:
        own = row["id"] == root
        whole = (loads(row["whole_json"]) or {}) if own else {}
        if whole:
            usage = Usage(**{n: whole.get(n) for n in USAGE}, origin=whole["origin"], partial=whole["partial"])
            cost = whole["cost_usd"] and Decimal(whole["cost_usd"])
            unpriced = whole.get("unpriced", row["unpriced_turns"]) or 0
        else:
            usage, cost, unpriced = usage_of(row), row["cost_usd"], row["unpriced_turns"] or 0
        if own or usage.origin != "missing":
            parts.append((usage, cost, unpriced))
    return _added([p[0] for p in parts]), _sum([p[1] for p in parts]), sum(p[2] for p in parts)


def _added(usages: list[Usage]) -> Usage:
    known = [u for u in usages if u.origin != "missing"]
    return known[0] if len(known) == 1 else add_usage(known)


def _sum(costs: Sequence[Decimal | None]) -> float | None:
    known = [c for c in costs if c is not None]
    return float(sum(known)) if known else None


def _money(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def _turn(row: Row, calls: list[ToolCall], attempts: list[Attempt], bodies: dict[int, str], lives: bool) -> Turn:
    status = row["status"]
    flags = [*(loads(row["request_flags_json"]) or ()), *(loads(row["response_flags_json"]) or ())]
    plain = (
        "run", "number", "agent", "provider", "api", "model", "request_model", "stop_reason", "error", "error_type",
        "response_id", "request_id", "trace_id", "span_id", "caller", "step", "started_at", "first_chunk_at",
        "ended_at", "generate_ms", "parse_ms", "execute_ms", "resume_ms", "parse_status", "text", "thinking",
        "message_count", "reported_cost_usd",
    )  # fmt: skip
    return Turn(
        **{n: row[n] for n in plain},
        user_turn=bool(row["user_turn"]),
        inherited=bool(row["inherited"] or row["duplicate_of"]),
        flags=tuple(dict.fromkeys(flags)),
        status="interrupted" if status == "open" and not lives else status,
        stream=bool(row["stream"]),
        mode=row["mode"] or "full",
        usage=usage_of(row),
        cost_usd=_money(row["cost_usd"]),
        price=TurnPrice(
            source=row["price_source"],
            matched=row["price_matched"],
            why=row.get("price_why"),
            assumed=tuple(loads(row.get("price_assumed_json")) or ()),
            served=loads(row.get("served_json")) or {},
            url=row["url"],
        ),
        response=loads(bodies.get(row["response_blob"])),
        attempts=tuple(attempts),
        tool_calls=tuple(calls),
    )


def _attempt(row: Row) -> Attempt:
    names = ("status", "error", "error_type", "wait_ms", "started_at", "ended_at", "request_id", "body")
    return Attempt(**{n: row.get(n) for n in names}, headers=loads(row["headers_json"]) or {})


def _call(row: Row, bodies: dict[int, str], decoded: dict[int, Any], lives: bool) -> ToolCall:
    state = row["state"]
    if state in ("requested", "running") and not lives and row["origin"] != "provider":
        state = "no_result"
    result = loads(row["returned_json"])
    blob = row["seen_blob"]
    if blob in bodies and row["seen_path"]:
        if blob not in decoded:
            decoded[blob] = loads(bodies[blob])
        seen = at_path(decoded[blob], row["seen_path"])
        result = result if seen is None and row["returned_json"] else seen
    raw = row["arguments_raw"]
    measured = row["returned_digest"] is not None
    return ToolCall(
        **{n: row[n] for n in ("id", "name", "invalid_reason", "is_error", "error_class", "started_at", "ended_at")},
        **{n: row[n] for n in ("timing", "origin", "side_effect", "loop_key", "child_run")},
        arguments_raw=raw if raw is not None else "{}",
        arguments=_arguments(raw),
        valid=bool(row["valid"]),
        error_type=row.get("returned_type"),
        result=result,
        result_digest=row["returned_digest"] if measured else row["seen_digest"],
        result_length=row["returned_length"] if measured else row["seen_length"],
        state=state,
    )


def _arguments(raw: str | None) -> Any:
    value = loads(raw)
    return None if isinstance(value, str) and value == raw else value
