"""Tokens of every piece of a window, apportioned from what was recorded: the pieces sum to the recorded total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...tracer.model import Turn
from .pieces import Piece

Key = tuple[str, str | None]
"""Origin and tool."""


_LEAST = 0.3
"""Share of its estimate that a recorded output must come to, to be believed."""


class Ledger:
    """Keeps the tokens of a window's pieces from turn to turn.

    When a window only grew, what came in is exactly the difference of two recorded totals, and the answer in it is
    what the turn before put out; inside such a group tokens are shared by estimate. All else is estimated at the rate
    that the recorded groups had.
    """

    def __init__(self) -> None:
        self.sums: dict[Key, float] = {}
        self._given = self._estimated = 0.0
        self._how: dict[Key, dict[str, int]] = {}

    def come(self, pieces: Sequence[Piece], recorded: int | None, answer: int | None) -> None:
        """Pieces enter the window.

        Args:
            recorded: Tokens of all of them together, None when that is not known.
            answer: Of those, the tokens of what the model itself had said.
        """
        said = [p for p in pieces if p.answered]
        rest = [p for p in pieces if not p.answered]
        if recorded is None or recorded <= 0:
            rate = self.rate
            for piece in pieces:
                piece.tokens = piece.estimate * rate
        elif said and rest and answer and _likely(said, answer) and answer < recorded:
            _share(said, answer)
            _share(rest, recorded - answer)
            self._learn(pieces, recorded)
        else:
            _share(pieces, recorded)
            self._learn(pieces, recorded)
        for piece in pieces:
            key = (piece.origin, piece.tool)
            self.sums[key] = self.sums.get(key, 0.0) + piece.tokens
            hows = self._how.setdefault(key, {})
            hows[piece.how] = hows.get(piece.how, 0) + 1

    def go(self, pieces: Iterable[Piece]) -> None:
        """Pieces leave the window."""
        for piece in pieces:
            key = (piece.origin, piece.tool)
            self.sums[key] -= piece.tokens
            self._how[key][piece.how] -= 1
            if not any(self._how[key].values()):
                del self.sums[key], self._how[key]

    @property
    def rate(self) -> float:
        """Recorded tokens to an estimated one, so far."""
        return self._given / self._estimated if self._estimated else 1.0

    @property
    def total(self) -> float:
        """Tokens of all pieces in the window."""
        return sum(self.sums.values())

    def how(self, key: Key, *, scaled: bool) -> str:
        """How the tokens of an origin are known: recorded, apportioned or estimated."""
        known = {name for name, count in self._how.get(key, {}).items() if count}
        if scaled:
            return "apportioned"
        return known.pop() if len(known) == 1 else "apportioned"

    def _learn(self, pieces: Sequence[Piece], recorded: int) -> None:
        self._given += recorded
        self._estimated += sum(p.estimate for p in pieces)


def _likely(said: Sequence[Piece], answer: int) -> bool:
    """False for an output that cannot be all of the answer: some sources keep what the stream's head said."""
    return answer >= _LEAST * sum(p.estimate for p in said)


def _share(pieces: Sequence[Piece], tokens: int) -> None:
    whole = sum(p.estimate for p in pieces)
    how = "recorded" if len({(p.origin, p.tool) for p in pieces}) == 1 else "apportioned"
    for piece in pieces:
        piece.tokens = tokens * piece.estimate / whole if whole else tokens / len(pieces)
        piece.how = how


def apportion(weights: Mapping[Key, float], total: int) -> dict[Key, int]:
    """Whole numbers in proportion to the weights that sum exactly to the total (largest remainders first)."""
    weights = {key: max(0.0, weight) for key, weight in weights.items()}
    whole = sum(weights.values())
    if not weights or whole <= 0:
        return dict.fromkeys(weights, 0)
    exact = {key: total * weight / whole for key, weight in weights.items()}
    found = {key: int(value) for key, value in exact.items()}
    missing = total - sum(found.values())
    for key in sorted(exact, key=lambda k: found[k] - exact[k])[:missing]:
        found[key] += 1
    return found


def answer_tokens(turn: Turn, pieces: Iterable[Piece]) -> int | None:
    """What a turn put out, as the next request carries it: without reasoning that is not sent back."""
    put_out = turn.usage.output
    if put_out is None or turn.usage.partial:
        return None
    if turn.usage.reasoning and not any(p.origin == "thinking" for p in pieces):
        put_out -= turn.usage.reasoning
    return max(0, put_out)
