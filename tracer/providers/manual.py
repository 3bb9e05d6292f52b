"""The manual API and whatever names no known wire format: plain role/content messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..model import BUCKETS, Usage
from . import anthropic
from .answer import Answer, RequestParts, count, disjoint_usage
from .anthropic import results

API = "manual"
NAME = "manual"
LIST_KEY = "messages"


def recognise(path: str) -> bool:
    """Never: nothing on the wire is manual."""
    return False


def request(body: Mapping[str, Any]) -> RequestParts:
    """Everything but messages, system and tools is a parameter."""
    params = {k: v for k, v in body.items() if k not in ("messages", "system", "tools")}
    model = body.get("model")
    return RequestParts(
        model=model if isinstance(model, str) else None,
        system=body.get("system"),
        tools=body.get("tools"),
        params=params,
    )


def is_prompt(message: Any) -> bool:
    """A user message that is no tool result."""
    return isinstance(message, dict) and message.get("role") == "user" and not results(message)


def answer(body: Any) -> Answer:
    """An answer in Anthropic's shape of blocks, with usage in whatever words the loop's provider has."""
    found = anthropic.answer(body)
    raw = body.get("usage") if isinstance(body, dict) else None
    return replace(found, usage=usage(raw)) if isinstance(raw, dict) else found


def usage(raw: Any) -> Usage:
    """Our own buckets by name, or a provider's usage object told by its keys."""
    if not isinstance(raw, dict):
        return Usage()
    if any(name in raw for name in BUCKETS):
        buckets: dict[str, Any] = {name: count(raw.get(name)) for name in BUCKETS}
        return Usage(**buckets, origin="recorded", raw=raw)
    if "prompt_tokens" in raw:
        return disjoint_usage(raw, "prompt", "completion")
    if "input_tokens_details" in raw:
        return disjoint_usage(raw, "input", "output")
    return anthropic.usage(raw)


def assemble(events: Sequence[tuple[str | None, str]]) -> tuple[Any, bool]:
    """Nothing streams here."""
    return None, False


def stream(body: Mapping[str, Any], request: Any = None) -> list[bytes]:
    """An answer here has Anthropic's shape, and so have its events."""
    return anthropic.stream(body, request)


__all__ = [
    "API",
    "LIST_KEY",
    "NAME",
    "answer",
    "assemble",
    "is_prompt",
    "recognise",
    "request",
    "results",
    "stream",
    "usage",
]
