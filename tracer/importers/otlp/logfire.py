"""Logfire's OpenAI and Anthropic instrumentations: a request span, and for a stream a second one with the answer.

Version 5 has the GenAI attributes on both; version 4 the raw request, and the answer in ``response_data``.
The span's name is a template; ``logfire.msg`` has the real text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...providers import manual
from ..calls.model_call import ModelCall
from . import figures, genai, raw
from .blocks import answer_blocks, from_parts
from .figures import text
from .wire import RawSpan, nested


def owns(span: RawSpan) -> bool:
    """True for a model call of these instrumentations."""
    given = span.attributes
    return span.scope.startswith("logfire.") and "request_data" in given


def calls(spans: Iterable[RawSpan]) -> list[ModelCall]:
    """The calls, each request with the answer of its stream."""
    found = [(_call(s), s) for s in spans]
    found.sort(key=lambda f: f[0].started_at or 0)
    requests = [(c, s) for c, s in found if s.attributes.get("logfire.span_type") != "log"]
    answers = [(c, s) for c, s in found if s.attributes.get("logfire.span_type") == "log"]
    out = [c for c, _ in requests]
    for said, span in answers:
        index = _request_of(said, span, out, requests)
        if index is None:
            out.append(said)
        else:
            out[index] = _joined(out[index], said)
    return out


def _request_of(
    said: ModelCall, span: RawSpan, out: list[ModelCall], requests: list[tuple[ModelCall, RawSpan]]
) -> int | None:
    """The latest request before it that asked the same and has no answer yet."""
    for index in range(len(requests) - 1, -1, -1):
        asked = out[index]
        before = (asked.started_at or 0) <= (said.started_at or 0)
        near = requests[index][1].parent == span.parent or requests[index][1].span == span.parent
        if before and near and asked.response is None and asked.messages == said.messages and asked.status == "ok":
            return index
    return None


def _joined(asked: ModelCall, said: ModelCall) -> ModelCall:
    return genai.with_content(
        asked,
        response=said.response,
        usage=said.usage or asked.usage,
        response_model=said.response_model or asked.response_model,
        response_id=said.response_id,
        stop_reason=said.stop_reason,
        reported_cost_usd=said.reported_cost_usd,
        ended_at=max(said.started_at or 0, asked.ended_at or 0) or None,
        stream=True,
        flags=tuple(f for f in said.flags if f != "content_not_kept"),
    )


def _call(span: RawSpan) -> ModelCall:
    base = genai.call(span)
    given = span.attributes
    asked, answered = nested(given.get("request_data")), nested(given.get("response_data"))
    provider = base.provider or span.scope.removeprefix("logfire.")
    base = replace(base, provider=provider, model=base.model or _model(asked))
    api = raw.request_api(asked, provider)
    if api is None or base.messages:
        return base
    answered = answered if isinstance(answered, dict) else {}
    usage = answered.get("usage")
    response = _response(api, answered, base)
    return genai.with_content(
        base,
        **{**raw.parts(asked, api), "stream": base.stream},
        response=response,
        usage=manual.usage(usage) if isinstance(usage, dict) else base.usage,
        lossless=False,
        flags=figures.flags(span),
    )


def _response(api: str, answered: dict[str, Any], base: ModelCall) -> dict[str, Any] | None:
    """The answer of version 4: a message as the API has it, or only the text of a stream."""
    message = answered.get("message")
    facts = {"id": base.response_id, "model": base.response_model, "stop_reason": base.stop_reason}
    if isinstance(message, dict):
        if api == raw.ANTHROPIC and isinstance(message.get("content"), list):
            return {"type": "message", "role": "assistant", **{k: v for k, v in facts.items() if v}, **message}
        if api == raw.CHAT:
            choice = {"index": 0, "message": message, "finish_reason": base.stop_reason}
            return {
                "object": "chat.completion",
                **{k: v for k, v in facts.items() if v and k != "stop_reason"},
                "choices": [choice],
            }
        return raw.as_response(api, answer_blocks(from_parts([{"role": "assistant", **message}])), facts)
    said = text(answered.get("combined_chunk_content"))
    return raw.as_response(api, [{"type": "text", "text": said}] if said else [], facts)


def _model(asked: Any) -> str | None:
    return text(asked.get("model")) if isinstance(asked, dict) else None
