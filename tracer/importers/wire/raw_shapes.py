"""Which API a message list, a request or a response is of: everything in one shape, `Talk`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...model import Usage
from ...providers import RequestParts, anthropic, by_api, openai_chat, openai_responses
from ...providers.answer import mapping, objects, text_of
from . import converse

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
# documents of other formats that hold a list called messages too
_FOREIGN = frozenset(
    {"info", "trajectory", "trajectory_format", "sessionId", "session_id", "samples", "steps", "history"}
)
_FOREIGN |= {"schema_version", "traj", "eval", "resourceSpans", "kind", "uuid", "projectHash"}
_ITEMS = ("_call", "_call_output")
_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})
_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file", "refusal"})
_CONVERSE = frozenset({"toolConfig", "inferenceConfig", "modelId"})


@dataclass(frozen=True, slots=True)
class Talk:
    """Messages that went to a model together, with what came back when that is known.

    Attributes:
        provider: None when messages alone do not tell.
        parts: None when there is no request around the messages.
        response: The body in the api's shape. ``usage`` goes with it where the shape's reader cannot tell.
    """

    api: str
    provider: str | None
    messages: list[Any]
    parts: RequestParts | None = None
    response: dict[str, Any] | None = None
    usage: Usage | None = None


def is_message(value: Any) -> bool:
    """A message of a list: a role and what was said, or an item of a Responses list."""
    if not isinstance(value, dict):
        return False
    role = value.get("role")
    if isinstance(role, str) and role in ROLES:
        known = isinstance(value.get("content"), (str, list)) or "tool_calls" in value or "function_call" in value
        return known or (role == "assistant" and "content" in value)
    return _is_item(value)


def is_plain(value: Mapping[str, Any]) -> bool:
    """True when nothing about a message says that it belongs to some other format."""
    return _FOREIGN.isdisjoint(value)


def is_entry(value: Any) -> bool:
    """True for a request, a response or a pair of both."""
    if not isinstance(value, dict) or not _FOREIGN.isdisjoint(value):
        return False
    if "request" in value and "response" in value:
        return _is_request(_decoded(value["request"]))
    return _is_request(value) or _is_response(value)


def talk_of(value: Mapping[str, Any]) -> Talk:
    """The talk of an entry (`is_entry`)."""
    if "request" in value and "response" in value and not _is_request(value):
        return talk(mapping(_decoded(value["request"])), _decoded(value["response"]))
    if _is_request(value):
        return talk(value, None)
    return talk({"input": value["input"]} if "input" in value else {}, value)


def talk(body: Mapping[str, Any], answer: Any, api: str | None = None, model: str | None = None) -> Talk:
    """A request body and a response body; without ``api`` their shapes tell which one it is."""
    answer = answer if isinstance(answer, dict) else None
    bedrock = api == "bedrock.converse" or (api is None and _is_converse(body, answer))
    if bedrock:
        return Talk(
            anthropic.API,
            converse.PROVIDER,
            [converse.message(m) for m in _listed(body.get("messages"))],
            converse.request(body, model) if body else None,
            None if answer is None else _converse_response(answer, model),
            None if answer is None else converse.usage(answer),
        )
    api = api or _api_of_response(answer) or _api(_list_of(body), body)
    provider = by_api(api or openai_chat.API)
    parts = provider.request(body) if body else None
    # a list of plain texts is the same in two APIs: whose it is stays open
    return Talk(provider.API, provider.NAME if api else None, _list_of(body), parts, answer)


def bare(messages: list[Any]) -> Talk:
    """A message list without anything around it."""
    found = talk({"messages": messages}, None)
    return Talk(found.api, found.provider, found.messages)


def answers(api: str, response: Mapping[str, Any]) -> list[Any]:
    """The response as the messages that a client sends back with its next request."""
    if api == openai_responses.API:
        return objects(response.get("output"))
    if api == openai_chat.API:
        choices = objects(response.get("choices"))
        return [c["message"] for c in choices[:1] if isinstance(c.get("message"), dict)]
    return [{"role": "assistant", "content": response["content"]}] if isinstance(response.get("content"), list) else []


def is_answer(api: str, message: Any) -> bool:
    """True for what the model said in a message list."""
    body = mapping(message)
    if "role" in body or api != openai_responses.API:
        return body.get("role") == "assistant"
    kind = text_of(body.get("type")) or ""
    return kind == "reasoning" or kind.endswith("_call")


def response_of(api: str, said: list[Any]) -> dict[str, Any]:
    """Messages of the model as the response body that they came in, as far as they tell."""
    if api == openai_responses.API:
        return {"output": said}
    if api == openai_chat.API:
        return {"choices": [{"index": 0, "message": said[0]}]}
    return dict(said[0])


def _is_item(value: Mapping[str, Any]) -> bool:
    kind = text_of(value.get("type")) or ""
    if kind.endswith(_ITEMS):
        return isinstance(value.get("call_id") or value.get("id"), str)
    return kind == "reasoning" and ("summary" in value or "encrypted_content" in value)


def _is_request(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    messages, given = value.get("messages"), value.get("input")
    if isinstance(messages, list):
        return bool(messages) and is_message(messages[0])
    if not {"model", "instructions", "previous_response_id", "tools"} & value.keys() or "output" in value:
        return False
    return isinstance(given, str) or (isinstance(given, list) and bool(given) and is_message(given[0]))


def _is_response(value: Mapping[str, Any]) -> bool:
    if _api_of_response(value) is not None or _is_converse({}, value):
        return True
    items = value.get("output")  # an input and output list without anything around them
    return isinstance(items, list) and bool(items) and is_message(items[0])


def _api_of_response(body: Mapping[str, Any] | None) -> str | None:
    if body is None:
        return None
    if isinstance(body.get("choices"), list) and any("message" in c for c in objects(body["choices"])):
        return openai_chat.API
    if body.get("type") == "message" and body.get("role") == "assistant" and isinstance(body.get("content"), list):
        return anthropic.API
    items = body.get("output")
    if isinstance(items, list) and (body.get("object") == "response" or any(map(is_message, items[:1]))):
        return openai_responses.API
    return None


def _is_converse(body: Mapping[str, Any], answer: Mapping[str, Any] | None) -> bool:
    if answer is not None and isinstance(mapping(answer.get("output")).get("message"), dict):
        return True
    if not _CONVERSE.isdisjoint(body):
        return True
    blocks = [b for m in objects(body.get("messages")) for b in _listed(m.get("content"))]
    return bool(blocks) and all(converse.is_block(b) for b in blocks)


def _converse_response(answer: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    if isinstance(answer.get("output"), dict):
        return converse.response(answer, model)
    return {"type": "error", "error": {"type": text_of(answer.get("__type")), "message": answer.get("message")}}


def _api(messages: list[Any], body: Mapping[str, Any]) -> str | None:
    """The API whose dialect a message list speaks, None when it could be more than one."""
    if "input" in body or "instructions" in body or any(_is_item(m) for m in objects(messages)):
        return openai_responses.API
    kinds = {k for m in objects(messages) for b in objects(m.get("content")) if (k := text_of(b.get("type")))}
    if kinds & _BLOCKS or "system" in body or any("input_schema" in t for t in objects(body.get("tools"))):
        return anthropic.API
    if any(m.get("role") not in ("user", "assistant") or "tool_calls" in m for m in objects(messages)):
        return openai_chat.API
    if kinds & _PARTS:
        return openai_responses.API
    told = (text_of(body.get("model")) or "").rpartition("/")[2]
    if told.startswith("claude"):
        return anthropic.API
    return openai_chat.API if "image_url" in kinds or any("function" in t for t in objects(body.get("tools"))) else None


def _list_of(body: Mapping[str, Any]) -> list[Any]:
    given = body.get("input", body.get("messages"))
    return [{"role": "user", "content": given}] if isinstance(given, str) else _listed(given)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _decoded(value: Any) -> Any:
    """A body that was logged as text."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value
