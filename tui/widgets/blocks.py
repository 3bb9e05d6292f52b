"""A text to read, as blocks: headings, texts of any size, and folds under which more blocks stand. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from .cells import Spans

OPEN, CLOSED = "▾ ", "▸ "


@dataclass(frozen=True, slots=True)
class Head:
    """One line of spans: a heading, a label with a value. Long ones wrap, ``hang`` cells further in, or are ``cut``."""

    spans: Spans
    indent: int = 0
    hang: int = 2
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """A text of any size and any content.

    Attributes:
        syntax: ``json`` colours keys and values lightly, and lets objects and lists be folded.
        most: Lines shown at most, 0 for all; what is left out is counted in a last line.
        whole: False for a text that was cut: nothing of it folds.
    """

    text: str
    role: str = "text"
    indent: int = 0
    syntax: str = ""
    most: int = 0
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Fold:
    """A heading under which blocks can be folded away.

    Attributes:
        key: Its name within the document, by which it stays open or closed.
        head: Its line, as in Head, after the sign that tells how it stands.
        open: How it stands until somebody folds it.
        lasting: Other documents have this fold too (the tools of a request): how it stands is remembered.
        value: What is copied when it is chosen; None takes that of the fold around it.
        what: What the value is, in two or three words.
    """

    key: str
    head: Spans
    inner: tuple[Block, ...] = ()
    open: bool = True
    indent: int = 0
    hang: int = 2
    cut: bool = False
    lasting: bool = False
    value: object = None
    what: str = ""


Block = Head | Body | Fold
Document = tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Folds:
    """How folds stand.

    Attributes:
        stand: By a fold's key: True for open. Folds that are not named stand as their block says.
        closed: Lines of a JSON text (by the number of its leaf) under which everything is folded away.
    """

    stand: Mapping[str, bool] = field(default_factory=dict)
    closed: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def open(self, fold: Fold) -> bool:
        """True when what is under the fold is shown."""
        return self.stand.get(fold.key, fold.open)


class Leaf(NamedTuple):
    """A block that is drawn.

    Attributes:
        number: Its place among all leaves, those that are folded away included.
        path: The folds it is in, from the outside; of a fold's own line the fold itself is the last.
        own: The fold whose line this is.
        shown: False while it is folded away.
    """

    number: int
    block: Head | Body
    path: tuple[Fold, ...]
    own: Fold | None
    shown: bool


def leaves(document: Iterable[Block], folds: Folds) -> Iterator[Leaf]:
    """Every leaf of a document in order, also those that are folded away."""
    for number, (block, path, own, shown) in enumerate(_leaves(document, folds, (), True)):
        yield Leaf(number, block, path, own, shown)


_Found = tuple[Head | Body, tuple[Fold, ...], Fold | None, bool]


def _leaves(blocks: Iterable[Block], folds: Folds, path: tuple[Fold, ...], shown: bool) -> Iterator[_Found]:
    for block in blocks:
        if isinstance(block, Fold):
            stands, inside = folds.open(block), (*path, block)
            sign = (OPEN if stands else CLOSED, "dim" if stands else "accent") if block.inner else ("  ", "dim")
            yield (
                Head((sign, *block.head), block.indent, block.hang + 2, block.cut),
                inside,
                block if block.inner else None,
                shown,
            )
            yield from _leaves(block.inner, folds, inside, shown and stands)
        elif isinstance(block, Body) and block.most:
            for part in _cut(block):
                yield part, path, None, shown
        else:
            yield block, path, None, shown


def _cut(block: Body) -> Iterator[Head | Body]:
    """A text of which only the first lines are shown; a line says how much is left out."""
    lines = block.text.split("\n", block.most + 1)  # the rest stays in one piece: it may be 20 MB
    most, note = block.most, ""
    if len(lines) > most + 1:
        note = f"… {2 + lines[-1].count(chr(10)):,} more lines"
    else:
        most = len(lines)
    kept = "\n".join(lines[:most])
    limit = 200 * block.most
    if len(kept) > 2 * limit:
        note = f"… {len(block.text) - limit:,} more characters"
        kept = kept[:limit]
    yield replace(block, text=kept, most=0, whole=False)
    if note:
        yield Head(((note, "dim"),), block.indent)


def json_folds(lines: list[str]) -> dict[int, int]:
    """Lines of an indented JSON text that open an object or list, with the lines that close them."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for number, line in enumerate(lines):
        bare = line.strip()
        if bare[:1] in ("}", "]") and opened:
            begin = opened.pop()
            if number > begin + 1:
                found[begin] = number
        if bare[-1:] in ("{", "["):
            opened.append(number)
    return found
