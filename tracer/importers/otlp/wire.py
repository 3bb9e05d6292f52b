"""OTLP as it was exported, into plain spans and log records: JSON in its dialects, and protobuf."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...json_text import decoder

ATTRIBUTE_LIMIT = 128  # the SDKs' default: beyond it the oldest attributes are evicted without a word

_NONE = "0"
_decode = decoder()
_lower_hex = re.compile("[0-9a-f]+").fullmatch
_trace_id = re.compile("(?!0{32})[0-9a-f]{32}").fullmatch
_span_id = re.compile("(?!0{16})[0-9a-f]{16}").fullmatch
_KINDS = {"SPAN_KIND_INTERNAL": 1, "SPAN_KIND_SERVER": 2, "SPAN_KIND_CLIENT": 3}
_CODES = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}


@dataclass(slots=True)
class RawEvent:
    """An event of a span, or a log record: a name, a time (µs), attributes and maybe a body."""

    name: str
    at: int | None
    attributes: dict[str, Any]
    body: Any = None
    trace: str | None = None
    span: str | None = None
    scope: str = ""
    resource: Mapping[str, Any] = field(default_factory=dict)
    line: int = 1
    file: int = 0


@dataclass(slots=True)
class RawSpan:
    """A span as it was exported; ids in lower-case hex, times in µs, attribute values decoded.

    Attributes:
        code: 0 unset (which is no failure), 1 ok, 2 error.
        logs: Log records that name this span.
    """

    trace: str | None
    span: str | None
    parent: str | None
    name: str
    kind: int
    start: int | None
    end: int | None
    attributes: dict[str, Any]
    events: list[RawEvent]
    code: int
    message: str | None
    scope: str
    version: str
    resource: Mapping[str, Any]
    dropped: int = 0
    line: int = 1
    logs: list[RawEvent] = field(default_factory=list)

    @property
    def key(self) -> str:
        """What identifies the span everywhere."""
        return f"{self.trace}:{self.span}"

    @property
    def service(self) -> str | None:
        """The resource's service name."""
        name = self.resource.get("service.name")
        return name if isinstance(name, str) and name else None


def from_json(request: Mapping[str, Any], line: int) -> Iterator[RawSpan | RawEvent]:
    """The spans and log records of one export request (or `TracesData`, `LogsData`)."""
    for group in _list(request, "resourceSpans", "resource_spans"):
        resource = attributes(_of(group, "resource").get("attributes"))
        for scoped in _list(group, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            scope = _of(scoped, "scope") or _of(scoped, "instrumentationLibrary")
            name, version = str(scope.get("name") or ""), str(scope.get("version") or "")
            for span in _list(scoped, "spans"):
                yield _span(span, name, version, resource, line)
    for group in _list(request, "resourceLogs", "resource_logs"):
        resource = attributes(_of(group, "resource").get("attributes"))
        for scoped in _list(group, "scopeLogs", "scope_logs", "instrumentationLibraryLogs"):
            name = str(_of(scoped, "scope").get("name") or "")
            for log in _list(scoped, "logRecords", "log_records"):
                yield _log(log, name, resource, line)


def attributes(items: Any) -> dict[str, Any]:
    """Key-value pairs as a dict; a later value of the same key wins. Explicit nulls are left out."""
    out: dict[str, Any] = {}
    if not isinstance(items, list):
        return out
    for item in items:
        try:
            key, given = item["key"], item["value"]
            if "stringValue" in given:
                value = given["stringValue"]
            elif "intValue" in given:
                value = int(given["intValue"])
            else:
                value = any_value(given)
        except (KeyError, TypeError, ValueError):
            continue
        if value is not None:
            out[key if isinstance(key, str) else str(key)] = value
    return out


def any_value(given: Any, depth: int = 0) -> Any:
    """An AnyValue as a plain value."""
    if not isinstance(given, dict) or depth > 100:
        return given if not isinstance(given, dict) else None
    for kind, value in given.items():
        if value is None:
            continue
        if kind in ("stringValue", "string_value", "boolValue", "bool_value"):
            return value
        if kind in ("intValue", "int_value"):
            return _int(value)
        if kind in ("doubleValue", "double_value"):
            return value if isinstance(value, (int, float)) else str(value)
        if kind in ("arrayValue", "array_value"):
            return [any_value(v, depth + 1) for v in _list(value, "values")]
        if kind in ("kvlistValue", "kvlist_value"):
            pairs = (p for p in _list(value, "values") if isinstance(p.get("key"), str))
            return {p["key"]: any_value(p.get("value"), depth + 1) for p in pairs}
        if kind in ("bytesValue", "bytes_value"):
            return value
    return None


def hex_id(value: Any, size: int) -> str | None:
    """An id as lower-case hex: hex or base64 as given, bytes; None for an empty one, all zeros, or none at all."""
    if isinstance(value, str) and len(value) == 2 * size and _lower_hex(value):  # as nearly all write it
        text = value
    elif isinstance(value, (bytes, bytearray)):
        text = bytes(value).hex()
    elif isinstance(value, str) and value:
        text = value.lower()
        if len(value) != 2 * size or not _is_hex(text):
            text = _from_base64(value, size) or text
    else:
        return None
    return text if text.strip(_NONE) else None


def micros(value: Any) -> int | None:
    """Nanoseconds (text or number) as µs; 0 is no time, and so is what the format's 64 bits cannot hold."""
    number = int(value) if value.__class__ is str and value.isdecimal() and len(value) < 20 else _int(value)
    return number // 1000 if number and 0 < number < 1 << 64 else None


def _span(span: Mapping[str, Any], scope: str, version: str, resource: Mapping[str, Any], line: int) -> RawSpan:
    """One span. What nearly all exporters write is taken as it is, since a service sends a hundred spans for one of ours."""
    get = span.get
    trace, own, parent = get("traceId"), get("spanId"), get("parentSpanId")
    if trace.__class__ is not str or not _trace_id(trace):
        trace = hex_id(trace if trace is not None else get("trace_id"), 16)
    if own.__class__ is not str or not _span_id(own):
        own = hex_id(own if own is not None else get("span_id"), 8)
    if parent.__class__ is not str or not _span_id(parent):
        parent = hex_id(parent if parent is not None else get("parent_span_id"), 8)
    start, end = get("startTimeUnixNano"), get("endTimeUnixNano")
    name, kind, status, events = get("name"), get("kind"), get("status"), get("events")
    code, message = (status.get("code"), status.get("message")) if isinstance(status, dict) else (None, None)
    dropped = _get(span, "droppedAttributesCount", "dropped_attributes_count")
    return RawSpan(
        trace,
        own,
        parent,
        name if name.__class__ is str else str(name or ""),
        kind if kind.__class__ is int else _enum(kind, _KINDS),
        micros(start if start is not None else get("start_time_unix_nano")),
        micros(end if end is not None else get("end_time_unix_nano")),
        attributes(get("attributes")),
        [_event(e, line) for e in events if isinstance(e, dict)] if isinstance(events, list) else [],
        code if code.__class__ is int else _enum(code, _CODES),
        message if isinstance(message, str) and message else None,
        scope,
        version,
        resource,
        _int(dropped) or 0 if dropped is not None else 0,
        line,
    )


def _event(event: Mapping[str, Any], line: int) -> RawEvent:
    at = micros(_get(event, "timeUnixNano", "time_unix_nano"))
    return RawEvent(str(event.get("name") or ""), at, attributes(event.get("attributes")), line=line)


def _log(log: Mapping[str, Any], scope: str, resource: Mapping[str, Any], line: int) -> RawEvent:
    given = attributes(log.get("attributes"))
    at = micros(_get(log, "timeUnixNano", "time_unix_nano"))
    if at is None:
        at = micros(_get(log, "observedTimeUnixNano", "observed_time_unix_nano"))
    body = any_value(log.get("body"))
    name = _get(log, "eventName", "event_name") or given.get("event.name")
    if not name and isinstance(body, str) and len(body) < 80:
        name = body
    return RawEvent(
        str(name or ""),
        at,
        given,
        body,
        trace=hex_id(_get(log, "traceId", "trace_id"), 16),
        span=hex_id(_get(log, "spanId", "span_id"), 8),
        scope=scope,
        resource=resource,
        line=line,
    )


def _get(value: Mapping[str, Any], name: str, other: str) -> Any:
    found = value.get(name)
    return found if found is not None else value.get(other)


def _of(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _list(value: Any, *names: str) -> list[dict[str, Any]]:
    """The objects of the first of these lists that is there; explicit nulls are nothing."""
    for name in names:
        found = value.get(name) if isinstance(value, dict) else None
        if isinstance(found, list):
            return [v for v in found if isinstance(v, dict)]
    return []


def _enum(value: Any, names: Mapping[str, int]) -> int:
    if isinstance(value, str):
        return names.get(value.upper(), _int(value) or 0)
    return value if isinstance(value, int) else 0


def _int(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return None
    return int(value) if isinstance(value, float) and value == value and abs(value) < 2**63 else None


def _is_hex(text: str) -> bool:
    try:
        int(text, 16)
    except ValueError:
        return False
    return "_" not in text


def _from_base64(value: str, size: int) -> str | None:
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data.hex() if len(data) == size else None


def nested(value: Any) -> Any:
    """A value that may be JSON text of an object or a list: decoded where it is."""
    if isinstance(value, str) and (value[:1] in ("{", "[") or value[:1].isspace()):
        try:
            return _decode(value)
        except (ValueError, RecursionError):
            return value
    return value


def arguments_of(value: Any) -> Any:
    """A tool's input, which may be JSON text that wraps the arguments once more."""
    found = nested(value)
    if isinstance(found, dict):
        inner = found.get("inputs", found.get("kwargs"))
        return inner if isinstance(inner, dict) and inner else found
    return found
