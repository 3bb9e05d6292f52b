"""Wire formats: request, response and SSE of each provider API into our model. One module per API.

Every module offers the functions of `Provider`. Bodies are decoded JSON; nothing here raises on
odd data: what cannot be read is left out and said in the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from . import anthropic, gemini, manual, openai_chat, openai_responses
from .answer import Answer, RequestParts, SeenResult


class Provider(Protocol):
    """What a module of this folder offers."""

    API: str
    NAME: str
    LIST_KEY: str

    def recognise(self, path: str) -> bool:
        """True when a POST to this URL path is a model call of this API."""

    def request(self, body: Mapping[str, Any]) -> RequestParts:
        """The parts of a request body other than its message list."""

    def results(self, message: Any) -> Sequence[SeenResult]:
        """The tool results that a request message carries."""

    def is_prompt(self, message: Any) -> bool:
        """True when the message is a person's word, not a tool result."""

    def answer(self, body: Any) -> Answer:
        """What a response body says. ``body`` may be partial (a cut stream)."""

    def assemble(self, events: Sequence[tuple[str | None, str]]) -> tuple[Any, bool]:
        """Server-sent events (name, data) into the response body they stand for, and whether it is whole."""

    def stream(self, body: Mapping[str, Any], request: Any = None) -> list[bytes]:
        """The events that stand for a response body, as bytes; ``request``: the decoded body of what asks for them."""


PROVIDERS: tuple[Provider, ...] = cast(
    "tuple[Provider, ...]", (anthropic, openai_chat, openai_responses, gemini, manual)
)
_BY_API = {p.API: p for p in PROVIDERS}


def by_api(api: str | None) -> Provider:
    """The provider module of an api name; `manual` for unknown names."""
    return _BY_API.get(api or "", _BY_API["manual"])


def by_path(path: str) -> Provider | None:
    """The provider whose model calls go to this URL path, None when it is no model call."""
    return next((p for p in PROVIDERS if p.recognise(path)), None)


__all__ = ["PROVIDERS", "Answer", "Provider", "RequestParts", "SeenResult", "by_api", "by_path"]
