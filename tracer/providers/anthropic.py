"""Anthropic Messages: also behind Vertex raw-predict paths, and the shape of Claude Code sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..model import Usage
from .answer import (
    Answer,
    AnswerCall,
    RequestParts,
    SeenResult,
    call_of,
    count,
    cut_short,
    decoded,
    dumped,
    error_of,
    index_of,
    joined,
    mapping,
    objects,
    text_of,
)
from .anthropic_events import stream as stream

API = "anthropic.messages"
NAME = "anthropic"
LIST_KEY = "messages"

_PATH = re.compile(r"/v1/messages$|/publishers/anthropic/models/[^/]+:(?:rawPredict|streamRawPredict)$")
_NOT_PARAMS = frozenset({"messages", "system", "tools", "stream", "thread", "previous_message_id"})
_ENDS = {
    "end_turn": "completed",
    "stop_sequence": "completed",
    "max_tokens": "limit",
    "model_context_window_exceeded": "limit",
    "refusal": "completed",
}
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_TEXT_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def recognise(path: str) -> bool:
    """True for POST paths of a Messages call; count_tokens and batches are none."""
    return _PATH.search(path) is not None


def request(body: Mapping[str, Any]) -> RequestParts:
    """The parts of a Messages request; a server-held thread names what it continues."""
    thread = body.get("thread")
    previous = body.get("previous_message_id")
    if isinstance(thread, dict):
        previous = thread.get("previous_message_id") or previous
    params = {k: v for k, v in body.items() if k not in _NOT_PARAMS}
    if isinstance(thread, dict):
        params["thread"] = {k: v for k, v in thread.items() if k != "previous_message_id"}
    return RequestParts(
        model=text_of(body.get("model")),
        system=body.get("system"),
        tools=body.get("tools"),
        params=params,
        stream=bool(body.get("stream")),
        mode="thread" if previous else "full",
        previous=text_of(previous),
    )


def results(message: Any) -> list[SeenResult]:
    """tool_result blocks of a user message."""
    content = mapping(message).get("content")
    found = []
    for index, block in enumerate(content if isinstance(content, list) else []):
        call = text_of(mapping(block).get("tool_use_id"))
        if call is not None and block.get("type") == "tool_result":
            path = f"$.content[{index}].content"
            found.append(SeenResult(call, block.get("content"), block.get("is_error") is True, path))
    return found


def is_prompt(message: Any) -> bool:
    """A user message that holds more than tool results."""
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    if isinstance(message.get("content"), str):
        return True
    return any(b.get("type") != "tool_result" for b in _blocks(message))


def answer(body: Any) -> Answer:
    """A Message object, whole or partial; ``{"type": "error"}`` bodies and cut streams give an error."""
    body = mapping(body)
    error, error_type = error_of(body.get("error") or body.get("stream_error"))
    blocks = _blocks(body)
    stop = text_of(body.get("stop_reason"))
    said: dict[str, list[str]] = {"text": [], "thinking": []}
    calls = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text" or kind == "thinking":
            said[kind].append(text_of(block.get(kind)) or "")
        elif kind in _CALLS:
            calls.append(_call(block, blocks))
    return Answer(
        id=text_of(body.get("id")),
        model=text_of(body.get("model")),
        stop_reason=stop,
        text=joined(said["text"]),
        thinking=joined(said["thinking"]),
        calls=tuple(calls),
        usage=cut_short(usage(body.get("usage")), body),
        error=error,
        error_type=error_type,
        request_id=text_of(body.get("stream_error_request_id")) or text_of(body.get("request_id")),
        end=_ENDS.get(stop or ""),
    )


def usage(raw: Any) -> Usage:
    """Anthropic usage: three disjoint input fields; cache writes split by lifetime where told."""
    if not isinstance(raw, dict):
        return Usage()
    split = mapping(raw.get("cache_creation"))
    five = count(split.get("ephemeral_5m_input_tokens"))
    hour = count(split.get("ephemeral_1h_input_tokens"))
    writes = count(raw.get("cache_creation_input_tokens"))
    if writes is not None:  # the split may be missing, or older than the cumulative sum; 5 minutes is the default
        five = max(five or 0, writes - (hour or 0))
    return Usage(
        input=count(raw.get("input_tokens")),
        cache_read=count(raw.get("cache_read_input_tokens")),
        cache_write_5m=five,
        cache_write_1h=hour,
        output=count(raw.get("output_tokens")),
        reasoning=count(mapping(raw.get("output_tokens_details")).get("thinking_tokens")),
        origin="recorded",
        raw=raw,
    )


def assemble(events: Sequence[tuple[str | None, str]]) -> tuple[Any, bool]:
    """SSE events into the Message they build; usage fields of message_delta replace (they are cumulative).

    A cut stream keeps what came: a block that never stopped is marked ``incomplete``, its unfinished tool
    input is the text in ``partial_json``, an error event is ``stream_error`` (``stream_error_request_id``),
    and without a stop reason the message is marked ``stream_cut``, since its usage is not final.
    """
    message: dict[str, Any] = {}
    blocks: dict[int, _Block] = {}
    whole = False
    for _, data in events:
        event = decoded(data)
        kind = event.get("type")
        if kind == "message_start":
            message = dict(mapping(event.get("message")))
        elif kind == "content_block_start":
            blocks[index_of(event)] = _Block(dict(mapping(event.get("content_block"))))
        elif kind == "content_block_delta":
            blocks.setdefault(index_of(event), _Block({})).grow(mapping(event.get("delta")))
        elif kind == "content_block_stop" and index_of(event) in blocks:
            blocks[index_of(event)].open = False
        else:
            _whole_message(message, event)
            whole = whole or kind == "message_stop"
    if message or blocks:
        message["content"] = [blocks[i].close() for i in sorted(blocks)]
        if not whole and message.get("stop_reason") is None:
            message["stream_cut"] = True
    return message or None, whole


def _whole_message(message: dict[str, Any], event: Mapping[str, Any]) -> None:
    """Events that concern the message as a whole, not one block."""
    if event.get("type") == "message_delta":
        message.update(mapping(event.get("delta")))
        told = {k: v for k, v in mapping(event.get("usage")).items() if v is not None}
        if told:
            message["usage"] = {**mapping(message.get("usage")), **told}
        if event.get("context_management") is not None:
            message["context_management"] = event["context_management"]
    elif event.get("type") == "error":
        message["stream_error"] = event.get("error")
        message["stream_error_request_id"] = event.get("request_id")


@dataclass(slots=True)
class _Block:
    """A content block while its deltas arrive; ``raw`` is the tool input so far."""

    value: dict[str, Any]
    raw: str = ""
    open: bool = True

    def grow(self, delta: Mapping[str, Any]) -> None:
        kind = text_of(delta.get("type")) or ""
        if kind in _TEXT_DELTAS:
            key = _TEXT_DELTAS[kind]
            self.value[key] = (text_of(self.value.get(key)) or "") + (text_of(delta.get(key)) or "")
        elif kind == "input_json_delta":
            self.raw += text_of(delta.get("partial_json")) or ""
        elif kind == "citations_delta":
            self._add("citations", delta.get("citation"))
        elif kind == "compaction_delta":
            self.value.update({k: v for k, v in delta.items() if k != "type"})
        else:
            self._add("unknown_deltas", dict(delta))

    def _add(self, key: str, value: Any) -> None:
        old = self.value.get(key)
        self.value[key] = [*(old if isinstance(old, list) else []), value]

    def close(self) -> dict[str, Any]:
        """The block as the plain answer would have it, as far as it came."""
        if self.open:
            self.value["incomplete"] = True
        if self.raw and self.open:
            self.value["partial_json"] = self.raw
        elif self.raw:
            try:
                self.value["input"] = json.loads(self.raw)
            except (ValueError, RecursionError):
                self.value["partial_json"] = self.raw
        return self.value


def _call(block: Mapping[str, Any], blocks: list[dict[str, Any]]) -> AnswerCall:
    """A call; steps that the provider ran have their result in another block of the same answer."""
    raw = text_of(block.get("partial_json"))
    served = block.get("type") != "tool_use"
    told = [b for b in blocks if b.get("tool_use_id") == block["id"]] if served and block.get("id") else []
    text = dumped(block.get("input")) if raw is None else raw
    # an object that was just written need not be read again
    sure = raw is None and isinstance(block.get("input"), dict) and text.startswith("{")
    return (AnswerCall if sure else call_of)(
        text_of(block.get("id")) or "",
        text_of(block.get("name")) or "",
        text,
        provider_side=served,
        state="incomplete" if block.get("incomplete") is True else None,
        result=told[-1].get("content") if told else None,
        is_error=told[-1].get("is_error") is True or _is_error(told[-1].get("content")) if told else None,
    )


def _is_error(content: Any) -> bool:
    return isinstance(content, dict) and str(content.get("type", "")).endswith("_error")


def _blocks(message: Any) -> list[dict[str, Any]]:
    content = mapping(message).get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
