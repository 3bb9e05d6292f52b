"""Export requests in protobuf as OTLP/JSON: what a receiver takes, and what a file of half a trace holds."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any

from .otlp import SIGNALS


def traces(message: Any) -> dict[str, Any]:
    """An `ExportTraceServiceRequest`."""
    return _groups(message.resource_spans, "traces", lambda s: map(_span, s.spans))


def logs(message: Any) -> dict[str, Any]:
    """An `ExportLogsServiceRequest`."""
    return _groups(message.resource_logs, "logs", lambda s: map(_log, s.log_records))


def _groups(groups: Any, signal: str, read: Callable[[Any], Iterable[dict[str, Any]]]) -> dict[str, Any]:
    outer, inner, leaf = SIGNALS[signal]
    found = []
    for group in groups:
        parts = []
        for part in getattr(group, "scope_spans" if signal == "traces" else "scope_logs"):
            scope = part.scope
            named = _filled(name=scope.name, version=scope.version, attributes=_attributes(scope.attributes))
            parts.append({**_filled(scope=named, schemaUrl=part.schema_url), leaf: list(read(part))})
        resource = _filled(attributes=_attributes(group.resource.attributes))
        found.append({**_filled(resource=resource, schemaUrl=group.schema_url), inner: parts})
    return {outer: found}


def _span(span: Any) -> dict[str, Any]:
    return _filled(
        traceId=span.trace_id.hex(),
        spanId=span.span_id.hex(),
        parentSpanId=span.parent_span_id.hex(),
        traceState=span.trace_state,
        name=span.name,
        kind=span.kind,
        startTimeUnixNano=str(span.start_time_unix_nano),
        endTimeUnixNano=str(span.end_time_unix_nano),
        attributes=_attributes(span.attributes),
        droppedAttributesCount=span.dropped_attributes_count,
        events=[
            _filled(timeUnixNano=str(e.time_unix_nano), name=e.name, attributes=_attributes(e.attributes))
            for e in span.events
        ],
        links=[
            _filled(traceId=k.trace_id.hex(), spanId=k.span_id.hex(), attributes=_attributes(k.attributes))
            for k in span.links
        ],
        status=_filled(code=span.status.code, message=span.status.message),
    )


def _log(log: Any) -> dict[str, Any]:
    return _filled(
        timeUnixNano=str(log.time_unix_nano),
        observedTimeUnixNano=str(log.observed_time_unix_nano),
        severityNumber=log.severity_number,
        severityText=log.severity_text,
        eventName=getattr(log, "event_name", ""),
        body=_value(log.body),
        attributes=_attributes(log.attributes),
        droppedAttributesCount=log.dropped_attributes_count,
        traceId=log.trace_id.hex(),
        spanId=log.span_id.hex(),
    )


def _attributes(pairs: Any) -> list[dict[str, Any]]:
    return [{"key": p.key, "value": _value(p.value)} for p in pairs]


def _value(value: Any) -> dict[str, Any]:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return {"stringValue": value.string_value}
    if kind == "int_value":
        return {"intValue": str(value.int_value)}
    if kind == "bool_value":
        return {"boolValue": value.bool_value}
    if kind == "double_value":
        number = value.double_value
        return {"doubleValue": number if abs(number) < float("inf") else str(number)}
    if kind == "array_value":
        return {"arrayValue": {"values": [_value(v) for v in value.array_value.values]}}
    if kind == "kvlist_value":
        return {"kvlistValue": {"values": _attributes(value.kvlist_value.values)}}
    if kind == "bytes_value":
        return {"bytesValue": base64.b64encode(value.bytes_value).decode()}
    return {}


def _filled(**fields: Any) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if v}
