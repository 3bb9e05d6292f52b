"""The time axis of a run: long pauses are cut short, the rest is to scale; microseconds to cells and back. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

SECOND = 1_000_000
BREAK = 3
"""Cells of a pause that is cut short; fewer where there are so many that they would fill the chart."""
_SHORTEST, _LONGEST = 5 * SECOND, 60 * SECOND
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500)  # milliseconds
_ROUND = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)  # seconds


@dataclass(frozen=True, slots=True)
class Pause:
    """A time in which nothing happened, cut short: its place among the pauses, and how long it was."""

    number: int
    began: int
    ended: int

    @property
    def ms(self) -> float:
        """How long it was."""
        return (self.ended - self.began) / 1000


@dataclass(frozen=True, slots=True)
class Axis:
    """Pieces of time in which something happened, with the pauses between them cut short.

    Attributes:
        starts, ends: Of the pieces, in order, microseconds since the epoch.
        before: Microseconds of all pieces before each.
        unit: Microseconds of a usual piece of work, for a first scale.
    """

    starts: Sequence[int] = ()
    ends: Sequence[int] = ()
    before: Sequence[int] = ()
    unit: float = SECOND

    @property
    def total(self) -> int:
        """Microseconds of all pieces together."""
        return self.before[-1] + self.ends[-1] - self.starts[-1] if self.starts else 0

    @property
    def origin(self) -> int | None:
        """When the first thing happened."""
        return self.starts[0] if self.starts else None

    def length(self, scale: float) -> float:
        """Cells of the whole axis at a scale (microseconds a cell)."""
        return self.total / scale + (len(self.starts) - 1) * self.gap(scale) if self.starts else 0.0

    def gap(self, scale: float) -> float:
        """Cells of a pause at a scale: at most a quarter of the axis goes to pauses."""
        pauses = len(self.starts) - 1
        return min(float(BREAK), self.total / scale / (3 * pauses)) if pauses > 0 else 0.0

    def at(self, time: int, scale: float) -> float:
        """The cell where a moment stands; inside a pause its middle."""
        if not self.starts:
            return 0.0
        piece = max(0, bisect_right(self.starts, time) - 1)
        inside = min(max(0, time - self.starts[piece]), self.ends[piece] - self.starts[piece])
        gap = self.gap(scale)
        late = gap / 2 if time > self.ends[piece] and piece < len(self.starts) - 1 else 0.0
        return (self.before[piece] + inside) / scale + piece * gap + late

    def pauses(self, left: float, right: float, scale: float) -> list[tuple[float, Pause]]:
        """The pauses between two cells, with the cell where each begins."""
        if not self.starts:
            return []
        gap, found = self.gap(scale), []
        piece = self._piece_at(left - gap, scale)
        while piece < len(self.starts) - 1:
            x = self.at(self.ends[piece], scale)
            if x >= right:
                break
            if x + gap > left:
                found.append((x, Pause(piece, self.ends[piece], self.starts[piece + 1])))
            piece += 1
        return found

    def pause_before(self, time: int) -> Pause | None:
        """The pause that ended at this moment."""
        piece = bisect_right(self.starts, time) - 1
        if piece <= 0 or self.starts[piece] != time:
            return None
        return Pause(piece - 1, self.ends[piece - 1], self.starts[piece])

    def ticks(self, left: float, width: int, scale: float, room: int = 12) -> list[tuple[int, int]]:
        """Cells from ``left`` on and the microseconds since the beginning that stand there, at round times."""
        origin = self.origin
        if origin is None:
            return []
        step, found, gap = round_step(scale * room), [], self.gap(scale)
        piece = self._piece_at(left, scale)
        while piece < len(self.starts):
            x = self.before[piece] / scale + piece * gap
            if x >= left + width:
                break
            begin = self.starts[piece] - origin
            end = self.ends[piece] - origin
            first = max(begin, begin + int((left - x) * scale))
            tick = -(-first // step) * step
            while tick <= end:
                cell = int(x + (tick - begin) / scale - left)
                if cell >= width:
                    break
                found.append((cell, tick))
                tick += step
            piece += 1
        return found

    def fitting(self, width: int) -> float:
        """The scale at which everything fits into so many cells, with room for words behind the last bar."""
        width -= min(24, width // 4)
        pauses = max(0, len(self.starts) - 1)
        free = max(width * 0.75, width - 1.0 - BREAK * pauses)
        return max(1.0, self.total / max(1.0, free))

    def _piece_at(self, cell: float, scale: float) -> int:
        low, high, gap = 0, len(self.starts) - 1, self.gap(scale)
        while low < high:
            middle = (low + high + 1) // 2
            if self.before[middle] / scale + middle * gap <= cell:
                low = middle
            else:
                high = middle - 1
        return low


def axis_of(spans: Iterable[tuple[int, int]]) -> Axis:
    """The axis of a run from the times in which its turns were at work (begin, end in µs), in any order."""
    ordered = sorted((begin, max(begin, end)) for begin, end in spans)
    if not ordered:
        return Axis()
    work = sum(end - begin for begin, end in ordered)
    cut = min(max(_SHORTEST, work // 20), _LONGEST)
    pieces = [list(ordered[0])]
    for begin, end in ordered[1:]:
        if begin - pieces[-1][1] > cut:
            pieces.append([begin, end])
        else:
            pieces[-1][1] = max(pieces[-1][1], end)
    before, passed = [], 0
    for begin, end in pieces:
        before.append(passed)
        passed += end - begin
    lengths = [end - begin for begin, end in ordered if end > begin]
    unit = float(median(lengths)) if lengths else float(SECOND)
    return Axis(tuple(p[0] for p in pieces), tuple(p[1] for p in pieces), tuple(before), unit)


def round_step(least: float) -> int:
    """The smallest round time that is at least so many microseconds."""
    for ms in _STEPS:
        if ms * 1000 >= least:
            return ms * 1000
    for seconds in _ROUND:
        if seconds * SECOND >= least:
            return seconds * SECOND
    days = int(-(-least // (86400 * SECOND)))
    return days * 86400 * SECOND


def elapsed(micros: int, step: int) -> str:
    """A moment after the beginning as the axis says it: ``0.2s``, ``15s``, ``1:20``, ``2:05:00``."""
    if step < SECOND:
        digits = 1 if step >= 100_000 else 2 if step >= 10_000 else 3
        return f"{micros / SECOND:.{digits}f}s"
    seconds = micros // SECOND
    if seconds < 60:
        return f"{seconds}s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
