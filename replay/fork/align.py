"""Which messages of a request came from which turn: answers by the ids of their calls, else by their words."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...tracer.model import Turn
from .shapes import calls_of, is_answer, results_of, text_of


@dataclass(frozen=True, slots=True)
class Place:
    """A turn's messages, as indices from 0: ``answer`` (several items in a Responses list) and ``results``."""

    answer: tuple[int, ...]
    results: tuple[int, ...]


def places(turns: Sequence[Turn], messages: Sequence[Any]) -> dict[int, Place]:
    """The place of every turn that still stands in the messages, by its number.

    Compacted or edited history has turns no more; they are absent.
    """
    calls = [{c.id for c in calls_of(m) if c.id} for m in messages]
    called = _index(calls)
    resulted = _index([{r.call for r in results_of(m)} for m in messages])
    answers = [is_answer(m) for m in messages]
    found: dict[int, Place] = {}
    begin = 0
    for turn in turns:
        ids = {c.id for c in turn.tool_calls if c.id and c.origin != "provider"}
        first = _first(turn, ids, messages, calls, called, answers, begin)
        if first is None:
            continue
        span = _whole(first, ids, calls, answers, begin)
        begin = span[-1] + 1
        found[turn.number] = Place(span, _results(ids, called, resulted, begin))
    return found


def _index(ids: list[set[str]]) -> dict[str, list[int]]:
    """Where each id stands, in order: a run of thousands of turns is not searched through for each of them."""
    found: dict[str, list[int]] = {}
    for place, some in enumerate(ids):
        for one in some:
            found.setdefault(one, []).append(place)
    return found


def _next(ids: set[str], index: dict[str, list[int]], begin: int) -> int | None:
    """The first place from ``begin`` on where one of the ids stands."""
    found: list[int] = []
    for one in ids:
        known = index.get(one, ())
        at = bisect_left(known, begin)
        found += known[at : at + 1]
    return min(found, default=None)


def _first(
    turn: Turn,
    ids: set[str],
    messages: Sequence[Any],
    calls: list[set[str]],
    called: dict[str, list[int]],
    answers: list[bool],
    begin: int,
) -> int | None:
    by_call = _next(ids, called, begin)
    if by_call is not None or not turn.text:
        return by_call
    # no calls, or a loop that writes its calls as words
    return next((i for i in range(begin, len(messages)) if _says(messages[i], turn.text, answers[i], calls[i])), None)


def _says(message: Any, text: str, answer: bool, calls: set[str]) -> bool:
    return answer and not calls and _same(text_of(message), text)


def _whole(first: int, ids: set[str], calls: list[set[str]], answers: list[bool], begin: int) -> tuple[int, ...]:
    """The answer's items on both sides of the one that was recognised: up to another turn's calls."""
    low = high = first
    while low > begin and answers[low - 1] and not (calls[low - 1] - ids):
        low -= 1
    while high + 1 < len(answers) and answers[high + 1] and ids and calls[high + 1] and not (calls[high + 1] - ids):
        high += 1
    return tuple(range(low, high + 1))


def _results(
    ids: set[str], called: dict[str, list[int]], resulted: dict[str, list[int]], begin: int
) -> tuple[int, ...]:
    again = _next(ids, called, begin)  # an id that is used again
    found = {i for one in ids for i in resulted.get(one, ()) if i >= begin and (again is None or i < again)}
    return tuple(sorted(found))


def _same(left: str, right: str) -> bool:
    return "".join(left.split()) == "".join(right.split())
