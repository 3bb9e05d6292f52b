"""What a recorded loop is made of: Run, Turn, ToolCall, Usage, Attempt, Limits. Frozen, no I/O.

Times are whole microseconds since the Unix epoch, UTC; durations say their unit in the name.
Turn, call and message numbers start at 1. ``None`` always means "not known", never zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

RunStatus = Literal["running", "completed", "limit", "halted", "failed", "interrupted", "unknown"]
TurnStatus = Literal["open", "ok", "error", "abandoned", "cancelled", "interrupted"]
CallState = Literal["requested", "running", "done", "incomplete", "cancelled", "no_result"]
Origin = Literal["live", "recorded", "edited", "stub", "provider"]
SideEffect = Literal["read", "mutate", "poll", "bookkeeping", "unknown"]
ParentKind = Literal["fork", "sub-agent", "resume"]

BUCKETS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens in disjoint buckets; ``input`` excludes cached tokens, ``reasoning`` is inside ``output``.

    Attributes:
        origin: Where the figures come from: recorded, derived, estimated or missing.
        partial: True when the answer was cut, so that the figures are lower bounds.
        raw: The provider's own usage object, as it was.
    """

    input: int | None = None
    cache_read: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    output: int | None = None
    reasoning: int | None = None
    origin: str = "missing"
    partial: bool = False
    raw: Mapping[str, Any] | None = None

    @property
    def context(self) -> int | None:
        """Tokens the model read: input, cache reads and cache writes together."""
        known = [v for v in (self.input, self.cache_read, self.cache_write_5m, self.cache_write_1h) if v is not None]
        return sum(known) if known else None


def add_usage(usages: Sequence[Usage]) -> Usage:
    """Sum of several usages: a bucket is None only where nobody knew it; partial when any part is missing."""
    if not usages:
        return Usage()
    sums: dict[str, Any] = {}
    for name in BUCKETS:
        known = [v for v in (getattr(u, name) for u in usages) if v is not None]
        sums[name] = sum(known) if known else None
    origins = {u.origin for u in usages}
    origin = origins.pop() if len(origins) == 1 else "derived"
    partial = any(u.partial or u.origin == "missing" for u in usages) and origin != "missing"
    return Usage(**sums, origin=origin, partial=partial)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One HTTP exchange of a model call. ``wait_ms`` is the pause before it (0 for the first).

    ``body``: the text of a refused answer, at most 64 KB.
    """

    status: int | None = None
    error: str | None = None
    error_type: str | None = None
    wait_ms: float | None = None
    started_at: int | None = None
    ended_at: int | None = None
    request_id: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of a turn with its result as the model saw it.

    Attributes:
        arguments_raw: The arguments as the model wrote them: JSON text, maybe cut.
        valid: False when ``arguments_raw`` is no JSON object; ``invalid_reason`` says why.
        result: A string, or the provider's list of content blocks; None while there is none.
        result_digest, result_length: BLAKE2b-16 and characters of the result before any truncation.
        error_type: ``module.QualName`` of the exception that a wrapped tool raised.
        timing: ``measured`` (a wrapped tool) or ``inferred`` (from the requests around it).
    """

    id: str
    name: str
    arguments_raw: str = "{}"
    arguments: Any = None
    valid: bool = True
    invalid_reason: str | None = None
    result: Any = None
    result_digest: str | None = None
    result_length: int | None = None
    is_error: bool | None = None
    error_class: str | None = None
    error_type: str | None = None
    state: CallState = "requested"
    started_at: int | None = None
    ended_at: int | None = None
    timing: str | None = None
    origin: Origin = "live"
    side_effect: SideEffect = "unknown"
    loop_key: str | None = None
    child_run: str | None = None

    @property
    def ms(self) -> float | None:
        """Milliseconds the tool took, None when unknown."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at) / 1000


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened between or during turns and is no turn: a compaction, an API error row."""

    kind: str
    at: int | None = None
    turn: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnPrice:
    """Where the cost of a turn comes from.

    Attributes:
        source: The price list and its version.
        matched: Whose price it is in that list.
        why: Why there is none.
        assumed: What was taken for granted.
        served: Speed, tier, region and the like, where they are not standard.
        url: The address that was called: whose price it is.
    """

    source: str | None = None
    matched: str | None = None
    why: str | None = None
    assumed: tuple[str, ...] = ()
    served: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One GENERATE with everything that follows until the next one.

    Attributes:
        response: The response message as the provider gave it (decoded JSON), None when there was none.
        stop_reason: The provider's raw word.
        flags: ``compaction``, ``truncated_at_source``, ``altered_signature`` and the like.
        caller: ``file:line`` of the first frame outside SDKs and site-packages.
        step: Name of the enclosing span that is no GenAI span (a graph node, a workflow).
        parse_status: ``ok``, ``no_calls``, ``invalid_arguments`` or None when nothing was parsed.
        reported_cost_usd: What the source of the recording says that it cost; ``cost_usd`` is what the prices say.
    """

    run: str
    number: int
    agent: str | None = None
    provider: str | None = None
    api: str | None = None
    user_turn: bool = False
    inherited: bool = False
    flags: tuple[str, ...] = ()
    model: str | None = None
    request_model: str | None = None
    stop_reason: str | None = None
    status: TurnStatus = "open"
    error: str | None = None
    error_type: str | None = None
    response_id: str | None = None
    request_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    caller: str | None = None
    step: str | None = None
    stream: bool = False
    mode: str = "full"
    started_at: int | None = None
    first_chunk_at: int | None = None
    ended_at: int | None = None
    generate_ms: float | None = None
    parse_ms: float | None = None
    execute_ms: float | None = None
    resume_ms: float | None = None
    parse_status: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    text: str | None = None
    thinking: str | None = None
    response: Any = None
    message_count: int | None = None
    attempts: tuple[Attempt, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    reported_cost_usd: float | None = None
    price: TurnPrice = TurnPrice()


@dataclass(frozen=True, slots=True)
class Request:
    """What the model saw in one turn, every part as the provider's JSON (decoded).

    ``kept`` tells how many leading messages are the same as in the turn before.
    """

    messages: tuple[Any, ...]
    system: Any = None
    tools: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps that the loop's author configured; None means no cap."""

    turns: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    consecutive_errors: int | None = None

    def given(self) -> dict[str, int | float]:
        """The caps that are set, by name."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) is not None}


@dataclass(frozen=True, slots=True)
class Parent:
    """Where a run comes from: the run, the turn and (for a sub-agent) the call that started it."""

    run: str
    turn: int | None = None
    call: str | None = None
    kind: ParentKind = "fork"


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded loop. ``usage`` and ``cost_usd`` are its own: inherited turns and children excluded.

    Attributes:
        session: Groups the runs of one conversation; ``task`` groups runs that do the same job.
        outcome: What somebody said of it: ``{"verdict": "pass", "note": ..., "score": ...}``.
        limits: The configured caps by name (see ``Limits``).
        inclusive_usage, inclusive_cost_usd: The same with all descendants, each counted once.
        unpriced_turns: Turns whose price is not known: then ``cost_usd`` is only a part.
        assumed_turns: Turns for whose price something was taken for granted.
        price_sources: The price lists behind ``cost_usd``, with their versions.
        reported_cost_usd: What the source of the recording says that it cost, to its last digit.
        cost_difference_usd: Our figure less the reported one, over all turns that have both.
    """

    id: str
    name: str | None = None
    title: str | None = None
    agent: str | None = None
    project: str | None = None
    session: str | None = None
    task: str | None = None
    outcome: Mapping[str, Any] | None = None
    source: str = "sdk"
    status: RunStatus = "unknown"
    reason: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    turns: int = 0
    tool_calls: int = 0
    errors: int = 0
    models: tuple[str, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = Usage()
    cost_usd: float | None = None
    unpriced_turns: int = 0
    inclusive_usage: Usage = Usage()
    inclusive_cost_usd: float | None = None
    parent: Parent | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    git_commit: str | None = None
    list_price: bool = False
    reported_cost_usd: float | None = None
    cost_difference_usd: float | None = None
    assumed_turns: int = 0
    price_sources: tuple[str, ...] = ()
    inclusive_unpriced_turns: int = 0
