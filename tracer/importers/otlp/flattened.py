"""Messages spread over indexed attributes: OpenInference's and Traceloop's way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .blocks import Conversation, add_openai
from .wire import nested


def messages(given: Mapping[str, Any], prefix: str) -> Conversation:
    """The messages under ``prefix`` (``llm.input_messages.``, ``gen_ai.prompt.``); a lowest index above 0 is a cut."""
    into = Conversation()
    rows = tree(given, prefix)
    if not isinstance(rows, list):
        return into
    into.cut = _begins_late(given, prefix)
    for row in rows:
        if isinstance(row, dict):
            inner = row.get("message")
            _add(into, inner if isinstance(inner, dict) else row)
    return into


def tools(given: Mapping[str, Any]) -> list[Any] | None:
    """Tool definitions of either dialect."""
    rows = tree(given, "llm.tools.")
    if isinstance(rows, list):
        found = [nested(_at(r, "tool", "json_schema")) for r in rows]
        return [f for f in found if f is not None] or None
    rows = tree(given, "llm.request.functions.")
    if isinstance(rows, list):
        return [{k: nested(v) for k, v in r.items()} for r in rows if isinstance(r, dict)] or None
    return None


def tree(given: Mapping[str, Any], prefix: str) -> Any:
    """What the attributes under a prefix spell out: dicts, and lists where the names are numbers."""
    root: dict[str, Any] = {}
    size = len(prefix)
    for key, value in given.items():
        if not key.startswith(prefix):
            continue
        node = root
        path = key[size:].split(".")
        for step in path[:-1]:
            below = node.get(step)
            if not isinstance(below, dict):
                below = node[step] = {}
            node = below
        node[path[-1]] = value
    return _listed(root) if root else None


def _listed(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if node and all(k.isdigit() and len(k) < 7 for k in node):
        return [_listed(node[k]) for k in sorted(node, key=int)]
    return {k: _listed(v) for k, v in node.items()}


def _begins_late(given: Mapping[str, Any], prefix: str) -> bool:
    numbers = [k[len(prefix) :].split(".", 1)[0] for k in given if k.startswith(prefix)]
    found = [int(n) for n in numbers if n.isdigit()]
    return bool(found) and min(found) > 0


def _add(into: Conversation, message: Mapping[str, Any]) -> None:
    calls = [_call(c) for c in message.get("tool_calls") or () if isinstance(c, dict)]
    parts = message.get("contents")
    content = [_content(p) for p in parts if isinstance(p, dict)] if isinstance(parts, list) else message.get("content")
    role = {"tool-call": "assistant", "tool-response": "user"}.get(str(message.get("role")), message.get("role"))
    add_openai(
        into, {**message, "role": role or ("assistant" if calls else "user"), "content": content, "tool_calls": calls}
    )


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    inner = call.get("tool_call")
    return dict(inner) if isinstance(inner, dict) else dict(call)


def _content(part: Mapping[str, Any]) -> dict[str, Any]:
    inner = part.get("message_content")
    inner = inner if isinstance(inner, dict) else {}
    kind = inner.get("type")
    if kind == "tool_use" or isinstance(part.get("tool_call"), dict):
        return {**_call(part), "type": "tool_use"}
    if kind in ("reasoning", "thinking"):
        return {"type": "thinking", "thinking": inner.get("text"), "signature": inner.get("signature")}
    return dict(inner)


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
