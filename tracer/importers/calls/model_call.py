"""What a foreign recording tells of one model call, one tool run, one enclosing span: the input of `assemble`.

Every source that is a heap of calls and no ordered conversation (OTLP spans, VCR cassettes, raw API
bodies, Langfuse exports) makes these and hands them to `assembly.assemble`. Nobody changes them; they are not
frozen, because there is one for every span and frozen ones take five times as long to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...model import Usage
from ...providers import by_api


@dataclass(slots=True, kw_only=True)
class ModelCall:
    """One GENERATE as somebody else saw it. Times are µs since the epoch; None means "not told".

    Attributes:
        key: What identifies the call in its source, on every machine the same: ``trace:span``, a request id,
            a hash of the bodies. Run ids are made from it.
        api: Shape of ``messages``, ``system``, ``tools`` and ``response`` (`providers.by_api`); ``manual`` is
            Anthropic's blocks, for what was put together from other words.
        messages: The request's messages in order, all of them; only the new ones when ``mode`` says that the
            server holds the rest. Empty with ``response`` None: the producer kept no content.
        response: Response body in the api's shape; None when there was none or it was not kept.
        usage: Tokens in disjoint buckets; None: what ``response`` says.
        provider: Who served it (``anthropic``, ``openai``, ...), for prices; None: the api's own.
        model: As requested; ``response_model`` as answered.
        mode, previous: ``thread`` / ``previous_response`` and the response id that it continues, if told.
        lossless: ``messages`` and ``response`` are the bodies as sent (so a missing ``is_error`` means none).
        scope: The instrumentation. Two calls of one scope are never taken for one another.
        content: False when the producer kept no messages on purpose.
        reported_cost_usd: What the source says that the call cost.
        flags: Of the turn: ``truncated_at_source`` and the like.
        notes: Facts beside the turn that become events: name -> detail.
    """

    key: str
    api: str = "manual"
    messages: tuple[Any, ...] = ()
    system: Any = None
    tools: Any = None
    params: Mapping[str, Any] | None = None
    response: Any = None
    usage: Usage | None = None
    provider: str | None = None
    model: str | None = None
    response_model: str | None = None
    response_id: str | None = None
    request_id: str | None = None
    stop_reason: str | None = None
    mode: str = "full"
    previous: str | None = None
    stream: bool = False
    lossless: bool = False
    started_at: int | None = None
    ended_at: int | None = None
    first_chunk_at: int | None = None
    status: str = "ok"
    error: str | None = None
    error_type: str | None = None
    attempts: tuple[Mapping[str, Any], ...] = ()
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    scope: str | None = None
    name: str | None = None
    conversation: str | None = None
    agent: str | None = None
    service: str | None = None
    step: str | None = None
    url: str | None = None
    reported_cost_usd: float | None = None
    flags: tuple[str, ...] = ()
    notes: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    @property
    def content(self) -> bool:
        """True when the producer kept messages or an answer."""
        return bool(self.messages) or self.response is not None


@dataclass(slots=True, kw_only=True)
class ToolSpan:
    """A tool that ran.

    Attributes:
        call: The model's call id; None where the producer lost it (then name and arguments in order tell).
        arguments: Decoded, or JSON text; None when not kept.
        result: What the tool returned; None when not kept.
        detail: Only says more of a tool that another span tells of already (an MCP transport).
    """

    key: str
    name: str
    call: str | None = None
    arguments: Any = None
    result: Any = None
    is_error: bool | None = None
    error: str | None = None
    error_class: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    conversation: str | None = None
    service: str | None = None
    scope: str | None = None
    detail: bool = False
    flags: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class AgentSpan:
    """A span around calls and tools.

    Attributes:
        kind: ``agent`` (a loop: calls under it belong together), ``workflow`` (agents work in it), or
            ``step`` (no GenAI span: a graph node, a request handler); the names of steps become the turns' step.
    """

    key: str
    name: str
    kind: str = "step"
    agent: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    status: str = "ok"
    error: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    conversation: str | None = None
    service: str | None = None
    scope: str | None = None
    usage: Usage | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def usage_of(call: ModelCall) -> Usage:
    """The call's tokens: as its source counts them, else as its response says."""
    return call.usage or by_api(call.api).answer(call.response).usage


Span = ModelCall | ToolSpan | AgentSpan
