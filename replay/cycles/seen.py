"""What the detector is told of a turn: plain facts, no provider's shape, no store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CallSeen:
    """A tool call with what came back.

    Attributes:
        arguments: Decoded arguments, or the raw text where that is no JSON.
        result: The result as text; None when it is not known (yet), then nothing is concluded from it.
        digest, length: Of the full result, before any truncation, where they are known.
        is_error: As the loop or the provider said; None where nobody said.
        error_class: transient, permanent, semantic, denied, cancelled, where it is known.
        side_effect: read, mutate, poll, bookkeeping or unknown, as declared.
        loop_key: What tells two calls of this tool apart, as declared; in place of the arguments.
    """

    name: str
    arguments: Any = None
    result: str | None = None
    digest: str | None = None
    length: int | None = None
    is_error: bool | None = None
    error_class: str | None = None
    side_effect: str = "unknown"
    loop_key: str | None = None
    child_run: str | None = None


@dataclass(frozen=True, slots=True)
class TurnSeen:
    """A turn. A user's message stands in ``user`` of the turn that it led to (or in one of its own).

    Attributes:
        agent: Who speaks; every agent of a run has its own history.
        text: What the model said beside its calls.
        user: A person's words that came in before this turn.
        compaction: The context was shortened before this turn.
        injected: The turn carries a notice of our own, which is not counted.
        tokens: Everything read and written in it.
        usage: The same by bucket (input, cache_read, ...), for the totals of a stretch.
        started_at, ended_at: Microseconds since the epoch, None when unknown.
    """

    number: int
    agent: str | None = None
    text: str = ""
    calls: tuple[CallSeen, ...] = ()
    user: str | None = None
    compaction: bool = False
    injected: bool = False
    tokens: int | None = None
    usage: tuple[tuple[str, int], ...] = ()
    cost_usd: float | None = None
    started_at: int | None = None
    ended_at: int | None = None
