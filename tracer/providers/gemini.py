"""Google's generateContent: requests, responses and their chunks, of the Gemini API and of Vertex."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..model import Usage
from .answer import (
    Answer,
    AnswerCall,
    RequestParts,
    SeenResult,
    call_of,
    count,
    cut_short,
    decoded,
    dumped,
    joined,
    mapping,
    objects,
    text_of,
)
from .sse import event

API = "google.generate_content"
NAME = "google"
LIST_KEY = "contents"

_PATH = re.compile(r":(?:stream)?generateContent$", re.IGNORECASE)
_NOT_PARAMS = frozenset({"contents", "systemInstruction", "system_instruction", "tools", "model"})
_ENDS = {"STOP": "completed", "MAX_TOKENS": "limit", "MALFORMED_FUNCTION_CALL": "failed", "OTHER": "failed"}


def recognise(path: str) -> bool:
    """True for POST paths ``models/NAME:generateContent`` and ``:streamGenerateContent``."""
    return _PATH.search(path) is not None


def request(body: Mapping[str, Any]) -> RequestParts:
    """The parts of a request. The model stands in the path, so that only the answer names it."""
    return RequestParts(
        model=text_of(body.get("model")),
        system=body.get("systemInstruction") or body.get("system_instruction"),
        tools=body.get("tools"),
        params={k: v for k, v in body.items() if k not in _NOT_PARAMS},
    )


def results(message: Any) -> list[SeenResult]:
    """The functionResponse parts of a content; without an id they go by the function's name."""
    found, names = [], _Names()
    for index, part in enumerate(_parts(message)):
        given = _member(part, "functionResponse", "function_response")
        if given is None:
            continue
        key = "functionResponse" if "functionResponse" in part else "function_response"
        response = given.get("response")
        failed = isinstance(response, dict) and "error" in response and "output" not in response
        found.append(SeenResult(names.of(given), response, failed, f"$.parts[{index}].{key}.response"))
    return found


def is_prompt(message: Any) -> bool:
    """A content of the user that holds more than results."""
    if isinstance(message, str):
        return True
    if not isinstance(message, dict) or message.get("role", "user") != "user":
        return False
    return any(_member(p, "functionResponse", "function_response") is None for p in _parts(message))


def answer(body: Any) -> Answer:
    """A GenerateContentResponse, whole or partial; a list of chunks (a stream without SSE) is put together first."""
    if isinstance(body, list):
        body = _merged(objects(body))
    body = mapping(body)
    error, error_type = _error(body.get("error") or body.get("stream_error"))
    candidate = next(iter(objects(body.get("candidates"))), {})
    parts = _parts(candidate.get("content"))
    stop = text_of(candidate.get("finishReason")) or text_of(mapping(body.get("promptFeedback")).get("blockReason"))
    calls = _calls(parts)
    end = _ENDS.get(stop or "", "completed" if stop else None)
    return Answer(
        id=text_of(body.get("responseId")),
        model=text_of(body.get("modelVersion")),
        stop_reason=stop,
        text=joined([_text(p) for p in parts if p.get("thought") is not True]),
        thinking=joined([_text(p) for p in parts if p.get("thought") is True]),
        calls=calls,
        usage=cut_short(usage(body.get("usageMetadata")), body),
        error=error,
        error_type=error_type,
        end=None if calls and end == "completed" else end,
    )


def usage(raw: Any) -> Usage:
    """Gemini counts: cached tokens are inside the prompt, thoughts beside the candidates, tool prompts beside both."""
    if not isinstance(raw, dict):
        return Usage()
    prompt, cached = count(raw.get("promptTokenCount")), count(raw.get("cachedContentTokenCount"))
    spoken, thoughts = count(raw.get("candidatesTokenCount")), count(raw.get("thoughtsTokenCount"))
    tool = count(raw.get("toolUsePromptTokenCount"))
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0)) + (tool or 0),
        cache_read=cached,
        output=None if spoken is None and thoughts is None else (spoken or 0) + (thoughts or 0),
        reasoning=thoughts,
        origin="recorded",
        raw=raw,
    )


def assemble(events: Sequence[tuple[str | None, str]]) -> tuple[Any, bool]:
    """Chunks into the response they build; whole when a chunk said why it ends. A cut one is marked ``stream_cut``."""
    chunks = [chunk for _, data in events if (chunk := decoded(data))]
    if not chunks:
        return None, False
    body = _merged(chunks)
    candidates = objects(body.get("candidates"))
    ended = bool(candidates) and all(text_of(c.get("finishReason")) for c in candidates)
    blocked = text_of(mapping(body.get("promptFeedback")).get("blockReason")) is not None
    whole = (ended or blocked) and "stream_error" not in body
    if not whole:
        body["stream_cut"] = True
    return body, whole


def stream(body: Mapping[str, Any], request: Any = None) -> list[bytes]:
    """The response as a stream of one chunk; a cut one says no reason for its end."""
    return [event({("error" if k == "stream_error" else k): v for k, v in body.items() if k != "stream_cut"})]


def _merged(chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for position, part in enumerate(objects(chunk.get("candidates"))):
            index = count(part.get("index"))
            _grow(candidates.setdefault(position if index is None else index, {}), part)
        for key, value in chunk.items():
            if key == "error":
                body["stream_error"] = value
            elif key != "candidates":
                body[key] = value  # counts and the like grow from chunk to chunk
    if candidates:
        body["candidates"] = [candidates[i] for i in sorted(candidates)]
    return body


def _grow(candidate: dict[str, Any], chunk: Mapping[str, Any]) -> None:
    for key, value in chunk.items():
        if key != "content":
            candidate[key] = value
    given = mapping(chunk.get("content"))
    content = candidate.setdefault("content", {"role": given.get("role") or "model", "parts": []})
    for part in _parts(given):
        last = content["parts"][-1] if content["parts"] else None
        if last is not None and _plain(last) and _plain(part) and last.get("thought") == part.get("thought"):
            last["text"] += part["text"]
        else:
            content["parts"].append(dict(part))


def _plain(part: Mapping[str, Any]) -> bool:
    """A part that is nothing but a piece of text; a signature must stay with its own part."""
    return isinstance(part.get("text"), str) and not set(part) - {"text", "thought"}


def _parts(content: Any) -> list[dict[str, Any]]:
    return objects(mapping(content).get("parts"))


def _text(part: Mapping[str, Any]) -> str:
    return text_of(part.get("text")) or ""


def _member(part: Mapping[str, Any], *names: str) -> dict[str, Any] | None:
    return next((part[n] for n in names if isinstance(part.get(n), dict)), None)


def _calls(parts: list[dict[str, Any]]) -> tuple[AnswerCall, ...]:
    names, found = _Names(), []
    for part in parts:
        given = _member(part, "functionCall", "function_call")
        if given is not None:
            arguments = given.get("args")
            raw = dumped(arguments if arguments is not None else {})
            found.append(call_of(names.of(given), text_of(given.get("name")) or "", raw))
    return tuple(found)


class _Names:
    """Ids of calls and their results in one content; where the API gives none, the name and its occurrence."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}

    def of(self, given: Mapping[str, Any]) -> str:
        if name := text_of(given.get("id")):
            return name
        name = text_of(given.get("name")) or ""
        self._times[name] = self._times.get(name, 0) + 1
        return name if self._times[name] == 1 else f"{name}#{self._times[name]}"


def _error(error: Any) -> tuple[str | None, str | None]:
    """Message and status word of an error body."""
    if not error:
        return None, None
    known = mapping(error)
    kind = text_of(known.get("status"))
    return text_of(known.get("message")) or text_of(error) or kind or "error", kind


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
