"""One stretch of turns that goes round: grows with each alert, takes the best explanation, knows what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .finding import LEVELS, CycleFinding, Waste, sentence
from .history import Alert
from .rounds import Round

INTERVENE = 2
STOP = 4
"""Laps beyond the first warning at which the ladder goes up."""
MEMBERS = 20_000
LONG = 500
"""Turns from which only what an alert has grown by is taken in: so a lap costs the same after ten thousand others."""
_RANKED = (
    "stagnation",
    "bookkeeping",
    "text",
    "empty",
    "near",
    "error",
    "check",
    "sub_agent",
    "ping_pong",
    "exact",
    "fan_out",
    "period",
    "compaction",
    "chant",
)


def rank(kind: str) -> int:
    """Which of two explanations of the same turns is the better one: the higher."""
    return _RANKED.index(kind)


@dataclass(frozen=True, slots=True)
class Facts:
    """A turn's figures."""

    tokens: int | None
    usage: tuple[tuple[str, int], ...]
    usd: float | None
    started_at: int | None
    ended_at: int | None


@dataclass(slots=True)
class Stretch:
    """A stretch of one agent. ``level`` is -1 while it is not worth a word."""

    agent: str
    kind: str = ""
    keys: set[tuple[object, ...]] = field(default_factory=set)
    moves: set[int] = field(default_factory=set)
    first: int = 0
    last: int = 0
    detected: int | None = None
    laps: int = 0
    period: int = 1
    need: int = 3
    calls: tuple[str, ...] = ()
    confidence: float = 0.9
    level: int = -1
    members: dict[int, Facts | None] = field(default_factory=dict)
    taken: dict[str, tuple[int, int]] = field(default_factory=dict)

    def takes(self, alert: Alert) -> bool:
        """True when the alert is about this stretch: the same thing, or turns that lie in it."""
        if (alert.kind, *alert.key) in self.keys and alert.turns[0] <= self.last:
            return True
        return self.level >= 0 and alert.turns[0] <= self.last and alert.turns[-1] >= self.first

    def grow(self, alert: Alert, round_: Round, facts: Mapping[int, Facts]) -> bool:
        """Takes an alert; True when the stretch has become known, or climbed the ladder."""
        self.keys.add((alert.kind, *alert.key))
        if self._explains_better(alert):
            self.kind, self.laps, self.period, self.need = alert.kind, alert.laps, alert.period, alert.need
            self.calls, self.confidence = alert.calls, alert.confidence
            self.first = min(self.first or alert.turns[0], alert.turns[0])
        self.last = max(self.last, alert.turns[-1])
        self.moves.update(m.key for m in round_.moves)
        first, known = self.taken.get(alert.kind, (0, 0))
        self.taken[alert.kind] = (alert.turns[0], len(alert.turns))
        begin = (
            known - 1 if first == alert.turns[0] and 0 < known <= len(alert.turns) and len(alert.turns) > LONG else 0
        )
        for number in alert.turns[begin:]:
            if number not in self.members and len(self.members) < MEMBERS:
                self.members[number] = facts.get(number)
        return self._climb(alert)

    def absorb(self, other: Stretch) -> None:
        """Takes in a stretch of the same agent that turned out to be about the same turns."""
        self.keys |= other.keys
        self.moves |= other.moves
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.members |= other.members
        self.level = max(self.level, other.level)

    def overlaps(self, other: Stretch) -> bool:
        """True when the two share turns."""
        return self.first <= other.last and other.first <= self.last

    def finding(self, run: str | None) -> CycleFinding:
        """The stretch as it is now."""
        numbers = sorted(n for n in self.members if n >= self.first)
        lap = self.period if self.kind != "chant" else 0
        return CycleFinding(
            run=run,
            agent=self.agent or None,
            kind=self.kind,
            first_turn=self.first,
            last_turn=self.last,
            detected_turn=self.detected or self.last,
            laps=self.laps,
            period=self.period,
            calls=self.calls,
            turns=tuple(numbers),
            wasted=_waste([self.members[n] for n in numbers[lap:]]),
            stretch=_totals([self.members[n] for n in numbers]),
            level=LEVELS[max(0, self.level)],
            confidence=self.confidence,
            sentence=sentence(self.kind, self.first, self.last, self.laps, self.period, self.calls),
        )

    def _explains_better(self, alert: Alert) -> bool:
        """What is certain beats what is not; of two certain explanations the fuller one is told."""
        if not self.kind:
            return True
        certain, known = alert.laps >= alert.need, self.laps >= self.need
        return certain if certain != known else rank(alert.kind) >= rank(self.kind)

    def _climb(self, alert: Alert) -> bool:
        beyond = alert.laps - alert.need
        reached = 3 if beyond >= STOP else 2 if beyond >= INTERVENE else 1 if beyond >= 0 else 0
        if reached == 0 and alert.kind not in ("exact", "fan_out"):
            return False  # one repeat is worth a note only where nothing differs
        if reached <= self.level:
            return False
        self.level = reached
        if reached >= 1 and self.detected is None:
            self.detected = alert.turns[-1]
        return True


def _waste(facts: list[Facts | None]) -> Waste:
    known = [f for f in facts if f is not None]
    tokens = [f.tokens for f in known if f.tokens is not None]
    money = [f.usd for f in known if f.usd is not None]
    times = [(f.ended_at - f.started_at) / 1e6 for f in known if f.ended_at is not None and f.started_at is not None]
    return Waste(
        len(facts),
        sum(tokens) if tokens else None,
        round(sum(money), 10) if money else None,
        round(sum(times), 3) if times else None,
    )


def _totals(facts: list[Facts | None]) -> dict[str, Any]:
    sums: dict[str, Any] = {}
    for known in facts:
        for bucket, count in known.usage if known is not None else ():
            sums[bucket] = sums.get(bucket, 0) + count
    money = [f.usd for f in facts if f is not None and f.usd is not None]
    return {**sums, "usd": round(sum(money), 10) if money else None}
