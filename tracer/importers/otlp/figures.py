"""Tokens, names and failures in the words of every dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...model import Usage
from ...providers import manual
from ..calls.model_call import ToolSpan
from .wire import ATTRIBUTE_LIMIT, RawSpan, nested

_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens")
_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
)
_WRITE = (
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
)
_REASONING = (
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.reasoning_tokens",
    "gen_ai.usage.details.reasoning_tokens",
)
_HOUR = "anthropic.usage.cache_creation.ephemeral_1h_input_tokens"
_PROVIDERS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "azure.ai.openai": "azure",
    "az.ai.openai": "azure",
    "azure": "azure",
    "aws.bedrock": "aws",
    "bedrock": "aws",
    "gcp.gemini": "google",
    "gcp.vertex_ai": "google",
    "gcp.gen_ai": "google",
    "vertex_ai": "google",
    "google": "google",
    "gemini": "google",
}


def usage(given: Mapping[str, Any]) -> Usage | None:
    """GenAI usage attributes of every generation in disjoint buckets; None without any."""
    told = {k: v for k, v in given.items() if ".usage." in k}
    if not told:
        return None
    raw = nested(told.get("gen_ai.usage.raw"))
    if isinstance(raw, dict):
        return manual.usage(raw)
    return split(
        total=first(told, _INPUT),
        output=first(told, _OUTPUT),
        read=first(told, _READ),
        write=first(told, _WRITE),
        hour=number(told.get(_HOUR)),
        reasoning=first(told, _REASONING),
        raw=told | _tier(given),
    )


def _tier(given: Mapping[str, Any]) -> dict[str, Any]:
    """The service tier that answered: part of what a call costs."""
    names = ("openai.response.service_tier", "gen_ai.openai.response.service_tier")
    told = [given[name] for name in names if name in given]
    return {"service_tier": told[0]} if told else {}


def split(
    *,
    total: int | None,
    output: int | None,
    read: int | None = None,
    write: int | None = None,
    hour: int | None = None,
    reasoning: int | None = None,
    raw: Mapping[str, Any] | None = None,
) -> Usage | None:
    """An input count that includes cached tokens, in disjoint buckets.

    Some old instrumentations leave the cached tokens out of it; then it is less than what was cached.
    """
    if total is None and output is None:
        return None
    cached = (read or 0) + (write or 0)
    fresh = total if total is None or total < cached else total - cached
    if hour is not None and write is not None:
        write = max(0, write - hour)
    return Usage(
        input=fresh,
        cache_read=read,
        cache_write_5m=write,
        cache_write_1h=hour,
        output=output,
        reasoning=reasoning,
        origin="recorded",
        raw=raw or None,
    )


def provider(given: Mapping[str, Any]) -> str | None:
    """Who served the call, by the name that price lists have."""
    name = (
        text(given.get("gen_ai.provider.name")) or text(given.get("gen_ai.system")) or text(given.get("llm.provider"))
    )
    name = name or text(given.get("llm.system"))
    return _PROVIDERS.get(name.lower(), name.lower()) if name else None


def flags(span: RawSpan) -> list[str]:
    """What was lost before it came here."""
    if span.dropped or len(span.attributes) == ATTRIBUTE_LIMIT:
        return ["truncated_at_source"]
    return []


def failure(span: RawSpan) -> tuple[str, str | None, str | None]:
    """Status, message and type. Unset is no failure."""
    kind = text(span.attributes.get("error.type"))
    raised = next((e.attributes for e in span.events if e.name == "exception"), {})
    if span.code != 2 and kind is None:
        return "ok", None, None
    message = span.message or text(raised.get("exception.message"))
    return "error", message, kind or text(raised.get("exception.type"))


def tool_span(span: RawSpan, *, failed: bool | None = None, **told: Any) -> ToolSpan:
    """A tool that ran, with what every span says of one.

    Args:
        failed: What the tool's own output says, None when it does not. Unset is no success either.
        told: What the dialect says: name, call, arguments, result, conversation.
    """
    status, error, error_type = failure(span)
    return ToolSpan(
        key=span.key,
        is_error=True if status == "error" or failed else None if span.code == 0 and failed is None else False,
        error=error or (error_type if status == "error" else None),
        started_at=span.start,
        ended_at=span.end,
        trace_id=span.trace,
        span_id=span.span,
        parent_span_id=span.parent,
        service=span.service,
        scope=span.scope,
        flags=tuple(flags(span)),
        **told,
    )


def finish(given: Mapping[str, Any]) -> str | None:
    """The provider's own stop reason where it is told, else the first of the normalised ones."""
    told = text(given.get("anthropic.message.stop_reason")) or text(given.get("stop_reason"))
    if told:
        return told
    reasons = nested(given.get("gen_ai.response.finish_reasons"))
    if isinstance(reasons, list):
        return next((r for r in reasons if isinstance(r, str) and r), None)
    return reasons if isinstance(reasons, str) and reasons else None


def first(given: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """The first of these counts that is there."""
    for name in names:
        value = given.get(name)
        if value is not None and (count := number(value)) is not None:
            return count
    return None


def number(value: Any) -> int | None:
    """A count; whole floats and digits as text too."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.isdigit() and len(value) < 16 else None


def text(value: Any) -> str | None:
    """The value if it is a text that says something."""
    return value if isinstance(value, str) and value else None


def params(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Request parameters by their plain names."""
    found = {
        k.removeprefix("gen_ai.request."): v
        for k, v in given.items()
        if k.startswith("gen_ai.request.") and k not in ("gen_ai.request.model", "gen_ai.request.stream")
    }
    return found or None
