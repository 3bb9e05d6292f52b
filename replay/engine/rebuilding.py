"""The messages that a loop adds between two requests, made from an answer and its results, beside those recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...tracer.canonical import same
from ..fork.shapes import answer_messages, calls_of, is_answer, result_messages, results_of, text_of
from ..player.recorded import RecordedCall
from . import dialects
from .toolbox import ToolResult
from .tools.execution import Done, Wanted
from .tools.registry import content_of

FORM = "answer-form"
"""The same answer or result, in the form in which the program puts it into its list."""
_ENOUGH = 24


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The new messages of a request.

    Attributes:
        echoes: How many of them are the model's own answer.
        adopted: Index and rule of those that stand in the recorded form.
    """

    messages: list[Any]
    echoes: int
    adopted: list[tuple[int, str]] = field(default_factory=list)


def next_messages(api: str, response: Any, done: Sequence[Done], recorded: Sequence[Any]) -> Rebuilt:
    """The messages that follow an answer, aligned with the recorded ones.

    Args:
        recorded: The messages that the recorded next request has more than the one before.

    A message that is ours and says the same is put as recorded; one that says something else stays as it was made, so
    that the comparison shows it. Words of the user between them are the recording's.
    """
    said = _said(api, response) if response is not None else []
    api_of = "gemini" if api.startswith("google") else api
    told = (
        result_messages(api_of, [(d.call.id, d.call.name, d.result.content, d.result.is_error) for d in done])
        if done
        else []
    )
    waiting = [*said, *told]
    made: list[Any] = []
    adopted: list[tuple[int, str]] = []
    for message in recorded:
        if _is_input(message):
            made.append(message)
            continue
        ours = _counterpart(message, waiting)
        if ours is None:
            continue  # nothing of ours is like it: it is missing from what we make, and shows
        waiting.remove(ours)
        rule = _same_meaning(ours, message)
        made.append(message if rule is not None else ours)
        if rule is not None and not same(ours, message):
            adopted.append((len(made) - 1, rule))
    made += waiting
    return Rebuilt(made, len(said), adopted)


def _said(api: str, response: Any) -> list[Any]:
    return dialects.said(api, response) if api in dialects.APIS else answer_messages(response)


def told_result(call: RecordedCall, tail: Sequence[Any]) -> Done:
    """A recorded call with the result that its tool gave; where the program formatted it, as it was told."""
    raw = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    given = content_of(call.value)
    for message in tail:
        for at in results_of(message):
            if at.call == call.id and _formatted(call, at.holder.get(at.key)):
                given = at.holder.get(at.key)
    return Done(Wanted(call.id, call.name, raw), ToolResult(given, call.is_error, origin="recorded"), call.arguments)


def _formatted(call: RecordedCall, told: Any) -> bool:
    """Whether what was told can be a program's form of what the tool gave: shortened, wrapped, or made text of."""
    value = call.value
    if call.error_type is not None or not isinstance(value, str):
        return True  # how a program tells an exception, or an object, is its own affair
    shown = told if isinstance(told, str) else _plain(told)
    return value in shown or shown in value or (len(shown) > _ENOUGH and value.startswith(shown[:_ENOUGH]))


def _is_input(message: Any) -> bool:
    """A message that is neither the model's nor a result."""
    return not is_answer(message) and next(results_of(message), None) is None


def _counterpart(message: Any, waiting: Sequence[Any]) -> Any | None:
    """Our message for a recorded one: by the calls whose results it brings, else the next of the model's."""
    ids = {r.call for r in results_of(message)}
    for ours in waiting:
        theirs = {r.call for r in results_of(ours)}
        if (ids and ids & theirs) or (not ids and not theirs):
            return ours
    return None


def _same_meaning(ours: Any, recorded: Any) -> str | None:
    """The rule by which a recorded message says what ours says; None when it says something else."""
    if same(ours, recorded):
        return FORM
    if [(c.id, c.name, _loads(c.raw)) for c in calls_of(ours)] != [
        (c.id, c.name, _loads(c.raw)) for c in calls_of(recorded)
    ]:
        return None
    mine = {r.call: _plain(r.holder.get(r.key)) for r in results_of(ours)}
    theirs = {r.call: _plain(r.holder.get(r.key)) for r in results_of(recorded)}
    if mine != theirs:
        return None
    if mine:
        return FORM
    return FORM if text_of(ours).split() == text_of(recorded).split() and _signed(ours) == _signed(recorded) else None


def _signed(message: Any) -> list[Any]:
    """Signatures of thinking: they must come back as they were."""
    content = message.get("content") if isinstance(message, dict) else None
    return (
        [b["signature"] for b in content if isinstance(b, dict) and b.get("signature")]
        if isinstance(content, list)
        else []
    )


def _plain(content: Any) -> str:
    if (
        isinstance(content, list)
        and content
        and all(isinstance(b, dict) and isinstance(b.get("text"), str) for b in content)
    ):
        return "\n".join(b["text"] for b in content)
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, sort_keys=True)


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
