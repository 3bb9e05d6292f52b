"""Export requests into OTLP/JSON, whatever they came as; spans that no reader could find again are counted out."""

from __future__ import annotations

import base64
import binascii
import importlib
import json
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import LooptapeError
from ..otlp import SIGNALS, items
from .refusal import MAX_ITEMS, Refused

_MODULES = {
    "traces": ("trace", "ExportTraceServiceRequest"),
    "logs": ("logs", "ExportLogsServiceRequest"),
}
_IDS = (("traceId", 32), ("spanId", 16), ("parentSpanId", 16))
_decoder = json.JSONDecoder(parse_constant=lambda name: name)


def message_classes() -> dict[str, Any]:
    """The classes of requests by signal.

    Raises:
        LooptapeError: The packages for it are not installed (``no-server``).
    """
    found = {}
    for signal, (name, message) in _MODULES.items():
        try:
            module = importlib.import_module(f"opentelemetry.proto.collector.{name}.v1.{name}_service_pb2")
        except ImportError:
            raise missing("opentelemetry-proto") from None
        found[signal] = getattr(module, message)
    return found


def missing(package: str) -> LooptapeError:
    """The error for a machine without the packages of the extra."""
    return LooptapeError(
        "no-server", f"receiving needs the package {package}", "Install it with: pip install 'looptape[server]'"
    )


def from_json(signal: str, data: bytes) -> tuple[dict[str, Any], int]:
    """The request in OTLP/JSON and how many of its spans or log records cannot be used. Raises Refused."""
    try:
        body = _decoder.decode(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is no JSON ({str(error)[:100]})") from None
    if not isinstance(body, dict):
        raise Refused(400, "the body is no JSON object")
    outer, inner, leaf = SIGNALS[signal]
    if body and not isinstance(body.get(outer, []), (list, type(None))):
        raise Refused(400, f"{outer} is no list")
    found = [item for _, _, item in items(signal, body)]
    _not_too_many(len(found))
    for item in found:
        _name(item)
    rejected = 0
    if signal == "traces" and (rejected := sum(not _is_named(i) for i in found)):
        for group in body[outer]:
            for part in (group or {}).get(inner) or ():
                part[leaf] = [i for i in part.get(leaf) or () if isinstance(i, dict) and _is_named(i)]
    return body, rejected


def from_protobuf(signal: str, data: bytes, classes: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """As `from_json`, for protobuf."""
    message = classes[signal]()
    try:
        message.ParseFromString(data)
    except Exception as error:  # protobuf's own DecodeError
        raise Refused(400, f"the body is no {type(message).__name__} ({str(error)[:100]})") from None
    if signal == "traces":
        _not_too_many(sum(len(s.spans) for r in message.resource_spans for s in r.scope_spans))
        return _traces(message)
    _not_too_many(sum(len(s.log_records) for r in message.resource_logs for s in r.scope_logs))
    return _groups(message.resource_logs, "logs", lambda s: map(_log, s.log_records)), 0


def _not_too_many(count: int) -> None:
    if count > MAX_ITEMS:
        raise Refused(413, f"the request holds {count:,} items, more than {MAX_ITEMS:,}: export smaller batches")


def _traces(message: Any) -> tuple[dict[str, Any], int]:
    rejected = 0

    def spans(scope: Any) -> Iterable[dict[str, Any]]:
        nonlocal rejected
        for span in scope.spans:
            if len(span.trace_id) == 16 and len(span.span_id) == 8:
                yield _span(span)
            else:
                rejected += 1

    body = _groups(message.resource_spans, "traces", spans)
    return body, rejected


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


def _name(item: Any) -> None:
    """Ids as hex in lower case; some exporters write them as base64."""
    for key, digits in _IDS:
        given = item.get(key)
        if not isinstance(given, str):
            continue
        if len(given) != digits or given.strip("0123456789abcdefABCDEF"):
            try:
                decoded = base64.b64decode(given, validate=True).hex()
            except (binascii.Error, ValueError):
                continue
            if len(decoded) != digits:
                continue
            given = decoded
        item[key] = given.lower()


def _is_named(item: Any) -> bool:
    found = [item.get(key) for key, _ in _IDS[:2]]
    return all(
        isinstance(v, str) and len(v) == n and not v.strip("0123456789abcdef") and v.strip("0")
        for v, (_, n) in zip(found, _IDS, strict=False)
    )
