"""Messages, system texts and tools of any provider as the GenAI conventions write them: roles and typed parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Message = dict[str, Any]

_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_CALLS = frozenset({"tool_use", "function_call", "custom_tool_call"})
_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_OUTPUTS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})


def genai_message(message: Any) -> Message:
    """One message of a request or answer; what the conventions have no word for is kept beside as it was."""
    if not isinstance(message, dict):
        return {"role": "user", "parts": [text_part(message)]}
    role = message.get("role")
    if role == "tool":
        part = {"type": "tool_call_response", "id": message.get("tool_call_id"), "response": message.get("content")}
        return {"role": "tool", "parts": [part]}
    if not isinstance(role, str):
        return _item(message)
    found: Message = {"role": role, "parts": [*_thoughts(message), *_content(message.get("content"))]}
    found["parts"] += [_openai_call(call) for call in _list(message.get("tool_calls"))]
    if "content" not in message and not found["parts"]:
        found["parts"] = [genai_part({k: v for k, v in message.items() if k != "role"})]
    if isinstance(message.get("name"), str):
        found["name"] = message["name"]
    return found


def genai_part(block: Any) -> dict[str, Any]:
    """One content block as a part; unknown kinds pass as they are, which the conventions allow."""
    if not isinstance(block, dict):
        return text_part(block)
    kind = _kind(block)
    if kind in _TEXTS:
        return {"type": "text", "content": block.get("text"), **_rest(block, "text", "annotations", "logprobs")}
    if kind in _CALLS:
        # ``partial_json`` is what the model wrote where that is no JSON: the input beside it is empty
        key = next((k for k in ("partial_json", "arguments", "input") if k in block), "input")
        head = {"type": "tool_call", "id": _id(block), "name": block.get("name"), "arguments": block.get(key)}
        return {**head, **_rest(block, "id", "call_id", "name", key, "input", "status")}
    if kind in _OUTPUTS:
        key = "output" if "output" in block else "content"
        part = {"type": "tool_call_response", "id": _id(block), "response": block.get(key)}
        return {**part, **_rest(block, "id", "call_id", "tool_use_id", key, "status", "is_error", kept=_error(block))}
    if kind in _SERVER_CALLS:
        inner = {"type": kind, "arguments": block.get("input")}
        return {"type": "server_tool_call", "id": block.get("id"), "name": block.get("name"), "server_tool_call": inner}
    if kind.endswith("_tool_result"):
        inner = {"type": kind, "content": block.get("content")}
        return {"type": "server_tool_call_response", "id": block.get("tool_use_id"), "server_tool_call_response": inner}
    if kind == "thinking":
        return {"type": "reasoning", "content": block.get("thinking"), **_rest(block, "thinking")}
    return block


def genai_system(system: Any) -> list[dict[str, Any]]:
    """System instructions as text parts."""
    return [genai_part(block) for block in (system if isinstance(system, list) else [system])]


def genai_tools(tools: Any) -> list[Any]:
    """Tool definitions as ``{type, name, description, parameters}``; a provider's own kinds as they are."""
    found = []
    for tool in tools if isinstance(tools, (list, tuple)) else [tools]:
        inner = tool.get("function") if isinstance(tool, dict) else None
        one = {**tool, **inner} if isinstance(inner, dict) else tool
        if isinstance(one, dict) and isinstance(one.get("name"), str) and one.get("type", "function") in (
            "function", "custom",
        ):  # fmt: skip
            head = {"type": "function", "name": one["name"], "description": one.get("description")}
            head["parameters"] = one.get("parameters", one.get("input_schema"))
            extra = {k: v for k, v in one.items() if k not in ("type", "function", "parameters", "input_schema", *head)}
            one = {**{k: v for k, v in head.items() if v is not None}, **extra}
        found.append(one)
    return found


def text_part(text: Any) -> dict[str, Any]:
    """A text part."""
    return {"type": "text", "content": text if isinstance(text, str) else str(text)}


def _item(item: Mapping[str, Any]) -> Message:
    """An item of the Responses API that has no role."""
    kind = _kind(item)
    if kind in _OUTPUTS:
        return {"role": "tool", "parts": [genai_part(item)]}
    if kind == "reasoning":
        texts = [b.get("text") for b in [*_list(item.get("summary")), *_list(item.get("content"))] if _dict(b)]
        words = "\n".join(t for t in texts if isinstance(t, str))
        return {"role": "assistant", "parts": [{"type": "reasoning", "content": words, **_rest(item)}]}
    role = "assistant" if kind in _CALLS or kind.endswith("_call") else "user"
    return {"role": role, "parts": [genai_part(dict(item))]}


def _content(content: Any) -> list[dict[str, Any]]:
    if content is None:
        return []
    return [genai_part(block) for block in (content if isinstance(content, list) else [content])]


def _thoughts(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str) and message[key]:
            yield {"type": "reasoning", "content": message[key]}
            return


def _openai_call(call: Any) -> dict[str, Any]:
    inner = (call.get("function") or call.get("custom")) if isinstance(call, dict) else None
    if not isinstance(inner, dict):
        return text_part(call)
    arguments = inner.get("arguments", inner.get("input"))
    return {"type": "tool_call", "id": call.get("id"), "name": inner.get("name"), "arguments": arguments}


def _kind(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _error(block: Mapping[str, Any]) -> dict[str, Any]:
    return {"is_error": True} if block.get("is_error") is True or block.get("status") == "failed" else {}


def _rest(block: Mapping[str, Any], *told: str, kept: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Keys that are not told otherwise (a signature, cache_control): additional properties are conformant."""
    return {k: v for k, v in block.items() if k not in ("type", *told) and v is not None} | dict(kept or {})


def _id(block: Mapping[str, Any]) -> Any:
    return block.get("tool_use_id") or block.get("call_id") or block.get("id")


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> bool:
    return isinstance(value, dict)
