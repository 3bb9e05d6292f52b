"""OpenAI Chat Completions, also as Azure, OpenRouter, vLLM, Ollama and others serve it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .answer import (
    Answer,
    AnswerCall,
    RequestParts,
    SeenResult,
    call_of,
    cut_short,
    decoded,
    disjoint_usage,
    dumped,
    error_of,
    index_of,
    joined,
    mapping,
    objects,
    text_of,
)
from .chat_chunks import stream as stream

API = "openai.chat"
NAME = "openai"
LIST_KEY = "messages"

_PATH = re.compile(r"/chat/completions/?$")
_NOT_PARAMS = frozenset({"messages", "tools", "stream"})
_ENDS = {"stop": "completed", "length": "limit", "content_filter": "completed", "error": "failed"}


def recognise(path: str) -> bool:
    """True for POST paths of a chat completion, Azure deployments included."""
    return _PATH.search(path) is not None


def request(body: Mapping[str, Any]) -> RequestParts:
    """The parts of a chat request. System and developer messages stay in the list, where they were sent."""
    return RequestParts(
        model=text_of(body.get("model")),
        tools=body.get("tools"),
        params={k: v for k, v in body.items() if k not in _NOT_PARAMS},
        stream=bool(body.get("stream")),
    )


def results(message: Any) -> list[SeenResult]:
    """The result a tool message carries; this API has no error mark."""
    body = mapping(message)
    call = None
    if body.get("role") == "tool":
        call = text_of(body.get("tool_call_id"))
    elif body.get("role") == "function" and isinstance(body.get("name"), str):
        call = _legacy_id(body["name"])
    return [SeenResult(call, body.get("content"), False, "$.content")] if call else []


def is_prompt(message: Any) -> bool:
    """A message of the user."""
    return mapping(message).get("role") == "user"


def answer(body: Any) -> Answer:
    """A chat completion, whole or partial. The first choice counts; others stay in the body only."""
    body = mapping(body)
    failed = body.get("error") or body.get("stream_error") or (body if body.get("object") == "error" else None)
    error, error_type = error_of(failed)
    choices = objects(body.get("choices"))
    choice = next((c for c in choices if index_of(c) == 0), mapping(None))
    message = mapping(choice.get("message"))
    stop = text_of(choice.get("finish_reason"))
    calls = tuple(_calls(message, open_end=bool(choice) and stop is None and body.get("stream_cut") is True))
    end = _ENDS.get(stop or "")
    return Answer(
        id=text_of(body.get("id")),
        model=text_of(body.get("model")),
        stop_reason=stop,
        text=joined([*_texts(message.get("content")), text_of(message.get("refusal")) or ""]),
        thinking=text_of(message.get("reasoning_content")) or text_of(message.get("reasoning")) or None,
        calls=calls,
        usage=cut_short(disjoint_usage(body.get("usage"), "prompt", "completion"), body),
        error=error,
        error_type=error_type,
        end=None if calls and end == "completed" else end,
    )


def assemble(events: Sequence[tuple[str | None, str]]) -> tuple[Any, bool]:
    """Chunks into the completion they build; whole when every choice finished or [DONE] came.

    A cut stream is marked ``stream_cut``; an error inside it is kept as ``stream_error``.
    """
    body: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    done = False
    for _, data in events:
        done = done or data.strip() == "[DONE]"
        chunk = decoded(data)
        for part in objects(chunk.get("choices")):
            fresh = {"index": index_of(part), "message": {"role": "assistant", "content": None}, "finish_reason": None}
            _grow(choices.setdefault(index_of(part), fresh), part)
        _whole_completion(body, chunk)
    if not body and not choices:
        return None, False
    finished = bool(choices) and all(c["finish_reason"] is not None for c in choices.values())
    whole = (done or finished) and "stream_error" not in body
    body |= {"object": "chat.completion", "choices": [_closed(choices[i]) for i in sorted(choices)]}
    if not whole:
        body["stream_cut"] = True
    return body, whole


def _whole_completion(body: dict[str, Any], chunk: Mapping[str, Any]) -> None:
    """What a chunk says of the completion as a whole: the first word counts, but the last usage."""
    if chunk.get("error"):
        body["stream_error"] = chunk["error"]
    if isinstance(chunk.get("usage"), dict):
        body["usage"] = chunk["usage"]
    for key, value in chunk.items():
        if key not in ("choices", "usage", "error", "object") and value not in (None, ""):
            body.setdefault(key, value)


def _closed(choice: dict[str, Any]) -> dict[str, Any]:
    for call in objects(choice["message"].get("tool_calls")):
        call.pop("index", None)  # only streams have it
    return choice


def _grow(choice: dict[str, Any], part: Mapping[str, Any]) -> None:
    """One chunk's share of a choice: texts are appended, lists extended, other values replaced."""
    if part.get("finish_reason") is not None:
        choice["finish_reason"] = part["finish_reason"]
    for name, more in mapping(part.get("logprobs")).items():
        logprobs = choice.setdefault("logprobs", {})
        logprobs[name] = [*_list(logprobs.get(name)), *more] if isinstance(more, list) else more
    message = choice["message"]
    for key, value in mapping(part.get("delta")).items():
        if key == "tool_calls":
            for call in objects(value):
                _grow_call(message.setdefault("tool_calls", []), call)
        elif key == "function_call":
            _append(message.setdefault("function_call", {}), mapping(value))
        elif key == "role":
            message["role"] = value or message["role"]
        elif isinstance(value, list):
            message[key] = [*_list(message.get(key)), *value]
        else:
            _append(message, {key: value})


def _grow_call(calls: list[dict[str, Any]], part: Mapping[str, Any]) -> None:
    """A piece of a tool call to the call of its index. Some servers send no index, or 0 for every call."""
    index, call_id = part.get("index"), part.get("id")
    same = [c for c in calls if index is None or c.get("index") == index]
    call = same[-1] if same else None
    if call is None or (call_id and call.get("id") and call["id"] != call_id):
        call = {"index": index} if index is not None else {}
        calls.append(call)
    for key, value in part.items():
        if isinstance(value, dict):
            call[key] = dict(mapping(call.get(key)))
            _append(call[key], value)
        elif key != "index" and value is not None:
            call[key] = value


def _append(target: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        old = target.get(key)
        if isinstance(value, str) and isinstance(old, str):
            target[key] = old + value
        elif value is not None or key not in target:
            target[key] = value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _calls(message: Mapping[str, Any], *, open_end: bool) -> list[AnswerCall]:
    """Calls of a message; with ``open_end`` the stream was cut, so that its last call may be a piece."""
    calls = [_call(c) for c in objects(message.get("tool_calls"))]
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        name = text_of(legacy.get("name")) or ""
        calls.append(call_of(_legacy_id(name), name, _raw(legacy.get("arguments"))))
    if calls and open_end:
        calls[-1] = replace(calls[-1], state="incomplete")
    return calls


def _call(item: Mapping[str, Any]) -> AnswerCall:
    call_id = text_of(item.get("id")) or ""
    custom = item.get("custom")
    if isinstance(custom, dict):  # free text, no JSON: an object around it keeps one shape for arguments
        raw = dumped({"input": custom.get("input")})
        return call_of(call_id, text_of(custom.get("name")) or "", raw)
    function = mapping(item.get("function"))
    return call_of(call_id, text_of(function.get("name")) or "", _raw(function.get("arguments")))


def _raw(arguments: Any) -> str:
    """Arguments as text; some servers send the object itself."""
    return arguments if isinstance(arguments, str) else dumped(arguments)


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [text_of(p.get("text")) or text_of(p.get("refusal")) or "" for p in objects(content)]


def _legacy_id(name: str) -> str:
    """A function_call of old has no id; its name is what ties the result to it."""
    return f"function:{name}"
