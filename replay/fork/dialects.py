"""A request in another provider's words: Anthropic Messages or OpenAI Chat, out of whatever was recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ..message_parts import MessagePart, parts, plain_text, role
from .shapes import results_of

ANTHROPIC, CHAT, RESPONSES = "anthropic.messages", "openai.chat", "openai.responses"
_CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_SAME = ("temperature", "top_p")
_ROLES = ("user", "assistant")
_NEEDED = {"max_tokens": 8192}


class Notes:
    """Counts what could not be said in the other words."""

    def __init__(self) -> None:
        self.lost: Counter[str] = Counter()
        self.speakers: set[str] = set()

    def lines(self) -> tuple[str, ...]:
        """One line for each kind of loss."""
        said = [f"{count}x {what}" for what, count in self.lost.items()]
        if self.speakers:
            said.append(f"sent as the user's words, the name in front: {', '.join(sorted(self.speakers))}")
        return tuple(said)


def is_anthropic(messages: list[Any]) -> bool:
    """True when all messages are what Anthropic takes as they are."""
    return all(
        isinstance(m, dict) and m.get("role") in _ROLES and isinstance(m.get("content"), (str, list)) and "tool_calls" not in m
        for m in messages
    )  # fmt: skip


def to_anthropic(body: Mapping[str, Any], messages: list[Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A request in Anthropic's shape and what was lost on the way, one line each."""
    notes = Notes()
    made = _shared(body, notes)
    made["max_tokens"] = _cap(body) or _NEEDED["max_tokens"]
    systems = [plain_text(_said(body))] if _said(body) else []
    out: list[dict[str, Any]] = []
    names = _Ids()
    for message in messages:
        who = role(message)
        if who in ("system", "developer") and not out:
            systems.append(" ".join(p.text for p in parts(message)) if isinstance(message, dict) else str(message))
            continue
        blocks = list(_blocks(message, who, names, notes))
        speaker = "assistant" if who == "assistant" else "user"
        if out and out[-1]["role"] == speaker:
            out[-1]["content"] += blocks
        elif blocks:
            out.append({"role": speaker, "content": blocks})
    if out and out[0]["role"] == "assistant":
        out.insert(0, {"role": "user", "content": [{"type": "text", "text": "(the recording begins here)"}]})
        notes.lost["message put in front: the list began with the model's words"] += 1
    if systems:
        made["system"] = "\n\n".join(systems)
    if body.get("tools"):
        made["tools"] = [t for given in body["tools"] for t in _tools(given, "input_schema", notes)]
    made["messages"] = out
    return made, notes.lines()


def to_chat(body: Mapping[str, Any], messages: list[Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A request in the shape of OpenAI Chat Completions and what was lost on the way, one line each."""
    notes = Notes()
    made = _shared(body, notes)
    cap = _cap(body)
    if cap:
        made["max_completion_tokens"] = cap
    out: list[dict[str, Any]] = []
    if _said(body):
        out.append({"role": "system", "content": plain_text(_said(body))})
    names = _Ids()
    for message in messages:
        out += _chat(message, names, notes)
    if body.get("tools"):
        tools = [t for given in body["tools"] for t in _tools(given, "parameters", notes)]
        made["tools"] = [{"type": "function", "function": t} for t in tools]
    made["messages"] = out
    return made, notes.lines()


def _shared(body: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    made = {"model": body["model"]} if body.get("model") else {}
    made.update({k: body[k] for k in _SAME if k in body})
    known = {*_CAPS, *_SAME, "model", "system", "instructions", "tools", "messages", "input", "contents", "stream"}
    for key in body:
        if key not in known:
            notes.lost[f"parameter left out: {key}"] += 1
    return made


def _blocks(message: Any, who: str, names: _Ids, notes: Notes) -> Iterator[dict[str, Any]]:
    told = {id(r): r for r in results_of(message)}
    contents = iter(told.values())
    for part in parts(message):
        if part.kind == "call" and who == "assistant":
            yield {
                "type": "tool_use",
                "id": names.call(part.call),
                "name": part.name or "",
                "input": _input(part, notes),
            }
        elif part.kind == "result":
            at = next(contents, None)
            content = at.holder.get(at.key) if at is not None else part.text
            content = content if isinstance(content, str) or _anthropic_blocks(content) else part.text
            failed = {"is_error": True} if part.is_error else {}
            yield {"type": "tool_result", "tool_use_id": names.result(part.call), "content": content, **failed}
        elif (text := _words(part, who, notes)) is not None:
            yield {"type": "text", "text": text}


def _chat(message: Any, names: _Ids, notes: Notes) -> Iterator[dict[str, Any]]:
    who = role(message)
    words: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in parts(message):
        if part.kind == "call" and who == "assistant":
            inner = {"name": part.name or "", "arguments": part.text}
            calls.append({"id": names.call(part.call), "type": "function", "function": inner})
        elif part.kind == "result":
            yield {"role": "tool", "tool_call_id": names.result(part.call), "content": part.text}
        elif (text := _words(part, who, notes)) is not None:
            words.append(text)
    if not words and not calls:
        return
    speaker = who if who in ("user", "assistant", "system", "developer") else "user"
    made: dict[str, Any] = {"role": speaker, "content": "\n\n".join(words) or None}
    yield {**made, "tool_calls": calls} if calls else made


def _words(part: MessagePart, who: str, notes: Notes) -> str | None:
    """A part as words; None for what the other provider cannot be told."""
    if part.kind == "thinking":
        notes.lost["thinking left out: another provider's cannot be sent"] += 1
        return None
    if part.kind in ("image", "other"):
        notes.lost["image or other part replaced by its description"] += 1
    if not part.text:
        return None
    known = ("user", "assistant", "system", "developer", "tool", "?")
    if who not in known:
        notes.speakers.add(who)
        return f"[{who}] {part.text}"
    return f"[{who}] {part.text}" if who in ("system", "developer") else part.text


def _input(part: MessagePart, notes: Notes) -> Any:
    try:
        value = json.loads(part.text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    notes.lost["call whose arguments are no JSON object: sent as {'arguments': text}"] += 1
    return {"arguments": part.text}


def _tools(tool: Any, schema: str, notes: Notes) -> Iterator[dict[str, Any]]:
    """A definition as name, description and schema; Gemini's lists hold several."""
    if not isinstance(tool, dict):
        return
    several = tool.get("functionDeclarations") or tool.get("function_declarations")
    if isinstance(several, list):
        for one in several:
            yield from _tools(one, schema, notes)
        return
    inner = tool["function"] if isinstance(tool.get("function"), dict) else tool
    if not isinstance(inner.get("name"), str):
        notes.lost["tool of the provider's own left out"] += 1
        return
    found = inner.get("input_schema") or inner.get("parameters") or inner.get("inputSchema") or {"type": "object"}
    made = {"name": inner["name"], schema: found}
    yield {**made, "description": inner["description"]} if isinstance(inner.get("description"), str) else made


class _Ids:
    """Call ids, each used once: where calls go by their tool's name, the n-th result belongs to the n-th call."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self._results: Counter[str] = Counter()

    def call(self, given: str | None) -> str:
        self._calls[given or "call"] += 1
        return self._of(given, self._calls)

    def result(self, given: str | None) -> str:
        if self._results[given or "call"] < self._calls[given or "call"]:
            self._results[given or "call"] += 1
        return self._of(given, self._results)

    @staticmethod
    def _of(given: str | None, counted: Counter[str]) -> str:
        key = given or "call"
        return key if counted[key] <= 1 else f"{key}_{counted[key]}"


def _anthropic_blocks(content: Any) -> bool:
    return isinstance(content, list) and all(
        isinstance(b, dict) and b.get("type") in ("text", "image") for b in content
    )


def _said(body: Mapping[str, Any]) -> Any:
    system = body.get("system") or body.get("instructions")
    if isinstance(system, dict):  # Gemini's systemInstruction
        return "\n\n".join(p.text for p in parts(system))
    return system


def _cap(body: Mapping[str, Any]) -> int | None:
    return next((v for k in _CAPS if isinstance(v := body.get(k), int)), None)
