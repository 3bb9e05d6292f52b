"""Small parts of an ATIF trajectory: times, call ids, contents, tool definitions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ..tracer.model import Turn
from .message_parts import MessagePart, plain_text

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_DATA = re.compile(r"data:(image/[a-z]+);base64,")


def iso(at: int | None) -> str | None:
    """Microseconds since the epoch as ISO 8601 in UTC; None outside the years that it can say."""
    if at is None:
        return None
    try:
        moment = datetime.fromtimestamp(at // 1_000_000, UTC).replace(microsecond=at % 1_000_000)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat().replace("+00:00", "Z")


def call_ids(turn: Turn) -> list[str]:
    """An id for each call of a turn: its own, or one that says where it stands when that is missing or used twice."""
    found: list[str] = []
    for place, call in enumerate(turn.tool_calls, 1):
        found.append(call.id if call.id and call.id not in found else f"turn-{turn.number}-call-{place}")
    return found


def call_of_text(part: MessagePart, place: int) -> dict[str, Any]:
    """A call that stands in a message, as a tool call."""
    try:
        arguments = json.loads(part.text)
    except (ValueError, RecursionError):
        arguments = None
    whole = isinstance(arguments, dict)
    found: dict[str, Any] = {
        "tool_call_id": part.call or f"call-{place}",
        "function_name": part.name or "",
        "arguments": arguments if whole else {},
    }
    return found if whole else {**found, "extra": {"looptape": {"arguments_raw": part.text}}}


def content(result: Any) -> str | list[dict[str, Any]]:
    """A result as text, or as parts where it holds images."""
    if not isinstance(result, list) or not all(isinstance(b, dict) and "type" in b for b in result):
        return plain_text(result)
    found = [_part(block) for block in result]
    if all(p["type"] == "text" for p in found):
        return "".join(p["text"] for p in found)
    return found


def tool(definition: Mapping[str, Any]) -> dict[str, Any]:
    """A tool definition as OpenAI has it; one of an unknown shape stays as it is."""
    if isinstance(definition.get("function"), dict):
        return dict(definition)
    schema = definition.get("input_schema", definition.get("parameters"))
    if not isinstance(definition.get("name"), str) or not isinstance(schema, dict):
        return dict(definition)
    function = {"name": definition["name"], "description": definition.get("description"), "parameters": schema}
    return {"type": "function", "function": {k: v for k, v in function.items() if v is not None}}


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    source = block.get("source")
    if block["type"] == "image" and isinstance(source, dict):
        media, path = source.get("media_type"), source.get("path")
        if isinstance(source.get("data"), str):
            path = f"data:{media};base64,{source['data']}"
        if media in _IMAGES and isinstance(path, str):
            return {"type": "image", "source": {"media_type": media, "path": path}}
    url = block.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    named = _DATA.match(url) if isinstance(url, str) else None
    if named and named[1] in _IMAGES:
        return {"type": "image", "source": {"media_type": named[1], "path": url}}
    return {"type": "text", "text": plain_text([block])}
