"""OTLP exports that are no JSON lines: posted to a collector, or written as protobuf."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...tracer.errors import LooptapeError
from ...tracer.otlp_out import export_requests
from .. import format as fmt
from .. import report

if TYPE_CHECKING:
    from ...replay.reference import Found


def send(endpoint: str, chosen: list[Found]) -> None:
    """Posts the runs to a collector and says how many spans it took.

    Raises:
        LooptapeError: It cannot be reached, or refused something.
    """
    from ...tracer.otlp_send import post, target

    url = target(endpoint)

    def requests() -> Iterator[dict[str, Any]]:
        for number, one in enumerate(chosen, 1):
            report.progress(f"{number} of {len(chosen)}")
            yield from export_requests(one.store, one.run, one.first, one.last)

    sent = post(endpoint, requests())
    report.progress("")
    if sent.rejected:
        said = f" ({sent.said})" if sent.said else ""
        raise LooptapeError("collector-refused", f"{url} refused {sent.rejected} of {sent.spans} spans{said}")
    report.note(f"sent {fmt.counted(sent.spans, 'span')} of {fmt.counted(len(chosen), 'run')} to {url}")
    if sent.said:
        report.note(f"{url} says: {sent.said}")


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
