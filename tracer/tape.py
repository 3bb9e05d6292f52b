"""The tape: the one record format. One JSON object a line, versioned; made here, read here.

The journal of a process, an exported run, a CI recording and every import are the same records.
`docs/tape-format.md` describes them field by field. The kinds:

    header      who wrote this, format version
    blob        a text under its hash; precedes its first reference
    run_start   a run begins (repeated: the later fields win)
    run_update  more about a run: title, outcome, tags, warnings
    run_end     status and reason; a later turn_start opens the run again
    turn_start  a request: "keep n messages of the base, then these"
    chunk       a piece of a stream with its arrival times
    turn_end    the response, its usage and attempts (repeated: the later one wins)
    call_start, call_end   a tool ran (measured)
    call_seen   a tool result as the model saw it, inside a request's message
    event       what is no turn: a compaction, an API error row
    otlp        OpenTelemetry spans or log records as they came; runs are put together from them in the store
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from .canonical import digest

FORMAT = "looptape"
VERSION = 1
KINDS = (
    "header", "blob", "run_start", "run_update", "run_end", "turn_start", "chunk", "turn_end",
    "call_start", "call_end", "call_seen", "event", "otlp",
)  # fmt: skip

Record = dict[str, Any]

_dumps = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode


def line(record: Record) -> bytes:
    """One record as one ASCII line with its newline. Values JSON cannot hold become text, never an error."""
    try:
        text = _dumps(record)
    except (TypeError, ValueError, RecursionError):
        text = _dumps(plain(record))
    return text.encode("ascii") + b"\n"


def blob(text: str) -> Record:
    """A blob record: the exact (redacted) text under its hash."""
    return {"kind": "blob", "hash": digest(text), "text": text}


def header(**facts: Any) -> Record:
    """The first record of every tape. ``facts``: writer, pid, host, started_at, content, ..."""
    return {"kind": "header", "format": FORMAT, "version": VERSION, **facts}


def plain(value: Any, depth: int = 0, above: tuple[int, ...] = ()) -> Any:
    """A copy that JSON can hold: cycles, objects, NaN and non-string keys become short texts.

    Dataclasses and pydantic models become their fields; dates, decimals, UUIDs and paths their usual text.

    ``depth`` and ``above`` (what it stands in) are its own.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if depth > 100:
        return "<nested too deeply>"
    if id(value) in above:
        return "<cycle>"
    inside = (*above, id(value))
    # lists of what is in it: another thread may be at work on it
    if isinstance(value, dict):
        return {k if isinstance(k, str) else _name(k): plain(v, depth + 1, inside) for k, v in list(value.items())}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v, depth + 1, inside) for v in list(value)]
    simple = _simple(value)
    if simple is not value:
        return plain(simple, depth + 1, inside)
    try:
        dumped = value.model_dump(mode="json", exclude_none=True)
    except Exception:  # a foreign object, most have no such method; its trouble must not become the loop's
        return _name(value)
    return plain(dumped, depth + 1, inside) if isinstance(dumped, (dict, list)) else _name(value)


def _simple(value: Any) -> Any:
    """What programs usually write for an object of the standard library or a dataclass; else the object itself."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID, PurePath)):
        return str(value)
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value
    return fields(value) if is_dataclass(value) and not isinstance(value, type) else value


def fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass's instance, those that it has."""
    return {f: getattr(value, f) for f in value.__dataclass_fields__ if hasattr(value, f)}


def read_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, Record | str]]:
    """Line number and record, or line number and the reason why there is none.

    Empty lines are passed over. A line without its newline at the end is still read if it is whole.
    """
    for number, raw in enumerate(lines, 1):
        text = raw.strip()
        if not text:
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            tail = "" if raw.endswith(b"\n") else "incomplete tail: "
            yield number, f"{tail}not JSON ({error})"
            continue
        if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
            yield number, "not a tape record (no kind)"
        else:
            yield number, record


def _name(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # an object whose repr raises is still only data
        text = ""
    return text[:200] if text else f"<{type(value).__name__}>"
