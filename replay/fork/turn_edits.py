"""Edits of what a turn said or got: ``turn[7].response.text``, ``turn[7].calls[1].arguments``, ``turn[7].calls[1].result``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from ...tracer.errors import UsageError
from ...tracer.model import ToolCall, Turn
from .align import Place
from .draft import Draft
from .paths import Step, fitting, nothing, put, written
from .shapes import CallAt, ResultAt, answer_messages, calls_of, put_text, results_of, text_of
from .start import KnownResult, OpenCall


def edit_turn(made: Draft, path: Sequence[Step], raw: str, where: dict[int, Place]) -> Draft:
    """The draft with an edit of turn N's answer or results, or of an earlier turn's as they stand in its messages.

    Raises:
        UsageError: There is no such turn, call or part.
    """
    number = path[1] if len(path) > 1 else None
    if not isinstance(number, int) or not 1 <= number <= made.number:
        raise UsageError("no-such-path", f"there is no {written(path)}", f"turn[N] has 1 to {made.number} here")
    turn = _by_number(made, number, path)
    steps = list(path[2:])
    if steps and steps[0] == "text":
        steps = ["response", "text", *steps[1:]]
    if number == made.number:
        return _kept(made, turn, path, steps, raw)
    if number not in where:
        raise UsageError(
            "not-in-request",
            f"turn {number} does not stand in the request of turn {made.number}",
            f"Those that do: {', '.join(map(str, where)) or 'none'}",
        )
    place = where[number]
    answers = [made.messages[i] for i in place.answer]
    results = [r for i in place.results for r in results_of(made.messages[i])]
    _in_place(turn, path, steps, raw, answers, results)
    return made


def _kept(made: Draft, turn: Turn, path: Sequence[Step], steps: list[Step], raw: str) -> Draft:
    """An edit of turn N itself: its answer is kept from now on."""
    response = made.response if made.response is not None else deepcopy(turn.response)
    if not isinstance(response, dict):
        raise UsageError(
            "no-answer", f"turn {turn.number} has no answer that could be edited", "Fork it without that edit"
        )
    if steps == ["response"]:
        return replace(made, response=_whole(raw, response))
    made = replace(made, response=response)
    if len(steps) == 3 and steps[0] == "calls" and steps[2] == "result":
        call = _call(turn, path, steps)
        content = fitting(raw, call.result if isinstance(call.result, (str, list)) else "", written(path))
        known = KnownResult(OpenCall(call.id, call.name, call.arguments_raw), content, False, "edited")
        return replace(made, results={**made.results, call.id: known})
    if steps[:1] == ["response"] and len(steps) > 1 and steps[1:] != ["text"]:
        put(response, steps[1:], raw, whole=path)
        return made
    answers = [response] if isinstance(response.get("content"), list) else answer_messages(response)
    _in_place(turn, path, steps, raw, answers, [])
    return made


def _in_place(
    turn: Turn, path: Sequence[Step], steps: list[Step], raw: str, answers: list[Any], results: list[ResultAt]
) -> None:
    if steps == ["response", "text"]:
        _say(answers, fitting(raw, "", written(path)))
        return
    call = _call(turn, path, steps)
    what = steps[2] if len(steps) > 2 else None
    if what == "result":
        found = next((r for r in results if r.call == call.id), None)
        if found is None:
            raise UsageError("no-result", f"{written(path[:-1])} has no result in this request", "Edit a message of it")
        found.holder[found.key] = fitting(raw, found.holder.get(found.key), written(path))
        found.holder.pop("is_error", None)
        return
    at = next((c for m in answers for c in calls_of(m) if c.id == call.id), None)
    if at is None or what not in ("arguments", "name"):
        has = {"arguments": 0, "name": 0, "result": 0}
        raise nothing(path, path[:4], has) if at is not None else nothing(path, path[:3], [])
    if what == "name":
        at.rename(raw)
    else:
        _argue(at, path, steps[3:], raw)


def _argue(at: CallAt, path: Sequence[Step], inner: list[Step], raw: str) -> None:
    """Other arguments, or one of them. A text that is no JSON object stays as it is: as if the model had written it."""
    try:
        now = json.loads(at.raw)
    except (ValueError, RecursionError):
        now = {}
    if not inner:
        try:
            value: Any = json.loads(raw)
        except (ValueError, RecursionError):
            value = raw
        at.put(value)
        return
    put(now, inner, raw, whole=path, free=True)
    at.put(now)


def _call(turn: Turn, path: Sequence[Step], steps: list[Step]) -> ToolCall:
    """The call that ``calls[i]`` (or ``calls.ID``) names."""
    own = [c for c in turn.tool_calls if c.origin != "provider"]
    if not steps or steps[0] != "calls" or len(steps) < 2:
        raise nothing(path, path[:2], {"response": 0, "calls": 0, "text": 0})
    key = steps[1]
    if isinstance(key, int) and key <= len(own):
        return own[key - 1]
    named = next((c for c in own if c.id == key), None)
    if named is None:
        raise nothing(path, path[:3], own)
    return named


def _say(answers: list[Any], text: Any) -> None:
    words = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    spoken = [m for m in answers if isinstance(m, dict) and m.get("type") in (None, "message")]
    target = next((m for m in spoken if text_of(m)), spoken[0] if spoken else None)
    if target is None:
        raise UsageError("no-text", "this answer has no message to hold a text", "Edit the response as a whole")
    put_text(target, words)


def _whole(raw: str, old: dict[str, Any]) -> dict[str, Any]:
    """A whole answer: the provider's response body, a list of content blocks, or just words."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = raw
    if isinstance(value, dict):
        return value
    fresh = deepcopy(old)
    if isinstance(value, list):
        fresh["output" if "output" in fresh else "content"] = value
    elif isinstance(fresh.get("content"), list):
        fresh["content"] = [{"type": "text", "text": str(value)}]
    elif isinstance(fresh.get("output"), list):
        part = {"type": "output_text", "text": str(value), "annotations": []}
        fresh["output"] = [{"type": "message", "role": "assistant", "content": [part]}]
    else:
        fresh["choices"] = [{"index": 0, "message": {"role": "assistant", "content": str(value)}}]
    return fresh


def _by_number(made: Draft, number: int, path: Sequence[Step]) -> Turn:
    found = next((t for t in made.turns if t.number == number), None)
    if found is None:
        raise UsageError("no-such-path", f"there is no {written(path)}", f"turn {number} is not in the record")
    return found
