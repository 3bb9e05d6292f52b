"""A fork beside the run it comes from, turn by turn while it runs, and what came of it at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....tracer.canonical import canonical
from ....tracer.model import Turn
from ...message_parts import plain_text
from ...verdict import Counts
from ..outcome import Outcome
from ..policy import TurnDone
from .order import Ready


@dataclass(frozen=True, slots=True)
class SaidCall:
    """A call of a turn: its arguments and its result as text (None: there is none), and where the result is from."""

    name: str
    arguments: str
    result: str | None = None
    is_error: bool = False
    origin: str = "recorded"


@dataclass(frozen=True, slots=True)
class Said:
    """What a turn said and did. ``text`` is None where nothing was said, or the answer is an inherited one."""

    number: int
    text: str | None = None
    calls: tuple[SaidCall, ...] = ()
    cost_usd: float | None = None
    tokens: int | None = None
    error: str | None = None


def of_turn(turn: Turn) -> Said:
    """A recorded turn."""
    calls = tuple(
        SaidCall(
            c.name, c.arguments_raw, None if c.result is None else plain_text(c.result), c.is_error is True, c.origin
        )
        for c in turn.tool_calls
        if c.origin != "provider"
    )
    tokens = None if turn.usage.context is None else turn.usage.context + (turn.usage.output or 0)
    return Said(turn.number, turn.text or None, calls, turn.cost_usd, tokens, turn.error)


def of_done(done: TurnDone) -> Said:
    """A turn that the loop has just finished."""
    calls = tuple(
        SaidCall(
            c.name,
            c.arguments if isinstance(c.arguments, str) else json.dumps(c.arguments, ensure_ascii=False),
            plain_text(c.result.content), c.result.is_error, c.result.origin,
        )
        for c in done.calls
    )  # fmt: skip
    return Said(done.number, done.text or None, calls, done.cost_usd, done.tokens)


def differs(parent: Said, fork: Said, *, kept: bool = False) -> str:
    """What differs first in two turns: ``calls``, ``text``, ``results``; empty where nothing does.

    Args:
        kept: The fork kept the parent's answer: only its calls and results can differ.
    """
    if [(c.name, _key(c)) for c in parent.calls] != [(c.name, _key(c)) for c in fork.calls]:
        return "calls"
    if not kept and (parent.text or "") != (fork.text or ""):
        return "text"
    got = [(a, b) for a, b in zip(parent.calls, fork.calls, strict=True) if b.result is not None]
    if any((a.result, a.is_error) != (b.result, b.is_error) for a, b in got):
        return "results"
    return ""


@dataclass(frozen=True, slots=True)
class Pair:
    """A turn of the parent and the fork's of the same number; None where one of them has none."""

    number: int
    parent: Said | None
    fork: Said | None
    differs: str = ""


def side_by_side(fork: Ready, came: Sequence[Said]) -> tuple[Pair, ...]:
    """All turns from the fork's first on (a kept answer's turn too), in order of their numbers."""
    first = fork.start.turn
    parents = {t.number: of_turn(t) for t in fork.plan.turns if t.number >= first}
    forks = {s.number: s for s in came}
    return tuple(_pair(fork, n, parents.get(n), forks.get(n)) for n in sorted({*parents, *forks}))


def _pair(fork: Ready, number: int, parent: Said | None, own: Said | None) -> Pair:
    kept = number <= fork.start.inherited
    found = "" if parent is None or own is None else differs(parent, own, kept=kept)
    return Pair(number, parent, own, found)


@dataclass(frozen=True, slots=True)
class ForkVerdict:
    """What came of one fork.

    Attributes:
        recorded: What the parent has from the fork's first turn on, of what is answered from the recording at all.
        served: What of the fork was answered from it; ``unconsumed``: what was not asked for.
        live: Model calls that were sent, tools that really ran.
        stubbed: Calls that a stub answered.
        diverged: The first place where it parted from its parent, in one sentence; None where it did not.
    """

    outcome: Outcome
    recorded: Counts
    served: Counts
    unconsumed: Counts
    live: Counts
    stubbed: int
    diverged: str | None

    def lines(self) -> list[str]:
        """Short lines for a person."""
        found = [f"first divergence: {self.diverged}" if self.diverged else "the same as its parent to the end"]
        if self.recorded:
            model = f"model calls {self.served.model} of {self.recorded.model}"
            found.append(f"from the recording: {model}, tool calls {self.served.tools} of {self.recorded.tools}")
        if self.unconsumed:
            found.append(f"not asked for: {self.unconsumed}")
        found.append(f"live: {self.live}" if self.live else "live: nothing; no request was sent")
        if self.stubbed:
            found.append(f"stubbed: {self.stubbed} tool call{'' if self.stubbed == 1 else 's'}")
        return found

    def as_json(self) -> dict[str, Any]:
        """As one JSON object."""
        counts = {n: getattr(self, n).as_json() for n in ("recorded", "served", "unconsumed", "live")}
        return {**counts, "stubbed": self.stubbed, "diverged": self.diverged}


def judge(fork: Ready, live: Sequence[str], came: Sequence[Said], outcome: Outcome) -> ForkVerdict:
    """The verdict over one fork.

    Args:
        live: The tools that really run (`choices.ToolChoice.live`).
        came: The turns that the loop finished, as its observer saw them.
    """
    start = fork.start
    from_tape = fork.model.kind == "recorded"
    later = [t for t in fork.plan.turns if t.number > start.inherited]
    names = [c.name for t in later for c in t.tool_calls if c.origin != "provider"] + [c.name for c in start.pending]
    held = [n for n in names if n not in live and fork.order.named.get(n, "recorded") == "recorded"]
    recorded = Counts(len(later) if from_tape else 0, len(held))
    done = [c for s in came for c in s.calls]
    own = [c for s in came if not (start.known and s.number == start.turn) for c in s.calls if c.origin == "recorded"]
    answered = sum(s.number > start.inherited for s in came) if from_tape else 0
    served = Counts(min(answered, recorded.model), min(len(own), recorded.tools))
    ran = sum(c.origin == "live" and c.name in live for c in done)
    left = Counts(recorded.model - served.model, recorded.tools - served.tools)
    return ForkVerdict(
        outcome, recorded, served, left, Counts(outcome.turns if fork.model.live else 0, ran),
        sum(c.origin == "stub" for c in done), _diverged(side_by_side(fork, came), outcome),
    )  # fmt: skip


_DIFFERS = {"calls": "calls something else", "text": "says something else", "results": "gets other results"}


def _diverged(pairs: Sequence[Pair], outcome: Outcome) -> str | None:
    for pair in pairs:
        if pair.differs:
            return f"turn {pair.number} {_DIFFERS[pair.differs]}"
        if pair.fork is None and pair.number > min((p.number for p in pairs if p.fork), default=0):
            missed = outcome.reason == "miss"
            return outcome.detail if missed else f"turn {pair.number} is only in the parent: {outcome.reason}"
        if pair.parent is None:
            return f"turn {pair.number} is only in the fork"
    return None


def _key(call: SaidCall) -> str:
    try:
        return canonical(json.loads(call.arguments))
    except (ValueError, RecursionError):
        return call.arguments
