"""Small OTLP requests for tests: spans, messages, a loop of two turns."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_793_610_000_000_000


def value(given):
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, float):
        return {"doubleValue": given}
    if isinstance(given, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": value(v)} for k, v in given.items()]}}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(v) for v in given]}}
    return {"stringValue": given}


def span(number, attributes, *, parent=None, at=0, ms=10, name="chat", trace=TRACE, **more):
    """A span that begins `at` ms after START. `number` makes its id."""
    begin = (START + at * 1000) * 1000
    return {
        "traceId": trace, "spanId": f"{number:016x}", "name": name, "kind": 3, "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(begin + ms * 1_000_000), "parentSpanId": f"{parent:016x}" if parent else "",
        "attributes": [{"key": k, "value": value(v)} for k, v in attributes.items()], "status": {"code": 0}, **more,
    }  # fmt: skip


def request(*spans, scope="demo", logs=()):
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "demo-agent"}}]}
    made = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}
    if logs:
        made["resourceLogs"] = [
            {"resource": resource, "scopeLogs": [{"scope": {"name": scope}, "logRecords": list(logs)}]}
        ]
    return made


def chat(**more):
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "acme-large-1",
        **more,
    }


def said(*messages):
    return json.dumps([{"role": role, "parts": parts} for role, *parts in messages])


def words(text):
    return {"type": "text", "content": text}


def asked(call, name="look", **arguments):
    return {"type": "tool_call", "id": call, "name": name, "arguments": arguments}


def came(call, result):
    return {"type": "tool_call_response", "id": call, "response": result}


def loop(first=1, *, trace=TRACE, parent=None, at=0, question="hi"):
    """Two turns with a call between them."""
    one = chat(
        **{
            "gen_ai.input.messages": said(("user", words(question))),
            "gen_ai.output.messages": said(("assistant", asked("c1", page=1))),
        }
    )
    two = chat(
        **{
            "gen_ai.input.messages": said(
                ("user", words(question)), ("assistant", asked("c1", page=1)), ("user", came("c1", "page"))
            ),
            "gen_ai.output.messages": said(("assistant", words("done"))),
        }
    )
    return [
        span(first, one, trace=trace, parent=parent, at=at),
        span(first + 1, two, trace=trace, parent=parent, at=at + 100),
    ]


def protobuf(made):
    """A request of spans or of log records in protobuf; the test is skipped where its package is not."""
    traces = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2").ExportTraceServiceRequest
    logs = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2").ExportLogsServiceRequest
    from google.protobuf.json_format import ParseDict

    return ParseDict(_in_base64(made), logs() if "resourceLogs" in made else traces()).SerializeToString()


def _in_base64(value):
    """OTLP has its ids in hex, JSON of protobuf has bytes in base64."""
    if isinstance(value, list):
        return [_in_base64(v) for v in value]
    if not isinstance(value, dict):
        return value
    ids = {k: b64encode(bytes.fromhex(value[k] or "")).decode() for k in _IDS if k in value}
    return {k: _in_base64(v) for k, v in value.items()} | ids


_IDS = ("traceId", "spanId", "parentSpanId")
