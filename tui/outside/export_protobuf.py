"""OTLP in protobuf: the same spans as the JSON lines, for collectors that read no JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...tracer.errors import LooptapeError
from ...tracer.otlp_out import export_requests

if TYPE_CHECKING:
    from ...replay.reference import Found


def protobuf(one: Found) -> Iterator[bytes]:
    """The run as pieces of one serialised ExportTraceServiceRequest: in protobuf, messages put together are one.

    Raises:
        LooptapeError: ``opentelemetry-proto`` is not installed (exit 2).
    """
    try:
        from google.protobuf import json_format  # type: ignore[import-untyped,unused-ignore]
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        raise LooptapeError(
            "no-protobuf",
            "protobuf needs the package opentelemetry-proto",
            "pip install 'looptape[server]', or name a file that ends in .jsonl",
            exit_code=2,
        ) from None
    for request in export_requests(one.store, one.run, one.first, one.last):
        made = json_format.ParseDict(_with_octets(json.loads(json.dumps(request))), ExportTraceServiceRequest())
        yield made.SerializeToString()


def _with_octets(request: dict[str, Any]) -> dict[str, Any]:
    """Ids in base64: OTLP's JSON writes them in hex, protobuf's own JSON does not."""
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for place in (span, *span.get("links", ())):
                    for key in ("traceId", "spanId", "parentSpanId"):
                        if key in place:
                            place[key] = base64.b64encode(bytes.fromhex(place[key])).decode()
    return request
