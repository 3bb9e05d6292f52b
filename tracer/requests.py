"""A request body read once: which messages are new, what they carry, and the parts beside them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .bodies import Body, NotAList, advance
from .canonical import canonical
from .live import Chain
from .providers import Provider, RequestParts


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as the recorder needs it.

    Attributes:
        kept: Hashes of the leading messages that are the same as in the conversation before.
        texts: The exact JSON text of each message that follows.
        messages: The same, decoded.
        same_rest: True when nothing but messages changed, so that the earlier part hashes hold.
        flags: ``compaction`` (history was shortened), ``edited`` (earlier messages were changed).
    """

    body: Body
    kept: tuple[str, ...]
    texts: tuple[str, ...]
    messages: tuple[Any, ...]
    parts: RequestParts
    same_rest: bool
    flags: tuple[str, ...] = ()


def take_apart(provider: Provider, raw: bytes, chain: Chain | None, *, extended: bool = False) -> Incoming:
    """Reads a request with the help of the conversation it continues, or one that it resembles.

    Raises:
        ValueError: When the body is no JSON object.
    """
    earlier = chain.body if chain else None
    try:
        step = advance(raw, provider.LIST_KEY, earlier, extended=extended)
    except NotAList:
        return _without_list(provider, raw, chain)
    parts = provider.request(step.body.rest)
    messages = step.values
    if parts.mode != "full" and chain is not None:
        return _server_held(step.body, step.texts, messages, parts, chain)
    kept = chain.hashes[: step.keep] if chain else ()
    flags = _changes(chain, step.keep, messages) if chain else ()
    return Incoming(step.body, kept, step.texts, messages, parts, step.same_rest, flags)


def answer_message(provider: Provider, chain: Chain) -> list[str]:
    """The answer of a conversation as the request messages a client would send for it."""
    if not chain.answer_text:
        return []
    body = json.loads(chain.answer_text)
    if provider.API == "openai.responses":
        return [json.dumps(item, ensure_ascii=False) for item in body.get("output") or []]
    if provider.API == "openai.chat":
        choices = body.get("choices") or [{}]
        return [json.dumps(choices[0].get("message"), ensure_ascii=False)]
    return [json.dumps({"role": "assistant", "content": body.get("content")}, ensure_ascii=False)]


def _server_held(
    body: Body, texts: tuple[str, ...], messages: tuple[Any, ...], parts: RequestParts, chain: Chain
) -> Incoming:
    """Only new messages are on the wire: put the earlier ones and the answer in front."""
    from .providers import by_api

    answer = tuple(answer_message(by_api(chain.api), chain))
    decoded = tuple(json.loads(t) for t in answer)
    return Incoming(body, chain.hashes, answer + texts, decoded + messages, parts, same_rest=False)


def _without_list(provider: Provider, raw: bytes, chain: Chain | None) -> Incoming:
    value = json.loads(raw)
    if not isinstance(value, dict):
        raise ValueError("the request body is not a JSON object")
    text = value.pop(provider.LIST_KEY, None)
    messages: tuple[Any, ...] = ({"role": "user", "content": text},) if text is not None else ()
    texts = tuple(json.dumps(m, ensure_ascii=False) for m in messages)
    body = Body(whole=raw, head=len(raw), ends=(), rest=value)
    parts = provider.request(value)
    if parts.mode != "full" and chain is not None:
        return _server_held(body, texts, messages, parts, chain)
    return Incoming(body, (), texts, messages, parts, same_rest=False)


def _changes(chain: Chain, keep: int, messages: tuple[Any, ...]) -> tuple[str, ...]:
    """What happened to the earlier messages that are not kept byte by byte.

    Moving a cache_control mark from one message to the next is no change.
    """
    known = len(chain.hashes)
    if keep >= known:
        return ()
    if keep + len(messages) < known or chain.body is None:
        return ("compaction",)
    start = chain.body.ends[keep - 1] if keep else chain.body.head
    old = json.loads(b"[" + chain.body.whole[start : chain.body.end].lstrip(b", \n") + b"]")
    same = all(canonical(_unmarked(a)) == canonical(_unmarked(b)) for a, b in zip(old, messages, strict=False))
    return () if same else ("edited",)


def _unmarked(message: Any) -> Any:
    if isinstance(message, dict):
        return {k: _unmarked(v) for k, v in message.items() if k != "cache_control"}
    if isinstance(message, list):
        return [_unmarked(v) for v in message]
    return message


def first_words(message: Any, limit: int = 120) -> str:
    """The beginning of a message's text on one line."""
    content = message.get("content", message.get("parts")) if isinstance(message, dict) else message
    if isinstance(content, list):
        texts = [b.get("text") for b in content if isinstance(b, dict) and isinstance(b.get("text"), str)]
        content = texts[0] if texts else ""
    if not isinstance(content, str):
        return ""
    line = " ".join(content[: 4 * limit].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
