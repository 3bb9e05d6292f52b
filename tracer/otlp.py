"""OpenTelemetry spans and log records as tape records: cleaned, cut into lines of bounded length, nothing assembled.

A record holds a piece of an OTLP/JSON export request. Runs are put together from them when the store is
read, because parents and children may come late and in any order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from . import tape
from .clock import now
from .redaction import redact

SIGNALS = {"traces": ("resourceSpans", "scopeSpans", "spans"), "logs": ("resourceLogs", "scopeLogs", "logRecords")}
ITEMS_A_LINE = 200
SHORT = 200
"""Longest text that counts as a name where content is not kept."""

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

# where content is not kept, only these words say something (a name, an id, a reason); numbers always stay
_FACTS = (
    "agent.", "code.", "conversation.id", "error.", "event.name", "exception.type", "gen_ai.agent.", "gen_ai.conversation.",
    "gen_ai.operation.", "gen_ai.output.type", "gen_ai.provider.", "gen_ai.request.", "gen_ai.response.", "gen_ai.system",
    "gen_ai.tool.call.id", "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.usage.", "host.", "http.", "llm.model_name",
    "llm.provider", "llm.request.type", "llm.system", "llm.token_count.", "mcp.", "model", "openinference.span.kind", "os.",
    "process.pid", "process.runtime.", "request_id", "rpc.", "server.", "service.", "session.id", "span.type", "telemetry.",
    "tool.name", "tool_call.id", "tool_name", "traceloop.span.kind",
)  # fmt: skip
_CONTENT = ("gen_ai.system_instructions", "gen_ai.request.instructions", "http.request.header", "http.response.header")


def records(signal: str, body: Mapping[str, Any], *, content: bool = True, **more: Any) -> list[tape.Record]:
    """An export request in OTLP/JSON as tape records, without secrets; without texts where content is not kept.

    Args:
        signal: ``traces`` or ``logs``.
        body: The decoded request; what has not the shape of one is left out.
        more: Further fields of the records (``open``: these spans have not ended).
    """
    at = now()
    return [
        {"kind": "otlp", "signal": signal, "at": at, **more, "body": cleaned(piece, content=content)}
        for piece in _pieces(signal, body)
    ]


def items(signal: str, body: Any) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]]:
    """(resource with its schema, scope with its schema, span or log record) for each of a request."""
    outer, inner, leaf = SIGNALS[signal]
    for group in _objects(body, outer):
        above = {k: v for k, v in group.items() if k != inner and v}
        for part in _objects(group, inner):
            scope = {k: v for k, v in part.items() if k != leaf and v}
            for item in _objects(part, leaf):
                yield above, scope, item


def request(signal: str, above: Mapping[str, Any], scope: Mapping[str, Any], found: list[Any]) -> dict[str, Any]:
    """A request that holds these spans or log records of one resource and scope."""
    outer, inner, leaf = SIGNALS[signal]
    return {outer: [{**above, inner: [{**scope, leaf: found}]}]}


def value(given: Any, depth: int = 0) -> dict[str, Any]:
    """A Python value as an OTLP/JSON AnyValue."""
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, float):
        return {"doubleValue": given if given == given and abs(given) != float("inf") else str(given)}
    if isinstance(given, str):
        return {"stringValue": given}
    if given is None or depth > 50:
        return {}
    if isinstance(given, Mapping):
        return {"kvlistValue": {"values": attributes(given, depth + 1)}}
    if isinstance(given, (list, tuple)):
        return {"arrayValue": {"values": [value(v, depth + 1) for v in given]}}
    return {"stringValue": given.decode("utf-8", "replace") if isinstance(given, bytes) else str(given)}


def attributes(given: Mapping[str, Any] | None, depth: int = 0) -> list[dict[str, Any]]:
    """Attributes as OTLP/JSON has them."""
    return [{"key": str(k), "value": value(v, depth)} for k, v in (given or {}).items()]


def plain(given: Any) -> Any:
    """The Python value of a simple AnyValue (text, number, truth); None for others."""
    if not isinstance(given, Mapping):
        return None
    return next((given[k] for k in ("stringValue", "intValue", "doubleValue", "boolValue") if k in given), None)


def cleaned(body: Any, *, content: bool = True) -> Any:
    """The body without what looks like a secret, and without texts where content is not kept."""
    if not content:
        body = _facts_only(body)
    text = _dumps(body)
    return body if redact(text) == text else _redacted(body)


def _pieces(signal: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    held: list[Any] = []
    place: tuple[Any, Any] | None = None
    for above, scope, item in items(signal, body):
        if place is not None and (len(held) >= ITEMS_A_LINE or place != (above, scope)):
            yield request(signal, *place, held)
            held = []
        place = (above, scope)
        held.append(item)
    if place is not None:
        yield request(signal, *place, held)


def _objects(node: Any, name: str) -> list[Mapping[str, Any]]:
    found = node.get(name) if isinstance(node, Mapping) else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _redacted(node: Any) -> Any:
    # string by string: a pattern that runs over the JSON text could swallow whole fields
    if isinstance(node, str):
        return redact(node)
    if isinstance(node, list):
        return [_redacted(one) for one in node]
    if isinstance(node, dict):
        return {redact(k): _redacted(v) for k, v in node.items()}
    return node


def _facts_only(node: Any) -> Any:
    """Attributes that name or count; ids, times and codes. Bodies, messages and all other texts go."""
    if isinstance(node, list):
        return [_facts_only(one) for one in node if not _says(one)]
    if isinstance(node, dict):
        return {k: _facts_only(v) for k, v in node.items() if k not in ("body", "message", "description", "traceState")}
    return node


def _says(node: Any) -> bool:
    """True for an attribute that may hold what people or models wrote."""
    if not (isinstance(node, dict) and "key" in node and isinstance(node.get("value"), dict)):
        return False
    key, given = str(node["key"]), plain(node["value"])
    if isinstance(given, (bool, int, float)) or "intValue" in node["value"]:
        return False
    if key == "gen_ai.response.finish_reasons":
        return False
    named = key.startswith(_FACTS) and not key.startswith(_CONTENT)
    return not (named and isinstance(given, str) and len(given) <= SHORT)
