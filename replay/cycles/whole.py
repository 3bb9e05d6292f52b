"""Recorded turns as the detector sees them, and the cycles of a whole recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...tracer.model import BUCKETS, ToolCall, Turn
from ...tracer.observers import without
from ..message_parts import plain_text
from .declared import Declared
from .detector import CycleDetector
from .finding import CycleFinding
from .seen import CallSeen, TurnSeen

if TYPE_CHECKING:
    from ..recording import Incoming, Recording


def find_cycles(recording: Recording, *, declared: Declared | None = None) -> tuple[CycleFinding, ...]:
    """The cycles of one recorded run, by their first turn. Inherited turns are seen, but nothing is told of them alone."""
    detector = CycleDetector(recording.run.id, declared=declared)
    owned = {t.number for t in recording.turns if not t.inherited}
    for turn in recording.turns:
        detector.feed(seen_of(turn, recording.incoming.get(turn.number, ()), agent=recording.run.agent))
    return tuple(f for f in detector.findings() if owned.intersection(f.turns))


def seen_of(turn: Turn, incoming: Sequence[Incoming] = (), *, agent: str | None = None) -> TurnSeen:
    """A recorded turn for the detector.

    Args:
        incoming: What was new in its request besides the results of known calls.
        agent: The run's own agent: turns that name no other are its.
    """
    usage = turn.usage
    tokens = [v for v in (usage.context, usage.output) if v is not None]
    return TurnSeen(
        number=turn.number,
        agent=turn.agent if turn.agent != agent else None,
        text=turn.text or "",
        calls=tuple(_call(c) for c in turn.tool_calls if c.origin != "provider"),
        user=_words(incoming) if turn.user_turn else None,
        compaction="compaction" in turn.flags,
        tokens=sum(tokens) if tokens else None,
        usage=tuple((b, v) for b in BUCKETS if (v := getattr(usage, b)) is not None),
        cost_usd=turn.cost_usd,
        started_at=turn.started_at,
        ended_at=turn.ended_at,
    )


def _call(call: ToolCall) -> CallSeen:
    return CallSeen(
        name=call.name,
        arguments=call.arguments if call.valid and call.arguments is not None else call.arguments_raw,
        result=result_text(call.result),
        digest=call.result_digest,
        length=call.result_length,
        is_error=call.is_error,
        error_class=call.error_class,
        side_effect=call.side_effect,
        loop_key=call.loop_key,
        child_run=call.child_run,
    )


def result_text(result: Any) -> str | None:
    """A result as text; None when there is none."""
    if result is None:
        return None
    text = plain_text(result)
    return without(text) or (text and None)  # a guard's own words are nobody's result


def _words(incoming: Iterable[Incoming]) -> str | None:
    """A person's words; None where they are a guard's."""
    text = "\n".join(i.part.text for i in incoming if i.role == "user" and i.part.kind == "text")
    return without(text) or (None if text else "")
