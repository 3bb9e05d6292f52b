"""OpenAI Responses: requests, response objects and what their items mean (streams: see the module beside)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..model import CallState
from .answer import (
    Answer,
    AnswerCall,
    RequestParts,
    SeenResult,
    call_of,
    cut_short,
    disjoint_usage,
    dumped,
    error_of,
    joined,
    mapping,
    objects,
    text_of,
)
from .responses_events import stream as stream
from .responses_stream import assemble

API = "openai.responses"
NAME = "openai"
LIST_KEY = "input"

_PATH = re.compile(r"/responses/?$")
_NOT_PARAMS = frozenset({"input", "instructions", "tools", "stream", "previous_response_id"})
_ENDS = {
    "completed": "completed",
    "incomplete:max_output_tokens": "limit",
    "incomplete:content_filter": "completed",
    "failed": "failed",
    "cancelled": "failed",
}
_PENDING = ("queued", "in_progress")

# Items that ask the client to do something, with the key of what is asked.
_OURS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "tool_search_call": "arguments",
}
# Steps that the provider ran itself: the keys of what was asked and of what came back.
_THEIRS = {
    "web_search_call": ("action", "results"),
    "file_search_call": ("queries", "results"),
    "code_interpreter_call": ("code", "outputs"),
    "image_generation_call": ("revised_prompt", "status"),
    "mcp_call": ("arguments", "output"),
}


def recognise(path: str) -> bool:
    """True for POST paths that create a response; cancel and compact are none."""
    return _PATH.search(path) is not None


def request(body: Mapping[str, Any]) -> RequestParts:
    """The parts of a Responses request; `previous_response_id` or a conversation hold the history."""
    previous = text_of(body.get("previous_response_id"))
    mode = "previous_response" if previous else "thread" if body.get("conversation") else "full"
    return RequestParts(
        model=text_of(body.get("model")),
        system=body.get("instructions"),
        tools=body.get("tools"),
        params={k: v for k, v in body.items() if k not in _NOT_PARAMS},
        stream=bool(body.get("stream")),
        mode=mode,
        previous=previous,
    )


def results(message: Any) -> list[SeenResult]:
    """The result that a ``..._output`` item carries; only some kinds can say that they failed."""
    item = mapping(message)
    kind, call = text_of(item.get("type")) or "", text_of(item.get("call_id"))
    if call is None or not kind.endswith("_output"):
        return []
    return [SeenResult(call, item.get("output"), item.get("status") == "failed", "$.output")]


def is_prompt(message: Any) -> bool:
    """A plain string or a message of the user."""
    return isinstance(message, str) or mapping(message).get("role") == "user"


def answer(body: Any) -> Answer:
    """A response object, whole or partial. Statuses that end nothing (queued, in_progress) are no stop reason."""
    body = mapping(body)
    error, error_type = error_of(body.get("error") or body.get("stream_error"))
    items = objects(body.get("output"))
    calls = _calls(items)
    waits = any(not c.provider_side for c in calls) or any(i.get("type") == "mcp_approval_request" for i in items)
    stop = _stop_reason(body)
    end = _ENDS.get(stop or "")
    return Answer(
        id=text_of(body.get("id")),
        model=text_of(body.get("model")),
        stop_reason=stop,
        text=joined(_texts(items, "message", "content")),
        thinking=joined(_texts(items, "reasoning", "summary") or _texts(items, "reasoning", "content")),
        calls=calls,
        usage=cut_short(disjoint_usage(body.get("usage"), "input", "output"), body),
        error=error,
        error_type=error_type,
        end=None if waits and end == "completed" else end,
    )


def _texts(items: list[dict[str, Any]], kind: str, key: str) -> list[str]:
    parts = [p for item in items if item.get("type") == kind for p in objects(item.get(key))]
    return [text_of(p.get("text")) or text_of(p.get("refusal")) or "" for p in parts]


def _calls(items: list[dict[str, Any]]) -> tuple[AnswerCall, ...]:
    """The calls among output items. One whose output stands beside it was run by the provider (a hosted shell)."""
    outputs = {seen.call: seen for item in items for seen in results(item)}
    calls = []
    for item in items:
        kind = text_of(item.get("type")) or ""
        if kind in _OURS:
            calls.append(_asked(kind, item, outputs.get(text_of(item.get("call_id")) or "")))
        elif kind in _THEIRS:
            calls.append(_ran(kind, item))
    return tuple(calls)


def _asked(kind: str, item: Mapping[str, Any], output: SeenResult | None) -> AnswerCall:
    served = output is not None or item.get("execution") == "server"
    return call_of(
        text_of(item.get("call_id")) or text_of(item.get("id")) or "",
        _name(kind, item),
        _raw(_OURS[kind], item),
        state=_state(item),
        provider_side=served,
        result=output.content if output else None,
        is_error=output.is_error if output else None,
    )


def _ran(kind: str, item: Mapping[str, Any]) -> AnswerCall:
    asked, got = _THEIRS[kind]
    return call_of(
        text_of(item.get("id")) or "",
        _name(kind, item),
        _raw(asked, item),
        state=_state(item),
        provider_side=True,
        result=item.get(got),
        is_error=item.get("status") == "failed" or item.get("error") is not None,
    )


def _name(kind: str, item: Mapping[str, Any]) -> str:
    return text_of(item.get("name")) or kind.removesuffix("_call")


def _state(item: Mapping[str, Any]) -> CallState | None:
    return "incomplete" if item.get("status") in ("in_progress", "incomplete") else None


def _stop_reason(body: Mapping[str, Any]) -> str | None:
    status = text_of(body.get("status"))
    if status is None or status in _PENDING:
        return None
    reason = text_of(mapping(body.get("incomplete_details")).get("reason"))
    return f"{status}:{reason}" if status == "incomplete" and reason else status


def _raw(key: str, item: Mapping[str, Any]) -> str:
    """Arguments as the model wrote them; free text and lists get an object around, so that all have one shape."""
    value = item.get(key)
    if key == "arguments":
        return value if isinstance(value, str) else dumped(value)
    return dumped(value if isinstance(value, dict) else {key: value})


__all__ = ["API", "LIST_KEY", "NAME", "answer", "assemble", "is_prompt", "recognise", "request", "results", "stream"]
