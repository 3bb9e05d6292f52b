"""Runs, turns and tool calls as OpenTelemetry spans; the only file with attribute names.

Every turn has one span: `invoke_agent {agent}` > `turn {n}` > `chat {model}`, `execute_tool {name}`.
With a tracer provider of the application our spans go through it and reach its exporter; without one
a private provider gives ids and keeps nothing. `chat` spans are made only when no instrumentation
(anthropic 2 traces itself) already has one around the request, so no call is counted twice, and usage
stands on chat spans alone. Content goes on spans only when the standard switch asks for it; identity
is written last, because the SDK evicts the oldest attributes beyond its limit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, Tracer

from .model import Usage
from .providers.answer import Answer

SCOPE = "looptape"
RUN_ID = "looptape.run.id"
TURN_NUMBER = "looptape.turn.number"

_CHAT_OPERATIONS = frozenset({"chat", "text_completion", "generate_content"})
_GENAI_OPERATIONS = _CHAT_OPERATIONS | {"invoke_agent", "create_agent", "invoke_workflow", "execute_tool", "plan"}
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_call",
    "tool_calls": "tool_call",
}
_private: Tracer | None = None


class RunSpan:
    """The `invoke_agent` span of a run."""

    def __init__(self, run_id: str, name: str | None, agent: str | None) -> None:
        tracer, self.exported = _tracer()
        title = agent or name
        current = trace.get_current_span()
        parent = _parent_of(current, native=_operation(current) in _CHAT_OPERATIONS)
        self.span = tracer.start_span(
            f"invoke_agent {title}" if title else "invoke_agent", context=_under(parent), kind=SpanKind.INTERNAL
        )
        if self.exported:
            _set(self.span, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent, RUN_ID: run_id})

    def end(self, status: str, reason: str | None) -> None:
        """Ends the run's span with our status word."""
        if self.exported:
            _set(self.span, {"looptape.run.status": status})
            if status == "failed":
                self.span.set_status(Status(StatusCode.ERROR, reason))
        self.span.end()


class TurnSpan:
    """The span of one turn, and the `chat` span under it where nobody else makes one."""

    def __init__(self, run_id: str, number: int, run_span: RunSpan | None, model: str | None, provider: str) -> None:
        current = trace.get_current_span()
        tracer, self.exported = _tracer()
        native = _operation(current) in _CHAT_OPERATIONS
        parent = run_span.span.get_span_context() if run_span else _parent_of(current, native=native)
        self._identity = {RUN_ID: run_id, TURN_NUMBER: number}
        self._request = {"gen_ai.provider.name": provider, "gen_ai.request.model": model}
        self.span = tracer.start_span(f"turn {number}", context=_under(parent), kind=SpanKind.INTERNAL)
        self.parent = parent
        self.step = step_name(current)
        self.chat: Span | None = None
        if self.exported and not native:
            self.chat = tracer.start_span(
                f"chat {model}" if model else "chat", context=trace.set_span_in_context(self.span), kind=SpanKind.CLIENT
            )

    @property
    def facts(self) -> dict[str, str | None]:
        """trace_id, span_id and parent_span_id as lower-case hex, and the step's name."""
        context = self.span.get_span_context()
        parent = self.parent.span_id if self.parent and self.parent.is_valid else None
        return {
            "trace_id": f"{context.trace_id:032x}",
            "span_id": f"{context.span_id:016x}",
            "parent_span_id": f"{parent:016x}" if parent else None,
            "step": self.step,
        }

    def generated(self, answer: Answer, *, error_type: str | None, error: str | None, content: Content) -> bool:
        """Writes what GENERATE gave. False when a limit of the provider cut something off."""
        if not self.exported:
            return True
        facts = {
            **self._request,
            "gen_ai.response.model": answer.model,
            "gen_ai.response.id": answer.id,
            "gen_ai.response.finish_reasons": [_FINISH.get(answer.stop_reason, answer.stop_reason)]
            if answer.stop_reason
            else None,
            "looptape.stop_reason": answer.stop_reason,
            "error.type": error_type,
        }
        if self.chat is not None:
            _set(self.chat, {**facts, **_usage(answer.usage), **content, "gen_ai.operation.name": "chat"})
            _fail(self.chat, error_type, error)
            self.chat.end()
            self.chat = None
        _set(self.span, {**content, **facts, **self._identity})
        _fail(self.span, error_type, error)
        return _intact(self.span, self._identity)

    def end(self) -> None:
        """Ends the turn: the next one began, or its run is over."""
        if self.chat is not None:
            self.chat.end()
            self.chat = None
        self.span.end()


class ToolSpan:
    """The `execute_tool` span of one call; none of ours when the caller's SDK already made one."""

    def __init__(self, turn: TurnSpan | None, name: str, call_id: str) -> None:
        tracer, exported = _tracer()
        self.span: Span | None = None
        if not exported or _operation(trace.get_current_span()) == "execute_tool":
            return
        context = trace.set_span_in_context(turn.span) if turn else None
        self.span = tracer.start_span(f"execute_tool {name}", context=context, kind=SpanKind.INTERNAL)
        _set(
            self.span,
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id},
        )

    def end(self, error_type: str | None, error: str | None) -> None:
        """Ends the span, as an error when the tool raised."""
        if self.span is not None:
            if error_type:
                _set(self.span, {"error.type": error_type})
            _fail(self.span, error_type, error)
            self.span.end()


Content = Mapping[str, str]


def wants_content() -> bool:
    """True when the standard switch asks for message content on spans."""
    value = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().lower()
    return value in ("true", "span_only", "span_and_event")


def exporting() -> bool:
    """True when the application has set a tracer provider that our spans go through."""
    return not isinstance(trace.get_tracer_provider(), (trace.ProxyTracerProvider, trace.NoOpTracerProvider))


def content(new_messages: tuple[str, ...], system: Any, tools: Any, answer: Answer) -> Content:
    """Message content as few JSON attributes: the turn's new input messages, the output, the definitions."""
    parts: list[dict[str, Any]] = []
    if answer.thinking:
        parts.append({"type": "reasoning", "content": answer.thinking})
    if answer.text:
        parts.append({"type": "text", "content": answer.text})
    parts += [{"type": "tool_call", "id": c.id, "name": c.name, "arguments": c.arguments_raw} for c in answer.calls]
    result = {
        "gen_ai.input.messages": json.dumps([_input(m) for m in new_messages], ensure_ascii=False),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}], ensure_ascii=False),
    }
    if system:
        result["gen_ai.system_instructions"] = json.dumps(
            [{"type": "text", "content": _plain_text(system)}], ensure_ascii=False
        )
    if tools:
        result["gen_ai.tool.definitions"] = json.dumps(tools, ensure_ascii=False)
    return result


def step_name(span: Span) -> str | None:
    """The name of an enclosing span that is no GenAI span (a graph node, a workflow), None otherwise."""
    if not span.is_recording() or _operation(span) in _GENAI_OPERATIONS or _scope(span) == SCOPE:
        return None
    name = getattr(span, "name", None)
    return name if isinstance(name, str) else None


def enter(span: Span) -> tuple[object, Any]:
    """Makes a span current; give the result to `leave`."""
    return otel_context.attach(trace.set_span_in_context(span)), span


def leave(token: tuple[object, Any], *, same_context: bool) -> None:
    """Ends being current. From another context nothing is detached: it would only log an error."""
    if same_context:
        otel_context.detach(token[0])  # type: ignore[arg-type]


def _tracer() -> tuple[Tracer, bool]:
    if exporting():
        return trace.get_tracer(SCOPE), True
    global _private
    if _private is None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import SpanLimits, TracerProvider
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON

        provider = TracerProvider(
            resource=Resource.get_empty(),
            sampler=ALWAYS_ON,
            shutdown_on_exit=False,
            span_limits=SpanLimits(max_span_attributes=128),
        )
        _private = provider.get_tracer(SCOPE)
    return _private, False


def _under(parent: SpanContext | None) -> otel_context.Context | None:
    """A context with only this parent. An empty one for None would detach us from the application's trace."""
    return None if parent is None else trace.set_span_in_context(NonRecordingSpan(parent))


def _parent_of(current: Span, *, native: bool) -> SpanContext | None:
    """Where a turn without a run span hangs: beside an SDK's own chat span, else under the current span."""
    if native:
        above = getattr(current, "parent", None)
        return above if isinstance(above, SpanContext) else trace.INVALID_SPAN_CONTEXT
    context = current.get_span_context()
    return context if context.is_valid else None


def _operation(span: Span) -> str | None:
    attributes = getattr(span, "attributes", None)
    if not attributes:
        return None
    operation = attributes.get("gen_ai.operation.name")
    if operation is None and attributes.get("openinference.span.kind") == "LLM":
        return "chat"
    if operation is None and attributes.get("llm.request.type") == "chat":
        return "chat"
    return operation if isinstance(operation, str) else None


def _scope(span: Span) -> str | None:
    return getattr(getattr(span, "instrumentation_scope", None), "name", None)


def _set(span: Span, attributes: Mapping[str, Any]) -> None:
    span.set_attributes({k: v for k, v in attributes.items() if v is not None})


def _fail(span: Span, error_type: str | None, error: str | None) -> None:
    if error_type or error:
        span.set_status(Status(StatusCode.ERROR, error or error_type))


def _usage(usage: Usage) -> dict[str, int | None]:
    writes = [w for w in (usage.cache_write_5m, usage.cache_write_1h) if w is not None]
    return {
        "gen_ai.usage.input_tokens": usage.context,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_write.input_tokens": sum(writes) if writes else None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }


def _intact(span: Span, identity: Mapping[str, Any]) -> bool:
    kept = getattr(span, "attributes", None)
    if kept is None:
        return True
    dropped = getattr(span, "dropped_attributes", 0)
    return not dropped and all(kept.get(k) == v for k, v in identity.items())


def _input(text: str) -> dict[str, Any]:
    try:
        message = json.loads(text)
    except ValueError:
        return {"role": "user", "parts": [{"type": "text", "content": text}]}
    if not isinstance(message, dict):
        return {"role": "user", "parts": [{"type": "text", "content": text}]}
    body = message.get("content")
    if isinstance(body, str):
        return {"role": message.get("role", "user"), "parts": [{"type": "text", "content": body}]}
    blocks = body if isinstance(body, list) else [{k: v for k, v in message.items() if k != "role"}]
    return {"role": message.get("role", "user"), "parts": [_part(b) for b in blocks]}


def _part(block: Any) -> dict[str, Any]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        return {"type": "text", "content": block.get("text")}
    if kind == "tool_use":
        return {"type": "tool_call", "id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}
    if kind == "tool_result":
        part = {"type": "tool_call_response", "id": block.get("tool_use_id"), "response": block.get("content")}
        return {**part, "is_error": True} if block.get("is_error") else part
    if kind == "thinking":
        return {"type": "reasoning", "content": block.get("thinking"), "signature": block.get("signature")}
    return block if isinstance(block, dict) else {"type": "text", "content": str(block)}


def _plain_text(system: Any) -> str:
    if isinstance(system, list):
        return "\n".join(str(b.get("text", "")) for b in system if isinstance(b, dict))
    return str(system)
