"""What a key does to the folds of a document, and which part of a large one is laid out first. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .blocks import Block, Body, Document, Fold, Folds, leaves
from .document import Layout, Spot

Closed = dict[int, frozenset[int]]


def chosen(spot: Spot | None) -> Fold | None:
    """The innermost fold around a place that has a value."""
    if spot is None:
        return None
    return next((fold for fold in reversed(spot.section.leaf.path) if fold.value is not None), None)


def toggled(spot: Spot, stand: dict[str, bool], closed: Closed, folds: Folds) -> tuple[int, int] | None:
    """Open what is closed at a place, close what is open; where nothing can be folded, close what is around it.

    Returns:
        Leaf and line that are chosen then; None when there is nothing around either.
    """
    section, line = spot.section, spot.line
    leaf = section.leaf
    if leaf.own is not None:
        stand[leaf.own.key] = not folds.open(leaf.own)
        return leaf.number, 0
    if line not in section.folds:
        around = [begin for begin, end in section.folds.items() if begin < line <= end]
        if not around:
            return _closed_around(spot, stand)
        line = max(around)
    closed[leaf.number] = section.closed ^ {line}
    return leaf.number, line


def _closed_around(spot: Spot, stand: dict[str, bool]) -> tuple[int, int] | None:
    path = spot.section.leaf.path
    if not path:
        return None
    stand[path[-1].key] = False
    # the fold's own line is the last leaf before this one that has it as its own
    return spot.section.leaf.number - _behind(spot), 0


def _behind(spot: Spot) -> int:
    """How many leaves a place stands behind the line of the fold around it."""
    fold = spot.section.leaf.path[-1]
    count = 0
    for leaf in leaves((replace(fold, open=True),), Folds()):
        if leaf.block is spot.section.leaf.block:
            return count
        count += 1
    return count


def folded_all(document: Document, layout: Layout, *, close: bool) -> tuple[dict[str, bool], Closed]:
    """How folds stand when everything is closed, or open. The outermost braces of a JSON text stay open."""
    stand = {fold.key: not close for fold in folds_of(document)}
    if not close:
        return stand, {}
    closed: Closed = {}
    for section in layout.sections:
        if section.folds:
            closed[section.leaf.number] = frozenset(n for n in section.folds if n)
    return stand, closed


def folds_of(document: Document) -> list[Fold]:
    """Every fold of a document, the inner ones too."""
    found: list[Fold] = []
    for block in document:
        if isinstance(block, Fold):
            found += [block, *folds_of(block.inner)]
    return found


def reaching(
    document: Document, layout: Layout, stand: dict[str, bool], closed: Closed, number: int, line: int
) -> None:
    """Open every fold that hides a line."""
    leaf = next((one for one in leaves(document, Folds()) if one.number == number), None)
    if leaf is None:
        return
    for fold in leaf.path:
        if fold is not leaf.own:
            stand[fold.key] = True
    place = layout.places.get(number)
    if place is not None and (section := layout.sections[place]).closed:
        closed[number] = frozenset(n for n in section.closed if not n < line <= section.folds[n])


def beginning(document: Document, known: Layout, most: int) -> tuple[Document, bool]:
    """The beginning of a document that is laid out at once, and whether that is all of it.

    Texts that stand in the known layout cost nothing.
    """
    there: dict[int, list[Body]] = {}
    for section in known.sections:
        if isinstance(section.leaf.block, Body):
            there.setdefault(len(section.leaf.block.text), []).append(section.leaf.block)
    out: list[Block] = []
    left = most
    for block in document:
        block, left, whole = _first(block, left, there)
        out.append(block)
        if not whole:
            return tuple(out), False
    return document, True


def _first(block: Block, left: int, there: Mapping[int, Sequence[Body]]) -> tuple[Block, int, bool]:
    if isinstance(block, Body) and not block.most and block not in there.get(len(block.text), ()):
        if len(block.text) > left:
            return replace(block, text=block.text[:left], whole=False), 0, False
        left -= len(block.text)
    elif isinstance(block, Fold):
        inner: list[Block] = []
        for one in block.inner:
            one, left, whole = _first(one, left, there)
            inner.append(one)
            if not whole:
                return replace(block, inner=tuple(inner)), left, False
    return block, left, True
