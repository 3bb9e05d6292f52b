"""A Message as the events of a stream: what `anthropic.assemble` puts together, taken apart again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .answer import dumped, mapping, objects, text_of
from .sse import named, pieces

_MARKS = frozenset({"stream_cut", "stream_error", "stream_error_request_id"})
_BLOCK_MARKS = frozenset({"incomplete", "partial_json", "unknown_deltas"})
_ENDS = ("stop_reason", "stop_sequence", "stop_details", "container")
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_DEFAULTS = {"type": "message", "role": "assistant"}


def stream(body: Mapping[str, Any], request: Any = None) -> list[bytes]:
    """The events of a Message, one an item. A cut one ends where it was cut."""
    message = {**_DEFAULTS, **{k: v for k, v in body.items() if k not in _MARKS}}
    usage = {"input_tokens": 0, "output_tokens": 0, **mapping(body.get("usage"))}
    start = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    events = [named({"type": "message_start", "message": start})]
    content = body.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
    for index, block in enumerate(blocks):
        events += map(named, _block(index, block))
    if body.get("stream_error"):
        told = {"request_id": body["stream_error_request_id"]} if body.get("stream_error_request_id") else {}
        return [*events, named({"type": "error", "error": body["stream_error"], **told})]
    if body.get("stream_cut"):
        return events
    end: dict[str, Any] = {"type": "message_delta", "delta": {k: body[k] for k in _ENDS if k in body}, "usage": usage}
    end["delta"] = {"stop_reason": None, "stop_sequence": None, **end["delta"]}
    if body.get("context_management") is not None:
        end["context_management"] = body["context_management"]
    return [*events, named(end), named({"type": "message_stop"})]


def _block(index: int, block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    value = {k: v for k, v in block.items() if k not in _BLOCK_MARKS}
    first, deltas = _opened(value, text_of(block.get("partial_json")))
    yield {"type": "content_block_start", "index": index, "content_block": first}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    if block.get("incomplete") is not True:
        yield {"type": "content_block_stop", "index": index}


def _opened(value: dict[str, Any], partial: str | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it begins, and the deltas that make it what it is. Kinds without deltas come whole."""
    kind = value.get("type")
    if kind == "text":
        cited = objects(value.get("citations"))
        deltas = [{"type": "text_delta", "text": p} for p in pieces(value.get("text"))]
        first = {**value, "text": "", **({"citations": []} if cited else {})}
        return first, [*deltas, *({"type": "citations_delta", "citation": c} for c in cited)]
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(value.get("thinking"))]
        signature = text_of(value.get("signature"))
        signed = [{"type": "signature_delta", "signature": signature}] if signature else []
        return {**value, "thinking": "", "signature": ""}, [*deltas, *signed]
    if kind in _CALLS:
        raw = partial if partial is not None else dumped(value["input"]) if value.get("input") else ""
        return {**value, "input": {}}, [{"type": "input_json_delta", "partial_json": p} for p in pieces(raw)]
    return value, []
