"""Rules about agents: handing over and back, starting the same sub-agent again, working what was compacted away once more."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import masks
from .history import Alert, History
from .repeats import REACH
from .rounds import Move, Round

HANDOVERS = 3
SPAWNS = 3
SPAWNS_ALIKE = 0.8
SLOTS = 2
"""Words in which the tasks of a list differ."""
_COUNTS = frozenset(masks.word_key(str(n)) for n in range(100))
"""The number of an attempt is no other task."""
OVERLAP = 0.7
SEGMENT = 3
"""Calls that a segment must have before it is compared."""
COMPACTIONS = 3
WITHIN = 10


@dataclass(slots=True)
class PingPong:
    """Agents of one run that give each other the word, with nothing done between. Looks at all agents together."""

    edges: deque[tuple[str, int, int]] = field(default_factory=lambda: deque(maxlen=64))
    epoch: int = 0

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """Two to four edges that come again in turn are a circle."""
        handed = [m for m in round_.moves if m.handoff]
        if round_.user is not None or (
            any(m.lines and not m.handoff and not m.failed for m in round_.moves) and history.fresh
        ):
            self.edges.clear()
        if history.epoch != self.epoch and not handed:
            self.edges.clear()
        self.epoch = history.epoch
        for move in handed:
            self.edges.append((f"{round_.agent} → {move.target or move.name}", round_.number, 0))
            names = [e[0] for e in self.edges]
            for period in (2, 3, 4):
                lap, laps = names[-period:], 1
                if len(lap) < period or len(set(lap)) < 2:
                    continue
                while names[-(laps + 1) * period : -laps * period] == lap:
                    laps += 1
                if laps >= 2:
                    turns = tuple(e[1] for e in list(self.edges)[-laps * period :])
                    yield Alert("ping_pong", tuple(sorted(lap)), turns, laps, period, tuple(lap), HANDOVERS)
                    return


@dataclass(slots=True)
class _Spawn:
    turns: list[int]
    words: frozenset[int]
    things: frozenset[int]
    talks: int
    step: int


@dataclass(slots=True)
class SameSubAgent:
    """A sub-agent that is started again with hardly another task. Several at once are one start each."""

    past: deque[_Spawn] = field(default_factory=lambda: deque(maxlen=24))

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """The same task again: what came back did not help."""
        for move in round_.moves:
            if not move.spawn or move.result is None:
                continue
            known = next((s for s in reversed(self.past) if self._same(s, move, history, round_.number)), None)
            if known is None:
                self.past.append(_Spawn([round_.number], move.words, move.things, history.talks, history.step))
                continue
            known.turns.append(round_.number)
            known.words, known.step = move.words, history.step
            if len(known.turns) >= 2:
                turns = tuple(known.turns)
                yield Alert("sub_agent", ("spawn", turns[0]), turns, len(turns), 1, (move.short,), SPAWNS, 0.8)
                return

    def _same(self, spawn: _Spawn, move: Move, history: History, number: int) -> bool:
        """The same words about another file or ticket are another task of a list."""
        if spawn.talks != history.talks or history.step - spawn.step > REACH or spawn.turns[-1] == number:
            return False
        if spawn.things != move.things or masks.alike(spawn.words, move.words) < SPAWNS_ALIKE:
            return False
        # one word in the place of another, and an answer that is new: the next of a list (of markets, of countries)
        came, went = move.words - spawn.words - _COUNTS, spawn.words - move.words - _COUNTS
        return not (history.fresh and came and len(came) == len(went) <= SLOTS)


@dataclass(slots=True)
class Compaction:
    """What was done before the context was shortened is done again after it."""

    segments: deque[tuple[int, frozenset[int]]] = field(default_factory=lambda: deque(maxlen=6))
    keys: set[int] = field(default_factory=set)
    first: int = 0
    epoch: int = 0
    laps: int = 1
    start: int = 0
    told: bool = False
    at: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=8))

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """Compares the segment that is running with the one before; counts compactions."""
        self.first = self.first or round_.number
        if round_.compaction:
            self._cut(round_, history)
            recent = [n for n, step in self.at if history.step - step <= WITHIN]
            if len(recent) >= COMPACTIONS:
                yield Alert("compaction", ("cuts",), tuple(recent), len(recent), 1, ("compaction",), COMPACTIONS, 0.7)
        if history.epoch != self.epoch:
            self.epoch = history.epoch
            self.keys.clear()
            self.segments.clear()
            self.laps = 1
        self.keys.update(m.key for m in round_.moves if m.effect != "bookkeeping")
        if len(self.keys) > 400 or not self.segments or len(self.keys) < SEGMENT or not round_.moves:
            return
        first, before = self.segments[-1]
        if len(self.keys & before) / len(self.keys) < OVERLAP or len(self.keys & before) < OVERLAP * min(
            len(before), SEGMENT + 2
        ):
            return
        turns = (self.start or first, *range(self.first, round_.number + 1))
        calls = tuple(m.short for m in round_.moves)[:3]
        yield Alert("compaction", ("again",), turns, self.laps + 1, 1, calls, 2, 0.8)

    def _cut(self, round_: Round, history: History) -> None:
        if len(self.keys) >= SEGMENT:
            before = self.segments[-1][1] if self.segments else frozenset[int]()
            again = len(self.keys & before) >= OVERLAP * len(self.keys)
            self.laps = self.laps + 1 if again else 1
            self.start = self.start if again and self.start else self.first
            self.segments.append((self.first, frozenset(self.keys)))
        self.keys, self.first = set(), round_.number
        self.at.append((round_.number, history.step))
