"""Inspect's messages, tools, outputs and usage in the words of chat completions; attachments put back in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...model import Usage
from ...providers import openai_chat
from ...providers.answer import Answer, AnswerCall, count, mapping, objects, text_of
from .inspect_parts import Texts

API = openai_chat.API
MAX_ATTACHED = 64 << 20  # characters that attachments may put into one message

_PREFIXES = ("attachment://", "tc://")
_ENDS = {"stop": "completed", "max_tokens": "limit", "model_length": "limit", "content_filter": "completed"}
_CLASSES = {"timeout": "transient", "approval": "denied", "cancelled": "cancelled", "parsing": "semantic"}
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


class Attachments:
    """The long texts of a sample, which its messages hold by hash."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self.missing = 0
        self.refused = 0
        self._left = MAX_ATTACHED

    def resolved(self, value: Any) -> Any:
        """The value with every reference replaced by its text, as far as the limit of one message goes."""
        self._left = MAX_ATTACHED
        return self._resolved(value, 0)

    def _resolved(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value) if value.startswith(_PREFIXES) else value
        if depth > 100:
            return value
        if isinstance(value, list):
            return [self._resolved(v, depth + 1) for v in value]
        if isinstance(value, dict):
            return {k: self._resolved(v, depth + 1) for k, v in value.items()}
        return value

    def _text(self, reference: str) -> str:
        found = text_of(self._texts.get(reference.partition("://")[2]))
        if found is None:
            self.missing += 1
            return reference
        if len(found) > self._left:
            self.refused += 1
            return reference
        self._left -= len(found)
        return found


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why a tool failed, by Inspect's word, and our class of it where the word says so much."""

    message: str
    kind: str | None

    @property
    def error_class(self) -> str | None:
        """transient, denied, cancelled, semantic or None."""
        return _CLASSES.get(self.kind or "")


def tool_error(error: Any) -> ToolError | None:
    """The ``error`` of a tool message or event."""
    if isinstance(error, dict):
        return ToolError(text_of(error.get("message")) or "", text_of(error.get("type")))
    return ToolError(error, None) if isinstance(error, str) and error else None


def message(given: Mapping[str, Any]) -> dict[str, Any]:
    """A message as a chat API has it. Ids, sources and the model's name go, so that equal messages are equal."""
    role = text_of(given.get("role")) or "user"
    thoughts, content = _content(given.get("content"))
    found: dict[str, Any] = {"role": role, "content": content}
    if thoughts:
        found["reasoning_content"] = thoughts
    calls = [_call(c) for c in objects(given.get("tool_calls"))]
    if calls:
        found["tool_calls"] = calls
    if role == "tool":
        found["tool_call_id"] = text_of(given.get("tool_call_id"))
        if given.get("error"):
            found["error"] = given["error"]
    return found


def result_path(converted: Mapping[str, Any]) -> str:
    """Where a tool message has what the model saw: an error without other content is its own text."""
    error = converted.get("error")
    told = isinstance(error, dict) and isinstance(error.get("message"), str)
    return "$.error.message" if told and not converted.get("content") else "$.content"


def tools(given: Any) -> list[dict[str, Any]] | None:
    """The tool list as a chat API has it."""
    found = [
        {
            "type": "function",
            "function": {k: t[k] for k in ("name", "description", "parameters") if t.get(k) is not None},
        }
        for t in objects(given)
    ]
    return found or None


def completion(output: Any, response_id: str | None = None) -> dict[str, Any]:
    """The output of a model event as a chat completion; the stop reason stays Inspect's word."""
    output = mapping(output)
    choices = [
        {"index": index, "message": message(mapping(c.get("message"))), "finish_reason": text_of(c.get("stop_reason"))}
        for index, c in enumerate(objects(output.get("choices")))
    ]
    body = {"id": response_id, "object": "chat.completion", "model": text_of(output.get("model")), "choices": choices}
    return {
        **{k: v for k, v in body.items() if v is not None},
        **({"usage": output["usage"]} if output.get("usage") else {}),
    }


def answer(output: Any, body: Mapping[str, Any]) -> Answer:
    """What a completion made by `completion` says, with Inspect's own marks for calls that do not parse."""
    output = mapping(output)
    said = openai_chat.answer(body)
    first = next(iter(objects(output.get("choices"))), {})
    raw = objects(mapping(first.get("message")).get("tool_calls"))
    calls = tuple(_judged(call, given) for call, given in zip(said.calls, raw, strict=False))
    error = text_of(output.get("error"))
    end = "failed" if error else _ENDS.get(said.stop_reason or "")
    return replace(
        said,
        calls=calls,
        usage=usage(output.get("usage")),
        error=error,
        end=None if calls and end == "completed" else end,
    )


def usage(raw: Any) -> Usage:
    """Disjoint buckets. Whether the input includes cached tokens differs by provider: the total tells."""
    if not isinstance(raw, dict):
        return Usage()
    given, output, total = (count(raw.get(f"{n}_tokens")) for n in ("input", "output", "total"))
    read, write = count(raw.get("input_tokens_cache_read")), count(raw.get("input_tokens_cache_write"))
    reasoning = count(raw.get("reasoning_tokens"))
    cached = (read or 0) + (write or 0)
    found, partial = given, False
    if given is not None and (cached or reasoning):
        plain = given + (output or 0)
        if total == plain + cached + (reasoning or 0) and reasoning:
            output = (output or 0) + reasoning
        elif total == plain + (reasoning or 0) and reasoning:
            found, output = max(0, given - cached), (output or 0) + reasoning
        elif total == plain:
            found = max(0, given - cached)
        elif total != plain + cached and cached:
            found, partial = None, True
    return Usage(found, read, write, None, output, reasoning, origin="recorded", partial=partial, raw=raw)


def names(model: Any) -> tuple[str | None, str | None]:
    """Provider and model of Inspect's ``provider/model``."""
    if not isinstance(model, str):
        return None, None
    provider, slash, name = model.partition("/")
    return (provider, name) if slash and name else (None, model)


def texts(content: Any) -> str:
    """The words of a message's content."""
    if isinstance(content, str):
        return content
    return "\n".join(text_of(part.get("text")) or "" for part in objects(content)).strip()


def dumps(value: Any) -> str:
    """JSON text by which two messages are compared."""
    return _dumps(value)


def _content(content: Any) -> tuple[str | None, Any]:
    """Thoughts, and what else a message holds."""
    if not isinstance(content, list):
        return None, content if isinstance(content, str) else "" if content is None else _dumps(content)
    thoughts = [t for p in objects(content) if (t := _thought(p))]
    rest = [_part(p) for p in content if not (isinstance(p, dict) and p.get("type") == "reasoning")]
    if all(isinstance(p, dict) and p.get("type") == "text" and set(p) == {"type", "text"} for p in rest):
        return "\n\n".join(thoughts) or None, rest[0]["text"] if len(rest) == 1 else rest or ""
    return "\n\n".join(thoughts) or None, rest


def _thought(part: Mapping[str, Any]) -> str | None:
    if part.get("type") != "reasoning":
        return None
    hidden = part.get("redacted") is True  # then ``reasoning`` is ciphertext
    return text_of(part.get("summary")) or (None if hidden else text_of(part.get("reasoning")))


def _part(part: Any) -> Any:
    if not isinstance(part, dict):
        return {"type": "text", "text": part if isinstance(part, str) else _dumps(part)}
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if part.get("type") == "image" and isinstance(part.get("image"), str):
        return {"type": "image_url", "image_url": {"url": part["image"]}}
    return part


def _call(given: Mapping[str, Any]) -> dict[str, Any]:
    arguments = given.get("arguments")
    raw = arguments if isinstance(arguments, str) else _dumps({} if arguments is None else arguments)
    function = {"name": text_of(given.get("function")) or "", "arguments": raw}
    return {"id": text_of(given.get("id")) or "", "type": "function", "function": function}


def _judged(call: AnswerCall, given: Mapping[str, Any]) -> AnswerCall:
    trouble = text_of(given.get("parse_error"))
    return replace(call, valid=False, invalid_reason=trouble) if trouble else call


def expanded(refs: Any, length: int) -> Iterator[int]:
    """The positions in a pool that ranges name; a range beyond the pool gives what is there."""
    for pair in refs if isinstance(refs, list) else []:
        if isinstance(pair, list) and len(pair) == 2 and all(count(n) is not None and n >= 0 for n in pair):
            yield from range(pair[0], min(pair[1], length))
