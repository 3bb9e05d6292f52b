"""Parts of OpenHands events: calls of an action, plain messages, the usage of single responses."""

from __future__ import annotations

from typing import Any

from ...model import Usage
from ...providers.answer import count, mapping, objects
from ..document import text

STATE = "ConversationStateUpdateEvent"


def batch_of(event: dict[str, Any]) -> str:
    """The response that an action came with; one without that stands alone."""
    return text(event.get("llm_response_id")) or f"event {event.get('id')}"


def call_of(action: dict[str, Any]) -> dict[str, Any]:
    """An action's call as a chat message holds it."""
    given = mapping(action.get("tool_call"))
    function = mapping(given.get("function")) or given
    name = text(function.get("name")) or text(action.get("tool_name")) or ""
    arguments = function.get("arguments")
    if arguments is None:
        arguments = {k: v for k, v in mapping(action.get("action")).items() if k != "kind"}
    call = text(action.get("tool_call_id")) or text(given.get("id")) or str(action.get("id"))
    return {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}


def usages(events: list[dict[str, Any]]) -> dict[str, tuple[str | None, Usage]]:
    """Response id -> model and usage, where a state update holds the metrics of single responses."""
    found: dict[str, tuple[str | None, Usage]] = {}
    for event in events:
        value = mapping(event.get("value")) if event.get("kind") == STATE else {}
        stats = mapping(value.get("stats")) or value
        for metrics in mapping(stats.get("usage_to_metrics")).values():
            for item in objects(mapping(metrics).get("token_usages")):
                name = text(item.get("response_id"))
                if name:
                    found[name] = (text(item.get("model")), _usage(item))
    return found


def _usage(item: dict[str, Any]) -> Usage:
    prompt, read, write = (count(item.get(f"{n}_tokens")) for n in ("prompt", "cache_read", "cache_write"))
    return Usage(
        input=None if prompt is None else max(0, prompt - (read or 0) - (write or 0)),
        cache_read=read,
        cache_write_5m=write,
        output=count(item.get("completion_tokens")),
        reasoning=count(item.get("reasoning_tokens")),
        origin="recorded",
        raw=item,
    )


def plain(message: dict[str, Any]) -> dict[str, Any]:
    """A message without the fields that are empty or only say how to send it."""
    return {k: v for k, v in message.items() if v not in (None, [], "") and not k.endswith("_enabled")}


def snake(name: str) -> str:
    """An event class as the name of an event."""
    name = name.removesuffix("Event")
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))
