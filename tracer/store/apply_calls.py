"""call_start, call_end and call_seen records into rows."""

from __future__ import annotations

from ..canonical import digest
from ..tape import Record
from .apply_turns import speak
from .batch import Batch
from .rows import Row, text, whole
from .text import at_path, dumps, loads, result_text, same_result


def call_start(batch: Batch, record: Record) -> None:
    """A wrapped tool began to run."""
    given = {
        name: value
        for name in ("name", "origin", "side_effect", "loop_key", "arguments_raw")
        if (value := text(record.get(name), name)) is not None
    }
    at = whole(record.get("at"), "at")
    row = batch.call(record)
    speak(batch.runs[row["run"]])
    if row["listed"]:  # what the model asked for stays as it wrote it
        given = {k: v for k, v in given.items() if k not in ("name", "arguments_raw")}
    row.update(given)
    row["measured_start"] = at if at is not None else row.get("measured_start")


def call_end(batch: Batch, record: Record) -> None:
    """A wrapped tool returned, raised or was cancelled."""
    given: Row = {
        "measured_end": whole(record.get("at"), "at"),
        "returned_digest": text(record.get("digest"), "digest"),
        "returned_length": whole(record.get("length"), "length"),
        "returned_class": text(record.get("error_class"), "error_class"),
        "returned_type": text(record.get("error_type"), "error_type"),
        "returned_as": text(record.get("gave"), "gave"),
        "returned_shape_json": dumps(record["shape"]) if isinstance(record.get("shape"), dict) else None,
        "returned_state": text(record.get("state"), "state") or "done",
        "returned_error": record["is_error"] if isinstance(record.get("is_error"), bool) else None,
    }
    for name in ("origin", "side_effect"):
        if text(record.get(name), name) is not None:
            given[name] = record[name]
    if "result" in record:
        given["returned_json"] = dumps(record["result"])
        if given["returned_digest"] is None:
            content = result_text(record["result"]) or ""
            given.update(returned_digest=digest(content), returned_length=len(content))
    row = batch.call(record)
    speak(batch.runs[row["run"]])
    row.update(given)
    if not row["listed"] and not row["name"]:
        row["name"] = text(record.get("name"), "name") or ""
    forget_twice(batch, row)


def call_seen(batch: Batch, record: Record) -> None:
    """A result as the model saw it, inside a message."""
    path = text(record.get("path"), "path")
    given: Row = {
        "seen_at": whole(record.get("at"), "at"),
        "seen_path": path,
        "seen_class": text(record.get("error_class"), "error_class"),
        "seen_error": record["is_error"] if isinstance(record.get("is_error"), bool) else None,
        "seen_blob": batch.blob(record.get("message"), "message"),
    }
    if record.get("returned") is not None:  # what the tool gave its client, where an importer found it
        given["returned_json"] = dumps(record["returned"])
    seen = result_text(at_path(batch.value_of(record.get("message")), path)) if path else None
    if seen is not None:
        given.update(seen_digest=digest(seen), seen_length=len(seen))
    row = batch.call(record)
    speak(batch.runs[row["run"]])
    row.update(given)
    forget_twice(batch, row, seen)


def forget_twice(batch: Batch, row: Row, seen: str | None = None) -> None:
    """Drops what the tool returned where the model saw just that (``seen``, if known): a result is stored once."""
    if row.get("returned_json") is None or row.get("seen_blob") is None or not row.get("seen_path"):
        return
    if seen is None:
        key = batch.hash_of(row["seen_blob"])
        content = batch.text_of(key) if key else _stored_text(batch, row["seen_blob"])
        if content is None:
            return
        seen = result_text(at_path(batch.value_of(key) if key else loads(content), row["seen_path"]))
    if same_result(loads(row["returned_json"]), seen):
        row["returned_json"] = None


def _stored_text(batch: Batch, blob: int) -> str | None:
    from .rows import select

    found = select(batch.con, "select text from base.blobs where id = ?", [blob])
    return found[0]["text"] if found else None
