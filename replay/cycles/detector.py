"""`CycleDetector`: fed turn by turn, says what is newly known, tells each stretch once."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from .agents import Compaction, PingPong, SameSubAgent
from .declared import Declared
from .failures import EmptySearch, NothingNew, OnlyBooks, SameCheck, SameError
from .finding import LEVELS, CycleFinding
from .history import Alert, History
from .repeats import NearCall, Period, SameCall
from .rounds import Round, dump, load, reduce
from .seen import CallSeen, TurnSeen
from .stretch import Facts, Stretch, rank
from .texts import Chant, SameTalk, SameWords, chant

FACTS = 20_000
"""Turns whose figures are kept for the waste of stretches that begin in the past."""
OPEN = 64
"""Stretches of an agent that may still grow."""
KEPT = 200
"""Rounds that `CycleDetector.state` holds: the longest lap three times over, with room for work between."""


class _Rule(Protocol):
    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """The alerts of a round."""


@dataclass(slots=True)
class _Agent:
    history: History
    rules: tuple[_Rule, ...] = field(
        default_factory=lambda: (
            SameCall(), Period(), NearCall(), SameError(), SameCheck(), EmptySearch(), NothingNew(), OnlyBooks(),
            SameWords(), Chant(), SameSubAgent(), Compaction(),
        )
    )  # fmt: skip
    stretches: list[Stretch] = field(default_factory=list)


class CycleDetector:
    """Finds the circles of one run as its turns come. Never raises; memory is bounded.

    Args:
        run: The run's id, for the findings.
        declared: What the author says of the tools.
        level: The lowest level to tell: ``note`` (one repeat) or ``warn``.
    """

    def __init__(self, run: str | None = None, *, declared: Declared | None = None, level: str = "warn") -> None:
        self._run = run
        self._declared = declared or Declared()
        self._level = LEVELS.index(level)
        self._agents: dict[str, _Agent] = {}
        self._between = _Agent(History(""), (PingPong(), SameTalk()))
        self._facts: OrderedDict[int, Facts] = OrderedDict()
        self._closed: list[Stretch] = []
        self._kept: deque[Round] = deque(maxlen=KEPT)
        self._number = 0
        self._speaker: str | None = None

    def feed(self, turn: TurnSeen) -> tuple[CycleFinding, ...]:
        """Takes the next turn; the findings that are new, or have reached a higher level, with it."""
        try:
            return tuple(self._feed(turn))
        except Exception:  # a detector's trouble is never the loop's trouble
            return ()

    def findings(self) -> tuple[CycleFinding, ...]:
        """All stretches so far, by their first turn, grown to where they are now."""
        stretches = [*self._closed, *(s for a in (*self._agents.values(), self._between) for s in a.stretches)]
        told = [s for s in stretches if s.level >= self._level]
        return tuple(s.finding(self._run) for s in sorted(told, key=lambda s: (s.first, s.detected or 0)))

    def standing(self, name: str, arguments: Any, agent: str | None = None) -> CycleFinding | None:
        """The stretch that this call would lengthen, were it made now; None when it would not."""
        known = self._agents.get(agent or "")
        if known is None or not any(s.level >= 0 and s.last >= self._number - 2 for s in known.stretches):
            return None
        asked = reduce(TurnSeen(0, agent, calls=(CallSeen(name, arguments),)), self._declared, None)
        key = asked.moves[0].key if asked.moves else None
        for stretch in reversed(known.stretches):
            if stretch.level >= 0 and key in stretch.moves and stretch.last >= self._number - 2:
                return stretch.finding(self._run)
        return None

    def state(self) -> dict[str, Any]:
        """What another process needs to go on with this run, as JSON: the last rounds, without any text of the run
        but the openings that findings show."""
        return {"version": 1, "rounds": [dump(r) for r in self._kept]}

    def latest(self) -> dict[str, Any] | None:
        """The last round of `state`: what a turn has added to it."""
        return dump(self._kept[-1]) if self._kept else None

    def resume(self, state: dict[str, Any]) -> None:
        """Takes up what `state` of an earlier process said; nothing is told of it again. Unreadable state is left."""
        try:
            for saved in state.get("rounds", ()):
                list(self._take(load(saved)))
        except Exception:  # a detector's trouble is never the loop's trouble
            return

    def _feed(self, turn: TurnSeen) -> Iterator[CycleFinding]:
        if turn.injected:
            return
        self._remember(turn)
        yield from self._take(reduce(turn, self._declared, chant(turn.text)))

    def _take(self, round_: Round) -> Iterator[CycleFinding]:
        agent = self._agents.setdefault(round_.agent, _Agent(History(round_.agent)))
        self._kept.append(round_)
        if round_.user is not None:
            for other in self._agents.values():
                other.history.hear(round_.user)
        self._number = round_.number
        if not round_.moves and not round_.text_size and not round_.compaction and round_.user is not None:
            for rule in agent.rules:
                list(rule.feed(round_, agent.history))
            return
        agent.history.interrupted = self._speaker not in (None, round_.agent)
        self._speaker = round_.agent
        agent.history.before(round_)
        alerts = [a for rule in agent.rules for a in rule.feed(round_, agent.history)]
        handed = [a for rule in self._between.rules for a in rule.feed(round_, agent.history)]
        agent.history.after(round_)
        for stretch in self._merge(agent, alerts, round_) + self._merge(self._between, handed, round_):
            yield stretch.finding(self._run)

    def _merge(self, agent: _Agent, alerts: list[Alert], round_: Round) -> list[Stretch]:
        """Puts alerts into the stretches that they lengthen; gives those that have something new to tell."""
        told: list[Stretch] = []
        for alert in sorted(alerts, key=lambda a: -rank(a.kind)):
            stretch = next((s for s in reversed(agent.stretches) if s.takes(alert)), None)
            if stretch is None:
                stretch = Stretch(agent.history.agent)
                agent.stretches.append(stretch)
            if stretch.grow(alert, round_, self._facts) and stretch.level >= self._level and stretch not in told:
                stretch = self._joined(agent, stretch)
                told.append(stretch)
        while len(agent.stretches) > OPEN:
            old = agent.stretches.pop(0)
            if old.level >= self._level:
                self._closed.append(old)
        return told

    def _joined(self, agent: _Agent, stretch: Stretch) -> Stretch:
        """The stretch, or an older one that it turns out to be a part of."""
        for older in agent.stretches:
            if older is not stretch and older.level >= 1 <= stretch.level and older.overlaps(stretch):
                older.absorb(stretch)
                agent.stretches.remove(stretch)
                return older
        return stretch

    def _remember(self, turn: TurnSeen) -> None:
        self._facts[turn.number] = Facts(turn.tokens, turn.usage, turn.cost_usd, turn.started_at, turn.ended_at)
        while len(self._facts) > FACTS:
            self._facts.popitem(last=False)
