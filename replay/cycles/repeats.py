"""Rules about calls that come again with what they brought: one call, a few in turn, a set in parallel, hardly other ones."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import masks
from .history import STATE, Alert, History
from .rounds import Move, Round

NEED = 3
"""Two redundant repeats: on real runs that finds nine of ten, two repeats cry wolf, five come too late."""
NEED_PATIENT = 10
"""For waiting, for actuators, and where a person asked for repetition."""
NEED_TRANSIENT = 5
"""An error that may pass by itself is worth another try or two."""
REACH = 12
"""Rounds after which the same call again is no repeat but a new look."""
LONG = STATE
"""Characters from which an actuator's answer is a view of the world, not an acknowledgement."""


def patience(move: Move, history: History) -> int:
    """How many laps of this call are worth a warning."""
    if history.patient or move.effect == "poll":
        return NEED_PATIENT
    if move.transient:
        return NEED_PATIENT if history.backs_off() else NEED_TRANSIENT
    if move.effect == "actuate" and (move.size < LONG or move.declared):
        return NEED_PATIENT
    if history.waits() and not move.failed:
        return NEED_PATIENT
    return NEED


@dataclass(slots=True)
class _Streak:
    turns: list[int]
    step: int
    epoch: int
    talks: int
    visits: int = 0


@dataclass(slots=True)
class SameCall:
    """The same call with the same result, whatever stands between, as long as nothing was changed."""

    streaks: OrderedDict[tuple[int, int], _Streak] = field(default_factory=OrderedDict)
    last: OrderedDict[int, int] = field(default_factory=OrderedDict)

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """At most one alert a round; calls made in parallel are told together."""
        repeated: list[tuple[Move, _Streak]] = []
        moves = [m for m in round_.moves if m.effect != "bookkeeping" and m.result is not None]
        for move in moves:
            streak = self._count(round_, move, history)
            if len(streak.turns) >= 2:
                repeated.append((move, streak))
        if not repeated:
            return
        whole = len(repeated) == len(moves) > 1
        chosen = min(repeated, key=lambda r: len(r[1].turns)) if whole else max(repeated, key=lambda r: len(r[1].turns))
        need = max(patience(m, history) for m, _ in repeated) if whole else patience(chosen[0], history)
        laps = len(chosen[1].turns)
        key = tuple(sorted(m.key for m, _ in repeated)) if whole else (chosen[0].key,)
        calls = tuple(m.short for m, _ in repeated) if whole else (_told(chosen[0]),)
        yield Alert("fan_out" if whole else "exact", key, tuple(chosen[1].turns), laps, 1, calls, need)

    def _count(self, round_: Round, move: Move, history: History) -> _Streak:
        assert move.result is not None  # noqa: S101 - the caller looked
        place = (move.key, move.result)
        streak = self.streaks.get(place)
        if streak is None or self.last.get(move.key) != move.result or self._over(streak, move, history):
            streak = _Streak([], history.step, history.epoch, history.talks)
        streak.turns.append(round_.number)
        streak.step, streak.epoch, streak.talks = history.step, history.epoch, history.talks
        streak.visits = history.visits
        _remember(self.streaks, place, streak, 2000)
        _remember(self.last, move.key, move.result, 2000)
        return streak

    def _over(self, streak: _Streak, move: Move, history: History) -> bool:
        if history.step - streak.step > REACH:
            return True
        if streak.talks != history.talks and not (move.failed and not move.transient):
            return True
        if move.handoff and streak.visits != history.visits:
            return True  # others had the word since: whether they worked is `PingPong`'s to say
        # the very same change again means that it was taken back, or never took
        undone = move.revert or (move.effect == "mutate" and not move.check and not move.onward)
        return streak.epoch != history.epoch and not undone


@dataclass(slots=True)
class Period:
    """Two to eight rounds in turn, results included; changes inside are allowed, for they are the same ones again."""

    past: deque[tuple[int, frozenset[tuple[int, int]], int, int, tuple[str, ...]]] = field(
        default_factory=lambda: deque(maxlen=64)
    )

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """The shortest lap that fits."""
        if round_.moves and not round_.works:
            return
        signature = round_.signature
        if signature is None:
            if round_.moves:
                self.past.clear()
            return
        need = max(patience(m, history) for m in round_.moves)
        shorts = tuple(_told(m) for m in round_.moves if m.effect != "bookkeeping")
        self.past.append((round_.number, signature, history.talks, need, shorts))
        rounds = list(self.past)
        for period in range(2, 9):
            laps = _laps(rounds, period)
            wanted = 3 if period < 4 else 2
            if laps < wanted:
                continue
            stretch = rounds[-laps * period :]
            lap = stretch[:period]
            patient = min(r[3] for r in lap)
            key = tuple(sorted({hash_of(r[1]) for r in lap}))
            calls = tuple(s for r in lap for s in r[4])
            turns = tuple(r[0] for r in stretch)
            yield Alert("period", key, turns, laps, period, calls, wanted if patient == NEED else NEED_PATIENT)
            return


def _laps(rounds: list[tuple[int, frozenset[tuple[int, int]], int, int, tuple[str, ...]]], period: int) -> int:
    """Full laps at the end of the past; 0 when a lap is the same all through (that is no period but one call)."""
    last = rounds[-period:]
    if len(last) < period or len({r[1] for r in last}) < 2:
        return 0
    talks, laps = last[-1][2], 1
    while len(rounds) >= (laps + 1) * period:
        lap = rounds[len(rounds) - (laps + 1) * period : len(rounds) - laps * period]
        if any(a[1] != b[1] or a[2] != talks for a, b in zip(lap, last, strict=True)):
            break
        laps += 1
    return laps if laps > 1 else 0


def hash_of(signature: frozenset[tuple[int, int]]) -> int:
    """A signature as one number, the same in every process."""
    return masks.digest(repr(sorted(signature)))


@dataclass(slots=True)
class _Chain:
    turns: list[int]
    words: frozenset[int]
    lines: frozenset[int]
    move: Move
    epoch: int
    talks: int
    step: int
    news: int
    same: bool = True


@dataclass(slots=True)
class NearCall:
    """Hardly other arguments for the same thing, and hardly anything new in the result."""

    ALIKE = 0.75
    ALIKE_ANSWERED = 0.4
    NEW = 0.34
    chains: OrderedDict[str, list[_Chain]] = field(default_factory=OrderedDict)

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """One alert a round at most."""
        found: _Chain | None = None
        for move in round_.moves:
            if move.effect == "bookkeeping" or move.result is None or move.failed or move.spawn or move.handoff:
                continue
            if move.effect in ("mutate", "actuate", "command", "unknown") and move.size < LONG:
                continue  # acknowledgements are all alike
            chain = self._join(round_, move, history)
            if len({*chain.turns}) >= 2 and (found is None or len(chain.turns) > len(found.turns)):
                found = chain
        if found is not None:
            need = 4 if found.same else 5
            if patience(found.move, history) > NEED:
                need = NEED_PATIENT
            turns = tuple(dict.fromkeys(found.turns))
            yield Alert("near", (found.move.name, *_start(found)), turns, len(turns), 1, (found.move.short,), need, 0.8)

    def _join(self, round_: Round, move: Move, history: History) -> _Chain:
        chains = self.chains.setdefault(move.name, [])
        self.chains.move_to_end(move.name)
        while len(self.chains) > 100:
            self.chains.popitem(last=False)
        for chain in reversed(chains):
            if self._fits(chain, move, history):
                chain.same = chain.same and chain.move.result == move.result
                chain.turns.append(round_.number)
                chain.words, chain.move = move.words, move
                chain.step, chain.news = history.step, history.news
                chain.lines = frozenset([*chain.lines, *move.lines]) if len(chain.lines) < 4000 else chain.lines
                return chain
        fresh = _Chain(
            [round_.number],
            move.words,
            frozenset(move.lines),
            move,
            history.epoch,
            history.talks,
            history.step,
            history.news,
        )
        chains.append(fresh)
        del chains[:-8]
        return fresh

    def _fits(self, chain: _Chain, move: Move, history: History) -> bool:
        if chain.talks != history.talks or history.step - chain.step > REACH or chain.move.entity != move.entity:
            return False
        changing = move.effect in ("mutate", "command")
        same = chain.move.result == move.result
        if changing and history.news != chain.news:
            return False  # what it changed showed
        if chain.epoch != history.epoch and not (changing and same):
            return False
        # the same long answer to another question is nothing new, even where the questions are not so alike
        alike = masks.alike(chain.words, move.words)
        if alike < (self.ALIKE_ANSWERED if same and move.size >= LONG and not changing else self.ALIKE):
            return False
        return same or history.share_of_new(move, chain.lines) <= self.NEW


def _start(chain: _Chain) -> tuple[int, ...]:
    return (chain.turns[0],)


def _told(move: Move) -> str:
    return f"{move.short}: {move.error_text}" if move.failed and move.error_text else move.short


def _remember(store: OrderedDict, key: object, value: object, limit: int) -> None:  # type: ignore[type-arg]
    store[key] = value
    store.move_to_end(key)
    while len(store) > limit:
        store.popitem(last=False)
