"""The lines of a waterfall: one a turn, one more for each parallel call and each sub-agent. Made when looked at. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, overload

from ..data.views import TurnRow
from ..format import duration
from ..told.time_axis import Axis, axis_of
from . import waterfall_bars as bars
from .cells import Spans

if TYPE_CHECKING:
    from ...tracer.store.times import CallTimes, ChildTimes, TurnTimes


class Line(NamedTuple):
    """A line: of a turn (its first), of one of its calls, or of the sub-agent that a call started.

    Attributes:
        call: The call it shows; None in a turn without calls.
        child: The sub-agent it shows instead.
        tree: What stands before the name: ``┬`` ``├`` ``└`` where calls share a turn.
    """

    turn: TurnTimes
    offset: int
    call: CallTimes | None
    child: ChildTimes | None
    tree: str


class Lines(Sequence[Line]):
    """All lines of a run by index; only those asked for exist."""

    def __init__(self, turns: Sequence[TurnTimes]) -> None:
        self._turns = turns
        self._starts = list(accumulate((_height(t) for t in turns), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, index: int) -> Line: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Line]: ...

    def __getitem__(self, index: int | slice) -> Line | Sequence[Line]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        at = bisect_right(self._starts, index) - 1
        return _line(self._turns[at], index - self._starts[at])

    def index_of(self, number: int) -> int | None:
        """Where the first line of a turn stands."""
        at = bisect_left(self._turns, number, key=lambda t: t.number)
        return self._starts[at] if at < len(self._turns) and self._turns[at].number == number else None


@dataclass(frozen=True, slots=True)
class Chart:
    """A run over time. ``rows``: what the turn list says of each turn; ``signs``: those that occur."""

    turns: Sequence[TurnTimes] = ()
    rows: Mapping[int, TurnRow] = field(default_factory=dict)
    axis: Axis = field(default_factory=Axis)
    lines: Lines = field(default_factory=lambda: Lines(()))
    signs: frozenset[str] = frozenset()


def chart_of(turns: Sequence[TurnTimes], rows: Sequence[TurnRow]) -> Chart:
    """Everything that is the same however one looks at it. For a thread: a long run takes a while."""
    spans: list[tuple[int, int]] = []
    signs: set[str] = set()
    for turn in turns:
        busy = bars.busy(turn)
        if busy is not None:
            spans.append(busy)
            signs |= bars.signs(turn)
    axis = axis_of(spans)
    if len(axis.starts) > 1:
        signs.add(bars.PAUSE)
    return Chart(turns, {r.number: r for r in rows}, axis, Lines(turns), frozenset(signs))


def key_of(line: Line) -> str:
    """``7`` for the first line of turn 7, ``7.2`` for the third."""
    return f"{line.turn.number}.{line.offset}" if line.offset else str(line.turn.number)


def name(line: Line) -> Spans:
    """The tool, the sub-agent, or how a turn without calls ended."""
    if line.child is not None:
        return ((line.tree, "faint"), ("↳ ", "accent"), (line.child.name or line.child.run[:8], "text"))
    if line.call is not None:
        role = "bad" if line.call.wrong else "text"
        return ((line.tree, "faint"), (line.call.name, role))
    turn = line.turn
    return ((turn.wrong or "error", "bad"),) if turn.wrong else ((turn.stop_reason or turn.status, "dim"),)


def chart(line: Line, seen: bars.Window, user_turn: bool) -> Spans:
    """The line over time."""
    turn, call = line.turn, line.call
    if line.child is not None:
        return bars.drawn(bars.child_marks(line.child), bars.child_words(line.child), (), seen)
    marks = bars.model_marks(turn) if line.offset == 0 else []
    words = bars.turn_words(turn) if line.offset == 0 else ()
    if call is not None:
        marks += bars.call_marks(call, turn.ended_at)
        words = (*words, *((("  ", "dim"),) if words else ()), *bars.call_words(call))
    if not marks and not words:
        words = ((f"{bars.GUESS} times not recorded", "dim"),)
    before: Spans = ()
    if line.offset == 0 and marks:
        pause = seen.axis.pause_before(min(m.begin for m in marks))
        if pause is not None:
            before = ((f"{'user' if user_turn else 'pause'} {duration(pause.ms)}", "dim"),)
    return bars.drawn(marks, words, before, seen)


def took_ms(turn: TurnTimes) -> float | None:
    """Milliseconds from a turn's begin to the end of its last call."""
    found = bars.busy(turn)
    return (found[1] - found[0]) / 1000 if found is not None and found[1] > found[0] else None


def _height(turn: TurnTimes) -> int:
    return max(1, len(turn.calls) + sum(1 for c in turn.calls if c.child is not None))


def _line(turn: TurnTimes, offset: int) -> Line:
    several = len(turn.calls) > 1
    at = 0
    for number, call in enumerate(turn.calls):
        last = number == len(turn.calls) - 1
        if at == offset:
            tree = ("┬ " if number == 0 else "└ " if last else "├ ") if several else ""
            return Line(turn, offset, call, None, tree)
        at += 1
        if call.child is not None:
            if at == offset:
                return Line(turn, offset, call, call.child, ("  " if last else "│ ") if several else "")
            at += 1
    return Line(turn, offset, None, None, "")
