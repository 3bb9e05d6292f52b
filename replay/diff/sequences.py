"""Two sequences side by side: their longest common subsequence, exact, in bit-parallel steps."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

MOST = 400_000_000
"""Cells (length times length) up to which the exact answer is worked out: 50 MB; beyond, unique items anchor it."""

Pairs = list[tuple[int, int]]


def matches(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    """Index pairs of equal items, rising in both: a longest common subsequence.

    Linear in the length of one side per machine word of the other: 1,000 by 1,000 items take a millisecond or two.
    """
    head = 0
    while head < min(len(left), len(right)) and left[head] == right[head]:
        head += 1
    tail = 0
    while tail < min(len(left), len(right)) - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    middle = _middle(left[head : len(left) - tail], right[head : len(right) - tail])
    found = [(i, i) for i in range(head)] + [(a + head, b + head) for a, b in middle]
    return found + [(len(left) - i, len(right) - i) for i in range(tail, 0, -1)]


def gaps(pairs: Pairs, left: int, right: int) -> Iterator[tuple[range, range, tuple[int, int] | None]]:
    """The unmatched stretches of both sides before each pair, and behind the last (there the pair is None)."""
    a = b = 0
    for pair in pairs:
        yield range(a, pair[0]), range(b, pair[1]), pair
        a, b = pair[0] + 1, pair[1] + 1
    yield range(a, left), range(b, right), None


def _middle(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    common = set(left) & set(right)
    one = [i for i, item in enumerate(left) if item in common]
    two = [i for i, item in enumerate(right) if item in common]
    if len(one) * len(two) > MOST:
        return _anchored(left, right)
    found = _exact([left[i] for i in one], [right[i] for i in two])
    return [(one[a], two[b]) for a, b in found]


def _exact(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    """Row after row of the table of lengths, each row a number whose zero bits say where the length grows."""
    places: dict[Hashable, int] = {}
    for i, item in enumerate(left):
        places[item] = places.get(item, 0) | 1 << i
    mask = row = (1 << len(left)) - 1
    rows = []
    for item in right:
        hit = row & places[item]
        row = ((row + hit) | (row - hit)) & mask
        rows.append(row)
    found = []
    i, j = len(left), len(right)
    while i and j:
        if rows[j - 1] >> (i - 1) & 1:
            i -= 1
            continue
        j -= 1
        if not (j and not rows[j - 1] >> (i - 1) & 1):
            i -= 1
            found.append((i, j))
    return found[::-1]


def _anchored(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    """Very long sequences: items that are unique on both sides anchor the rest; none at all match nothing."""
    ones, twos = Counter(left), Counter(right)
    place = {item: i for i, item in enumerate(left) if ones[item] == 1}
    pairs = [(place[item], j) for j, item in enumerate(right) if twos[item] == 1 and item in place]
    anchors = _rising(pairs)
    if not anchors:
        return []
    found: Pairs = []
    for a, b, pair in gaps(anchors, len(left), len(right)):
        inner = matches(left[a.start : a.stop], right[b.start : b.stop])
        found += [(i + a.start, j + b.start) for i, j in inner]
        found += [pair] if pair else []
    return found


def _rising(pairs: Pairs) -> Pairs:
    """The longest part of pairs (rising in the second) that rises in the first too."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for number, (i, _) in enumerate(pairs):
        at = bisect_left(ends, i)
        before.append(last[at - 1] if at else None)
        ends[at : at + 1], last[at : at + 1] = [i], [number]
    found: Pairs = []
    step = last[-1] if last else None
    while step is not None:
        found.append(pairs[step])
        step = before[step]
    return found[::-1]
