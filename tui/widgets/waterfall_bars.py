"""What one line of a waterfall shows over time: bars of its phases, and words beside them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from ..format import counted, duration
from ..safe_text import clean, width
from ..told.time_axis import Axis
from .cells import Span, Spans, width_of

if TYPE_CHECKING:
    from ...tracer.store.times import CallTimes, ChildTimes, TurnTimes

MODEL, ANSWER, TOOL, WAIT, FAILED, GUESS, CHILD, PAUSE = "▒", "▓", "█", "░", "✗", "·", "━", "┊"
LEGEND = (
    (MODEL, "model", "bar_dim"),
    (ANSWER, "its answer", "bar_dim"),
    (TOOL, "tool", "bar"),
    (CHILD, "sub-agent", "bar"),
    (WAIT, "wait", "dim"),
    (FAILED, "failed", "bad"),
    (GUESS, "not measured", "bar"),
    (PAUSE, "pause cut short", "faint"),
)
HINT = 40
"""Cells of what a call was about."""
_SCRAP = 8  # words that would be cut to less than this many cells are left out
_FIRST = re.compile(r':\s*(?:"((?:[^"\\]|\\.){1,160})|(-?\d[\d.]*))')
_BAD_CHILD = frozenset({"failed", "limit", "halted", "interrupted"})


class Mark(NamedTuple):
    """A part of a bar, in microseconds since the epoch; at least one cell where there is room for all."""

    begin: int
    end: int
    sign: str
    role: str


@dataclass(frozen=True, slots=True)
class Window:
    """What part of the axis is seen: ``width`` cells from cell ``left`` on, ``scale`` microseconds a cell.

    ``cuts``: cells of the window in which a pause is cut short.
    """

    axis: Axis
    left: float
    width: int
    scale: float
    cuts: tuple[int, ...] = ()

    def cell(self, time: int) -> float:
        """Where a moment stands, from the window's left edge."""
        return self.axis.at(time, self.scale) - self.left


def window(axis: Axis, left: float, width_: int, scale: float) -> Window:
    """The window with its pauses."""
    middle = axis.gap(scale) / 2
    cuts = {int(x + middle - left) for x, _ in axis.pauses(left, left + width_, scale)}
    return Window(axis, left, width_, scale, tuple(sorted(c for c in cuts if 0 <= c < width_)))


# what happened


def model_marks(turn: TurnTimes) -> list[Mark]:
    """GENERATE: its tries with the waits between them, the answer since its first token."""
    marks: list[Mark] = []
    begin, end = turn.started_at, turn.ended_at
    for this, then in zip(turn.tries, (*turn.tries[1:], None), strict=False):
        if this.started_at is None or this.ended_at is None:
            continue
        if not this.failed:
            begin = this.started_at
            continue
        if this.ended_at > this.started_at:
            marks.append(Mark(this.started_at, this.ended_at, MODEL, "bar_bad"))
        marks.append(Mark(this.ended_at, this.ended_at, FAILED, "bad_strong"))
        until = then.started_at if then is not None and then.started_at is not None else None
        if until is None and this.wait_ms and this.started_at == this.ended_at:
            until = this.ended_at + int(this.wait_ms * 1000)  # a session file says how long the client then waited
        if until is not None and until > this.ended_at:
            marks.append(Mark(this.ended_at, until, WAIT, "dim"))
    if begin is None or end is None:
        known = begin if begin is not None else end
        return marks if known is None else [*marks, Mark(known, known, GUESS, "text")]
    if marks and all(t.failed for t in turn.tries) and turn.status == "error":
        return marks
    role = "bar_bad" if turn.wrong else "bar_dim"
    first = turn.first_chunk_at
    if first is not None and begin < first < end:
        own = [Mark(begin, first, MODEL, role), Mark(first, end, ANSWER, role)]
    else:
        own = [Mark(begin, end, MODEL, role)]
    return [*marks, *own] if marks and marks[0].begin < begin else [*own, *marks]


def call_marks(call: CallTimes, after: int | None) -> list[Mark]:
    """EXECUTE of one call; ``after``: when the model's answer ended, where a call without times is put."""
    role = "bar_bad" if call.wrong else "bar"
    begin, end = call.started_at, call.ended_at
    sign = TOOL if call.measured else GUESS
    if begin is not None and end is not None:
        return [Mark(begin, end, sign, role)]
    known = begin if begin is not None else end
    if known is not None:
        return [Mark(known, known, sign, role)]
    return [] if after is None or call.provider else [Mark(after, after, GUESS, role)]


def child_marks(child: ChildTimes) -> list[Mark]:
    """A sub-agent's run."""
    if child.started_at is None:
        return []
    role = "bar_bad" if child.status in _BAD_CHILD else "bar"
    end = child.ended_at if child.ended_at is not None else child.started_at
    return [Mark(child.started_at, end, CHILD, role)]


def busy(turn: TurnTimes) -> tuple[int, int] | None:
    """From when to when a turn was at work; None where no time is known."""
    times = [turn.started_at, turn.ended_at]
    for call in turn.calls:
        times += (call.started_at, call.ended_at)
        if call.child is not None:
            times += (call.child.started_at, call.child.ended_at)
    if turn.tries:
        marks = model_marks(turn)
        times += (*(m.begin for m in marks), *(m.end for m in marks))
    known = [t for t in times if t is not None]
    return (min(known), max(known)) if known else None


def signs(turn: TurnTimes) -> set[str]:
    """The signs that occur in a turn."""
    found = {m.sign for m in model_marks(turn)} if turn.tries else {MODEL}
    if turn.first_chunk_at is not None:
        found.add(ANSWER)
    for call in turn.calls:
        found.add(TOOL if call.measured else GUESS)
        if call.child is not None:
            found.add(CHILD)
        if call.wrong:
            found.add(FAILED)
    if turn.wrong:
        found.add(FAILED)
    if turn.started_at is None or turn.ended_at is None:
        found.add(GUESS)
    return found


# what is said beside it


def turn_words(turn: TurnTimes) -> Spans:
    """What a turn's model call has to say: its refused tries, its error, what is not known."""
    spans: list[Span] = []
    failed = [t for t in turn.tries if t.failed]
    if failed:
        waited = sum(t.wait_ms or 0 for t in turn.tries)
        spans.append((f"{FAILED} {', '.join(t.said for t in failed[:4])}", "bad"))
        if waited:
            spans.append((f" waited {duration(waited)}", "dim"))
    if turn.wrong:
        spans += _gap(spans)
        spans.append((f"{FAILED} {turn.wrong}", "bad"))
    elif turn.status == "open":
        spans += _gap(spans)
        spans.append(("● running", "accent"))
    elif turn.status in ("abandoned", "cancelled", "interrupted"):
        spans += _gap(spans)
        spans.append((f"◌ {turn.status}", "dim"))
    if (turn.started_at is None) != (turn.ended_at is None) and turn.status != "open":
        spans += _gap(spans)
        spans.append((f"{GUESS} {'begin' if turn.started_at is None else 'end'} not known", "dim"))
    return tuple(spans)


def call_words(call: CallTimes) -> Spans:
    """How long a call took, what went wrong, what it was about."""
    spans: list[Span] = []
    if call.started_at is not None and call.ended_at is not None and not call.open:
        about = "" if call.measured else "≤ "
        spans.append((about + duration((call.ended_at - call.started_at) / 1000), "dim"))
    elif call.provider:
        spans.append(("at the provider", "dim"))
    elif call.started_at is None and call.ended_at is None and not call.open:
        spans.append(("time not known", "dim"))
    if call.open:
        spans += _gap(spans)
        spans.append(("● running", "accent"))
    if call.wrong:
        spans += _gap(spans)
        spans.append((f"{FAILED} {call.wrong}", "bad"))
    hint = first_value(call.arguments)
    if hint:
        spans += _gap(spans)
        short = clean(hint, limit=HINT)
        if hint.startswith("/") and short != hint:  # of a path the end says most
            short = "…" + clean(hint)[1 - HINT :]
        spans.append((short, "faint"))
    return tuple(spans)


def child_words(child: ChildTimes) -> Spans:
    """How a sub-agent's run went."""
    took = None
    if child.started_at is not None and child.ended_at is not None:
        took = duration((child.ended_at - child.started_at) / 1000)
    said = " · ".join(w for w in (took, counted(child.turns, "turn") if child.turns else None) if w)
    if child.status in _BAD_CHILD:
        return ((said, "dim"), (f"  {FAILED} {child.status}", "bad"))
    return ((said, "dim"), ("  ● running", "accent")) if child.status == "running" else ((said, "dim"),)


def first_value(arguments: str) -> str:
    """The first text or number among a call's arguments: mostly what it is about."""
    found = _FIRST.search(arguments)
    if found is None:
        return ""
    return (found[1] or found[2]).replace("\\n", " ").replace('\\"', '"').replace("\\/", "/")


def _gap(spans: Sequence[Span]) -> list[Span]:
    return [("  ", "dim")] if spans else []


# drawing


def drawn(marks: Sequence[Mark], words: Spans, before: Spans, seen: Window) -> Spans:
    """One line of the chart, exactly as wide as the window.

    Args:
        words: Stand behind the bar where there is room, else before it.
        before: Stand before the bar (a pause), else among the words.
    """
    row = _Row(seen)
    if not marks:
        row.write(0, _joined(before, words))
        return row.spans()
    first, last = row.bar(marks)
    if last <= 0:
        row.put(0, "‹", "faint")
        row.write(2, _joined(before, words))
    elif first >= seen.width:
        words = _joined(before, words)
        row.write(max(0, seen.width - 2 - width_of(words)), words, seen.width - 2)
        row.put(seen.width - 1, "›", "faint")
    else:
        room = _cut_before(seen, first)
        if before and width_of(before) + 1 <= room:
            row.write(room - width_of(before) - 1, before, room)
            first = room - width_of(before) - 1
        elif before:
            words = _joined(before, words)
        needed = width_of(words[:-1] if words and words[-1][1] == "faint" else words)
        if needed <= seen.width - last - 1 or width_of(words) + 1 > first:
            row.write(last + 1, words)
        else:
            row.write(first - 1 - width_of(words), words, first - 1)
    return row.spans()


_TEXT, _ROLE = itemgetter(0), itemgetter(1)


class _Row:
    """The cells of one line while it is drawn."""

    def __init__(self, seen: Window) -> None:
        self._seen = seen
        self._cells: list[tuple[str, str]] = [(" ", "text")] * seen.width
        for cut in seen.cuts:
            self._cells[cut] = (PAUSE, "faint")

    def put(self, cell: int, sign: str, role: str) -> None:
        if 0 <= cell < self._seen.width:
            self._cells[cell] = (sign, role)

    def bar(self, marks: Sequence[Mark]) -> tuple[int, int]:
        """Draws the marks; the first cell and the one behind the last, also where they are not in the window."""
        places = [(self._seen.cell(m.begin), self._seen.cell(m.end), m) for m in marks]
        first = int(min(p[0] for p in places) // 1)
        whole = max(p[1] for p in places) - first
        if whole < len(places):  # not a cell for each: the cells go to what takes most of them
            for cell in range(first, first + max(1, round(whole))):
                mark = max(
                    places,
                    key=lambda p: (p[2].sign == FAILED and p[0] // 1 == cell, min(p[1], cell + 1) - max(p[0], cell)),
                )[2]
                self.put(cell, mark.sign, mark.role)
            return first, first + max(1, round(whole))
        free, until = first, min(m.begin for m in marks)
        for begin, end, mark in places:
            inside = mark.begin < until  # a refusal while the turn went on lies over its bar
            start = int(begin // 1) if inside else max(int(begin // 1), free)
            stop = max(start + 1, int(end // 1))
            if mark.sign == ANSWER and end - begin < 1 and start > first:
                start, stop = start - 1, stop - 1  # it shares the model's last cell: what follows keeps its place
            free, until = max(free, stop), max(until, mark.end)
            for cell in range(max(0, start), min(stop, self._seen.width)):
                self._cells[cell] = (mark.sign, mark.role)
        return first, free

    def write(self, cell: int, spans: Spans, end: int | None = None) -> None:
        """Words from a cell on, cut with an ellipsis before ``end``."""
        limit = self._seen.width if end is None else end
        for text, role in spans:
            if limit - cell < _SCRAP and role in ("dim", "faint") and width(clean(text)) > limit - cell:
                return
            text = clean(text, limit=limit - cell)
            size = width(text)
            if not size:
                continue
            self._cells[cell] = (text, role)
            for after in range(cell + 1, min(cell + size, self._seen.width)):
                self._cells[after] = ("", role)
            cell += size

    def spans(self) -> Spans:
        """Neighbours of one role as one span."""
        return tuple(("".join(map(_TEXT, same)), role) for role, same in groupby(self._cells, _ROLE))


def _cut_before(seen: Window, first: int) -> int:
    """The cell of the pause that ends at a bar, else the bar's own."""
    cut = max((c for c in seen.cuts if c < first), default=first)
    return cut if first - cut <= 3 else first


def _joined(*parts: Spans) -> Spans:
    out: list[Span] = []
    for part in parts:
        if part:
            out += _gap(out)
            out += part
    return tuple(out)
