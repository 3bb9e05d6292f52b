"""A chat completion as the chunks of a stream: what `openai_chat.assemble` puts together, taken apart again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .answer import index_of, mapping, objects
from .sse import event, pieces

_MARKS = frozenset({"stream_cut", "stream_error", "choices", "usage", "object"})
_TEXTS = ("reasoning_content", "reasoning", "content", "refusal")
_CALL_TEXTS = {"function": "arguments", "custom": "input"}


def stream(body: Mapping[str, Any], request: Any = None) -> list[bytes]:
    """The chunks of a completion, one an item; its usage only when the request asks for it, as in the real API."""
    base = {k: v for k, v in body.items() if k not in _MARKS} | {"object": "chat.completion.chunk"}
    told = mapping(mapping(request).get("stream_options")).get("include_usage") is True
    chunks: list[dict[str, Any]] = []
    for choice in objects(body.get("choices")):
        chunks += ({**base, "choices": [part]} for part in _parts(choice))
    events = [event(chunk) for chunk in chunks]
    if body.get("stream_error"):
        return [*events, event({"error": body["stream_error"]})]
    if body.get("stream_cut"):
        return events
    if told and isinstance(body.get("usage"), dict):
        events.append(event({**base, "choices": [], "usage": body["usage"]}))
    return [*events, event("[DONE]")]


def _parts(choice: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    index, logprobs = index_of(choice), choice.get("logprobs")
    for delta in _deltas(mapping(choice.get("message"))):
        yield {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": None}
        logprobs = None
    if choice.get("finish_reason") is not None:
        yield {"index": index, "delta": {}, "logprobs": None, "finish_reason": choice["finish_reason"]}


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    streamed = ("tool_calls", "function_call", *_TEXTS)
    rest = {k: v for k, v in message.items() if k not in streamed}
    texts = {k: "" if isinstance(message[k], str) else message[k] for k in _TEXTS if k in message}
    yield {"role": "assistant", **rest, **texts}
    for key in _TEXTS:
        for piece in pieces(message.get(key)):
            yield {key: piece}
    for position, call in enumerate(objects(message.get("tool_calls"))):
        yield from _call(position, call)
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        yield {"function_call": {**legacy, "arguments": ""}}
        for piece in pieces(legacy.get("arguments")):
            yield {"function_call": {"arguments": piece}}


def _call(position: int, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind = "custom" if isinstance(call.get("custom"), dict) else "function"
    key, inner = _CALL_TEXTS[kind], mapping(call.get(kind))
    yield {"tool_calls": [{"index": position, **call, kind: {**inner, key: ""}}]}
    for piece in pieces(inner.get(key)):
        yield {"tool_calls": [{"index": position, kind: {key: piece}}]}
