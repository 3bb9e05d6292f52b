"""The manual API and whatever names no known wire format: plain role/content messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .answer import Answer, RequestParts, SeenResult
from .anthropic import answer, results

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


def assemble(events: Sequence[tuple[str | None, str]]) -> tuple[Any, bool]:
    """Nothing streams here."""
    return None, False


__all__ = [
    "API",
    "LIST_KEY",
    "NAME",
    "Answer",
    "SeenResult",
    "answer",
    "assemble",
    "is_prompt",
    "recognise",
    "request",
    "results",
]
