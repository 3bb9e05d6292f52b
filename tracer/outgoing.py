"""The last look at a record before the journal has it: no secret in any field, no content where none is wanted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from . import tape
from .canonical import digest
from .redaction import has_own_functions, holds_known, redact, secrets_out, suspicious

_LOOKED_AT = frozenset({"blob", "chunk", "otlp"})  # texts: whoever made these records has taken the secrets out
_OURS = frozenset(
    {
        "kind", "run", "hash", "base", "append", "system", "tools", "params", "provider", "api", "mode", "message",
        "response", "digest", "trace_id", "span_id", "parent_span_id", "journal", "git_commit",
    }
)  # fmt: skip
_AUTHORS = ("name", "agent", "session", "task", "title", "loop_key")
_WORD = re.compile(r"[A-Za-z_0-9.\-]{1,40}")


def lines(records: Sequence[tape.Record], *, content: bool) -> bytes:
    """Records as they may be written; those that are only content are left out where ``content`` is False."""
    if not content:
        records = [without_content(r) for r in records if r["kind"] != "chunk"]
    if has_own_functions():
        records = [_author_texts(r) for r in records]
    made = [tape.line(r) for r in records]
    data = b"".join(made)
    facts = b"".join([m for m, r in zip(made, records, strict=True) if r["kind"] not in _LOOKED_AT])
    if not suspicious(facts) and not holds_known(data):
        return data
    return b"".join(_without_secrets(m, r) for m, r in zip(made, records, strict=True))


def _without_secrets(made: bytes, record: tape.Record) -> bytes:
    found = holds_known if record["kind"] in _LOOKED_AT else suspicious
    if not found(made):
        return made
    return tape.line({k: v if k in _OURS else _clean(v, key=k) for k, v in record.items()})


def without_content(record: tape.Record) -> tape.Record:
    """The same with usage, times, names and hashes only (`LOOPTAPE_CONTENT=none`)."""
    record = dict(record)
    for name in ("title", "error", "arguments_raw"):
        if record.get(name):
            record[name] = None
    record.pop("result", None)
    if isinstance(record.get("loop_key"), str):
        record["loop_key"] = digest(record["loop_key"])
    if record.get("tags"):
        record["tags"] = dict.fromkeys(record["tags"], "")
    if record.get("outcome"):
        record["outcome"] = {k: v for k, v in record["outcome"].items() if k in ("verdict", "score")}
    for name in ("usage_raw", "detail"):
        if record.get(name):
            record[name] = _figures(record[name])
    if record.get("attempts"):
        record["attempts"] = [{**a, "error": None} for a in record["attempts"]]
    if record.get("calls"):
        record["calls"] = [
            {k: None if k == "arguments_raw" else v for k, v in c.items() if k != "result"} for c in record["calls"]
        ]
    return record


def _figures(value: Any) -> Any:
    """Numbers, flags and single words of a provider's report; None for text."""
    if isinstance(value, dict):
        return {k: _figures(v) for k, v in value.items() if isinstance(k, str) and _WORD.fullmatch(k)}
    if isinstance(value, (list, tuple)):
        return [_figures(v) for v in value]
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) else None
    return value if value is None or isinstance(value, (bool, int, float)) else None


def _author_texts(record: tape.Record) -> tape.Record:
    """What the program's author called things, through their own functions as well."""
    names = _AUTHORS if record["kind"] in ("run_start", "run_update") else ("loop_key",)
    given = {n: redact(record[n]) for n in names if isinstance(record.get(n), str)}
    return {**record, **given} if given else record


def _clean(value: Any, *, key: str = "") -> Any:
    """Every text in it without secrets, names of fields too: the same text is replaced by the same everywhere."""
    if isinstance(value, str):
        return secrets_out(value)
    if isinstance(value, dict):
        if key == "parent":
            return {**value, "call": _clean(value.get("call"))}
        return {secrets_out(k) if isinstance(k, str) else k: _clean(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(v) for v in value]
    return value
