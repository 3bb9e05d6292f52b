"""A message of any provider as the parts a person reads: words, thinking, calls, results, images."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_TEXTS = frozenset({"text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text"})
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "function_call", "custom_tool_call"})
_RESULTS = frozenset({"tool_result", "mcp_tool_result", "function_call_output", "custom_tool_call_output"})


@dataclass(frozen=True, slots=True)
class MessagePart:
    """One part. ``kind``: text, thinking, call, result, image or other.

    Attributes:
        text: The words; of a call its arguments as JSON text; of an image or other part a short description.
        name: The tool of a call.
        call: The call id of a call or result.
    """

    kind: str
    text: str
    name: str | None = None
    call: str | None = None
    is_error: bool = False


def role(message: Any) -> str:
    """Who speaks: user, assistant, system, tool, developer; ``?`` when the message does not say."""
    if not isinstance(message, dict):
        return "user" if isinstance(message, str) else "?"
    given = message.get("role")
    if isinstance(given, str):
        return "assistant" if given == "model" else given
    kind = _text(message.get("type"))
    if kind in _RESULTS:
        return "tool"
    return "assistant" if kind in _CALLS or kind == "reasoning" else "?"


def parts(message: Any) -> list[MessagePart]:
    """The parts of a message in their order; never raises on odd shapes."""
    if not isinstance(message, dict):
        return [MessagePart("text", plain_text(message))] if message not in (None, "") else []
    if message.get("role") == "tool":
        return [MessagePart("result", plain_text(message.get("content")), call=_text(message.get("tool_call_id")))]
    if isinstance(message.get("parts"), list):
        return [part for block in message["parts"] if (part := _gemini(block))]
    found = list(_thoughts(message))
    if ("content" in message and "type" not in message) or message.get("type") == "message":
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content]
        found += [part for block in blocks if (part := _part(block))]
    elif (own := _part(message)) is not None:
        found.append(own)
    found += _openai_calls(message)
    return found


def plain_text(content: Any) -> str:
    """A result or content (text, list of blocks, any JSON) as words; what is no text becomes short JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and any(isinstance(b, dict) and "type" in b for b in content):
        return "\n".join(part.text for block in content if (part := _part(block)))
    return _json(content)


def _part(block: Any) -> MessagePart | None:
    if not isinstance(block, dict):
        return MessagePart("text", plain_text(block)) if block not in (None, "") else None
    kind = _text(block.get("type"))
    if kind in _TEXTS:
        return MessagePart("text", _text(block.get("text")) or _text(block.get("refusal")) or "")
    if kind in ("thinking", "redacted_thinking"):
        return MessagePart("thinking", _text(block.get("thinking")) or "(redacted by the provider)")
    if kind == "reasoning":
        return MessagePart(
            "thinking", plain_text(block.get("summary") or block.get("content")) or "(hidden by the provider)"
        )
    if kind in _CALLS:
        return MessagePart("call", _arguments(block), name=_text(block.get("name")), call=_call_id(block))
    if kind in _RESULTS or (isinstance(kind, str) and kind.endswith("_tool_result")):
        content = block.get("output") if "output" in block else block.get("content")
        return MessagePart("result", plain_text(content), call=_call_id(block), is_error=block.get("is_error") is True)
    if isinstance(kind, str) and ("image" in kind or "document" in kind or "file" in kind):
        return MessagePart("image", f"({kind}, {len(_json(block)):,} characters)")
    return MessagePart("other", _json(block))


def _gemini(block: Any) -> MessagePart | None:
    """A part of a Gemini content: told by which member it has, for it has no type."""
    if not isinstance(block, dict):
        return _part(block)
    if isinstance(block.get("text"), str):
        return MessagePart("thinking" if block.get("thought") is True else "text", block["text"])
    for key in ("functionCall", "function_call"):
        if isinstance(call := block.get(key), dict):
            name = _text(call.get("name"))
            return MessagePart("call", _json(call.get("args") or {}), name=name, call=_text(call.get("id")) or name)
    for key in ("functionResponse", "function_response"):
        if isinstance(result := block.get(key), dict):
            response = result.get("response")
            failed = isinstance(response, dict) and "error" in response and "output" not in response
            call_id = _text(result.get("id")) or _text(result.get("name"))
            return MessagePart("result", plain_text(response), call=call_id, is_error=failed)
    return MessagePart("image" if "inlineData" in block or "fileData" in block else "other", _json(block)[:200])


def _thoughts(message: dict[str, Any]) -> Iterator[MessagePart]:
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str) and message[key]:
            yield MessagePart("thinking", message[key])
            return


def _openai_calls(message: dict[str, Any]) -> Iterator[MessagePart]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        inner = call.get("function") or call.get("custom") if isinstance(call, dict) else None
        if isinstance(inner, dict):
            yield MessagePart("call", _arguments(inner), name=_text(inner.get("name")), call=_text(call.get("id")))


def _arguments(block: dict[str, Any]) -> str:
    for key in ("partial_json", "arguments", "input"):
        if key in block:
            return block[key] if isinstance(block[key], str) else _json(block[key])
    return "{}"


def _call_id(block: dict[str, Any]) -> str | None:
    return _text(block.get("tool_use_id")) or _text(block.get("call_id")) or _text(block.get("id"))


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
