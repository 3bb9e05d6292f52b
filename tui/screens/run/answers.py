"""What replay says of a run, for its head and its list: why it cost what it did, its cycles, its findings, its children.

Each question is asked once for a state of the run, in a thread. A long run is not looked through unasked: its cycles are
looked for in its last turns only, and for the rest there are commands, which are named.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from textual.message import Message

from ....replay.cycles import CycleDetector, CycleFinding, find_cycles, seen_of
from ....tracer.errors import LooptapeError
from ....tracer.model import Run
from ...data.source import Source
from ...format import count
from ...widgets.cells import Spans

if TYPE_CHECKING:
    from ....replay.rules import Finding
    from ....replay.why.account import Child
    from ....tracer.store import Store

T = TypeVar("T")
LONG = 2_000
"""Turns beyond which a run is looked at in part: its answers would take seconds and much memory."""
SLICE = 200
"""Turns of a long run that are read at a time."""
KEPT = 64
"""Answers kept, over all runs."""


@dataclass(frozen=True, slots=True)
class Why:
    """Two lines that say why a run cost what it did; ``caller``: the line of the program behind the largest part."""

    lines: tuple[Spans, ...] = ()
    caller: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found in a run.

    Attributes:
        cycles: By their first turn. ``findings``: those of lint; None while they are not looked for.
        children: By turn, the sub-agents that it started, with all below them.
    """

    cycles: tuple[CycleFinding, ...] = ()
    findings: tuple[Finding, ...] | None = None
    children: Mapping[int, Sequence[Child]] = field(default_factory=dict)
    trouble: str = ""

    @property
    def found_at(self) -> tuple[int, ...]:
        """Numbers of the turns at which findings begin."""
        return tuple(sorted({f.first_turn for f in self.findings or () if f.first_turn}))


class WhyTold(Message):
    """Why a run cost what it did."""

    def __init__(self, why: Why, seconds: float) -> None:
        super().__init__()
        self.why, self.seconds = why, seconds


class SeenTold(Message):
    """What was found in a run."""

    def __init__(self, seen: Seen, seconds: float) -> None:
        super().__init__()
        self.seen, self.seconds = seen, seconds


def state(run: Run) -> tuple[object, ...]:
    """What differs when there may be other answers."""
    return (run.id, run.turns, run.tool_calls, run.status, run.cost_usd, run.inclusive_cost_usd, run.ended_at)


def why(source: Source, run: Run) -> WhyTold:
    """Why a run cost what it did (in a thread)."""
    began = time.monotonic()
    try:
        told = _once(source, ("why", *state(run)), lambda: _why(source, run))
    except LooptapeError as error:
        told = Why(((("why  ", "accent_strong"), (f"not known: {error.what}", "dim")),), trouble=error.what)
    return WhyTold(told, time.monotonic() - began)


def seen(source: Source, run: Run) -> SeenTold:
    """Cycles, findings and sub-agents of a run (in a thread)."""
    began = time.monotonic()
    try:
        found = _once(source, ("seen", *state(run)), lambda: _seen(source, run))
    except LooptapeError as error:
        found = Seen(trouble=error.what)
    return SeenTold(found, time.monotonic() - began)


def _why(source: Source, run: Run) -> Why:
    if run.turns > LONG:
        said = f"{count(run.turns)} turns are not explained unasked: looptape why {run.id[:8]} does it, in its time"
        also = f"cycles are looked for from turn {count(run.turns - LONG + 1)} on; ! looks for findings in all of it"
        return Why(((("why  ", "accent_strong"), (said, "dim")), (("     ", "dim"), (also, "dim"))))
    if not run.turns:
        return Why(((("why  ", "accent_strong"), ("no turns yet", "dim")),))
    return source.ask(lambda store: _told(store, run))


def _told(store: Store, run: Run) -> Why:
    from ....replay.why import explain
    from ...told.why_text import headline

    found = explain(store, run)
    said = ["".join(p if isinstance(p, str) else p.text for p in line) for line in headline(found, short=True)]
    said += list(found.notes)
    meant = next((p for p in found.parts if p.callers and p.what and any(p.what in line for line in said)), None)
    caller = meant.callers[0] if meant is not None else ""
    first: Spans = (("why  ", "accent_strong"), (said[0], "text"))
    return Why((first, *(((("     ", "text"), (text, "text"))) for text in said[1:2])), caller)


def _seen(source: Source, run: Run) -> Seen:
    children = source.ask(lambda store: _children(store, run))
    if run.turns > LONG:
        return Seen(_last_cycles(source, run), None, children)
    cycles = source.ask(lambda store: _cycles(store, run))
    return Seen(cycles, source.ask(lambda store: _findings(store, run)), children)


def _children(store: Store, run: Run) -> Mapping[int, Sequence[Child]]:
    from ....replay.why.account import children

    found: dict[int, list[Child]] = {}
    for child in children(store, [run.id]).get(run.id, ()):
        found.setdefault(child.turn or 0, []).append(child)
    return found


def _cycles(store: Store, run: Run) -> tuple[CycleFinding, ...]:
    from ....replay.recording import load

    return find_cycles(load(store, run))


def _findings(store: Store, run: Run) -> tuple[Finding, ...]:
    from ....replay.rules import lint
    from ....replay.rules.config import read_config
    from ....replay.rules.lint import all_rules

    return lint(store, [run], read_config(all_rules().rules)).findings


def _last_cycles(source: Source, run: Run) -> tuple[CycleFinding, ...]:
    """The cycles of the last turns, read slice by slice: whoever wants a turn meanwhile gets it between two of them."""
    from ....replay.recording import load

    detector = CycleDetector(run.id)
    for first in range(run.turns - LONG + 1, run.turns + 1, SLICE):
        recording = source.ask(lambda store, first=first: load(store, run, first, first + SLICE - 1))  # type: ignore[misc]
        for turn in recording.turns:
            detector.feed(seen_of(turn, recording.incoming.get(turn.number, ()), agent=run.agent))
            time.sleep(0)  # the screen comes first
        time.sleep(0.01)
    return tuple(detector.findings())


_lock = threading.Lock()
_answers: WeakKeyDictionary[Any, OrderedDict[tuple[object, ...], Any]] = WeakKeyDictionary()


def _once(source: Source, key: tuple[object, ...], ask: Callable[[], T]) -> T:
    """The answer to a question, asked once as long as the run stands as it does. Several threads ask at a time."""
    with _lock:
        known = _answers.setdefault(source, OrderedDict())
        if key in known:
            known.move_to_end(key)
            return known[key]  # type: ignore[no-any-return]
    answer = ask()
    with _lock:
        known[key] = answer
        while len(known) > KEPT:
            known.popitem(last=False)
    return answer
