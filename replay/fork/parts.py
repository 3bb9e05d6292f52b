"""The parts of a turn that can be edited, each with its path and the text that an editor gets; and an edited text as an edit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...tracer.canonical import canonical
from ...tracer.errors import UsageError
from ..message_parts import role
from .draft import Draft
from .edits import Edit
from .paths import Step, fitting, tool_name, written
from .shapes import text_of

_TEXTS = ("text", "input_text", "output_text")
_PLAIN = ("content", "output", "arguments", "input")
_WORDS = ("text", "thinking", "refusal")


@dataclass(frozen=True, slots=True)
class Part:
    """Something that can be edited.

    Attributes:
        steps: Where it is (see `paths`).
        kind: system, tools, model, parameter, message, call, result or response.
        title: What it is, in a few words: ``[3] user``.
        text: What stands there now: words as they are, everything else as indented JSON.
        json: The text must be JSON.
        there: False where the recording has nothing there.
    """

    steps: tuple[Step, ...]
    kind: str
    title: str
    text: str
    json: bool = False
    there: bool = True

    @property
    def path(self) -> str:
        """The path as an edit has it."""
        return written(self.steps)


def parts(draft: Draft) -> tuple[Part, ...]:
    """Every part of a draft, in the order in which the model reads them; then the answer of its turn."""
    return (*_system(draft), *_tools(draft), *_parameters(draft), *_messages(draft), *_answer(draft))


def edit_of(part: Part, text: str) -> Edit | None:
    """The edit that puts a text in place of a part's; None where that changes nothing.

    Raises:
        UsageError: ``bad-json``: it must be JSON and is none; says where.
    """
    if text == part.text:
        return None
    value = text
    if part.json:
        wanted = decoded(text, part.path)
        if part.there and canonical(wanted) == canonical(json.loads(part.text)):
            return None
    elif fitting(text, "", part.path) != text:
        value = json.dumps(text, ensure_ascii=False)  # words that look like JSON stay words
    mark = "@" if value.startswith("@") else ""
    return Edit(part.steps, value, f"{part.path}={mark}{value}")


def excludes(one: Part, other: Part) -> bool:
    """True when an edit of one takes the place of an edit of the other: a whole and a part of it."""
    short, long = sorted((one.steps, other.steps), key=len)
    if long[: len(short)] == short:
        return True
    whole = len(short) == 3 and short[0] == "turn" and short[2] == "response"
    return whole and long[:2] == short[:2] and long[-1] != "result"


def decoded(text: str, what: str) -> Any:
    """The value of a JSON text.

    Raises:
        UsageError: ``bad-json``, with line and column (both from 1).
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UsageError("bad-json", f"{what} must be JSON: {error.msg} at {where}", f"Mend {where}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError("bad-json", f"{what} must be JSON: {error}") from None


def place_of(text: str) -> tuple[int, int] | None:
    """Line and column (from 0) of the first mistake in a JSON text; None where there is none."""
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        return error.lineno - 1, error.colno - 1
    except (ValueError, RecursionError):
        return 0, 0
    return None


def indented(value: Any) -> str:
    """A value as JSON text for a person."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _system(draft: Draft) -> Iterator[Part]:
    value = draft.body.get("instructions" if draft.api == "openai.responses" else "system")
    if draft.api == "openai.chat":
        spoken = (m for m in draft.messages if isinstance(m, dict) and m.get("role") in ("system", "developer"))
        value = next((m.get("content") for m in spoken), None)
    if isinstance(value, list) and value:
        for place, block in enumerate(value, 1):
            title = "system" if len(value) == 1 else f"system {place}"
            if isinstance(block, dict) and isinstance(block.get("text"), str):
                yield Part(("system", place, "text"), "system", title, block["text"])
            else:
                yield Part(("system", place), "system", title, indented(block), True)
    else:
        text = value if isinstance(value, str) else ""
        yield Part(("system",), "system", "system", text, there=isinstance(value, str))


def _tools(draft: Draft) -> Iterator[Part]:
    tools = draft.body.get("tools")
    there = isinstance(tools, list) and bool(tools)
    yield Part(("tools",), "tools", "tools", indented(tools if there else []), True, there)
    for place, tool in enumerate(tools if isinstance(tools, list) else [], 1):
        name = tool_name(tool) or (tool.get("type") if isinstance(tool, dict) else None)
        yield Part(("tools", place), "tools", str(name or f"tool {place}"), indented(tool), True)


def _parameters(draft: Draft) -> Iterator[Part]:
    model = draft.body.get("model")
    yield Part(("model",), "model", "model", model if isinstance(model, str) else "", there=isinstance(model, str))
    known = (draft.list_key, "system", "instructions", "tools", "model")
    for name, value in draft.body.items():
        if name not in known:
            text = isinstance(value, str)
            yield Part(("params", name), "parameter", name, value if text else indented(value), not text)


def _messages(draft: Draft) -> Iterator[Part]:
    first = next((m for m in draft.messages if isinstance(m, dict) and m.get("role") in ("system", "developer")), None)
    for place, message in enumerate(draft.messages, 1):
        if draft.api == "openai.chat" and message is first:
            continue  # it is the system prompt
        yield from _message(("messages", place), message, f"[{place}] {role(message)}")


def _message(steps: tuple[Step, ...], message: Any, title: str) -> Iterator[Part]:
    if isinstance(message, str):
        yield Part(steps, "message", title, message)
        return
    found = list(_inside(steps, message, title)) if isinstance(message, dict) else []
    yield from found or [Part(steps, "message", title, indented(message), True)]


def _inside(steps: tuple[Step, ...], message: dict[str, Any], title: str) -> Iterator[Part]:
    kind = str(message.get("type") or "")
    if kind.endswith(("_call", "_call_output")):  # an item of a Responses input
        yield from _item(steps, message, title)
        return
    for key in ("content", "parts"):
        value = message.get(key)
        if isinstance(value, str) and value:
            name = "result" if message.get("role") == "tool" else "message"
            yield Part((*steps, key), name, title, value)
        for place, block in enumerate(value if isinstance(value, list) else [], 1):
            yield _block((*steps, key, place), block, title)
    calls = message.get("tool_calls")
    for place, call in enumerate(calls if isinstance(calls, list) else [], 1):
        inner = call.get("function") if isinstance(call, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("arguments"), str):
            where = (*steps, "tool_calls", place, "function", "arguments")
            yield Part(where, "call", f"{title} → {inner.get('name')}", inner["arguments"])


def _item(steps: tuple[Step, ...], item: dict[str, Any], title: str) -> Iterator[Part]:
    for key in _PLAIN:
        if isinstance(item.get(key), str):
            name = "result" if key == "output" else "call"
            label = f"{title} → {item.get('name')}" if name == "call" else f"{title} result"
            yield Part((*steps, key), name, label, item[key])


def _block(steps: tuple[Step, ...], block: Any, title: str) -> Part:
    if not isinstance(block, dict):
        return Part(
            steps, "message", title, block if isinstance(block, str) else indented(block), not isinstance(block, str)
        )
    kind = block.get("type")
    for key in _WORDS:
        if isinstance(block.get(key), str):
            label = title if key == "text" else f"{title} {key}"
            return Part((*steps, key), "message", label, block[key])
    if "input" in block and kind == "tool_use":
        return Part((*steps, "input"), "call", f"{title} → {block.get('name')}", indented(block["input"]), True)
    if kind == "tool_result" and "content" in block:
        return _result((*steps, "content"), block["content"], f"{title} result")
    return Part(steps, "message", f"{title} {kind or ''}".rstrip(), indented(block), True)


def _result(steps: tuple[Step, ...], content: Any, title: str) -> Part:
    if isinstance(content, str):
        return Part(steps, "result", title, content)
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        inner = content[0]
        if inner.get("type") in _TEXTS and isinstance(inner.get("text"), str):
            return Part((*steps, 1, "text"), "result", title, inner["text"])
    return Part(steps, "result", title, indented(content), True)


def _answer(draft: Draft) -> Iterator[Part]:
    """The answer of the turn, where it has one; an edit of it keeps the answer and goes on from there."""
    turn = draft.turn
    response = draft.response if draft.response is not None else turn.response
    if not isinstance(response, dict):
        return
    where: tuple[Step, ...] = ("turn", draft.number)
    text = turn.text or text_of(response)
    yield Part((*where, "response", "text"), "response", "answer", text, there=bool(text))
    for place, call in enumerate((c for c in turn.tool_calls if c.origin != "provider"), 1):
        steps = (*where, "calls", place)
        try:
            arguments, known = indented(json.loads(call.arguments_raw)), True
        except (ValueError, RecursionError):
            arguments, known = call.arguments_raw, False
        yield Part((*steps, "arguments"), "call", f"→ {call.name}", arguments, known)
        plain = call.result is None or isinstance(call.result, str)
        result = (call.result or "") if plain else indented(call.result)
        yield Part((*steps, "result"), "result", f"{call.name} result", str(result), not plain, call.result is not None)
    yield Part((*where, "response"), "response", "answer, whole", indented(response), True)
