"""Anthropic, live: through its SDK, with the SDK's own environment, keys and profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....tracer.errors import UsageError
from ....tracer.providers import anthropic as wire
from ....tracer.providers.answer import mapping
from ....tracer.streams import sse_events
from ..tools.telling import retry_after
from .protocol import ModelAnswer, ModelError

STREAMED_FROM = 16_000
"""``max_tokens`` from which the answer is streamed: a plain request that lasts ten minutes is cut by the server."""

_TOO_LONG = ("prompt is too long", "context window", "maximum context length", "too many tokens")
_TRANSIENT = (408, 409, 425, 429)


class LiveAnthropic:
    """The Messages API. ``model`` replaces the request's own; ``base_url`` the SDK's."""

    def __init__(self, model: str | None = None, *, base_url: str | None = None, client: Any = None) -> None:
        self._model = model
        self._base_url = base_url
        self._given = client
        self._client = client if client is not None else _client(base_url)

    @property
    def apis(self) -> tuple[str, ...]:
        """Its own, and what was recorded by hand in its shape."""
        return (wire.API, "manual")

    @property
    def limited_as(self) -> str | None:
        """The server's address."""
        return f"anthropic {self._client.base_url}"

    def ask(self, body: Mapping[str, Any], *, api: str, turn: int, timeout: float) -> ModelAnswer:
        """One request, sent as the body stands.

        Raises:
            ModelError: Refused, or no answer.
        """
        import anthropic

        sent = {**body, "model": self._model or body.get("model")}
        if "max_tokens" not in sent:
            sent["max_tokens"] = STREAMED_FROM
        streamed = sent["max_tokens"] >= STREAMED_FROM or isinstance(sent.get("thinking"), dict)
        try:
            return self._send({**sent, "stream": True} if streamed else sent, timeout, streamed=streamed)
        except anthropic.APIStatusError as error:
            raise _refused(error) from None
        except anthropic.APIConnectionError as error:  # time-outs are some of them
            raise ModelError(str(error), kind=type(error).__name__, transient=True) from None
        except anthropic.AnthropicError as error:  # no key, no profile
            raise ModelError(str(error), kind=type(error).__name__) from None
        except TypeError as error:  # the SDK's way to say that there is no key
            raise ModelError(str(error), kind="no_credentials") from None

    def spec(self) -> dict[str, Any]:
        """Model and address; keys stay in the environment."""
        return {"kind": "anthropic", "model": self._model, "base_url": self._base_url}

    def fresh(self, turns_made: int = 0) -> LiveAnthropic:
        """The same client."""
        return LiveAnthropic(self._model, base_url=self._base_url, client=self._client)

    def close(self) -> None:
        """Closes a client of our own making."""
        if self._given is None:
            self._client.close()

    def _send(self, body: dict[str, Any], timeout: float, *, streamed: bool) -> ModelAnswer:
        api = self._client.with_options(max_retries=0, timeout=timeout).messages
        extra = {"extra_headers": {"anthropic-beta": ",".join(body.pop("betas"))}} if body.get("betas") else {}
        known = {k: body[k] for k in ("model", "max_tokens", "messages")}
        more = {k: v for k, v in body.items() if k not in (*known, "stream")}
        call = api.with_streaming_response if streamed else api.with_raw_response
        if streamed:
            with call.create(**known, stream=True, extra_body=more, **extra) as response:
                text = "".join(response.iter_text())
                headers = response.headers
                status = response.status_code
            answer, whole = wire.assemble(sse_events(text))
            if not whole:
                raise _cut(answer)
        else:
            response = call.create(**known, extra_body=more, **extra)
            answer, headers, status = (
                response.http_response.json(),
                response.headers,
                response.http_response.status_code,
            )
        if not isinstance(answer, dict):
            raise ModelError("the server answered with something that is no message", status=status, kind="bad_answer")
        return ModelAnswer(answer, status, {k.lower(): v for k, v in headers.items()}, headers.get("request-id"))


def _client(base_url: str | None) -> Any:
    try:
        import anthropic
    except ImportError:
        raise UsageError(
            "no-anthropic", "a live Anthropic model needs the package anthropic", "pip install anthropic"
        ) from None
    try:
        return anthropic.Anthropic(base_url=base_url) if base_url else anthropic.Anthropic()
    except anthropic.AnthropicError as error:
        raise UsageError("no-credentials", f"the Anthropic SDK has no way to sign in ({error})") from None


def _refused(error: Any) -> ModelError:
    inner = mapping(mapping(error.body).get("error"))
    message = str(inner.get("message") or error.message)
    status = error.status_code
    return ModelError(
        message,
        status=status,
        kind=str(inner.get("type") or f"http_{status}"),
        transient=status in _TRANSIENT or status >= 500,
        retry_after=retry_after(error.response.headers),
        too_long=status in (400, 413) and any(words in message.lower() for words in _TOO_LONG),
        headers=dict(error.response.headers),
        request_id=error.response.headers.get("request-id"),
    )


def _cut(body: Any) -> ModelError:
    said = wire.answer(body)
    kind = said.error_type or "incomplete_stream"
    transient = kind in ("overloaded_error", "api_error", "rate_limit_error", "incomplete_stream", "timeout_error")
    return ModelError(said.error or "the stream ended before its last event", kind=kind, transient=transient)
