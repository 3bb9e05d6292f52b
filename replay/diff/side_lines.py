"""Two texts side by side, line for line: which lines stand for each other and which words of them differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

from .sequences import gaps
from .words import Run, words

Pieces = tuple[Run, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SideLine:
    """A line of both texts; None where one of them has none there. The pieces of ``a`` are same or removed."""

    a: Pieces | None
    b: Pieces | None
    same: bool


def side_lines(a: str, b: str) -> list[SideLine]:
    """The lines of two texts, those that stand for each other in one; lines end with the text, not with ``\\n``."""
    return list(_lines(words(a, b))) if a or b else []


def folded(lines: Sequence[SideLine], around: int) -> list[SideLine | int]:
    """The lines that differ with ``around`` equal ones beside each; a number stands for equal lines left out.

    A single line is never left out: the number would take its place.
    """
    near = beside([line.same for line in lines], around)
    found: list[SideLine | int] = []
    gap: list[SideLine] = []
    for line, kept in zip(lines, near, strict=True):
        if not kept:
            gap.append(line)
            continue
        found += [*_gap(gap), line]
        gap = []
    return [*found, *_gap(gap)]


def _gap(lines: list[SideLine]) -> Sequence[SideLine | int]:
    return lines if len(lines) < 2 else [len(lines)]


def beside(same: Sequence[bool], around: int) -> list[bool]:
    """Which places are within ``around`` of one that is not the same, or are such."""
    near = [False] * len(same)
    for step in (1, -1):
        left = 0
        for at in range(len(same))[::step]:
            left = left - 1 if same[at] else around + 1
            near[at] = near[at] or left > 0
    return near


def _lines(runs: Iterable[Run]) -> Iterator[SideLine]:
    """Lines end together where a line end is the same on both sides; between two such ends equal words hold them."""
    sides: tuple[list[Pieces], list[Pieces]] = ([], [])
    begun: tuple[list[Run], list[Run]] = ([], [])
    held: list[tuple[int, int]] = []  # lines of both sides that share words
    for run in runs:
        mine = [side for side, kind in enumerate(("removed", "added")) if run.kind in ("same", kind)]
        for place, row in enumerate(run.text.split("\n")):
            for side in mine:
                if place:
                    sides[side].append(_taken(begun[side]))
                if row:
                    begun[side].append(Run(run.kind, row))
            if place and run.kind == "same":
                yield from _rows(_taken(sides[0]), _taken(sides[1]), _taken(held))
            if run.kind == "same" and row.strip():
                _hold(held, len(sides[0]), len(sides[1]))
    for side in (0, 1):
        sides[side].append(_taken(begun[side]))
    yield from _rows(*sides, held)


def _hold(held: list[tuple[int, int]], a: int, b: int) -> None:
    if not held or (a > held[-1][0] and b > held[-1][1]):
        held.append((a, b))


def _taken(begun: list[T]) -> tuple[T, ...]:
    """What was begun, which begins anew."""
    taken = tuple(begun)
    begun.clear()
    return taken


def _rows(a: Sequence[Pieces], b: Sequence[Pieces], held: Iterable[tuple[int, int]]) -> Iterator[SideLine]:
    for one, two, pair in gaps(list(held), len(a), len(b)):
        for i, j in [*zip_longest(one, two), *([pair] if pair else [])]:
            left, right = None if i is None else a[i], None if j is None else b[j]
            same = left is not None and left == right and all(p.kind == "same" for p in left)
            yield SideLine(left, right, same)
