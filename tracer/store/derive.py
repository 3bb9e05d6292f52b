"""What follows from the rows: call states and times, the four phases of a turn, money, run totals, ownership."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from ..model import Usage
from ..prices import served
from ..pricing import price
from .batch import Batch
from .rows import USAGE, Connection, Row, append, select
from .text import dumps, encode

# Runs of these sources were seen while they ran; the others were read from files that copy each other.
LIVE_SOURCES = frozenset({"sdk", "record", "proxy", "manual", "otlp", "replay", "fork", "demo", "tape"})


def finish(batch: Batch) -> None:
    """Fills the derived columns of the turns that a slice touched, and of those before them."""
    children = _children(batch)
    before = {(run, number - 1) for run, number in batch.touched}
    for key in batch.touched | before:
        turn = batch.turns.get(key)
        if turn is None:
            continue
        calls = batch.calls.get(key, [])
        for call in calls:
            _finish_call(call, turn)
            call["child_run"] = children.get((*key, call["id"]), call.get("child_run"))
        follower = batch.turns.get((key[0], key[1] + 1)) or {}
        goes_on = bool(follower.get("inherited")) or not turn.get("inherited")  # a fork's own turns come days later
        _phases(turn, calls, follower.get("started_at") if goes_on else None)
        if key in batch.ended or (turn.get("ended_at") and not turn.get("price_source")):
            turn.update(cost_columns(turn))


def _children(batch: Batch) -> dict[tuple[str, int, str], str]:
    names = [encode(run) for run in {key[0] for key in batch.touched}]
    rows = select(
        batch.con,
        "select id, started_at, parent_run, parent_turn, parent_call, parent_kind from base.runs "
        "where parent_kind = 'sub-agent' and parent_run in (select unnest(?::varchar[]))",
        [names],
    )
    rows += [r for r in batch.runs.values() if r.get("parent_kind") == "sub-agent"]
    rows.sort(key=lambda r: (r.get("started_at") or 0, r["id"]), reverse=True)
    return {(r["parent_run"], r["parent_turn"], r["parent_call"]): r["id"] for r in rows if r["parent_call"]}


def _finish_call(call: Row, turn: Row) -> None:
    provider = call.get("origin") == "provider"
    said = call.get("returned_state")
    seen = call.get("seen_blob") is not None or (provider and call.get("returned_json") is not None)
    if seen and said in (None, "requested", "running", "no_result", "incomplete"):
        state = "done"
    elif said:
        state = said
    else:
        state = "running" if call.get("measured_start") else "requested"
    call["state"] = state
    start, end, timing = call.get("measured_start"), call.get("measured_end"), "measured"
    if start is None and end is None:
        start, end, timing = turn.get("ended_at"), call.get("seen_at"), "inferred"
        if end is None or provider:
            start, end, timing = None, None, ""
    call["started_at"], call["ended_at"], call["timing"] = start, end, timing or None
    seen_error, seen_class = call.get("seen_error"), call.get("seen_class")
    call["is_error"] = call.get("returned_error") if seen_error is None else seen_error
    call["error_class"] = call.get("returned_class") if seen_class is None else seen_class


def _phases(turn: Row, calls: list[Row], next_at: int | None) -> None:
    begun, ended = turn.get("started_at"), turn.get("ended_at")
    turn["generate_ms"] = _ms(begun, ended)
    turn["parse_ms"] = turn["execute_ms"] = turn["resume_ms"] = None
    own = [c for c in calls if c.get("origin") != "provider"]
    starts = [c["measured_start"] for c in own if c.get("measured_start") is not None]
    ends = [c["measured_end"] for c in own if c.get("measured_end") is not None]
    if starts or ends:
        first, last = min(starts, default=None), max(ends, default=None)
        turn["parse_ms"] = _ms(ended, first)
        turn["execute_ms"] = _ms(first, last)
        turn["resume_ms"] = _ms(last, next_at)
    elif own:
        turn["execute_ms"] = _ms(ended, next_at)


def _ms(start: int | None, end: int | None) -> float | None:
    """Milliseconds between two times; 0 where they overlap, None where one is not known."""
    return None if start is None or end is None else max(0, end - start) / 1000


def cost_columns(turn: Row) -> Row:
    """What a turn cost when it was made, with whose price that is and what was assumed, as columns of its row."""
    buckets: dict[str, Any] = {name: turn.get(name) for name in USAGE}
    found = price(
        turn.get("provider"),
        turn.get("model") or turn.get("request_model"),
        Usage(**buckets),
        turn.get("ended_at") or turn.get("started_at"),
        how_served=served.from_text(turn.get("served_json")),
        url=turn.get("url"),
    )
    return {
        "cost_usd": None if found.usd is None or found.usd >= _MOST else found.usd.quantize(_PLACES),
        "price_source": found.source,
        "price_matched": found.matched,
        "price_why": found.why,
        "price_assumed_json": dumps(list(found.assumed)) if found.assumed else None,
    }


def settle(con: Connection, runs: Iterable[str]) -> None:
    """After all rows are in: who owns responses that several runs hold, then the totals of every run concerned."""
    names = set(runs)
    if names:
        names |= _own_responses(con, names)
        _totals(con, names)


def _own_responses(con: Connection, names: set[str]) -> set[str]:
    """Marks copies of one response (a resumed session repeats its past) and returns the runs whose marks changed."""
    rows = select(
        con,
        "select t.run, t.number, t.response_id, t.model, t.ended_at, t.response_blob, t.duplicate_of, r.started_at, r.last_turn_at, "
        "r.source, r.parent_kind from base.turns as t join base.runs as r on r.id = t.run "
        "where not t.inherited and t.response_id in (select response_id from base.turns where not inherited "
        "and response_id in (select response_id from base.turns where run in (select unnest(?::varchar[]))) "
        "group by response_id having count(distinct run) > 1 or count(duplicate_of) > 0)",  # else nothing to mark
        [[encode(n) for n in names]],
    )
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        # a fake model may give every run the same ids: of live runs time and content must be equal too
        copied = (row["ended_at"], row["response_blob"]) if row["source"] in LIVE_SOURCES else None
        groups.setdefault((row["response_id"], row["model"], copied), []).append(row)
    changed: list[tuple[str, int, str | None]] = []
    for group in groups.values():
        owner = min(group, key=_seniority)["run"]
        for row in group:
            wanted = None if row["run"] == owner else owner
            if row["duplicate_of"] != wanted:
                changed.append((row["run"], row["number"], wanted))
    if changed:
        con.execute(
            "update base.turns as t set duplicate_of = k.owner from (select unnest($1::varchar[]) as run, "
            "unnest($2::integer[]) as n, unnest($3::varchar[]) as owner) as k where t.run = k.run and t.number = k.n",
            [[encode(c[0]) for c in changed], [c[1] for c in changed], [c[2] and encode(c[2]) for c in changed]],
        )
    return {c[0] for c in changed}


def _seniority(row: Row) -> tuple[Any, ...]:
    """The first owner of a response: no continuation, begun earliest, left earliest."""
    far = 2**63
    continued = row["parent_kind"] in ("fork", "resume")
    return continued, row["started_at"] or far, row["last_turn_at"] or far, row["run"]


def retotal(con: Connection, runs: Iterable[str]) -> None:
    """The totals of these runs again, after their turns changed."""
    _totals(con, set(runs))


_OWN = "not inherited and duplicate_of is null"
# a call that failed or was cut before any usage came cost nothing that anybody knows of
_BILLED = "(input is not null or output is not null or status = 'ok')"
_TOTALS = f"""
  select run as id, count(*) as turns, count(*) filter (status = 'error') as failed,
    list(model order by number) filter (model is not null) as models,
    count(*) filter ({_OWN} and {_BILLED} and cost_usd is null) as unpriced_turns,
    count(*) filter ({_BILLED} and cost_usd is null) as whole_unpriced,
    count(*) filter ({_OWN} and cost_usd is not null and price_assumed_json is not null) as assumed_turns,
    list(distinct price_source order by price_source) filter ({_OWN} and cost_usd is not null) as price_sources,
    count(reported_cost_usd) filter ({_OWN}) as reported_turns,
    sum(try_cast(reported_cost_usd as decimal(24, 12))) filter ({_OWN})::double as reported_turns_usd,
    sum(cost_usd - try_cast(reported_cost_usd as decimal(24, 12))) filter ({_OWN})::double as turns_difference,
    list(distinct usage_origin) filter ({_OWN} and {_BILLED}) as origins,
    list(distinct usage_origin) filter ({_BILLED}) as whole_origins,
    coalesce(bool_or(usage_partial) filter ({_OWN}), false) as partial,
    coalesce(bool_or(usage_partial), false) as whole_partial,
    try_cast(sum(cost_usd) filter ({_OWN}) as decimal(24, 12)) as cost_usd,
    try_cast(sum(cost_usd) as decimal(24, 12)) as whole_cost_usd,
    {", ".join(f"try_cast(sum({n}) as bigint) as whole_{n}, try_cast(sum({n}) filter ({_OWN}) as bigint) as {n}" for n in USAGE)}
  from base.turns where run in (select unnest(?::varchar[])) group by run
"""  # noqa: S608 - made of our own words
_PLACES = Decimal("0.000000000001")
_MOST = Decimal(10**12)  # what the column holds


def _totals(con: Connection, names: set[str]) -> None:
    coded = [[encode(n) for n in names]]
    totals = {r["id"]: r for r in select(con, _TOTALS, coded)}
    query = (
        "select run, count(*) as calls, count(*) filter (is_error) as errors from base.calls "
        "where run in (select unnest(?::varchar[])) group by run"
    )
    calls = {r["run"]: r for r in select(con, query, coded)}
    changed = []
    for row in select(con, "select * from base.runs where id in (select unnest(?::varchar[]))", coded):
        new = {**row, **_run_totals(row, totals.get(row["id"]), calls.get(row["id"]))}
        if new != row:
            changed.append(new)
    if changed:
        ids = [[encode(r["id"]) for r in changed]]
        con.execute("delete from base.runs where id in (select unnest(?::varchar[]))", ids)
        append(con, "runs", changed)


def _run_totals(run: Row, turns: Row | None, calls: Row | None) -> Row:
    found = turns or {}
    errors = (found.get("failed") or 0) + (calls["errors"] if calls else 0)
    row: Row = {name: found.get(name) for name in (*USAGE, "cost_usd")}
    origin, partial = _origin(found.get("origins"), found.get("partial"))
    whole_origin, whole_partial = _origin(found.get("whole_origins"), found.get("whole_partial"))
    whole = {name: found.get(f"whole_{name}") for name in USAGE} | {"unpriced": found.get("whole_unpriced") or 0}
    cost = found.get("whole_cost_usd")
    sources = found.get("price_sources")
    row.update(
        turns=found.get("turns") or 0,
        tool_calls=calls["calls"] if calls else 0,
        errors=errors,
        models_json=dumps(list(dict.fromkeys(found.get("models") or []))),
        unpriced_turns=found.get("unpriced_turns") or 0,
        assumed_turns=found.get("assumed_turns") or 0,
        price_sources_json=dumps(sources) if sources else None,
        reported_turns=found.get("reported_turns") or 0,
        reported_turns_usd=found.get("reported_turns_usd"),
        difference_usd=_difference(run.get("reported_cost_usd"), found),
        usage_origin=origin,
        usage_partial=partial,
        whole_json=dumps(
            {**whole, "origin": whole_origin, "partial": whole_partial, "cost_usd": None if cost is None else str(cost)}
        ),
    )
    return row


def _difference(reported: float | None, turns: Row) -> float | None:
    """Our figure less the reported one: over the turns that have both, else of a run all of whose turns have a price."""
    if turns.get("turns_difference") is not None or turns.get("reported_turns"):
        found: float | None = turns.get("turns_difference")
        return found
    cost = turns.get("cost_usd")
    if reported is None or cost is None or turns.get("unpriced_turns"):
        return None
    return float(cost - Decimal(str(reported)))


def _origin(origins: list[str | None] | None, partial: bool | None) -> tuple[str, bool]:
    """One word for several turns, and whether the sum lacks something."""
    known = {o or "missing" for o in origins or ()}
    if known <= {"missing"}:
        return "missing", False
    one = next(iter(known)) if len(known) == 1 else "derived"
    return one, bool(partial) or "missing" in known
