"""A model that follows a script: real SDK clients whose transport answers from a list. No network, no key.

A loop that uses `client(...)` needs one change to talk to a real model: `anthropic.Anthropic()` in its place.
"""

from __future__ import annotations

import importlib
import json
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import anthropic

from ..tracer import clock

Block = dict[str, Any]
Event = tuple[str, dict[str, Any]]

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_PIECE = 36
"""Characters of text in one event of a stream."""
_TOOL_PROMPT = 346
"""Tokens that the API adds when tools are offered."""
_CALL = 38
"""Tokens of a tool call beside its arguments."""
_LEAST_CACHED = 1024
"""Tokens below which the API caches nothing."""


@dataclass(frozen=True)
class Reply:
    """A message of the model. ``seconds`` go by before it is there (before its first event, if it streams)."""

    blocks: tuple[Block, ...]
    seconds: float
    stop: str


@dataclass(frozen=True)
class Refusal:
    """An answer of the API instead of a message. ``retry_after``: seconds that the client is asked to wait."""

    status: int
    kind: str
    message: str
    retry_after: int | None = None
    seconds: float = 0.2


def reply(*blocks: Block | str, seconds: float = 1.6, stop: str | None = None) -> Reply:
    """A message made of texts, `thinking(...)` and `call(...)`; its stop reason follows from them unless given."""
    made = tuple({"type": "text", "text": b} if isinstance(b, str) else b for b in blocks)
    called = any(b["type"] == "tool_use" for b in made)
    return Reply(made, seconds, stop or ("tool_use" if called else "end_turn"))


def call(tool: str, /, **arguments: Any) -> Block:
    """A tool_use block."""
    return {"type": "tool_use", "name": tool, "input": arguments}


def call_raw(tool: str, arguments: str) -> Block:
    """A tool_use block whose arguments are sent as this very text. Streams only: there they need not be JSON."""
    return {"type": "tool_use", "name": tool, "input": {}, "raw": arguments}


def thinking(text: str) -> Block:
    """A thinking block with a signature (invented, but as long and as opaque as a real one)."""
    seal = b"".join(blake2b(f"{i}{text}".encode()).digest() for i in range(3))
    return {"type": "thinking", "thinking": text, "signature": b64encode(seal).decode()}


def refusal(status: int, kind: str, message: str, *, retry_after: int | None = None) -> Refusal:
    """An error of the API: 429 ``rate_limit_error``, 529 ``overloaded_error``, 400 ``invalid_request_error``."""
    return Refusal(status, kind, message, retry_after)


def client(*script: Reply | Refusal) -> anthropic.Anthropic:
    """A client that gets these answers, one after another."""
    library = _library(anthropic.DefaultHttpxClient)
    transport = library.MockTransport(_Model(script, library).respond)
    http = anthropic.DefaultHttpxClient(transport=transport)
    return anthropic.Anthropic(api_key="none", base_url="https://api.anthropic.com", http_client=http)


def async_client(*script: Reply | Refusal) -> anthropic.AsyncAnthropic:
    """The same for async code."""
    library = _library(anthropic.DefaultAsyncHttpxClient)
    transport = library.MockTransport(_Model(script, library).respond)
    http = anthropic.DefaultAsyncHttpxClient(transport=transport)
    return anthropic.AsyncAnthropic(api_key="none", base_url="https://api.anthropic.com", http_client=http)


def _library(base: type) -> Any:
    """httpx2 or httpx, whichever the installed SDK is built on."""
    roots = [c.__module__.partition(".")[0] for c in base.__mro__]
    return importlib.import_module(next(r for r in roots if r in ("httpx2", "httpx")))


class _Model:
    """Gives the answers of a script, with ids, usage and time that passes."""

    def __init__(self, script: tuple[Reply | Refusal, ...], library: Any) -> None:
        self._script = iter(script)
        self._library = library
        self._cached: dict[str, int] = {}

    def respond(self, request: Any) -> Any:
        """The response to a request of the SDK."""
        answer = next(self._script, None)
        if answer is None:
            raise LookupError("the script of this loop has no further answer")
        body = json.loads(request.content)
        headers = {"request-id": _ident("req_011C", 20)}
        time.sleep(answer.seconds)
        if isinstance(answer, Refusal):
            if answer.retry_after is not None:
                headers["retry-after"] = str(answer.retry_after)
            error = {"type": "error", "error": {"type": answer.kind, "message": answer.message}}
            return self._library.Response(answer.status, json=error, headers=headers)
        message = self._message(body, answer)
        if not body.get("stream"):
            return self._library.Response(200, json=message, headers=headers)
        headers["content-type"] = "text/event-stream; charset=utf-8"
        return self._library.Response(200, headers=headers, stream=_stream(self._library, _events(message)))

    def _message(self, body: dict[str, Any], answer: Reply) -> dict[str, Any]:
        blocks = []
        for block in answer.blocks:
            name = {"id": _ident("toolu_01", 22)} if block["type"] == "tool_use" else {}
            blocks.append({"type": block["type"], **name, **{k: v for k, v in block.items() if k != "type"}})
        return {
            "id": _ident("msg_01", 22), "type": "message", "role": "assistant", "model": body["model"],
            "content": blocks, "stop_reason": answer.stop, "stop_sequence": None, "usage": self._usage(body, blocks),
        }  # fmt: skip

    def _usage(self, body: dict[str, Any], blocks: list[Block]) -> dict[str, Any]:
        """Tokens estimated from the request and the answer; caching when the request asks for it."""
        context = _tokens([body.get("system"), body.get("tools"), body["messages"]])
        context += _TOOL_PROMPT if body.get("tools") else 0
        read = written = 0
        if "cache_control" in body and context >= _LEAST_CACHED:
            conversation = json.dumps([body.get("system"), body["messages"][0]])
            read = self._cached.get(conversation, 0)
            written = context - read
            self._cached[conversation] = context
        return {
            "input_tokens": context - read - written if read + written < context else 3,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": sum(_spoken(b) for b in blocks),
            "service_tier": "standard",
        }


def _events(message: dict[str, Any]) -> Iterator[Event]:
    """A message as the events of a stream."""
    start = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield "message_start", {"message": start}
    for index, block in enumerate(message["content"]):
        first, deltas = _deltas(block)
        yield "content_block_start", {"index": index, "content_block": first}
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": end, "usage": {"output_tokens": message["usage"]["output_tokens"]}}
    yield "message_stop", {}


def _deltas(block: Block) -> tuple[Block, list[Block]]:
    """A block as it is announced, and what comes after that."""
    if block["type"] == "tool_use":
        raw = block.get("raw") or json.dumps(block["input"])
        first = {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
        return first, [{"type": "input_json_delta", "partial_json": p} for p in _pieces(raw)]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": p} for p in _pieces(block["thinking"])]
        seal = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, seal]
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in _pieces(block["text"])]


def _stream(library: Any, events: Iterator[Event]) -> Any:
    """A response body of the library's own kind that sends an event at a time."""

    class Body(library.SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            for name, data in events:
                time.sleep(0.04)
                yield f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()

    return Body()


def _pieces(text: str) -> list[str]:
    return [text[i : i + _PIECE] for i in range(0, len(text), _PIECE)]


def _tokens(value: Any) -> int:
    return len(json.dumps(value)) // 4


def _spoken(block: Block) -> int:
    """Tokens of a block of the model's."""
    if block["type"] == "tool_use":
        return _CALL + _tokens(block.get("raw") or block["input"])
    return _tokens(block.get("text") or block.get("thinking"))


def _ident(prefix: str, length: int) -> str:
    """A fresh id as the API makes them."""
    number = int.from_bytes(blake2b(clock.new_id().encode(), digest_size=24).digest())
    return prefix + "".join(_ALPHABET[number // 58**i % 58] for i in range(length))
