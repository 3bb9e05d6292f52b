"""Export requests into OTLP/JSON, whatever they came as; spans that no reader could find again are counted out."""

from __future__ import annotations

import base64
import binascii
import importlib
import json
from typing import Any

from .. import otlp_protobuf
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
    outer, _, _ = SIGNALS[signal]
    if body and not isinstance(body.get(outer, []), (list, type(None))):
        raise Refused(400, f"{outer} is no list")
    found = [item for _, _, item in items(signal, body)]
    _not_too_many(len(found))
    for item in found:
        _name(item)
    return body, _rejected(signal, body)


def from_protobuf(signal: str, data: bytes, classes: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """As `from_json`, for protobuf."""
    message = classes[signal]()
    try:
        message.ParseFromString(data)
    except Exception as error:  # protobuf's own DecodeError
        raise Refused(400, f"the body is no {type(message).__name__} ({str(error)[:100]})") from None
    if signal == "traces":
        _not_too_many(sum(len(s.spans) for r in message.resource_spans for s in r.scope_spans))
        body = otlp_protobuf.traces(message)
        return body, _rejected(signal, body)
    _not_too_many(sum(len(s.log_records) for r in message.resource_logs for s in r.scope_logs))
    return otlp_protobuf.logs(message), 0


def _not_too_many(count: int) -> None:
    if count > MAX_ITEMS:
        raise Refused(413, f"the request holds {count:,} items, more than {MAX_ITEMS:,}: export smaller batches")


def _rejected(signal: str, body: dict[str, Any]) -> int:
    """Takes out spans without an id, and says how many."""
    outer, inner, leaf = SIGNALS[signal]
    count = sum(not _is_named(i) for _, _, i in items(signal, body)) if signal == "traces" else 0
    if count:
        for group in body[outer]:
            for part in (group or {}).get(inner) or ():
                part[leaf] = [i for i in part.get(leaf) or () if isinstance(i, dict) and _is_named(i)]
    return count


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
