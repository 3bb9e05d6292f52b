"""Calls and their results belong together: what is open gets an error result, what has no call goes."""

from __future__ import annotations

from typing import Any

from .shapes import calls_of, is_answer, result_messages, results_of
from .start import OpenCall

NO_RESULT = (
    "Error: this tool call has no result in the recording: the run ended while the tool was running. "
    "It may or may not have taken effect. Check before you do it again."
)


def unanswered(messages: list[Any], *, last_is_open: bool = False) -> list[tuple[int, OpenCall]]:
    """Calls without a result, with the index (from 0) of their message.

    Args:
        last_is_open: The last answer's calls are still to be run: they do not count.
    """
    found: list[tuple[int, OpenCall]] = []
    end = len(messages)
    if last_is_open:
        while end and is_answer(messages[end - 1]):
            end -= 1
    for index in range(end):
        calls = list(calls_of(messages[index]))
        if calls:
            told = _told(messages, index)
            found += [(index, OpenCall(c.id, c.name, c.raw)) for c in calls if c.id not in told]
    return found


def with_errors(api: str, messages: list[Any], missing: list[tuple[int, OpenCall]]) -> list[Any]:
    """The messages with an error result right after each message whose calls have none."""
    by_place: dict[int, list[OpenCall]] = {}
    for index, call in missing:
        by_place.setdefault(_end_of_answer(messages, index), []).append(call)
    made: list[Any] = []
    for index, message in enumerate(messages):
        waiting = by_place.get(index - 1)
        if waiting and api == "anthropic.messages" and isinstance(message, dict) and message.get("role") == "user":
            message = _in_front(message, result_messages(api, _errors(waiting))[0]["content"])
        elif waiting:
            made += result_messages(api, _errors(waiting))
        made.append(message)
    if waiting := by_place.get(len(messages) - 1):
        made += result_messages(api, _errors(waiting))
    return made


def without_orphans(messages: list[Any]) -> tuple[list[Any], list[str]]:
    """The messages without results that no earlier message calls for, and the ids of those that went."""
    known: set[str] = set()
    kept: list[Any] = []
    gone: list[str] = []
    for message in messages:
        orphans = {r.call for r in results_of(message) if r.call not in known}
        gone += sorted(orphans)
        known |= {c.id for c in calls_of(message)} | _served(message)
        rest = _without(message, orphans) if orphans else message
        if rest is not None:
            kept.append(rest)
    return kept, gone


def _told(messages: list[Any], index: int) -> set[str]:
    """Ids of the results between this message and the next that the model said after them."""
    told: set[str] = set()
    for message in messages[index + 1 :]:
        if is_answer(message) and told:
            break
        told |= {r.call for r in results_of(message)}
    return told


def _end_of_answer(messages: list[Any], index: int) -> int:
    """Results come after all items of an answer (and, in the chat format, after the results that are there)."""
    while index + 1 < len(messages) and is_answer(messages[index + 1]) and list(calls_of(messages[index + 1])):
        index += 1
    while index + 1 < len(messages) and _only_result(messages[index + 1]):
        index += 1
    return index


def _only_result(message: Any) -> bool:
    return isinstance(message, dict) and (message.get("role") == "tool" or "output" in message)


def _errors(calls: list[OpenCall]) -> list[tuple[str, str, Any, bool]]:
    return [(c.id, c.name, NO_RESULT, True) for c in calls]


def _in_front(message: dict[str, Any], blocks: list[Any]) -> dict[str, Any]:
    content = message.get("content")
    rest = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return {**message, "content": [*blocks, *rest]}


def _served(message: Any) -> set[str]:
    """Ids of steps that the provider ran itself: their results may stand in blocks of their own."""
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    return {b["id"] for b in blocks if isinstance(b, dict) and isinstance(b.get("id"), str)}


def _without(message: dict[str, Any], orphans: set[str]) -> Any:
    if _only_result(message):
        return None
    key = "parts" if isinstance(message.get("parts"), list) else "content"
    kept = [b for b in message[key] if not (isinstance(b, dict) and _of(b) in orphans)]
    return {**message, key: kept} if kept else None


def _of(block: dict[str, Any]) -> Any:
    inner = block.get("functionResponse") or block.get("function_response")
    if isinstance(inner, dict):
        return inner.get("id") or inner.get("name")
    return block.get("tool_use_id") if block.get("type") == "tool_result" else None
