"""A tool's failure as the model is told: short, sanitised JSON with the cause, the argument and a valid retry."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....tracer.calls import error_class
from ....tracer.quiet import words
from ....tracer.redaction import redact
from ..toolbox import ToolError, ToolResult

MAX_CAUSE = 400
MAX_RETRY = 400
_LOOKED_AT = 100_000

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|</?[a-zA-Z!][^<>]{0,400}>", re.DOTALL | re.IGNORECASE)
_TRACE = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t]+[^\n]*(?:\n|$))*")
_FRAMES = re.compile(
    r'^\s*(?:File ".*", line \d+.*|at .+\(.*:\d+(?::\d+)?\)|Traceback \(most recent call last\):|[~^\s]*\^[~^\s]*)\s*$'
)
_TRANSIENT_NAMES = ("Timeout", "ConnectError", "ReadError", "WriteError", "RemoteProtocolError", "ConnectionError")
_TRANSIENT_STATUS = (408, 409, 425, 429)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call did not work.

    Attributes:
        kind: ``invalid_arguments``, ``malformed_arguments``, ``ambiguous_call``, ``unknown_tool``,
            ``tool_failed``, ``timed_out``, ``denied``, ``cancelled``, ``not_recorded``.
        error_class: transient, permanent, denied or cancelled.
        retry: What a valid retry looks like: arguments, or a sentence.
    """

    kind: str
    cause: str
    error_class: str = "permanent"
    argument: str | None = None
    retry: Any = None
    retry_after: float | None = None

    def result(self, *, attempts: int = 1) -> ToolResult:
        """The result that tells the model of it."""
        told: dict[str, Any] = {"error": self.kind, "cause": clean(self.cause, MAX_CAUSE)}
        if self.argument:
            told["argument"] = clean(self.argument, 100)
        if self.retry is not None:
            told["retry"] = _short(self.retry)
        if attempts > 1:
            told["attempts"] = attempts
        return ToolResult(json.dumps(told, ensure_ascii=False), is_error=True, error_class=self.error_class)


def clean(text: str, limit: int) -> str:
    """A text without control codes, markup, stack frames, secrets and this machine's home, cut in its middle."""
    if len(text) > _LOOKED_AT:
        text = f"{text[: _LOOKED_AT // 2]}\n{text[-_LOOKED_AT // 2 :]}"
    plain = _TAGS.sub(" ", _TRACE.sub("", _CONTROL.sub("", text)))
    lines = [line.strip() for line in plain.splitlines() if line.strip() and not _FRAMES.match(line)]
    said = redact(" ".join(lines)).replace(str(Path.home()), "~")
    said = " ".join(said.split())
    if len(said) <= limit:
        return said
    head, tail = limit * 2 // 3, limit // 3
    return f"{said[:head].rstrip()} […] {said[-tail:].lstrip()}"


def failure_of(error: BaseException) -> Failure:
    """What an exception of a tool means."""
    if isinstance(error, ToolError):
        kind = "denied" if error.error_class == "denied" else "tool_failed"
        return Failure(kind, words(error), error.error_class, error.argument, error.retry, error.retry_after)
    status, headers = _http(error)
    said = words(error) or type(error).__name__
    cause = said if type(error).__name__ in said else f"{type(error).__name__}: {said}"
    if status is not None:
        if status in (401, 403):
            return Failure("denied", cause, "denied")
        if status in _TRANSIENT_STATUS or status >= 500:
            return Failure("tool_failed", cause, "transient", retry_after=retry_after(headers))
        return Failure("tool_failed", cause, "permanent")
    found = error_class(error) or ("transient" if type(error).__name__.endswith(_TRANSIENT_NAMES) else "permanent")
    kind = "denied" if found == "denied" else "cancelled" if found == "cancelled" else "tool_failed"
    return Failure(kind, cause, found, _blamed(error))


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Seconds that a server asks to wait: ``retry-after-ms``, or ``retry-after`` in seconds or as a date."""
    from email.utils import parsedate_to_datetime

    from ....tracer.clock import now

    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        told = (headers or {}).get(name)
        if told is None:
            continue
        try:
            return max(0.0, float(told) * scale)
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(told).timestamp() - now() / 1_000_000)
        except (ValueError, TypeError):
            continue
    return None


def _http(error: BaseException) -> tuple[int | None, Mapping[str, str] | None]:
    """Status and headers of an HTTP library's exception."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None) or getattr(error, "status_code", None)
    headers = getattr(response, "headers", None)
    return (status if isinstance(status, int) else None), headers if isinstance(headers, Mapping) else None


def _blamed(error: BaseException) -> str | None:
    """The argument that an exception names: the key of a KeyError, the file of an OSError."""
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        return error.args[0]
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return error.filename
    return None


def _short(retry: Any) -> Any:
    if isinstance(retry, str):
        return clean(retry, MAX_RETRY)
    text = json.dumps(retry, ensure_ascii=False)
    return retry if len(text) <= MAX_RETRY else clean(text, MAX_RETRY)
