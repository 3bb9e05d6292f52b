"""Request and response bodies as an API had them, where a producer kept them: the best there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...providers import by_api
from .wire import nested

ANTHROPIC, CHAT, RESPONSES = "anthropic.messages", "openai.chat", "openai.responses"


def request_api(body: Any, provider: str | None) -> str | None:
    """Which API's request this is, None when it is none that we know."""
    if not isinstance(body, dict):
        return None
    messages = body.get("messages")
    if isinstance(messages, list) and messages and all(isinstance(m, dict) and "role" in m for m in messages):
        claude = provider == "anthropic" or (provider is None and "max_tokens" in body and "system" in body)
        return ANTHROPIC if claude else CHAT
    if isinstance(body.get("input"), (list, str)) and ("model" in body or "instructions" in body):
        return RESPONSES
    return None


def response_api(body: Any) -> str | None:
    """Which API's response this is, None when it is none that we know."""
    if not isinstance(body, dict):
        return None
    if body.get("type") in ("message", "error") and ("content" in body or "error" in body):
        return ANTHROPIC
    if isinstance(body.get("choices"), list):
        return CHAT
    if body.get("object") == "response" or (isinstance(body.get("output"), list) and "status" in body):
        return RESPONSES
    return None


def parts(body: Mapping[str, Any], api: str) -> dict[str, Any]:
    """The fields of a `ModelCall` that a raw request gives."""
    provider = by_api(api)
    told = provider.request(body)
    listed = body.get(provider.LIST_KEY)
    messages = [{"role": "user", "content": listed}] if isinstance(listed, str) else listed
    return {
        "api": api,
        "messages": tuple(messages) if isinstance(messages, list) else (),
        "system": told.system,
        "tools": told.tools,
        "params": {k: v for k, v in told.params.items() if k != "model"},
        "model": told.model,
        "mode": told.mode,
        "previous": told.previous,
        "stream": told.stream,
    }


def as_response(api: str, blocks: list[dict[str, Any]], facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Blocks of an answer as that API's response body, for a raw request whose response was kept in other words."""
    known = {k: v for k, v in facts.items() if v is not None}
    if not blocks:
        return None
    if api == CHAT:
        message: dict[str, Any] = {"role": "assistant", "content": _texts(blocks) or None}
        calls = [_function(b) for b in blocks if b.get("type") == "tool_use"]
        if calls:
            message["tool_calls"] = [{"id": i, "type": "function", "function": f} for i, f in calls]
        choice = {"index": 0, "message": message, "finish_reason": known.pop("stop_reason", None)}
        return {"object": "chat.completion", **known, "choices": [choice]}
    if api == RESPONSES:
        known.pop("stop_reason", None)
        output: list[dict[str, Any]] = []
        for block in blocks:
            if block.get("type") == "text":
                part = {"type": "output_text", "text": block["text"]}
                output.append({"type": "message", "role": "assistant", "content": [part]})
            elif block.get("type") == "tool_use":
                name, function = _function(block)
                output.append({"type": "function_call", "call_id": name, **function})
            elif block.get("type") == "thinking":
                output.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": block["thinking"]}]})
        return {"object": "response", **known, "output": output}
    return {"type": "message", "role": "assistant", "content": blocks, **known}


def body_of(value: Any) -> Any:
    """A body kept as JSON text or decoded."""
    return nested(value)


def _function(block: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    import json

    raw = block.get("partial_json")
    raw = raw if isinstance(raw, str) else json.dumps(block.get("input") or {}, ensure_ascii=False)
    return str(block.get("id") or ""), {"name": block.get("name"), "arguments": raw}


def _texts(blocks: list[dict[str, Any]]) -> str:
    return "\n\n".join(b["text"] for b in blocks if b.get("type") == "text" and b.get("text"))
