"""What one agent has done so far, as far as the rules need it: bounded, and cleared by progress."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from itertools import pairwise

from . import masks
from .rounds import Move, Round

LINES = 40_000
MUTATIONS = 4_000
STATE = 200
"""Characters from which the answer of a change is a state of the world, not an acknowledgement."""
_PATIENCE = re.compile(
    r"\b(?:\d+|ten|twenty|fifty|hundred|several|many|multiple) (?:times|runs|iterations|repetitions|rounds)\b|\buntil\b|\bbenchmark|\brepeat(?:edly)?\b"
    r"|\bevery \d+ (?:s|sec|seconds|min|minutes)\b|\bkeep (?:trying|polling|checking|running)\b|\bflaky\b|\bstress",
    re.IGNORECASE,
)
_PATIENCE_ELSEWHERE = re.compile(
    r"\d+ ?(?:mal|veces|fois|vezes|volte|raz[ay]?|keer|次|回|遍|번|раз)|\b(?:wiederhol|répét|repet|repit|ripet|повтор)\w*"
    r"|\bsolange\b|\bbis (?:er|sie|es|der|die|das)\b|\bhasta que\b|\bjusqu['’]|\baté que\b|\bfinché\b|\bпока\b|直到|重复|繰り返|まで|반복",
    re.IGNORECASE,
)
"""The same in other languages."""
_SHORT_MESSAGE = 600
LONGER = 1.3
"""How much longer a wait is than the one before where a loop backs off."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule's word: these turns go round. ``need``: the laps from which that is worth a warning."""

    kind: str
    key: tuple[object, ...]
    turns: tuple[int, ...]
    laps: int
    period: int
    calls: tuple[str, ...]
    need: int
    confidence: float = 0.9


@dataclass(slots=True)
class History:
    """One agent's past.

    Attributes:
        epoch: Grows with every mutation that is new and worked: what follows is another experiment.
        talks: Grows with every word of a person.
        step: Grows with every round that works.
        patient: A person asked for repetition.
        interrupted: Another agent spoke since this one's last turn; ``visits`` counts how often that was so.
        fresh: The last round brought lines that were never seen before; ``news`` counts such rounds.
    """

    agent: str
    epoch: int = 0
    talks: int = 0
    step: int = 0
    patient: bool = False
    fresh: bool = True
    news: int = 0
    used_tools: bool = False
    interrupted: bool = False
    visits: int = 0
    gaps: deque[float] = field(default_factory=lambda: deque(maxlen=12))
    last_at: int | None = None
    _lines: OrderedDict[int, None] = field(default_factory=OrderedDict)
    _mutations: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def hear(self, words: str) -> None:
        """A person spoke."""
        self.talks += 1
        self.patient = len(words) <= _SHORT_MESSAGE and bool(
            _PATIENCE.search(words) or _PATIENCE_ELSEWHERE.search(words)
        )

    def before(self, round_: Round) -> None:
        """Called before the rules look at a round."""
        if round_.started_at is not None and self.last_at is not None:
            self.gaps.append((round_.started_at - self.last_at) / 1e6)
        self.last_at = round_.started_at
        self.visits += self.interrupted
        if round_.works:
            self.step += 1
        self.used_tools = self.used_tools or bool(round_.moves)
        self.fresh = self._new_lines(round_) > 0
        self.news += self.fresh

    def after(self, round_: Round) -> None:
        """Called when they have: what the round changed counts for those that follow."""
        for move in round_.moves:
            if self._changes(move):
                self.epoch += 1

    def share_of_new(self, move: Move, earlier: frozenset[int]) -> float:
        """How much of a result stood not in an earlier one: 0 nothing, 1 all."""
        if not move.lines:
            return 0.0
        return sum(1 for line in move.lines if line not in earlier) / len(move.lines)

    def waits(self) -> bool:
        """True when the agent paces itself: the last gaps were long."""
        recent = list(self.gaps)[-2:]
        return len(recent) == 2 and min(recent) >= 45

    def backs_off(self) -> bool:
        """True when each of the last waits was clearly longer than the one before."""
        recent = list(self.gaps)[-3:]
        return len(recent) >= 2 and all(b >= LONGER * a for a, b in pairwise(recent))

    def _new_lines(self, round_: Round) -> int:
        new = 0
        for move in round_.moves:
            if move.effect == "bookkeeping":
                continue
            for line in move.lines:
                if line not in self._lines:
                    new += 1
                    self._lines[line] = None
        while len(self._lines) > LINES:
            self._lines.popitem(last=False)
        return new

    def _changes(self, move: Move) -> bool:
        """True for a step that is new and worked. A build or a test measures, it is no step."""
        if move.failed or move.effect not in ("mutate", "command") or (move.effect == "command" and move.check):
            return False
        known = move.key in self._mutations
        self._note(move.key)
        if move.effect == "mutate" and move.result is not None:
            # the same command that answers something else (git bisect good, next, undo) is another step
            answered = masks.digest(f"{move.key} {move.result}")
            known = answered in self._mutations
            self._note(answered)
        if move.size >= STATE and move.result is not None:
            # it answers with a state, not with an "ok": the same state again means that nothing was changed
            known = known or (move.result in self._mutations)
            self._note(move.result)
        return not known

    def _note(self, key: int) -> None:
        self._mutations[key] = None
        self._mutations.move_to_end(key)
        while len(self._mutations) > MUTATIONS:
            self._mutations.popitem(last=False)
