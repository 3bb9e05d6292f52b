"""Any server that speaks OpenAI's Chat Completions or Responses, live: plain HTTP, no SDK."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ....tracer.errors import UsageError
from ....tracer.providers import by_api
from ....tracer.redaction import remember
from ..tools.telling import retry_after
from .protocol import ModelAnswer, ModelError

CHAT, RESPONSES = "openai.chat", "openai.responses"
_PATHS = {CHAT: "/chat/completions", RESPONSES: "/responses"}
_DEFAULT = "https://api.openai.com/v1"
_TOO_LONG = ("context_length_exceeded", "maximum context length", "context window")
_TRANSIENT = (408, 409, 425, 429)


class LiveOpenAI:
    """A server by its base URL (else ``OPENAI_BASE_URL``, else OpenAI's own); the key is ``OPENAI_API_KEY``'s."""

    def __init__(self, model: str | None = None, *, base_url: str | None = None) -> None:
        import httpx2

        self._model = model
        self._given = base_url
        self._base = (base_url or os.environ.get("OPENAI_BASE_URL") or _DEFAULT).rstrip("/")
        key = os.environ.get("OPENAI_API_KEY")
        if not key and self._base == _DEFAULT:
            raise UsageError(
                "no-credentials", "OPENAI_API_KEY is not set", "Set it, or name another server with --base-url"
            )
        if key:
            remember(key)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client = httpx2.Client(headers=headers)

    @property
    def apis(self) -> tuple[str, ...]:
        """Chat Completions and Responses."""
        return (CHAT, RESPONSES)

    @property
    def limited_as(self) -> str | None:
        """The server's address."""
        return f"openai {self._base}"

    def ask(self, body: Mapping[str, Any], *, api: str, turn: int, timeout: float) -> ModelAnswer:
        """One request.

        Raises:
            ModelError: Refused, or no answer.
        """
        import httpx2

        sent = {**body, "model": self._model or body.get("model")}
        try:
            response = self._client.post(self._base + _PATHS[api], json=sent, timeout=timeout)
        except httpx2.HTTPError as error:
            said = str(error) or type(error).__name__
            raise ModelError(
                said, kind=type(error).__name__, transient=isinstance(error, httpx2.TransportError)
            ) from None
        headers = {k.lower(): v for k, v in response.headers.items()}
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if response.status_code >= 300 or not isinstance(answer, dict):
            raise _refused(response.status_code, answer, response.text, headers)
        told = by_api(api).answer(answer)
        if told.error or told.error_type:
            raise ModelError(told.error or "failed", status=response.status_code, kind=told.error_type or "error")
        return ModelAnswer(answer, response.status_code, headers, _request_id(headers))

    def spec(self) -> dict[str, Any]:
        """Model and address; keys stay in the environment."""
        return {"kind": "openai", "model": self._model, "base_url": self._given}

    def fresh(self, turns_made: int = 0) -> LiveOpenAI:
        """The same server through a client of its own."""
        return LiveOpenAI(self._model, base_url=self._given)

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()


def _refused(status: int, answer: Any, text: str, headers: Mapping[str, str]) -> ModelError:
    error = answer.get("error") if isinstance(answer, dict) else None
    told = error if isinstance(error, dict) else {"message": error if isinstance(error, str) else None}
    message = str(told.get("message") or text[:300] or f"HTTP {status}")
    code = str(told.get("code") or told.get("type") or f"http_{status}")
    quota = code == "insufficient_quota"  # a 429 that no waiting helps
    return ModelError(
        message,
        status=status,
        kind=code,
        transient=(status in _TRANSIENT or status >= 500) and not quota,
        retry_after=retry_after(headers),
        too_long=code in _TOO_LONG or (status == 400 and any(words in message.lower() for words in _TOO_LONG)),
        headers=headers,
        request_id=_request_id(headers),
    )


def _request_id(headers: Mapping[str, str]) -> str | None:
    return headers.get("x-request-id") or headers.get("request-id")
