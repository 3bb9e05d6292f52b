"""Paths of edits, numbers from 1 as they are printed: ``messages[3].content[1].text``; with ``$.`` JSONPath, from 0."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...tracer.errors import UsageError

Step = str | int

_HEAD = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
_STEP = re.compile(r"\[(\d+)\]|\.([^.\[\]]+)")
OPEN_ENDED = ("params", "tools")
"""Where a key may be set that is not there yet."""


def parse(text: str) -> tuple[Step, ...]:
    """A path taken apart: names as text, numbers from 1. One that begins with ``$.`` is JSONPath, as misses print it.

    Raises:
        UsageError: It is no path.
    """
    from_zero = text.startswith("$.")
    begin = 2 if from_zero else 0
    head = _HEAD.match(text, begin)
    steps: list[Step] = [head[0]] if head else []
    at = head.end() if head else 0
    while head and at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            break
        steps.append(int(step[1]) + from_zero if step[1] else step[2])
        at = step.end()
    if not head or at != len(text) or any(s == 0 for s in steps if isinstance(s, int)):
        raise UsageError(
            "bad-path",
            f"{text!r} is no path",
            "Paths look like messages[3].content, tools[2].description, turn[7].calls[1].result; numbers begin at 1 (with $. in front at 0, as a miss prints them)",
        )
    return tuple(steps)


def written(steps: Sequence[Step]) -> str:
    """A path as text again."""
    made = ""
    for step in steps:
        made += f"[{step}]" if isinstance(step, int) else (f".{step}" if made else step)
    return made


def value_of(text: str) -> str:
    """What stands behind the ``=`` of an edit; ``@FILE`` is the file's text, ``@@`` a text that begins with @.

    Raises:
        UsageError: The file cannot be read.
    """
    if text.startswith("@@"):
        return text[1:]
    if not text.startswith("@"):
        return text
    path = Path(text[1:]).expanduser()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError("no-file", f"{path} cannot be read ({reason})", "Name a text file after @") from None


def fitting(raw: str, old: Any, where: str) -> Any:
    """The value of an edit as the thing that stands there would have it.

    JSON is JSON, everything else is text. Where a text stands, JSON that is neither a text nor a list of
    content blocks is taken as the text itself (a tool's result may well be JSON).

    Raises:
        UsageError: A number, a list or an object stands there, and the value is none.
    """
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value, given = raw, False
    else:
        given = True
    if isinstance(old, str):
        blocks = isinstance(value, list) and bool(value) and all(isinstance(b, dict) and "type" in b for b in value)
        return value if given and (isinstance(value, str) or blocks) else raw
    if isinstance(old, bool) or old is None:
        return value
    if isinstance(old, (int, float)) and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise UsageError("bad-value", f"{where} is a number, {_short(raw)} is none", f"Now it is {old}")
    if isinstance(old, dict) and not isinstance(value, dict):
        raise UsageError("bad-value", f"{where} is an object, {_short(raw)} is none", f"It has {listed(old)}")
    return value


def put(root: Any, steps: Sequence[Step], raw: str, *, whole: Sequence[Step], free: bool = False) -> None:
    """Sets what a path leads to, inside a dict or list that is changed in place.

    Args:
        steps: The way from ``root``; at least one step.
        whole: The path as the user wrote it, for messages.
        free: Keys that are not there may be set.

    Raises:
        UsageError: Nothing stands there; says in one line what does.
    """
    done = len(whole) - len(steps)
    holder: Any = root
    for place, step in enumerate(steps):
        last = place == len(steps) - 1
        here = whole[: done + place]
        key = _key(holder, step, here, whole, free=free and last)
        rest = steps[place + 1 :]
        if last or (isinstance(holder[key], str) and tuple(rest) in ((1,), (1, "text"))):  # a text is its one block
            old = holder.get(key) if isinstance(holder, dict) else holder[key]
            holder[key] = fitting(raw, old, written(whole))
            return
        holder = holder[key]


def listed(holder: Any) -> str:
    """What a dict or list has, in a few words."""
    if isinstance(holder, dict):
        names = [str(k) for k in holder]
        return ", ".join(names[:12]) + (", …" if len(names) > 12 else "") if names else "nothing"
    if isinstance(holder, list):
        return f"1 to {len(holder)}" if len(holder) > 1 else "only 1" if holder else "nothing"
    return "no parts: it is a text" if isinstance(holder, str) else f"no parts: it is {json.dumps(holder)[:40]}"


def nothing(whole: Sequence[Step], here: Sequence[Step], holder: Any) -> UsageError:
    """The error of a path that leads nowhere, with what is there."""
    where = written(here) or "the request"
    return UsageError("no-such-path", f"there is no {written(whole)}", f"{where} has {listed(holder)}")


def _key(holder: Any, step: Step, here: Sequence[Step], whole: Sequence[Step], *, free: bool) -> Any:
    if isinstance(step, int):
        if not isinstance(holder, list) or step > len(holder):
            raise nothing(whole, here, holder)
        return step - 1
    if isinstance(holder, dict) and (step in holder or free):
        return step
    if isinstance(holder, list):  # tools.NAME
        for index, item in enumerate(holder):
            if tool_name(item) == step:
                return index
        names = [n for n in map(tool_name, holder) if n]
        if names:
            raise UsageError("no-such-path", f"there is no {written(whole)}", f"{written(here)} has {', '.join(names)}")
    raise nothing(whole, here, holder)


def tool_name(item: Any) -> str | None:
    """The name of a tool definition, whichever provider's; None when it has none."""
    if not isinstance(item, dict):
        return None
    inner = item.get("function")
    name = (inner if isinstance(inner, dict) else item).get("name")
    return name if isinstance(name, str) else None


def _short(raw: str) -> str:
    return repr(raw if len(raw) <= 40 else raw[:39] + "…")
