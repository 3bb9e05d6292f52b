"""The turns of a run with what a screen asks of them again and again; made in the thread that read them. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from textual.message import Message

from ...data.views import RunView, TurnRow
from ...widgets.spark import peaks

CURVE = 240
"""Points that are kept of a curve; where turns are more, each is the highest of its share."""


class Rows(tuple[TurnRow, ...]):
    """The lines of the list; they know their places."""

    def place_of(self, key: str) -> int | None:
        """Where the turn of that number stands; None when it is not among them."""
        at = bisect_left(self, int(key), key=lambda row: row.number)
        return at if at < len(self) and self[at].number == int(key) else None


@dataclass(frozen=True, slots=True)
class Turns:
    """Numbers of turns are sorted, so that jumps need not look at every row.

    Attributes:
        numbers: Of all rows.
        errors, users: Numbers of the turns with an error, of those with a word of the user.
        tools: By tool, the numbers of the turns that call it.
        longest: What a full bar of phases stands for, in milliseconds.
        contexts, costs: The curves, with at most ``CURVE`` points. ``ends``: the first and the last known context.
        spent: By row, what it and the rows before it cost together.
    """

    view: RunView
    rows: Rows
    numbers: Sequence[int] = ()
    errors: Sequence[int] = ()
    users: Sequence[int] = ()
    tools: Mapping[str, Sequence[int]] = field(default_factory=dict)
    longest: float = 0.0
    contexts: Sequence[float | None] = ()
    costs: Sequence[float | None] = ()
    ends: tuple[int, int] | None = None
    spent: Sequence[float] = ()

    @property
    def last(self) -> int:
        """Number of the last turn, 0 when there is none."""
        return self.numbers[-1] if self.numbers else 0

    def index(self, number: int) -> int | None:
        """Where a turn stands in the rows; None when it is not among them."""
        at = bisect_left(self.numbers, number)
        return at if at < len(self.numbers) and self.numbers[at] == number else None

    def row(self, number: int) -> TurnRow | None:
        """The line of a turn."""
        at = self.index(number)
        return None if at is None else self.rows[at]

    def since(self, number: int) -> tuple[int, float]:
        """How many turns came after one, and what they cost."""
        at = bisect_right(self.numbers, number)
        before = self.spent[at - 1] if at else 0.0
        return len(self.numbers) - at, (self.spent[-1] if self.spent else 0.0) - before


class TurnsRead(Message):
    """The turns of a run were read, at a state of the source."""

    def __init__(self, turns: Turns, version: object) -> None:
        super().__init__()
        self.turns, self.version = turns, version


def turns_of(view: RunView) -> Turns:
    """The same turns, looked through once."""
    rows = view.turns
    tools: dict[str, list[int]] = {}
    for row in rows:
        for call in row.calls:
            known = tools.setdefault(call.name, [])
            if not known or known[-1] != row.number:
                known.append(row.number)
    costs = [r.cost_usd for r in rows]
    contexts = [r.context for r in rows]
    known = [c for c in contexts if c is not None]
    return Turns(
        view,
        Rows(rows),
        [r.number for r in rows],
        [r.number for r in rows if r.bad],
        [r.number for r in rows if r.user_turn],
        tools,
        longest(rows),
        peaks(contexts, CURVE),
        peaks(costs, CURVE),
        (known[0], known[-1]) if known else None,
        list(accumulate(c or 0.0 for c in costs)),
    )


def longest(rows: Sequence[TurnRow]) -> float:
    """What a full bar stands for: the 95th percentile of the turns' times, so that one outlier flattens nothing."""
    times = sorted(t for t in map(took, rows) if t)
    return times[min(len(times) - 1, int(len(times) * 0.95))] if times else 0.0


def took(row: TurnRow) -> float | None:
    """Milliseconds of a turn, as far as they are known."""
    if row.generate_ms is None:
        return row.execute_ms
    return row.generate_ms + (row.execute_ms or 0.0)


def beyond(numbers: Sequence[int], at: int, step: int) -> int | None:
    """The next of sorted numbers after ``at``, or the one before it; None at the end."""
    place = bisect_right(numbers, at) if step > 0 else bisect_left(numbers, at) - 1
    return numbers[place] if 0 <= place < len(numbers) else None
