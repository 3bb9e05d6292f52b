"""What the screen of a comparison asks of the store, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from ....replay.diff import Diff, Side, Totals, diff, side
from ....tracer.errors import LooptapeError
from ....tracer.model import Run
from ...data.source import Source
from ...place import Place
from ...told import diff_lines
from .rows import Line, lines_of

if TYPE_CHECKING:
    from ....tracer.store import Store


@dataclass(frozen=True, slots=True)
class CompareView:
    """A comparison with the lines of every view, none folded.

    Attributes:
        pair: Numbers of the turns that were asked for where two runs are compared because one side named no turn.
    """

    diff: Diff
    lines: dict[str, tuple[Line, ...]]
    pair: tuple[int | None, int | None] = (None, None)


class Compared(Message):
    """Two sides were compared. ``places``: the left and the right one, as the screen calls them."""

    def __init__(self, view: CompareView, places: tuple[Place, ...] = ()) -> None:
        super().__init__()
        self.view = view
        self.places = places


@dataclass(frozen=True, slots=True)
class Against:
    """One of many that were compared with one place: what it comes to and where it parts.

    Attributes:
        first: The first difference, empty for none; ``trouble``: why it could not be compared.
    """

    place: Place
    run: Run | None = None
    totals: Totals | None = None
    first: str = ""
    trouble: str = ""


class ComparedOne(Message):
    """One of many was compared with ``base``."""

    def __init__(self, base: Side | None, found: Against) -> None:
        super().__init__()
        self.base = base
        self.found = found


def against(source: Source, base: Place, other: Place) -> ComparedOne:
    """Compares one of many with the base. A fault is told of that one; the others go on."""
    try:
        a, b, _ = sides(source, base, other)
    except LooptapeError as error:
        return ComparedOne(None, Against(other, trouble=error.what))
    found = diff(a, b)
    first = "" if found.first is None else diff_lines.first(found.first, "", found.kind, "AB").removeprefix(": ")
    head = Side(a.run, (), a.first, a.last)
    return ComparedOne(head, Against(other, b.run, found.totals[1], first))


def compare(source: Source, left: Place, right: Place) -> Compared:
    """Reads both sides and compares them. A turn against a whole run is run against run, standing at that turn."""
    a, b, pair = sides(source, left, right)
    return Compared(_compared(a, b, pair), (left, right))


def swapped(view: CompareView, left: Place, right: Place) -> Compared:
    """The same sides the other way round."""
    return Compared(_compared(view.diff.b, view.diff.a, view.pair[::-1]), (left, right))


def _compared(a: Side, b: Side, pair: tuple[int | None, int | None]) -> CompareView:
    found = diff(a, b)
    return CompareView(found, lines_of(found), pair)


def sides(source: Source, left: Place, right: Place) -> tuple[Side, Side, tuple[int | None, int | None]]:
    """Both sides in memory, and the turns to stand at where only one of them is a turn."""
    pair: tuple[int | None, int | None] = (None, None)
    if (left.turn is None) != (right.turn is None):
        pair = left.turn, right.turn
        left, right = Place(left.run), Place(right.run)

    def read(store: Store) -> tuple[Side, Side]:
        a, b = (side(store, store.run(p.run), p.turn, p.turn) for p in (left, right))
        return a, b

    a, b = source.ask(read)
    return a, b, pair
