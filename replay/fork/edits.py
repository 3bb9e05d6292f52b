"""Edits of a request: `PATH=VALUE` put into a copy of it, and turns taken out of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from ...tracer.errors import UsageError
from .align import Place, places
from .draft import Draft
from .dropping import without
from .paths import Step, fitting, listed, nothing, parse, put, value_of, written
from .turn_edits import edit_turn

_SYSTEM = {"openai.responses": "instructions"}
_KNOWN = frozenset(
    {
        "model", "tools", "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "max_output_tokens", "thinking", "seed",
        "tool_choice", "parallel_tool_calls", "stop", "stop_sequences", "reasoning", "reasoning_effort", "metadata",
        "service_tier", "response_format", "output_config", "text", "frequency_penalty", "presence_penalty",
    }
)  # fmt: skip
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: where, and the text of the new value (a file's content is read already)."""

    path: tuple[Step, ...]
    value: str
    said: str

    @property
    def head(self) -> str:
        """The first name of the path."""
        return str(self.path[0])


def edit(text: str) -> Edit:
    """An edit as the user wrote it, ``PATH=VALUE``.

    Raises:
        UsageError: There is no ``=``, the path is none, or the file behind @ cannot be read.
    """
    path, equals, value = text.partition("=")
    if not equals:
        raise UsageError("bad-edit", f"{text!r} has no =", "An edit is PATH=VALUE, e.g. messages[3].content=@file")
    return Edit(parse(path.strip()), value_of(value), text)


def turns_of(text: str) -> tuple[int, ...]:
    """The turns of ``2-4`` or ``2,5-6``. Raises UsageError when it says none."""
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last:
            raise UsageError("bad-turns", f"{text!r} names no turns", "Say e.g. 2-4, or 2,5-6")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def apply(before: Draft, edits: Sequence[Edit], drop: Sequence[int] = ()) -> Draft:
    """The draft with the edits made and turns dropped; ``before`` stays as it is.

    Paths mean the request as it is printed, also where turns are dropped as well.

    Raises:
        UsageError: A path leads nowhere, or a turn cannot be dropped.
    """
    made = before.copy()
    where = places(made.turns[:-1], made.messages)
    for one in edits:
        made = _one(made, one, where)
    if drop:
        made = without(made, tuple(drop), where)
    return replace(made, edits=(*before.edits, *(e.said for e in edits)))


def _one(made: Draft, one: Edit, where: dict[int, Place]) -> Draft:
    if one.head == "turn":
        return edit_turn(made, one.path, one.value, where)
    if one.head == "system":
        _system(made, one)
    elif one.head in ("messages", made.list_key):
        if len(one.path) == 1:
            made.body[made.list_key] = _list(one)
        else:
            put(made.messages, one.path[1:], one.value, whole=one.path)
            _unsigned(made.messages, one.path)
    elif one.head == "params":
        if len(one.path) < 2:
            raise nothing((*one.path, "NAME"), ("params",), _params(made))
        put(made.body, one.path[1:], one.value, whole=one.path, free=True)
    elif one.head in made.body or one.head in _KNOWN:
        _top(made, one)
    else:
        raise UsageError("no-such-path", f"there is no {written(one.path)}", _what_there_is(made))
    return made


def _top(made: Draft, one: Edit) -> None:
    """Model, tools, a parameter; tools may be given where there are none."""
    if one.head == "tools" and len(one.path) > 2:
        _described(made, one)
        return
    put(made.body, one.path, one.value, whole=one.path, free=len(one.path) == 1 or one.head == "tools")


def _described(made: Draft, one: Edit) -> None:
    """A tool's own keys: in the chat format they are inside ``function``."""
    tools = made.body.get("tools")
    if not isinstance(tools, list):
        raise nothing(one.path, (), made.body)
    wrapped = [t["function"] if isinstance(t, dict) and isinstance(t.get("function"), dict) else t for t in tools]
    steps = one.path[1:]
    if len(steps) > 1 and steps[1] == "function":
        wrapped = tools
    put(wrapped, steps, one.value, whole=one.path, free=True)


def _system(made: Draft, one: Edit) -> None:
    key = _SYSTEM.get(made.api, "system")
    if made.api != "openai.chat":
        if len(one.path) == 1:
            made.body[key] = fitting(one.value, _as_text(made.body.get(key)), "system")
        else:
            put(made.body, (key, *one.path[1:]), one.value, whole=one.path)
        return
    for message in made.messages:
        if isinstance(message, dict) and message.get("role") in ("system", "developer"):
            steps = one.path[1:] or ("content",)
            put(
                message,
                steps if steps[0] == "content" else ("content", *steps),
                one.value,
                whole=(*one.path[:1], *steps),
            )
            return
    made.body["system"] = fitting(one.value, "", "system")  # there is none: `faithful` puts it in front, numbers stay


def _unsigned(messages: list[Any], path: Sequence[Step]) -> None:
    """Thinking with other words has no valid signature any more."""
    if path[-1] != "thinking":
        return
    holder: Any = messages
    for step in path[1:-1]:
        holder = holder[step - 1 if isinstance(step, int) else step]
    holder.pop("signature", None)


def _list(one: Edit) -> list[Any]:
    value = fitting(one.value, [], "messages")
    if not isinstance(value, list):
        raise UsageError("bad-value", "messages is a list", "Give a JSON list, e.g. messages=@messages.json")
    return deepcopy(value)


def _as_text(value: Any) -> Any:
    """Whatever a system prompt was, words may take its place."""
    return "" if value is None or isinstance(value, list) else value


def _params(made: Draft) -> dict[str, Any]:
    return {k: v for k, v in made.body.items() if k not in (made.list_key, "system", "instructions", "tools", "model")}


def _what_there_is(made: Draft) -> str:
    tools = made.body.get("tools")
    said = ["model", "system"]
    said += [f"messages[1-{len(made.messages)}]"] if made.messages else []
    said += [f"tools[1-{len(tools)}]"] if isinstance(tools, list) and tools else []
    said += [f"turn[1-{made.number}]", f"params.NAME ({listed(_params(made))})"]
    return f"There are: {', '.join(said)}"
