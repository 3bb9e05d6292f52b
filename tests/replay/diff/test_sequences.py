"""The alignment of sequences: as long as a plain dynamic programme finds, rising, of equal items, and quick."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from looptape.replay.diff import sequences
from looptape.replay.diff.sequences import gaps, matches

short = st.lists(st.sampled_from("abcd"), max_size=25)


def longest(a: Sequence[object], b: Sequence[object]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(short, short)
def test_pairs_are_equal_rising_and_as_many_as_can_be(a: list[str], b: list[str]) -> None:
    pairs = matches(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))
    assert len(pairs) == longest(a, b)


@given(short, short)
def test_gaps_and_pairs_cover_both_sides_once(a: list[str], b: list[str]) -> None:
    left: list[int] = []
    right: list[int] = []
    for one, two, pair in gaps(matches(a, b), len(a), len(b)):
        left += [*one, *([pair[0]] if pair else [])]
        right += [*two, *([pair[1]] if pair else [])]
    assert (left, right) == (list(range(len(a))), list(range(len(b))))


@given(st.permutations(range(12)), st.permutations(range(12)))
def test_the_anchored_way_for_very_long_ones_finds_equal_rising_pairs(a: list[int], b: list[int]) -> None:
    pairs = sequences._anchored(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))
    assert len(pairs) == longest(a, b)  # all are unique, so anchors find all


def test_the_same_item_a_thousand_times_is_no_trouble() -> None:
    assert len(matches(["x"] * 1500, [*["x"] * 700, "y", *["x"] * 500])) == 1200
