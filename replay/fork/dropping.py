"""Turns taken out of a request: their answers and results go, what a person said stays, roles stay legal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...tracer.errors import UsageError
from .align import Place
from .draft import Draft

_BLOCKS = ("anthropic.messages", "manual", "unknown")


def without(made: Draft, drop: tuple[int, ...], where: dict[int, Place]) -> Draft:
    """The draft without the messages of these turns. Its message list is changed in place.

    Raises:
        UsageError: A turn is not before N, or does not stand in the request any more.
    """
    last = made.number - 1
    outside = [n for n in drop if n > last]
    if outside:
        have = f"Turns before {made.number}: 1 to {last}" if last else f"Turn {made.number} has none before it"
        raise UsageError(
            "no-such-turn", f"turn {outside[0]} cannot be dropped from the request of turn {made.number}", have
        )
    absent = [n for n in drop if n not in where]
    if absent:
        raise UsageError(
            "not-in-request",
            f"turn {absent[0]} does not stand in the request of turn {made.number} (compacted, or it has no answer)",
            f"Those that do: {', '.join(map(str, where)) or 'none'}",
        )
    ids = {c.id for t in made.turns if t.number in drop for c in t.tool_calls if c.id}
    answers = {i for n in drop for i in where[n].answer}
    results = {i for n in drop for i in where[n].results}
    made.body[made.list_key] = _left(made.messages, answers, results, ids, merge=made.api in _BLOCKS)
    return replace(made, dropped=tuple(sorted({*made.dropped, *drop})))


def _left(messages: Sequence[Any], answers: set[int], results: set[int], ids: set[str], *, merge: bool) -> list[Any]:
    left: list[Any] = []
    cut = False
    for index, message in enumerate(messages):
        if index in answers:
            cut = True
            continue
        if index in results:
            rest = _rest(message, ids)
            cut = cut or rest is None
            if rest is None:
                continue
            message = rest
        if merge and cut and left and _user(left[-1]) and _user(message):
            left[-1] = {**left[-1], "content": [*_blocks(left[-1]), *_blocks(message)]}
        else:
            left.append(message)
            cut = False
    return left


def _rest(message: Any, ids: set[str]) -> Any:
    """A message without the results of these calls; None when nothing else is in it."""
    key = "parts" if isinstance(message.get("parts"), list) else "content"
    content = message.get(key)
    if message.get("role") == "tool" or "output" in message or not isinstance(content, list):
        return None
    kept = [b for b in content if _call(b) not in ids]
    return {**message, key: kept} if kept else None


def _call(block: Any) -> Any:
    if not isinstance(block, dict):
        return None
    inner = block.get("functionResponse") or block.get("function_response")
    if isinstance(inner, dict):
        return inner.get("id") or inner.get("name")
    return block.get("tool_use_id") if block.get("type") == "tool_result" else None


def _user(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "user"


def _blocks(message: Any) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
