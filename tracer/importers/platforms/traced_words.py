"""What tracing products keep of a model call, in whatever shape an integration gave it, as messages of one API.

Knows OpenAI and Anthropic bodies, plain texts, and LangChain's messages in their three serialised forms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...providers.answer import dumped, mapping, objects
from ..document import text
from ..wire import raw_shapes

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
_ROLES |= {"humanmessage": "user", "aimessage": "assistant", "systemmessage": "system", "toolmessage": "tool"}
_ROLES |= {
    "aimessagechunk": "assistant",
    "chatmessage": "user",
    "functionmessage": "function",
    "developer": "developer",
}
_ROLES |= {"humanmessagechunk": "user", "toolmessagechunk": "tool", "user": "user", "assistant": "assistant"}
_CALL_BLOCKS = ("tool_use", "tool_call", "input_json_delta")


@dataclass(frozen=True, slots=True)
class Words:
    """Messages of a request and the response body, in the shape of ``api``."""

    api: str
    messages: tuple[Any, ...]
    system: Any = None
    tools: Any = None
    params: Mapping[str, Any] | None = None
    response: dict[str, Any] | None = None


def words(given: Any, answered: Any) -> Words:
    """Input and output of a model call. ``answered`` None: there was no answer."""
    body = _request(decoded(given))
    message = _answer(decoded(answered))
    whole = message if message is not None and _is_body(message) else None
    said = [] if message is None or whole is not None else [message]
    talk = raw_shapes.talk({**body, "messages": [*body["messages"], *said]}, whole)
    messages = talk.messages[: len(talk.messages) - len(said)]
    response = whole
    if said:
        response = raw_shapes.response_of(talk.api, said)
    parts = talk.parts
    return Words(
        talk.api,
        tuple(messages),
        system=parts.system if parts else None,
        tools=parts.tools if parts else None,
        params=dict(parts.params) if parts and parts.params else None,
        response=response,
    )


def message_of(value: Any) -> dict[str, Any] | None:
    """A message of any form as role and content; None when it is none."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value):
        value = {"role": value[0], "content": value[1]}
    if not isinstance(value, dict):
        return None
    kind = text(value.get("type"))
    named = value.get("id")
    if kind == "constructor" and isinstance(named, list) and named:
        return _from_langchain(str(named[-1]), mapping(value.get("kwargs")))
    if isinstance(value.get("data"), dict) and kind:
        return _from_langchain(kind, value["data"])
    if isinstance(value.get("role"), str):
        return _from_langchain(value["role"], value) if _has_langchain_calls(value) else value
    if kind and kind.lower() in _ROLES and "content" in value:
        return _from_langchain(kind, value)
    return None


def decoded(value: Any) -> Any:
    """JSON that was stored as text; other texts stay."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _request(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        return {"messages": [{"role": "user", "content": given}] if given else []}
    if isinstance(given, list):
        return {"messages": _messages(given)}
    body = mapping(given)
    if message_of(body):
        return {"messages": _messages([body])}
    found = body.get("messages", body.get("input", body.get("prompts")))
    listed = _messages(found) if isinstance(found, list) else _request(found)["messages"] if found else []
    known = {k: body[k] for k in ("system", "tools", "model") if body.get(k)}
    return {**known, "messages": listed}


def _messages(values: list[Any]) -> list[Any]:
    if len(values) == 1 and isinstance(values[0], list) and message_of(values[0]) is None:
        values = values[0]  # LangChain's batches: one list for each prompt
    found = []
    for value in values:
        message = message_of(value)
        if message is not None:
            found.append(message)
        elif isinstance(value, str):
            found.append({"role": "user", "content": value})
        elif isinstance(value, dict):
            found.append(value)
    return found


def _answer(answered: Any) -> dict[str, Any] | None:
    """The response body, or the message that it holds."""
    if answered is None or answered in ("", [], {}):
        return None
    if isinstance(answered, str):
        return {"role": "assistant", "content": answered}
    if isinstance(answered, list):
        found = [m for m in map(message_of, answered) if m] if message_of(answered) is None else [message_of(answered)]
        return next((m for m in reversed(found) if m and m.get("role") == "assistant"), None)
    body = mapping(answered)
    if _is_body(body):
        return body
    message = message_of(body)
    if message is not None:
        return {**message, "role": "assistant"}
    for key in ("generations", "messages", "message", "output", "content"):
        inner = body.get(key)
        if key == "generations":
            while isinstance(inner, list) and inner:
                inner = inner[0]
            inner = mapping(inner).get("message") or mapping(inner).get("text")
        if inner:
            return _answer(decoded(inner))
    return {"role": "assistant", "content": dumped(body)} if body else None


def _is_body(body: Mapping[str, Any]) -> bool:
    choices = objects(body.get("choices"))
    if choices and isinstance(choices[0].get("message"), dict):
        return True
    if body.get("type") == "message" and body.get("role") == "assistant" and isinstance(body.get("content"), list):
        return True
    return body.get("object") == "response" and isinstance(body.get("output"), list)


def _has_langchain_calls(value: Mapping[str, Any]) -> bool:
    calls = objects(value.get("tool_calls"))
    blocks = objects(value.get("content"))
    return any("args" in c for c in calls) or any(b.get("type") == "tool_call" for b in blocks)


def _from_langchain(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """One of LangChain's messages as OpenAI's chat has them: its calls stand beside the content there, too."""
    role = _ROLES.get(kind.lower(), kind if kind in raw_shapes.ROLES else "user")
    content = data.get("content")
    blocks = objects(content)
    calls = [*objects(data.get("tool_calls")), *(b for b in blocks if b.get("type") == "tool_call")]
    if isinstance(content, list):
        content = [b for b in content if not (isinstance(b, dict) and b.get("type") in _CALL_BLOCKS)]
    message: dict[str, Any] = {"role": role, "content": content}
    if calls:
        message["tool_calls"] = [_call(c) for c in calls]
    elif objects(mapping(data.get("additional_kwargs")).get("tool_calls")):
        message["tool_calls"] = data["additional_kwargs"]["tool_calls"]
    for name in ("name", "tool_call_id"):
        if text(data.get(name)):
            message[name] = data[name]
    return message


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(call.get("function"), dict):
        return dict(call)
    arguments = call.get("args")
    raw = arguments if isinstance(arguments, str) else dumped(arguments if arguments is not None else {})
    return {"id": call.get("id"), "type": "function", "function": {"name": call.get("name"), "arguments": raw}}


__all__ = ["Words", "decoded", "message_of", "words"]
