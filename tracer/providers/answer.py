"""What every provider module returns: the parts of a request, a seen tool result, an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..json_text import encoder
from ..model import CallState, Usage

_NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class RequestParts:
    """A request without its message list.

    Attributes:
        mode: ``full``; ``thread`` or ``previous_response`` when the server holds the earlier messages.
        previous: The response id that such a request continues.
            None in such a mode: the server's own id is in ``params`` (an OpenAI conversation).
    """

    model: str | None = None
    system: Any = None
    tools: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    mode: str = "full"
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class SeenResult:
    """A tool result inside a request message; ``path`` is its JSONPath within that message."""

    call: str
    content: Any
    is_error: bool
    path: str


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """A tool call inside an answer.

    Attributes:
        provider_side: The provider runs it itself; ``result`` and ``is_error`` are then what it got.
        state: ``incomplete`` when the answer ended before the call did: such a call is never executed.
    """

    id: str
    name: str
    arguments_raw: str
    valid: bool = True
    invalid_reason: str | None = None
    provider_side: bool = False
    result: Any = None
    is_error: bool | None = None
    state: CallState | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a response says.

    Attributes:
        stop_reason: The provider's raw word; None when the answer was cut before it came.
        request_id: Known here only when an error told it inside the body or the stream.
        end: How a run that stops here ended: completed, limit, failed, or None (calls are open).
    """

    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    text: str | None = None
    thinking: str | None = None
    calls: tuple[AnswerCall, ...] = ()
    usage: Usage = _NO_USAGE
    error: str | None = None
    error_type: str | None = None
    request_id: str | None = None
    end: str | None = None


def call_of(call_id: str, name: str, raw: str, **more: Any) -> AnswerCall:
    """A call from its raw arguments, with the verdict of PARSE: are they a JSON object?"""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return AnswerCall(call_id, name, raw, False, f"arguments are not valid JSON ({error})", **more)
    if not isinstance(value, dict):
        return AnswerCall(call_id, name, raw, False, "arguments are not a JSON object", **more)
    return AnswerCall(call_id, name, raw, **more)


def joined(parts: list[str]) -> str | None:
    """Texts of several blocks as one, None when there is none."""
    kept = [p for p in parts if p]
    return "\n\n".join(kept) if kept else None


def count(value: Any) -> int | None:
    """A token count, or None when it is no whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text_of(value: Any) -> str | None:
    """The value if it is a text, else None."""
    return value if isinstance(value, str) else None


def objects(value: Any) -> list[dict[str, Any]]:
    """The JSON objects of a JSON list; anything else gives none."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def decoded(data: str) -> dict[str, Any]:
    """The JSON object in the data of one event, empty when there is none ([DONE], pings, torn text)."""
    try:
        return mapping(json.loads(data))
    except (ValueError, RecursionError):
        return {}


_encode = encoder(ensure_ascii=False)


def dumped(value: Any) -> str:
    """A decoded JSON value as text again; too deep a one as its type name."""
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def index_of(event: Mapping[str, Any], key: str = "index") -> int:
    """The position an event names, 0 when it names none."""
    return count(event.get(key)) or 0


def error_of(error: Any) -> tuple[str | None, str | None]:
    """Message and type of the ``error`` part of a body or a stream; ``code`` where there is no type."""
    if not error:
        return None, None
    if not isinstance(error, dict):
        return text_of(error) or "error", None
    kind = error.get("type") or error.get("code")
    kind = str(kind) if isinstance(kind, (str, int)) and kind else None
    return text_of(error.get("message")) or kind or "error", kind


def cut_short(usage: Usage, body: Mapping[str, Any]) -> Usage:
    """The usage of a body; when `assemble` marked that as cut, its figures are lower bounds."""
    return replace(usage, partial=True) if body.get("stream_cut") is True and usage.raw else usage


def disjoint_usage(raw: Any, inputs: str, outputs: str) -> Usage:
    """OpenAI usage, whose input count includes cached tokens, in disjoint buckets.

    ``inputs`` and ``outputs`` are the dialect's prefixes: prompt and completion, or input and output.
    """
    if not isinstance(raw, dict):
        return Usage()
    details = mapping(raw.get(f"{inputs}_tokens_details"))
    read, write = count(details.get("cached_tokens")), count(details.get("cache_write_tokens"))
    if read is None:
        read = count(raw.get("prompt_cache_hit_tokens"))  # DeepSeek's own name for it
    total, output = count(raw.get(f"{inputs}_tokens")), count(raw.get(f"{outputs}_tokens"))
    reasoning = count(mapping(raw.get(f"{outputs}_tokens_details")).get("reasoning_tokens"))
    if reasoning and output is not None and count(raw.get("total_tokens")) == (total or 0) + output + reasoning:
        output += reasoning  # servers that report reasoning beside the output, as the sum betrays
    return Usage(
        input=None if total is None else max(0, total - (read or 0) - (write or 0)),
        cache_read=read,
        cache_write_5m=write,  # one price here; the raw object has the retention
        output=output,
        reasoning=reasoning,
        origin="recorded",
        raw=raw,
    )
