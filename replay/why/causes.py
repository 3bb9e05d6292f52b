"""The causes that a difference is split by, and one part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

CAUSES = {
    "cycles": "turns in cycles",
    "retries": "retries",
    "failed_calls": "failed calls",
    "sub_agents": "sub-agents",
    "extra_turns": "extra turns",
    "dearer_model": "a dearer model",
    "cache_breaks": "cache breaks",
    "larger_context": "larger context",
    "longer_outputs": "longer outputs",
    "unexplained": "unexplained",
}
"""Every cause with its words, in the order in which they are taken out (docs/why.md)."""

ALONE = {"larger_context": "context read", "longer_outputs": "outputs", "cache_breaks": "cache breaks"}
"""The words where there is no usual: the run's own cost, split."""


@dataclass(frozen=True, slots=True)
class Part:
    """One cause's share of the difference.

    Attributes:
        cause: One of `CAUSES`.
        amount: Dollars, or tokens where the run cannot be priced; negative where the cause saved.
        turns: By how many turns it makes the run longer than usual (own turns, 0 for causes within turns).
        at: Numbers of the turns it lies in, those with the largest share first named in ``what``.
        callers: ``file:line`` that called in those turns, the most frequent first.
        what: One line for a person.
    """

    cause: str
    amount: Decimal
    turns: Decimal = Decimal(0)
    at: tuple[int, ...] = ()
    callers: tuple[str, ...] = ()
    what: str = ""

    @property
    def first_turn(self) -> int | None:
        """The first of its turns; None when it lies in no turn of this run."""
        return min(self.at, default=None)

    @property
    def last_turn(self) -> int | None:
        """The last of its turns."""
        return max(self.at, default=None)


def spans(numbers: Sequence[int], most: int = 6) -> str:
    """Turn numbers as people say them: ``turn 7``, ``turns 3-9, 12``; what is beyond ``most`` pieces is counted."""
    pieces: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if pieces and number == pieces[-1][1] + 1:
            pieces[-1] = (pieces[-1][0], number)
        else:
            pieces.append((number, number))
    said = [str(a) if a == b else f"{a}-{b}" for a, b in pieces[:most]]
    left = sum(b - a + 1 for a, b in pieces[most:])
    text = ", ".join(said) + (f" and {left:,} more" if left else "")
    return f"turn {text}" if len(pieces) == 1 and pieces[0][0] == pieces[0][1] else f"turns {text}"
