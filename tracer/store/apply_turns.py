"""turn_start, chunk and turn_end records into rows."""

from __future__ import annotations

from typing import Any

from ..canonical import digest
from ..prices import served
from ..providers import Answer, by_api
from ..tape import Record
from .batch import Batch
from .rows import USAGE, Bad, Row, listing, mapping, number, text, tokens, warn, whole
from .text import dumps, result_text

_START_TEXTS = (
    "provider", "api", "agent", "caller", "step", "trace_id", "span_id", "parent_span_id", "url",
)  # fmt: skip
NO_COUNT = "usage that is no count of tokens was left out"
_STATUSES = ("open", "ok", "error", "abandoned", "cancelled", "interrupted")


def turn_start(batch: Batch, record: Record) -> None:
    """A request: its messages by reference to an earlier turn, and what is known of it."""
    if record.get("amends") is True:
        _amend(batch, record)
        return
    given: Row = {name: value for name in _START_TEXTS if (value := text(record.get(name), name)) is not None}
    given["request_model"] = text(record.get("model"), "model")
    given["mode"] = text(record.get("mode"), "mode") or "full"
    for name in ("stream", "user_turn", "inherited"):
        given[name] = record.get(name) is True
    given["request_flags_json"] = _flags(record)
    keep = whole(record.get("keep"), "keep", limit=2**31) or 0
    base = whole(record.get("base"), "base", limit=2**31 - 2)
    at = whole(record.get("at"), "at")
    appended = listing(record.get("append"), "append")
    blobs = [batch.blob(key, "append") for key in appended]
    for name in ("system", "tools", "params"):
        given[f"{name}_blob"] = batch.blob(record.get(name), name)
    turn = batch.turn(record)
    run = batch.runs[turn["run"]]
    if turn.get("message_count") is None:
        _reopen(run, at)
        history = batch.history(turn["run"])
        count = history.add(turn["number"], base, keep, [b for b in blobs if b is not None])
        turn.update(base=base, keep=keep, message_count=count)
        if count != keep + len(blobs):
            turn["request_flags_json"] = given["request_flags_json"] = _flags(record, "history_incomplete")
    elif "history_incomplete" in (turn.get("request_flags_json") or ""):
        given["request_flags_json"] = _flags(record, "history_incomplete")
    turn.update(given)
    if at is not None:
        turn["started_at"] = at
        run["last_turn_at"] = max(at, run.get("last_turn_at") or at)
        if run.get("started_at") is None:
            run["started_at"] = at


def _amend(batch: Batch, record: Record) -> None:
    """More of a turn that is known: only the given fields, its messages stay."""
    turn = batch.turns.get((record.get("run"), record.get("turn")))  # type: ignore[arg-type]  # odd keys find nothing
    if turn is not None:
        turn.update({n: value for n in _START_TEXTS if (value := text(record.get(n), n)) is not None})
        if "flags" in record:
            turn["request_flags_json"] = _flags(record)


def turn_end(batch: Batch, record: Record) -> None:
    """GENERATE is over. A later one of the same turn wins whole, an earlier one or a part of it changes nothing."""
    at = whole(record.get("at"), "at")
    turn = batch.turns.get((record.get("run"), record.get("turn")))  # type: ignore[arg-type]  # odd keys find nothing
    if turn and at is not None and turn.get("ended_at") is not None and at < turn["ended_at"]:
        return
    api = turn.get("api") if turn else None
    body = _response(batch, record)
    answer = by_api(api).answer(body) if body is not None else Answer()
    calls = [_listed(c) for c in _call_list(record, answer)]
    if turn and at is not None and turn.get("ended_at") == at and _is_part(calls, batch.calls.get(_key(turn), [])):
        return
    given = _facts(record, answer)
    given["response_blob"] = batch.blob(record.get("response"), "response")
    given.update(_usage(record, answer))
    given["served_json"] = _served(batch, turn, given.pop("usage_told"), body)
    attempts = [_attempt(mapping(a, "attempt")) for a in listing(record.get("attempts"), "attempts")]
    turn = batch.turn(record)
    run = batch.runs[turn["run"]]
    speak(run)
    wrong = given.pop("not_counts")
    if wrong and NO_COUNT not in (run.get("warnings_json") or ""):
        warn(run, [f"{NO_COUNT}: turn {turn['number']}, {', '.join(wrong)}"])
    turn.update(given)
    if "inherited" in record:  # known only when it is answered: the answer came from a recording
        turn["inherited"] = record["inherited"] is True
    if at is not None:
        turn["ended_at"] = at
    key = _key(turn)
    batch.ended.add(key)
    batch.attempts[key] = [{**a, "run": key[0], "turn": key[1], "number": i} for i, a in enumerate(attempts, 1)]
    batch.calls[key] = _merge(batch.calls.get(key, []), calls, key)


def chunk(batch: Batch, record: Record) -> None:
    """A piece of a stream."""
    parts = listing(record.get("parts"), "parts")
    for part in parts:
        if not (isinstance(part, list) and len(part) == 2 and isinstance(part[1], str)):
            raise Bad("a part is no [offset, text]")
        whole(part[0], "offset", needed=True)
    attempt = whole(record.get("attempt"), "attempt", limit=2**31 - 2) or 1
    seq = whole(record.get("seq"), "seq", needed=True, limit=2**31 - 2)
    turn = batch.turn(record)
    speak(batch.runs[turn["run"]])
    row = {"run": turn["run"], "turn": turn["number"], "attempt": attempt, "seq": seq}
    row.update(parts_json=dumps(parts), altered=record.get("altered") is True)
    batch.chunks.setdefault((turn["run"], turn["number"], attempt, seq or 0), row)


def speak(run: Row) -> None:
    """A record of a run whose writer was thought to be gone: it lives."""
    if run.get("assumed_gone"):
        run.update(status="running", reason=None, ended_at=None, assumed_gone=None)


def _reopen(run: Row, at: int | None) -> None:
    """A new turn of a run that had ended makes it running again, unless it began before that end."""
    speak(run)
    ended = run.get("ended_at")
    if ended is not None and at is not None and at >= ended:
        run.update(status="running", reason=None, ended_at=None)


def _flags(record: Record, *more: str) -> str | None:
    flags = [str(f) for f in (*listing(record.get("flags"), "flags"), *more)]
    return dumps(list(dict.fromkeys(flags))) if flags else None


def _response(batch: Batch, record: Record) -> Any:
    key = record.get("response")
    body = batch.value_of(key) if isinstance(key, str) else None
    return body if not isinstance(body, str) else None


def _facts(record: Record, answer: Answer) -> Row:
    status = text(record.get("status"), "status") or "ok"
    if status not in _STATUSES:
        raise Bad(f"status {status!r} is none of {', '.join(_STATUSES)}")
    return {
        "status": status,
        "error": text(record.get("error"), "error"),
        "error_type": text(record.get("error_type"), "error_type"),
        "stop_reason": text(record.get("stop_reason"), "stop_reason") or answer.stop_reason,
        "model": text(record.get("model"), "model") or answer.model,
        "response_id": text(record.get("response_id"), "response_id") or answer.id,
        "request_id": text(record.get("request_id"), "request_id"),
        "first_chunk_at": whole(record.get("first_chunk_at"), "first_chunk_at"),
        "parse_status": text(record.get("parse"), "parse"),
        "response_flags_json": _flags(record),
        "text": answer.text,
        "thinking": answer.thinking,
        "reported_cost_usd": number(record.get("reported_cost_usd"), "reported_cost_usd"),
    }


def _usage(record: Record, answer: Answer) -> Row:
    if "usage" not in record:
        found = answer.usage
        told: Row = {name: getattr(found, name) for name in USAGE}
        row: Row = {}
        raw: Any = found.raw
        row.update(usage_origin=found.origin, usage_partial=found.partial)
    else:
        given = mapping(record.get("usage"), "usage")
        told = {name: given.get(name) for name in USAGE}
        origin = text(given.get("origin"), "origin") or ("recorded" if given else "missing")
        row = {"usage_origin": origin, "usage_partial": given.get("partial") is True}
        raw = record.get("usage_raw")
    row.update({name: tokens(value) for name, value in told.items()})
    row["not_counts"] = [name for name, value in told.items() if value is not None and row[name] is None]
    row["usage_partial"] = row["usage_partial"] or bool(row["not_counts"])
    row["usage_json"] = dumps(raw) if raw else None
    row["usage_told"] = raw
    return row


def _served(batch: Batch, turn: Row | None, raw: Any, body: Any) -> str | None:
    """How the call was served, where that changes its price; the request is asked only where the answer is silent."""
    told = (isinstance(raw, dict) and "service_tier" in raw) or (isinstance(body, dict) and "service_tier" in body)
    blob = turn.get("params_blob") if turn and not told else None
    params = batch.value_of(batch.hash_of(blob)) if blob is not None else None
    found = served.facts(raw, body, params)
    return dumps(found) if found else None


def _attempt(given: dict[str, Any]) -> Row:
    return {
        "status": whole(given.get("status"), "attempt status", limit=2**31 - 2),
        "error": text(given.get("error"), "attempt error"),
        "error_type": text(given.get("error_type"), "attempt error_type"),
        "wait_ms": number(given.get("wait_ms"), "wait_ms"),
        "started_at": whole(given.get("started_at"), "attempt started_at"),
        "ended_at": whole(given.get("ended_at"), "attempt ended_at"),
        "request_id": text(given.get("request_id"), "attempt request_id"),
        "body": text(given.get("body"), "attempt body"),
        "headers_json": dumps(mapping(given.get("headers"), "headers")) if given.get("headers") else None,
    }


def _call_list(record: Record, answer: Answer) -> list[Any]:
    if "calls" in record:
        return listing(record.get("calls"), "calls")
    return [
        {
            "id": c.id, "name": c.name, "arguments_raw": c.arguments_raw, "valid": c.valid,
            "invalid_reason": c.invalid_reason,
            **({"origin": "provider", "result": c.result, "is_error": c.is_error} if c.provider_side else {}),
        }
        for c in answer.calls
    ]  # fmt: skip


def _listed(given: Any) -> Row:
    call = mapping(given, "call")
    row: Row = {
        "id": text(call.get("id"), "call id") or "",
        "name": text(call.get("name"), "call name") or "",
        "arguments_raw": text(call.get("arguments_raw"), "arguments_raw"),
        "valid": call.get("valid") is not False,
        "invalid_reason": text(call.get("invalid_reason"), "invalid_reason"),
        "origin": text(call.get("origin"), "origin") or "live",
        "returned_state": text(call.get("state"), "state"),
        "listed": True,
    }
    if call.get("result") is not None:
        content = result_text(call["result"]) or ""
        row.update(returned_json=dumps(call["result"]), returned_digest=digest(content), returned_length=len(content))
    if isinstance(call.get("is_error"), bool):
        row["returned_error"] = call["is_error"]
    return row


def _key(turn: Row) -> tuple[str, int]:
    return turn["run"], turn["number"]


def _is_part(listed: list[Row], known: list[Row]) -> bool:
    """True for the list of a shorter copy: some of the calls that the answer is known to make, and no other."""
    return {c["id"] for c in listed} < {c["id"] for c in known if c.get("listed")}


def _merge(old: list[Row], listed: list[Row], key: tuple[str, int]) -> list[Row]:
    """The turn's own list first, in its order; then calls that only their results tell of."""
    rest = list(old)
    rows: list[Row] = []
    for new in listed:
        same = next((r for r in rest if r["id"] == new["id"]), None)
        if same is None:
            row = {"run": key[0], "turn": key[1], "side_effect": "unknown", **new}
        else:
            rest.remove(same)
            row = {**same, **{k: v for k, v in new.items() if v is not None or k not in same}}
        rows.append(row)
    rows += [
        r for r in rest if r.get("measured_start") or r.get("measured_end") or r.get("seen_at") or r.get("seen_blob")
    ]
    for position, row in enumerate(rows, 1):
        row["position"] = position
    return rows
