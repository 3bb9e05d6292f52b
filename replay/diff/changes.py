"""One place where two requests, turns or runs differ; and how decoded JSON differs, path by path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...tracer.canonical import canonical
from .sequences import gaps, matches
from .words import truncated

KINDS = ("appended", "inserted", "dropped", "edited", "truncated", "reordered")
NOTHING = object()
"""Stands for what is not there."""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference.

    Attributes:
        part: model, params, system, tools, messages (of a request); history, input, thinking, text, calls, arguments,
            result, status (of a turn).
        kind: One of `KINDS`.
        path: Where, numbered from 1 as on screen: ``messages[3].content[2].text``, ``calls[1].arguments.path``; the
            place on the second side, or on the first where it is dropped.
        a, b: The values; `NOTHING` where there is none.
        was: Where it stood on the first side, when that is another place.
    """

    part: str
    kind: str
    path: str
    a: Any = NOTHING
    b: Any = NOTHING
    was: str | None = None


def text_change(part: str, path: str, a: str, b: str) -> Change:
    """The change of a text: edited, truncated, or one that came or went."""
    kind = "inserted" if not a else "dropped" if not b else "truncated" if truncated(a, b) else "edited"
    return Change(part, kind, path, a or NOTHING, b or NOTHING)


def edit(part: str, path: str, a: Any, b: Any) -> Change:
    """The change of a value; None is one that is not there."""
    return Change(part, "edited", path, NOTHING if a is None else a, NOTHING if b is None else b)


def by_path(part: str, a: Any, b: Any, path: str) -> Iterator[Change]:
    """How two decoded JSON values differ; lists are aligned, so that an inserted item does not touch the rest."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in dict.fromkeys((*a, *b)):
            yield from by_path(part, a.get(name, NOTHING), b.get(name, NOTHING), f"{path}.{name}" if path else name)
    elif isinstance(a, list) and isinstance(b, list):
        yield from _lists(part, a, b, path)
    elif a is NOTHING or b is NOTHING:
        if a is not b:
            yield Change(part, "inserted" if a is NOTHING else "dropped", path or part, a, b)
    elif isinstance(a, str) and isinstance(b, str):
        if a != b:
            yield Change(part, "truncated" if truncated(a, b) else "edited", path or part, a, b)
    elif canonical(a) != canonical(b):
        yield Change(part, "edited", path or part, a, b)


def _lists(part: str, a: list[Any], b: list[Any], path: str) -> Iterator[Change]:
    pairs = matches([canonical(v) for v in a], [canonical(v) for v in b])
    for one, two, _ in gaps(pairs, len(a), len(b)):
        for i, j in zip(one, two, strict=False):
            yield from by_path(part, a[i], b[j], f"{path}[{j + 1}]")
        for i in one[len(two) :]:
            yield Change(part, "dropped", f"{path}[{i + 1}]", a[i])
        for j in two[len(one) :]:
            yield Change(part, "appended" if two.stop == len(b) else "inserted", f"{path}[{j + 1}]", NOTHING, b[j])
