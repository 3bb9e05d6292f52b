"""LangChain's own serialised messages inside OpenInference spans: with call ids, thinking and signatures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .blocks import Conversation, add_openai
from .wire import nested

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "system": "system", "tool": "tool"}


def recognised(body: Any) -> bool:
    """True for the input of a LangChain chat model."""
    rows = body.get("messages") if isinstance(body, dict) else None
    if isinstance(rows, list) and rows and isinstance(rows[0], list):
        rows = rows[0]
    return isinstance(rows, list) and bool(rows) and isinstance(rows[0], dict) and "lc" in rows[0]


def messages(body: Mapping[str, Any]) -> Conversation:
    """The request."""
    into = Conversation()
    rows = body["messages"][0] if isinstance(body["messages"][0], list) else body["messages"]
    for row in rows:
        _add(into, row)
    return into


def answer(body: Any) -> Conversation | None:
    """The first generation, None when there is none."""
    rows = body.get("generations") if isinstance(body, dict) else None
    while isinstance(rows, list) and rows:
        rows = rows[0]
    message = rows.get("message") if isinstance(rows, dict) else None
    if not isinstance(message, dict):
        return None
    into = Conversation()
    _add(into, message)
    return into if into.messages else None


def tool_output(value: Any) -> tuple[Any, str | None, bool | None]:
    """Result, call id and failure of a tool's output; LangChain wraps all three in a tool message."""
    body = nested(value)
    data = body.get("data", body.get("kwargs", body)) if isinstance(body, dict) else None
    if not isinstance(data, dict) or "content" not in data or "tool_call_id" not in data:
        return value, None, None
    status = data.get("status")
    call = data["tool_call_id"]
    return data["content"], call if isinstance(call, str) else None, None if status is None else status == "error"


def _add(into: Conversation, row: Any) -> None:
    fields = row.get("kwargs", row.get("data")) if isinstance(row, dict) else None
    if not isinstance(fields, dict):
        return
    role = _ROLES.get(str(fields.get("type")), "user")
    calls = fields.get("tool_calls")
    content = fields.get("content")
    if isinstance(content, list):  # the model's blocks; LangChain adds an index and a caller to them
        content = [_block(b) for b in content]
    add_openai(
        into,
        {
            "role": role,
            "content": content,
            "tool_call_id": fields.get("tool_call_id"),
            "tool_calls": calls if isinstance(calls, list) else [],
        },
    )


def _block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    return {k: v for k, v in block.items() if k != "index" and v is not None}
