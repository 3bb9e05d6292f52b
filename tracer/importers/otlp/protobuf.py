"""OTLP protobuf files: told by their bytes, decoded by the optional package opentelemetry-proto."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import otlp_protobuf
from ...errors import LooptapeError
from .wire import RawEvent, RawSpan, micros

_WORDS = (b"telemetry.sdk.", b"service.name", b"gen_ai.", b"openinference", b"traceloop", b"llm.")
_MAX_VARINT = 10


def looks_like(head: bytes) -> bool:
    """True for the head of an export request in protobuf, also with the length before each message."""
    if head[:1] in (b"{", b"["):
        return False
    start = head[4:] if _prefixed(head) else head
    return _message_at(start) and any(word in head for word in _WORDS)


def spans(data: bytes, label: str) -> Iterator[RawSpan | RawEvent]:
    """The spans and log records of a protobuf file: one export request, or several with their length before each.

    Raises:
        LooptapeError: The package is not installed (``needs-protobuf``), or the bytes cannot be decoded.
    """
    for number, request in enumerate(_messages(data, label), 1):
        yield from _of_traces(request, number) if _has_spans(request) else _of_logs(request, number)


def requests(data: bytes, label: str) -> Iterator[dict[str, Any]]:
    """The same file's export requests as OTLP/JSON. Raises as `spans` does."""
    for request in _messages(data, label):
        yield otlp_protobuf.traces(request) if _has_spans(request) else otlp_protobuf.logs(request)


def _messages(data: bytes, label: str) -> Iterator[Any]:
    traces, logs = _classes(label)
    return (_decoded(part, traces, logs, label) for part in _parts(data))


def _has_spans(request: Any) -> bool:
    return hasattr(request, "resource_spans")


def _classes(label: str) -> tuple[Any, Any]:
    try:
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        raise LooptapeError(
            "needs-protobuf",
            f"{label}: OTLP in protobuf, which needs the package opentelemetry-proto",
            "pip install looptape[server]",
        ) from None
    return ExportTraceServiceRequest, ExportLogsServiceRequest


def _decoded(part: bytes, traces: Any, logs: Any, label: str) -> Any:
    """Traces and logs have the same outer shape: what gives spans with ids is traces, else logs."""
    failure: Exception | None = None
    try:
        request = traces.FromString(part)
        found = [s for r in request.resource_spans for c in r.scope_spans for s in c.spans]
        if found and all(len(s.trace_id) == 16 and len(s.span_id) == 8 for s in found[:20]):
            return request
    except Exception as error:  # whatever protobuf raises for foreign bytes
        failure = error
    try:
        return logs.FromString(part)
    except Exception as error:
        failure = failure or error
    raise LooptapeError(
        "broken-protobuf", f"{label}: not an OTLP export request ({failure})", "Check that the file is whole"
    )


def _of_traces(request: Any, number: int) -> Iterator[RawSpan]:
    for group in request.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_spans:
            for span in scoped.spans:
                yield RawSpan(
                    trace=_id(span.trace_id),
                    span=_id(span.span_id),
                    parent=_id(span.parent_span_id),
                    name=span.name,
                    kind=span.kind,
                    start=micros(span.start_time_unix_nano),
                    end=micros(span.end_time_unix_nano),
                    attributes=_attributes(span.attributes),
                    events=[
                        RawEvent(e.name, micros(e.time_unix_nano), _attributes(e.attributes), line=number)
                        for e in span.events
                    ],
                    code=span.status.code,
                    message=span.status.message or None,
                    scope=scoped.scope.name,
                    version=scoped.scope.version,
                    resource=resource,
                    dropped=span.dropped_attributes_count,
                    line=number,
                )


def _of_logs(request: Any, number: int) -> Iterator[RawEvent]:
    for group in request.resource_logs:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_logs:
            for log in scoped.log_records:
                given = _attributes(log.attributes)
                body = _value(log.body)
                name = getattr(log, "event_name", "") or given.get("event.name")
                if not name and isinstance(body, str) and len(body) < 80:
                    name = body
                yield RawEvent(
                    str(name or ""),
                    micros(log.time_unix_nano) or micros(log.observed_time_unix_nano),
                    given,
                    body,
                    trace=_id(log.trace_id),
                    span=_id(log.span_id),
                    scope=scoped.scope.name,
                    resource=resource,
                    line=number,
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    out = {}
    for pair in pairs:
        given = pair.value
        value = given.string_value or _value(given)  # nearly all are texts; empty ones are told from none
        if value is not None:
            out[pair.key] = value
    return out


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(v) for v in value.array_value.values]
    if kind == "kvlist_value":
        return {p.key: _value(p.value) for p in value.kvlist_value.values}
    found = getattr(value, kind)
    return found.hex() if isinstance(found, bytes) else found


def _id(data: bytes) -> str | None:
    return data.hex() if data.strip(b"\0") else None


def _parts(data: bytes) -> Iterator[bytes]:
    """Messages with a four-byte length before each (the collector's file exporter), else all as one."""
    if not _prefixed(data):
        yield data
        return
    position = 0
    while position + 4 <= len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        yield data[position + 4 : position + 4 + size]
        position += 4 + size


def _prefixed(data: bytes) -> bool:
    size = int.from_bytes(data[:4], "big") if len(data) > 8 else 0
    return data[:1] == b"\0" and size > 0 and _message_at(data[4:])


def _message_at(data: bytes) -> bool:
    """A first field 1 of length L whose content begins with field 1 or 2, of a length within it."""
    outer = _field(data, (0x0A,))
    if outer is None:
        return False
    size, inside = outer
    inner = _field(data[inside:], (0x0A, 0x12, 0x1A))
    return inner is not None and inner[0] < size


def _field(data: bytes, tags: tuple[int, ...]) -> tuple[int, int] | None:
    """Length and begin of a length-delimited field at the start of the data."""
    if not data or data[0] not in tags:
        return None
    value = shift = 0
    for position in range(1, min(len(data), 1 + _MAX_VARINT)):
        value |= (data[position] & 0x7F) << shift
        shift += 7
        if data[position] < 0x80:
            return value, position + 1
    return None
