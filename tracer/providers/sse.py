"""Server-sent events as bytes: what a stream of a provider is made of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_PIECE = 64


def event(data: Mapping[str, Any] | str, name: str | None = None) -> bytes:
    """One event with JSON data (or a text, such as ``[DONE]``)."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode("utf-8", "replace")


def named(data: Mapping[str, Any]) -> bytes:
    """One event that is named as its ``type`` says."""
    return event(data, str(data["type"]))


def pieces(text: Any) -> Iterator[str]:
    """A text in parts as a model might send them; nothing for what is no text."""
    if isinstance(text, str):
        for start in range(0, len(text), _PIECE):
            yield text[start : start + _PIECE]
