"""Which turn of one run stands for which of another: so aligned that an inserted turn does not move all that follow."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .sequences import gaps, matches
from .turns import Seen, signatures

Aligned = list[tuple[int | None, int | None]]
"""Indices of both runs in order; None where a turn stands alone."""

_SMALL = 2500  # pairs of turns in a stretch up to which every one is weighed
_WORD = re.compile(r"\w+")
_WORDS = 4000  # characters of a turn that are weighed
_TOOLS, _ANY = 0.3, 0.02  # weight of the same tools, and of standing in the same place at all


def align(a: Sequence[Seen], b: Sequence[Seen]) -> Aligned:
    """Pairs of turns: first those that are equal in all, between them those that did the same, then the most alike."""
    left, right = [signatures(one) for one in a], [signatures(one) for one in b]

    def level(number: int, one: range, two: range) -> list[tuple[int, int]]:
        if not one or not two:
            return []
        if number == 2 and len(one) * len(two) <= _SMALL:
            return _weighed(one, two, a, b)
        if number == 3:
            return list(zip(one, two, strict=False))
        pairs = matches([left[i][number] for i in one], [right[j][number] for j in two])
        found = []
        for inner_a, inner_b, pair in gaps(pairs, len(one), len(two)):
            found += level(number + 1, _within(one, inner_a), _within(two, inner_b))
            found += [(one[pair[0]], two[pair[1]])] if pair else []
        return found

    found: Aligned = []
    for one, two, pair in gaps(level(0, range(len(a)), range(len(b))), len(a), len(b)):
        found += [(i, None) for i in one]
        found += [(None, j) for j in two]
        found += [pair] if pair else []
    return found


def _within(whole: range, inner: range) -> range:
    return range(whole.start + inner.start, whole.start + inner.stop)


def _weighed(one: range, two: range, a: Sequence[Seen], b: Sequence[Seen]) -> list[tuple[int, int]]:
    """The pairing in order whose likeness is greatest, over all pairings of a small stretch."""
    left, right = [_words(a[i]) for i in one], [_words(b[j]) for j in two]
    tools = [[tuple(c.name for c in s[k].turn.tool_calls) for k in r] for s, r in ((a, one), (b, two))]
    best = [[0.0] * (len(two) + 1) for _ in range(len(one) + 1)]
    weight = [[0.0] * len(two) for _ in one]
    for i in range(len(one) - 1, -1, -1):
        for j in range(len(two) - 1, -1, -1):
            union = len(left[i] | right[j])
            alike = len(left[i] & right[j]) / union if union else 0.0
            weight[i][j] = alike + (_TOOLS if tools[0][i] == tools[1][j] else 0.0) + _ANY
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + weight[i][j])
    found, i, j = [], 0, 0
    while i < len(one) and j < len(two):
        if best[i][j] == best[i + 1][j + 1] + weight[i][j]:
            found.append((one[i], two[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _words(one: Seen) -> set[str]:
    turn = one.turn
    said = " ".join([*(f"{c.name} {c.arguments_raw}" for c in turn.tool_calls), turn.text or ""])
    return set(_WORD.findall(said[:_WORDS]))
