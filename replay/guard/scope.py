"""One run of those that a guard watches: its turns are put together as they happen and go to its detector."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...tracer.canonical import digest
from ...tracer.clock import now
from ...tracer.live import OpenRun, OpenTurn, PendingCall
from ...tracer.model import BUCKETS
from ...tracer.observers import NextCall, without
from ...tracer.providers import Answer
from ..cycles import CallSeen, CycleDetector, CycleFinding, Declared, TurnSeen
from ..cycles.masks import shape_of_error
from ..cycles.outcomes import looks_failed
from ..message_parts import parts, plain_text
from .limits import Errors

REMEMBERED = 64
"""Calls whose last result is kept, to answer a blocked call with and to know a payload again."""
LONGEST = 32 << 10
"""Characters of a result that is kept so."""


@dataclass(slots=True)
class Made:
    """A call of a turn while it lasts. ``result`` is None until it is known."""

    id: str
    name: str
    arguments: Any
    result: str | None = None
    is_error: bool = False
    ended: bool = False
    effect: str = "unknown"
    loop_key: str | None = None

    @property
    def failed(self) -> bool:
        """By its flag, or by what a person would call an error at first sight."""
        return looks_failed(self.is_error, self.result)


@dataclass(frozen=True, slots=True)
class Last:
    """What a call gave the last time. ``text``: None when it was too long to keep."""

    digest: int
    turn: int
    size: int
    text: str | None
    is_error: bool


@dataclass(slots=True)
class Building:
    """A turn while it is not told to the detector yet."""

    turn: OpenTurn
    answer: Answer
    user: str | None
    compaction: bool
    calls: dict[str, Made] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Every call that the model asked for has its result."""
        return bool(self.answer.calls) and all(c.ended for c in self.calls.values())


class Scope:
    """What a guard knows of one run.

    Attributes:
        base: Turns that the run had already when it began to be watched (a fork's).
        before: Turns of the runs that it goes on from; ``offset``: its own are numbered after them.
        shapes: Tool name to how its last result came: see `observers.shape`; ``raised``, and what it gave.
        pending: What waits to be told to the model.
        stop: The cycle that ends the loop before its next model call.
        unsaved: A turn was told since the state was written.
        said: Digest of a person's last words. ``goes_on``: a resumed run that has not asked yet.
        tools, used: Tools that the model has, and those that it has called.
    """

    def __init__(self, run: OpenRun, declared: Declared, *, base: int = 0, before: int = 0) -> None:
        self.run = run
        self.detector = CycleDetector(run.id, declared=declared)
        self.errors = Errors()
        self.base, self.before, self.offset = base, before, 0
        self.shapes: dict[str, tuple[str, str | None]] = {}
        self.pending: str | None = None
        self.stop: CycleFinding | None = None
        self.tools: tuple[str, ...] = ()
        self.used: set[str] = set()
        self.unsaved = False
        self.said: str | None = None
        self.goes_on = False
        self.model: str | None = None
        self._next: tuple[str | None, bool] = (None, False)
        self._open: dict[int, Building] = {}
        self._last: OrderedDict[str, Last] = OrderedDict()

    @property
    def turns(self) -> int:
        """Model calls so far, with those of the runs it goes on from."""
        return self.before + self.run.turns - self.base

    def number(self, turn: int) -> int:
        """A turn's number as the detector counts."""
        return turn + self.offset

    # -- what happens ----------------------------------------------------------------------------------------

    def asking(self, call: NextCall) -> tuple[CycleFinding, ...]:
        """The next request: its results complete the turns before it."""
        for result in call.results:
            for building in self._open.values():
                made = building.calls.get(result.call)
                if made is not None and not made.ended:
                    made.result, made.is_error, made.ended = without(_text(result.content)), result.is_error, True
        found = tuple(f for number in sorted(self._open) for f in self.feed(number))
        self._next = (self._words(call.prompt), call.compaction)
        if self._next[0] is not None:
            self.stop = None  # a person has spoken: what comes is another attempt
        if call.compaction:
            self._last.clear()  # what was said once is not in the context any more
        self.tools = _names(call.tools) or self.tools
        self.model = call.model or self.model
        return found

    def answered(self, turn: OpenTurn, answer: Answer) -> None:
        """A turn has its answer."""
        if turn.status not in ("ok", "abandoned"):
            self._open.pop(turn.number, None)
            return
        user, compaction = self._next
        building = Building(turn, answer, user, compaction)
        for call in answer.calls:
            if not call.provider_side:
                building.calls[call.id] = Made(call.id, call.name, _decoded(call.arguments_raw))
        self._open[turn.number] = building

    def ended(self, call: PendingCall, result: str, is_error: bool, declared: tuple[str | None, str | None]) -> Made:
        """A call's tool is over."""
        building = self._open.get(call.turn)
        made = building.calls.get(call.id) if building is not None else None
        if made is None:
            made = Made(call.id, call.name, arguments_of(call))
            if building is not None:  # no tool_use asked for it: the loop found it in the text
                building.calls[call.id] = made
        made.result, made.is_error, made.ended = result, is_error, True
        made.effect, made.loop_key = declared[0] or "unknown", declared[1]
        self.used.add(call.name)
        return made

    def whole(self, turn: int) -> bool:
        """Whether a turn can be told: its last call is over."""
        building = self._open.get(turn)
        return building is not None and building.complete

    def feed(self, turn: int) -> tuple[CycleFinding, ...]:
        """Tells a turn to the detector."""
        building = self._open.pop(turn, None)
        if building is None:
            return ()
        self.unsaved = True
        self._count(list(building.calls.values()))
        return self.detector.feed(self._seen(building))

    def standing(self, name: str, arguments: Any, agent: str | None) -> CycleFinding | None:
        """The cycle that this call would lengthen."""
        return self.detector.standing(name, arguments, agent)

    def agent_of(self, turn: int) -> str | None:
        """Who speaks in a turn, None for the run's own agent."""
        building = self._open.get(turn)
        return building.turn.agent if building is not None else None

    # -- results that were there before ----------------------------------------------------------------------

    def last(self, key: str) -> Last | None:
        """What this call gave the last time."""
        return self._last.get(key)

    def remember(self, key: str, turn: int, result: str, is_error: bool) -> None:
        """Keeps what a call gave."""
        kept = result if len(result) <= LONGEST else None
        self._last[key] = Last(hash(result), self.number(turn), len(result), kept, is_error)
        self._last.move_to_end(key)
        while len(self._last) > REMEMBERED:
            self._last.popitem(last=False)

    # -- inside ----------------------------------------------------------------------------------------------

    def _words(self, prompt: Any) -> str | None:
        """A person's words; None where they are a guard's own, or the same task that a resumed run begins with."""
        said = None if prompt is None else without("\n".join(p.text for p in parts(prompt) if p.kind == "text"))
        resumed, self.goes_on = self.goes_on, False
        if said is None or not said.strip():
            return None
        before, self.said = self.said, digest(said)
        return None if resumed and before == self.said else said

    def _count(self, calls: Sequence[Made]) -> None:
        over = [c for c in calls if c.ended]
        wrong = {c.id for c in over if c.failed}
        failed = [c for c in over if c.id in wrong]
        kinds = {f"{c.name}:{shape_of_error(c.result or '')}": " ".join((c.result or "").split())[:120] for c in failed}
        well = frozenset(c.name for c in over if c.id not in wrong)
        self.errors.turn(kinds, well, len(over), len(failed))

    def _seen(self, building: Building) -> TurnSeen:
        turn, answer = building.turn, building.answer
        figures = [v for v in (answer.usage.context, answer.usage.output) if v is not None]
        return TurnSeen(
            number=self.number(turn.number),
            agent=turn.agent,
            text=answer.text or "",
            calls=tuple(
                CallSeen(
                    c.name, c.arguments, c.result, is_error=c.is_error, side_effect=c.effect, loop_key=c.loop_key
                )
                for c in building.calls.values()
            ),
            user=building.user,
            compaction=building.compaction,
            tokens=sum(figures) if figures else None,
            usage=tuple((b, v) for b in BUCKETS if (v := getattr(answer.usage, b)) is not None),
            started_at=turn.started_at,
            ended_at=now(),
        )  # fmt: skip


def arguments_of(call: PendingCall) -> Any:
    """A call's arguments: its key holds them, canonical."""
    return _decoded(call.key.partition("\x00")[2])


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _text(content: Any) -> str:
    return content if isinstance(content, str) else plain_text(content)


def _names(tools: Any) -> tuple[str, ...]:
    found = []
    for tool in tools if isinstance(tools, list) else ():
        part = tool.get("function") if isinstance(tool, Mapping) else None
        holder = part if isinstance(part, Mapping) else tool
        name = holder.get("name") if isinstance(holder, Mapping) else None
        if isinstance(name, str):
            found.append(name)
    return tuple(found)
