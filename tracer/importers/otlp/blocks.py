"""Messages of every dialect as Anthropic's blocks, the shape of the ``manual`` api."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ...json_text import decoder
from .wire import nested

Message = dict[str, Any]

_decode = decoder()


class Conversation:
    """Messages put together from a producer's words.

    Attributes:
        system: The text of system messages that stood in the list, None without any.
        cut: True when something was cut at the source (a message without parts, JSON that ends early).
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.system: Any = None
        self.cut = False

    def copy(self) -> Conversation:
        """One that goes on by itself; the messages so far are the same objects."""
        other = Conversation()
        other.messages, other.system, other.cut = list(self.messages), self.system, self.cut
        return other

    def add(self, role: str, blocks: list[dict[str, Any]]) -> None:
        """A message; results of parallel calls stand in one message, as the model saw them."""
        if role in ("system", "developer"):
            texts = [b["text"] for b in blocks if b.get("type") == "text"]
            self.system = "\n\n".join([*([self.system] if self.system else []), *texts]) or None
            return
        role = "assistant" if role in ("assistant", "model", "ai", "thinking", "reasoning") else "user"
        last = self.messages[-1] if self.messages else None
        if last is not None and last["role"] == role and (role == "assistant" or _only_results(last, blocks)):
            self.messages[-1] = {**last, "content": [*last["content"], *blocks]}
        else:
            self.messages.append({"role": role, "content": blocks})


def from_parts(value: Any, into: Conversation | None = None) -> Conversation:
    """GenAI messages (`[{role, parts}]`), as JSON text or decoded; also with ``content`` instead of parts."""
    into = into or Conversation()
    given = nested(value)
    if isinstance(given, str) and given:
        into.cut = True  # JSON text that ends early, or no JSON at all
        return into
    for message in given if isinstance(given, list) else []:
        if not isinstance(message, dict):
            continue
        role = str(message.get("role") or "user")
        parts = nested(message.get("parts"))
        if isinstance(parts, list):
            blocks = [b for p in parts if (b := _part(p)) is not None]
            into.cut = into.cut or not parts
            into.add("user" if any(b["type"] == "tool_result" for b in blocks) else role, blocks)
        else:
            add_openai(into, {**message, "role": role})
    return into


def add_openai(into: Conversation, message: Mapping[str, Any]) -> None:
    """A message in the words of OpenAI Chat: role, content, tool_calls, tool_call_id."""
    role = str(message.get("role") or "user")
    content = nested_blocks(message.get("content"))
    if role in ("tool", "function") and not (isinstance(content, list) and _has_results(content)):
        call = message.get("tool_call_id") or message.get("id") or ""
        into.add("user", [_result(call, message.get("content"))])
        return
    if role in ("thinking", "reasoning"):
        into.add(role, [{"type": "thinking", "thinking": _text(message.get("content"))}])
        return
    blocks = content_blocks(content)
    reasoning = message.get("reasoning") or message.get("reasoning_content")
    if reasoning and role == "assistant":
        blocks = [_thinking({"content": reasoning}), *blocks]
    known = {b.get("id") for b in blocks if b.get("type") == "tool_use"}
    for call in message.get("tool_calls") or ():
        block = _call(call)
        if block and not (block["id"] and block["id"] in known):
            blocks.append(block)
    if blocks or role in ("user", "assistant"):
        into.add("user" if _has_results(blocks) else role, blocks)


def content_blocks(content: Any) -> list[dict[str, Any]]:
    """A message's content, whatever its shape, as blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if isinstance(content, dict):
        content = [content]
    blocks = []
    for item in content if isinstance(content, list) else []:
        block = _part(item)
        if block is not None:
            blocks.append(block)
    return blocks


def nested_blocks(content: Any) -> Any:
    """Content that may be a list of blocks as JSON text (Traceloop); other text stays text."""
    if isinstance(content, str) and content.startswith("[{"):
        found = nested(content)
        if isinstance(found, list) and all(isinstance(b, dict) and isinstance(b.get("type"), str) for b in found):
            return found
    return content


def answer(blocks: Iterable[dict[str, Any]], **facts: Any) -> dict[str, Any]:
    """A response body in the same shape. ``facts``: id, model, stop_reason; None is left out."""
    return {
        "type": "message",
        "role": "assistant",
        "content": list(blocks),
        **{k: v for k, v in facts.items() if v is not None},
    }


def answer_blocks(said: Conversation) -> list[dict[str, Any]]:
    """All blocks of the model's own messages."""
    return [b for m in said.messages if m["role"] == "assistant" for b in m["content"]]


def arguments(value: Any) -> Any:
    """Arguments as the value they stand for."""
    if isinstance(value, str):
        try:
            return _decode(value)
        except (ValueError, RecursionError):
            return value
    return value


def _part(part: Any) -> dict[str, Any] | None:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text", None) and isinstance(part.get("content", part.get("text")), str):
        return {"type": "text", "text": part.get("content", part.get("text"))}
    if kind in ("reasoning", "thinking"):
        return _thinking(part)
    if kind in ("tool_call", "tool_use", "function"):
        return _call(part)
    if kind in ("tool_call_response", "tool_result"):
        return _part_result(part)
    return {**part, "type": str(kind or "unknown")}


def _thinking(part: Mapping[str, Any]) -> dict[str, Any]:
    said = nested(part.get("content", part.get("thinking", part.get("text", part.get("summary")))))
    if isinstance(said, list):  # a summary of several texts
        said = "\n\n".join(str(s.get("text") or "") if isinstance(s, dict) else str(s) for s in said)
    block = {"type": "thinking", "thinking": _text(said)}
    if part.get("signature"):
        block["signature"] = part["signature"]
    return block


def _call(call: Any) -> dict[str, Any] | None:
    if not isinstance(call, dict):
        return None
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    name = call.get("name") or function.get("name") or call.get("tool_name") or ""
    given = next(
        (
            v
            for v in (call.get("arguments"), call.get("input"), call.get("args"), function.get("arguments"))
            if v is not None
        ),
        None,
    )
    value = arguments(given)
    block: dict[str, Any] = {"type": "tool_use", "id": str(call.get("id") or ""), "name": str(name)}
    if isinstance(value, dict):
        return {**block, "input": value}
    return (
        {**block, "partial_json": given if isinstance(given, str) else json.dumps(given)}
        if given is not None
        else {**block, "input": {}}
    )


def _part_result(part: Mapping[str, Any]) -> dict[str, Any]:
    call = part.get("id") or part.get("tool_use_id") or part.get("tool_call_id") or ""
    said = next((part[k] for k in ("response", "result", "content", "output") if part.get(k) is not None), None)
    block = _result(call, said)
    if isinstance(part.get("is_error"), bool):
        block["is_error"] = part["is_error"]
    return block


def _result(call: Any, content: Any) -> dict[str, Any]:
    if not isinstance(content, (str, list)):
        content = "" if content is None else json.dumps(content, ensure_ascii=False)
    return {"type": "tool_result", "tool_use_id": str(call or ""), "content": content}


def _has_results(blocks: Iterable[Any]) -> bool:
    return any(isinstance(b, dict) and b.get("type") == "tool_result" for b in blocks)


def _only_results(last: Message, blocks: list[dict[str, Any]]) -> bool:
    both = [*last["content"], *blocks]
    return bool(both) and all(b.get("type") == "tool_result" for b in both)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
