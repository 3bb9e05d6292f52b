"""Rules about errors that stay the same, searches that stay empty, rounds that bring nothing."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from .history import LONGER, Alert, History
from .repeats import NEED_PATIENT, REACH
from .rounds import Move, Round

SAME_KIND = 3
MISSING = 6
"""Trying ids or paths one after the other is a search, not a circle, for a while."""
TRANSIENT = 5
GROWING = 10
AFTER_EDITS = 6
EMPTY = 6
EMPTY_OF = 8
NOTHING_NEW = 8
VERDICT = 80
"""Characters up to which one line is a verdict on what was asked, not a view of something."""


@dataclass(slots=True)
class _Errors:
    turns: list[int]
    times: list[int | None]
    epoch: int
    talks: int
    step: int
    error: int | None
    same: int = 0
    """How often the very same error came in a row."""
    keys: set[int] = field(default_factory=set)
    entities: set[int] = field(default_factory=set)


@dataclass(slots=True)
class SameError:
    """One kind of error from one tool, whatever the arguments."""

    found: OrderedDict[int, _Errors] = field(default_factory=OrderedDict)
    shapes: dict[str, set[int]] = field(default_factory=dict)

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """The longest streak that this round lengthens."""
        best: Alert | None = None
        for move in round_.moves:
            if move.shape is None:
                if not move.failed and move.effect != "bookkeeping" and not move.command:
                    self._worked(move.name)
                continue
            alert = self._count(round_, move, history)
            if alert is not None and (best is None or alert.laps > best.laps):
                best = alert
        if best is not None:
            yield best

    def _count(self, round_: Round, move: Move, history: History) -> Alert | None:
        assert move.shape is not None  # noqa: S101 - the caller looked
        past = self.found.get(move.shape)
        if past is None or self._over(past, move, history):
            past = _Errors([], [], history.epoch, history.talks, history.step, move.same_error)
        if not past.turns or past.turns[-1] != round_.number:
            past.turns.append(round_.number)
            past.times.append(round_.started_at)
        past.same = past.same + 1 if past.error == move.same_error else 1
        past.epoch, past.talks, past.step, past.error = history.epoch, history.talks, history.step, move.same_error
        past.keys.add(move.key)
        past.entities.add(move.entity)
        self.found[move.shape] = past
        self.found.move_to_end(move.shape)
        while len(self.found) > 500:
            self.found.popitem(last=False)
        if len(self.shapes) < 500:
            self.shapes.setdefault(move.name, set()).add(move.shape)
        if len(past.turns) < 2:
            return None
        need = self._need(past, move, history)
        return Alert(
            "error", (move.shape,), tuple(past.turns), len(past.turns), 1, (f"{move.short}: {move.error_text}",), need
        )

    def _need(self, past: _Errors, move: Move, history: History) -> int:
        if history.patient:
            return NEED_PATIENT
        if move.transient:
            return GROWING if _growing(past.times) else TRANSIENT
        return MISSING if move.missing and _tries_out(past, move) else SAME_KIND

    def _over(self, past: _Errors, move: Move, history: History) -> bool:
        if past.epoch != history.epoch or history.step - past.step > REACH:
            return True
        return past.talks != history.talks and not (move.named and past.error == move.same_error)

    def _worked(self, name: str) -> None:
        """A tool that works again has other trouble next time."""
        for shape in self.shapes.pop(name, ()):
            self.found.pop(shape, None)


def _tries_out(past: _Errors, move: Move) -> bool:
    """True while one thing after the other is looked for; not while it is the same one that is not there."""
    if move.entity:
        return len(past.entities) > 2
    return len(past.keys) > 2 and not (move.about and past.same >= SAME_KIND)


def _growing(times: list[int | None]) -> bool:
    """True when each wait is clearly longer than the one before."""
    known = [t for t in times if t is not None]
    gaps = [b - a for a, b in pairwise(known)]
    return len(gaps) >= 2 and all(b >= LONGER * a for a, b in pairwise(gaps))


@dataclass(slots=True)
class _Check:
    turns: list[int]
    error: int
    epoch: int
    edits: int = 0


@dataclass(slots=True)
class SameCheck:
    """A build or test that fails with the very same words after one edit and the next."""

    checks: OrderedDict[int, _Check] = field(default_factory=OrderedDict)

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """Counts edits, not runs: a check run twice without an edit is another rule's."""
        for move in round_.moves:
            if not move.check:
                continue
            past = self.checks.get(move.key)
            if move.same_error is None:
                self.checks.pop(move.key, None)
                continue
            if past is None or past.error != move.same_error:
                past = _Check([], move.same_error, history.epoch)
            elif past.epoch != history.epoch:
                past.edits += 1
            past.epoch = history.epoch
            past.turns.append(round_.number)
            self.checks[move.key] = past
            self.checks.move_to_end(move.key)
            while len(self.checks) > 200:
                self.checks.popitem(last=False)
            if past.edits >= 2:
                said = (f"{move.short}: {move.error_text}",)
                yield Alert("check", (move.key,), tuple(past.turns), past.edits + 1, 1, said, AFTER_EDITS + 1, 0.8)


@dataclass(slots=True)
class EmptySearch:
    """Search after search without a hit."""

    past: deque[tuple[int, int, bool]] = field(default_factory=lambda: deque(maxlen=EMPTY_OF))
    mark: tuple[int, int] = (0, 0)

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """Different searches; the same one again is another rule's."""
        if self.mark != (history.epoch, history.talks):
            self.mark = (history.epoch, history.talks)
            self.past.clear()
        last = None
        for move in round_.moves:
            if move.search and move.result is not None and not move.failed:
                self.past.append((round_.number, move.key, move.empty))
                last = move if move.empty else last
        if last is None or history.patient:
            return
        empty = {key: number for number, key, nothing in self.past if nothing}
        if len(empty) >= 3:
            turns = tuple(sorted(set(empty.values())))
            yield Alert(
                "empty",
                ("empty", turns[0] if len(self.past) < EMPTY_OF else 0),
                turns,
                len(empty),
                1,
                (last.short,),
                EMPTY,
                0.8,
            )


@dataclass(slots=True)
class NothingNew:
    """Rounds that show no line that was not seen before."""

    turns: list[int] = field(default_factory=list)
    mark: tuple[int, int] = (0, 0)
    asked: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """Waiting, keeping books, and changes count for nothing here; nor does a word (ok, positive) to a new question."""
        if self.mark != (history.epoch, history.talks):
            self.mark = (history.epoch, history.talks)
            self.turns = []
        looked = [
            m for m in round_.moves if m.effect in ("read", "unknown", "command", "actuate") and m.result is not None
        ]
        looked = [m for m in looked if (m.lines and not self._verdict(m)) or m.failed]
        if not looked or history.patient or history.waits():
            return
        if history.fresh:
            self.turns = []
            return
        self.turns.append(round_.number)
        if len(self.turns) >= 3:
            calls = (looked[-1].short,)
            yield Alert("stagnation", ("nothing",), tuple(self.turns), len(self.turns), 1, calls, NOTHING_NEW, 0.7)

    def _verdict(self, move: Move) -> bool:
        """One short line in answer to a call that was never made: what is classified, checked, counted one by one."""
        new = move.key not in self.asked
        self.asked[move.key] = None
        while len(self.asked) > 2000:
            self.asked.popitem(last=False)
        return new and len(move.lines) == 1 and move.size <= VERDICT and not move.search


@dataclass(slots=True)
class OnlyBooks:
    """Notes, thoughts and plans in a row, without work between."""

    turns: list[int] = field(default_factory=list)
    same: list[int] = field(default_factory=list)
    key: int = 0

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """Six in a row, or the same one three times."""
        if round_.user is not None or round_.works or not round_.moves:
            self.turns, self.same = [], []
            if not round_.moves or round_.works:
                return
        move: Move = round_.moves[0]
        if move.key != self.key:
            self.key, self.same = move.key, []
        self.same.append(round_.number)
        self.turns.append(round_.number)
        if len(self.same) >= 2:
            yield Alert("bookkeeping", ("books",), tuple(self.same), len(self.same), 1, (move.short,), 3)
        elif len(self.turns) >= 3:
            yield Alert("bookkeeping", ("books",), tuple(self.turns), len(self.turns), 1, (move.short,), 6)
