"""How two texts differ, word by word; long ones first by lines, so that it stays quick."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .sequences import gaps, matches

Kind = Literal["same", "removed", "added"]
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_LINES = 2000  # characters from which lines are compared first


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text that is the same, removed or added."""

    kind: Kind
    text: str


def words(left: str, right: str) -> list[Run]:
    """The stretches that make the left text (same and removed) and the right one (same and added), in order."""
    if left == right:
        return [Run("same", left)] if left else []
    if max(len(left), len(right)) < _LINES:
        return _joined(_by(left, right))
    head = _shared(left, right)
    tail = _shared(left[head:][::-1], right[head:][::-1])
    ends = len(left) - tail, len(right) - tail
    middle = _by_lines(left[head : ends[0]], right[head : ends[1]])
    return _joined([Run("same", left[:head]), *middle, Run("same", left[ends[0] :])])


def _by_lines(left: str, right: str) -> list[Run]:
    one, two = left.splitlines(keepends=True), right.splitlines(keepends=True)
    found: list[Run] = []
    for a, b, pair in gaps(matches(one, two), len(one), len(two)):
        found += _by("".join(one[a.start : a.stop]), "".join(two[b.start : b.stop]))
        found += [Run("same", one[pair[0]])] if pair else []
    return found


def _shared(left: str, right: str) -> int:
    """How many characters two texts share at their beginning, no word of either cut in two."""
    shared = _common(left, right)
    ends = []
    for text in (left, right):
        end = shared
        while 0 < end < len(text) and text[end - 1].isspace() == text[end].isspace():
            end -= 1
        ends.append(end)
    return min(ends)


def hunks(runs: Iterable[Run], around: int = 40) -> list[Run]:
    """The same with long equal stretches shortened to ``around`` characters beside each change, marked by ``…``."""
    listed = list(runs)
    found = []
    for place, run in enumerate(listed):
        if run.kind == "same" and len(run.text) > 2 * around + 1:
            head = run.text[:around] if place else ""
            tail = run.text[-around:] if place + 1 < len(listed) else ""
            run = Run("same", f"{head}…{tail}")
        found.append(run)
    return found


_CUT = 40
"""Characters that are missing from the middle at least before it is a cut, no edit."""


def truncated(left: str, right: str) -> bool:
    """True when the right text is the left one cut: its beginning, or beginning and end, with a short mark."""
    if not right or len(right) >= len(left):
        return False
    head = _common(left, right)
    tail = min(_common(left[::-1], right[::-1]), len(right) - head)
    mark = len(right) - head - tail
    if (mark or tail) and len(left) - head - tail < max(_CUT, 2 * mark):
        return False  # another word, or one word less, is an edit
    return head >= tail // 4 and mark <= min(max(100, len(right) // 10), head + tail)


def _by(left: str, right: str) -> list[Run]:
    """Two texts word by word."""
    one, two = _WORD.findall(left), _WORD.findall(right)
    found = []
    for a, b, pair in gaps(matches(one, two), len(one), len(two)):
        found += [Run("removed", "".join(one[a.start : a.stop])), Run("added", "".join(two[b.start : b.stop]))]
        found += [Run("same", one[pair[0]])] if pair else []
    return found


def _joined(runs: Iterable[Run]) -> list[Run]:
    """Neighbours of a kind as one; white space alone between two changes belongs to both."""
    found: list[Run] = []
    same: list[str] = []
    removed: list[str] = []
    added: list[str] = []
    listed = [r for r in runs if r.text]
    for place, run in enumerate(listed):
        changing = bool(removed or added)
        island = run.kind == "same" and changing and not run.text.strip() and _goes_on(listed, place)
        if run.kind == "same" and not island:
            if changing:
                found += _both(removed, added)
            same.append(run.text)
            continue
        if same:
            found.append(Run("same", "".join(same)))
            same.clear()
        if run.kind == "removed" or island:
            removed.append(run.text)
        if run.kind == "added" or island:
            added.append(run.text)
    found += _both(removed, added)
    return [*found, Run("same", "".join(same))] if same else found


def _goes_on(runs: list[Run], place: int) -> bool:
    return place + 1 < len(runs) and runs[place + 1].kind != "same"


def _both(removed: list[str], added: list[str]) -> list[Run]:
    """What was removed and added, which begin anew."""
    pairs: tuple[tuple[Kind, list[str]], ...] = (("removed", removed), ("added", added))
    found = [Run(kind, "".join(texts)) for kind, texts in pairs if texts]
    removed.clear()
    added.clear()
    return found


def _common(left: str, right: str) -> int:
    """How many characters two texts share at their beginning."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
