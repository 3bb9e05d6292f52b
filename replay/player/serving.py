"""From a recorded attempt to the reply that a program gets now, in the form that it asks for now.

A stream comes in its recorded pieces. Where it was recorded whole (or imported) and is asked as a stream, its events
are made; where it was streamed and is asked whole, the body is the one that its events stand for.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

from ...tracer.streams import TOO_LONG, sse_events
from ...tracer.substitute import Asked, Hold, Reply, ReplyError
from .recorded import RecordedAttempt

_NOT_SERVED = frozenset(
    {"content-encoding", "content-length", "content-type", "transfer-encoding", "retry-after", "retry-after-ms"}
)
_RAISED = re.compile(r"[A-Z][A-Za-z]*[a-z][A-Za-z]*")
"""Names of exceptions; what providers call their errors is written another way (`overloaded_error`, `UNAVAILABLE`)."""
_JSON, _EVENTS = "application/json", "text/event-stream; charset=utf-8"
_OUR_MARKS = ("stream_cut", "stream_error", "stream_error_request_id")
_LEFT_OFF = ReplyError("RemoteProtocolError", "the recording ends here: the program had stopped reading the answer")


def reply(attempt: RecordedAttempt, asked: Asked, hold: Hold | None = None) -> Reply:
    """The answer to give.

    Args:
        attempt: What came back in the recording.
        asked: What is asked now; whether it asks for a stream decides the form.
        hold: Kept with the reply, see `Reply`.
    """
    if attempt.status is None:
        kind = attempt.error_type or "ConnectError"
        return Reply(None, error=ReplyError(kind, attempt.error or kind), hold=hold)
    if attempt.status >= 300:
        return _refused(attempt, asked, hold)
    if asked.stream:
        chunks, kind = _as_stream(attempt, asked)
        return Reply(attempt.status, _headers(attempt, kind), chunks, _cut(attempt), hold)
    text, cut = _as_whole(attempt, asked), _cut(attempt)
    if cut is not None and attempt.stream:
        return Reply(None, error=cut, hold=hold)  # half an answer is none where no stream is asked for
    return Reply(attempt.status, _headers(attempt, _JSON), (_bytes(text),) if text else (), cut, hold)


def _refused(attempt: RecordedAttempt, asked: Asked, hold: Hold | None) -> Reply:
    status = attempt.status or 0
    body, kind = attempt.body, _recorded_type(attempt) or _JSON
    if body is None:
        body, kind = error_body(asked.provider.API, status, attempt.error, attempt.error_type)
    headers = _headers(attempt, kind)
    if status < 400:
        headers = (*headers, ("location", urlsplit(asked.url).path))  # it was followed to what the next attempt holds
    else:
        headers = (*headers, ("retry-after-ms", "1"))
    return Reply(status, headers, (_bytes(body),) if body else (), hold=hold)


def error_body(api: str, status: int, message: str | None, kind: str | None) -> tuple[str, str]:
    """A refusal's body as the provider would say it, and its content type, where the recording has only the words."""
    if kind is None or kind.startswith("http_"):  # it was no JSON then
        return message or "", "text/plain; charset=utf-8"
    said: dict[str, Any] = {"type": kind, "message": message or kind}
    if api.startswith("google."):
        return json.dumps({"error": {"code": status, "message": message or kind, "status": kind}}), _JSON
    if api.startswith("openai."):
        return json.dumps({"error": {**said, "param": None, "code": kind}}), _JSON
    return json.dumps({"type": "error", "error": said}), _JSON


def _as_stream(attempt: RecordedAttempt, asked: Asked) -> tuple[tuple[bytes, ...], str]:
    texts = [text for _, text in attempt.chunks]
    if texts and TOO_LONG not in texts:
        return tuple(map(_bytes, texts)), _recorded_type(attempt) or _EVENTS
    body = _decoded(attempt.response)
    if asked.provider.API.startswith("google.") and "alt=sse" not in asked.url:
        whole = body if isinstance(body, list) else [body]
        return (_bytes(json.dumps(whole, ensure_ascii=False)),), _JSON
    if not isinstance(body, dict):
        return (_bytes(attempt.response or ""),), _recorded_type(attempt) or _EVENTS
    return tuple(asked.provider.stream(body, _decoded(asked.raw))), _EVENTS


def _as_whole(attempt: RecordedAttempt, asked: Asked) -> str | None:
    text = attempt.response
    if text is None and attempt.chunks:
        body, _ = asked.provider.assemble(sse_events("".join(t for _, t in attempt.chunks)))
        text = json.dumps(body, ensure_ascii=False) if body is not None else None
    body = _decoded(text) if attempt.stream else None
    if isinstance(body, dict) and any(mark in body for mark in _OUR_MARKS):
        text = json.dumps({k: v for k, v in body.items() if k not in _OUR_MARKS}, ensure_ascii=False)
    return text


def _cut(attempt: RecordedAttempt) -> ReplyError | None:
    """What ended the answer before its end: the transport's exception, or the recorded program, which read no further."""
    kind = attempt.error_type
    if kind is not None and _RAISED.fullmatch(kind):
        return ReplyError(kind, attempt.error or kind)
    return _LEFT_OFF if attempt.partial and kind is None else None


def _headers(attempt: RecordedAttempt, content_type: str) -> tuple[tuple[str, str], ...]:
    kept = tuple((k, v) for k, v in attempt.headers if k.lower() not in _NOT_SERVED)
    return (("content-type", content_type), *kept)


def _recorded_type(attempt: RecordedAttempt) -> str | None:
    return next((v for k, v in attempt.headers if k.lower() == "content-type"), None)


def _decoded(text: str | bytes | None) -> Any:
    try:
        value: Any = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return value


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


__all__ = ["error_body", "reply"]
