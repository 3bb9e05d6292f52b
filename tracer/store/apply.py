"""Records into rows: one function per record kind, each changing the rows of a `Batch`.

Everything here is idempotent: the same record again changes nothing, also when later ones came between.
"""

from __future__ import annotations

from collections.abc import Callable

from ..tape import VERSION, Record
from . import ancestry
from .apply_calls import call_end, call_seen, call_start
from .apply_turns import chunk, turn_end, turn_start
from .batch import Batch
from .rows import Bad, listing, mapping, number, text, warn, whole
from .text import dumps, loads

STATUSES = ("running", "completed", "limit", "halted", "failed", "interrupted", "unknown")
_RUN_TEXTS = ("name", "title", "agent", "project", "session", "task", "source", "git_commit")


def apply(batch: Batch, record: Record) -> bool:
    """Applies one record. False when its kind is unknown (a newer writer's; passed over).

    Raises:
        Bad: The record lacks what its kind needs; nothing was changed.
    """
    kind = record.get("kind")
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    if known is None:
        return False
    known(batch, record)
    return True


def header(batch: Batch, record: Record) -> None:
    """The head of a tape: only a version that we do not know matters here."""
    version = record.get("version")
    if isinstance(version, int) and version > VERSION:
        raise Bad(f"tape format {version} is newer than this looptape reads ({VERSION})")


def blob(batch: Batch, record: Record) -> None:
    """A text under its hash."""
    content = text(record.get("text"), "text")
    batch.keep(record.get("hash"), content, whole(record.get("length"), "length"))


def run_start(batch: Batch, record: Record) -> None:
    """A run begins, or more is known of its beginning: given fields win."""
    given = {name: value for name in _RUN_TEXTS if (value := text(record.get(name), name)) is not None}
    parent = mapping(record.get("parent"), "parent")
    above = text(parent.get("run"), "parent run")
    status = _status(record)
    at = whole(record.get("at"), "at")
    lists = {
        f"{name}_json": dumps(facts)
        for name in ("tags", "limits", "versions")
        if (facts := mapping(record.get(name), name))
    }
    row = batch.run(record)
    row.update(given)
    row.update(lists)
    if at is not None:
        row["started_at"] = at if row.get("started_at") is None else min(at, row["started_at"])
    if above and (wrong := ancestry.wrong(batch, row["id"], above)):
        warn(row, [wrong])
    elif parent:
        same = row.get("parent_run") == above  # less known of the same parent takes nothing back
        turn, call = whole(parent.get("turn"), "parent turn", limit=2**31 - 2), text(parent.get("call"), "parent call")
        row.update(
            parent_run=above,
            parent_turn=row.get("parent_turn") if same and turn is None else turn,
            parent_call=row.get("parent_call") if same and call is None else call,
            parent_kind=text(parent.get("kind"), "parent kind") or "fork",
        )
        if row["parent_run"] and row["parent_turn"]:
            batch.touched.add((row["parent_run"], row["parent_turn"]))
    if isinstance(record.get("list_price"), bool):
        row["list_price"] = record["list_price"]
    if status is not None and row.get("ended_at") is None:
        row["status"] = status
    if record.get("warnings"):
        warn(row, listing(record["warnings"], "warnings"))


def run_update(batch: Batch, record: Record) -> None:
    """More about a run: tags merge, warnings append once each."""
    given = {name: value for name in _RUN_TEXTS if (value := text(record.get(name), name)) is not None}
    tags = mapping(record.get("tags"), "tags")
    outcome = mapping(record.get("outcome"), "outcome")
    limits = mapping(record.get("limits"), "limits")
    warnings = listing(record.get("warnings"), "warnings")
    cost = number(record.get("reported_cost_usd"), "reported_cost_usd")
    row = batch.run(record)
    row.update(given)
    if cost is not None:
        row["reported_cost_usd"] = cost
    if tags:
        row["tags_json"] = dumps({**(loads(row.get("tags_json")) or {}), **tags})
    if limits:
        row["limits_json"] = dumps({**(loads(row.get("limits_json")) or {}), **limits})
    if outcome:
        row["outcome_json"] = dumps(outcome)
    warn(row, warnings)


def run_end(batch: Batch, record: Record) -> None:
    """A run ends, unless a later turn or a later end is known already. With status running it goes on after all."""
    status = _status(record) or "unknown"
    reason = text(record.get("reason"), "reason")
    at = whole(record.get("at"), "at")
    row = batch.run(record)
    if at is not None:
        if row.get("last_turn_at") is not None and at < row["last_turn_at"]:
            return
        if row.get("ended_at") is not None and at < row["ended_at"] and not row.get("assumed_gone"):
            return
    row.update(status=status, reason=reason, ended_at=None if status == "running" else at, assumed_gone=None)


def event(batch: Batch, record: Record) -> None:
    """Something that is no turn."""
    run = batch.run(record)["id"]
    row = {
        "run": run,
        "turn": whole(record.get("turn"), "turn", limit=2**31 - 2),
        "happened_at": whole(record.get("at"), "at"),
        "kind": text(record.get("event"), "event", needed=True),
        "detail_json": dumps(mapping(record.get("detail"), "detail")),
    }
    batch.events.setdefault((run, row["turn"], row["happened_at"], row["kind"], row["detail_json"]), row)


def otlp(batch: Batch, record: Record) -> None:
    """OpenTelemetry spans or log records as they came; `reassemble` makes runs of them."""
    batch.raw.take(record, batch.journal)


def _turn_start(batch: Batch, record: Record) -> None:
    turn_start(batch, record)
    batch.raw.cover(record.get("chat_trace_id"), record.get("chat_span_id"))


def _status(record: Record) -> str | None:
    status = text(record.get("status"), "status")
    if status is not None and status not in STATUSES:
        raise Bad(f"status {status!r} is none of {', '.join(STATUSES)}")
    return status


_KINDS: dict[str, Callable[[Batch, Record], None]] = {
    "header": header,
    "blob": blob,
    "run_start": run_start,
    "run_update": run_update,
    "run_end": run_end,
    "turn_start": _turn_start,
    "chunk": chunk,
    "turn_end": turn_end,
    "call_start": call_start,
    "call_end": call_end,
    "call_seen": call_seen,
    "event": event,
    "otlp": otlp,
}
