"""Runs, turns and tool calls as OpenTelemetry spans; the only file with attribute names.

Every turn has one span: `invoke_agent {agent}` > `turn {n}` > `chat {model}`, `execute_tool {name}`.
With a tracer provider of the application our spans go through it and reach its exporter; without one
we make the ids and keep nothing. `chat` spans are made only when no instrumentation
(anthropic 2 traces itself) already has one around the request, so no call is counted twice, and usage
stands on chat spans alone. Content goes on spans only when the standard switch asks for it; identity
is written last, because the SDK evicts the oldest attributes beyond its limit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode

from .genai_messages import genai_message, genai_system, genai_tools
from .model import BUCKETS, Request, Run, ToolCall, Turn, Usage
from .providers.answer import Answer
from .quiet import quietly, trouble
from .redaction import redact

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
_left: dict[int, SpanContext | None] = {}
_recorded: dict[tuple[int, int], None] = {}


class _Unseen(NonRecordingSpan):
    """Has ids and nothing else; nobody but our own rows knows of it."""


class RunSpan:
    """The `invoke_agent` span of a run."""

    def __init__(self, run_id: str, name: str | None, agent: str | None) -> None:
        agent = redact(agent) if agent else agent
        title = agent or (redact(name) if name else name)
        current = trace.get_current_span()
        parent = _parent_of(current, native=_operation(current) in _CHAT_OPERATIONS)
        self.exported = exporting()
        self.span = _start(f"invoke_agent {title}" if title else "invoke_agent", parent, SpanKind.INTERNAL)
        _set(self.span, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent, RUN_ID: run_id})

    @quietly
    def end(self, status: str, reason: str | None) -> None:
        """Ends the run's span with our status word."""
        _set(self.span, {"looptape.run.status": status})
        if status == "failed":
            _fail(self.span, status, reason)
        self.span.end()


class TurnSpan:
    """The span of one turn, and the `chat` span under it where nobody else makes one."""

    def __init__(self, run_id: str, number: int, run_span: RunSpan | None, model: str | None, provider: str) -> None:
        current = trace.get_current_span()
        self.exported = exporting()
        native = _operation(current) in _CHAT_OPERATIONS
        parent = run_span.span.get_span_context() if run_span else _parent_of(current, native=native)
        self._identity = {RUN_ID: run_id, TURN_NUMBER: number}
        self._request = {"gen_ai.provider.name": provider, "gen_ai.request.model": model}
        self.span = _start(f"turn {number}", parent, SpanKind.INTERNAL)
        _set(self.span, self._identity)
        self.parent = parent
        self.step = step_name(current)
        self.chat: Span | None = None
        self._around = current.get_span_context() if native else None
        if self._around is not None:
            _recorded[self._around.trace_id, self._around.span_id] = None
            _keep_newest(_recorded)
        if self.exported and not native:
            self.chat = _start(f"chat {model}" if model else "chat", self.span.get_span_context(), SpanKind.CLIENT)

    @property
    def facts(self) -> dict[str, str | None]:
        """trace_id, span_id and parent_span_id as lower-case hex, the step's name, and whose chat span is around."""
        context = self.span.get_span_context()
        parent = self.parent.span_id if self.parent and self.parent.is_valid else None
        return {
            "trace_id": f"{context.trace_id:032x}",
            "span_id": f"{context.span_id:016x}",
            "parent_span_id": f"{parent:016x}" if parent else None,
            "step": self.step,
            **self._chat_facts(),
        }

    def _chat_facts(self) -> dict[str, str]:
        """Ids of the span that somebody else made for this call: whoever receives it must not count it again."""
        if self._around is None:
            return {}
        return {
            "chat_trace_id": f"{self._around.trace_id:032x}",
            "chat_span_id": f"{self._around.span_id:016x}",
        }

    def generated(self, answer: Answer, *, error_type: str | None, error: str | None, content: Content) -> bool:
        """Writes what GENERATE gave. False when a limit of the provider cut something off."""
        if not self.exported:
            return True
        facts = {
            **self._request,
            "gen_ai.response.model": answer.model,
            "gen_ai.response.id": answer.id,
            "gen_ai.response.finish_reasons": (_FINISH.get(answer.stop_reason, answer.stop_reason),)
            if answer.stop_reason
            else None,
            "looptape.stop_reason": answer.stop_reason,
            "error.type": error_type,
        }
        whole = True
        if self.chat is not None:
            whole = _set(self.chat, {**facts, **_usage(answer.usage), **content, "gen_ai.operation.name": "chat"})
            _fail(self.chat, error_type, error)
            self._end_chat()
        whole = _set(self.span, {**content, **facts, **self._identity}) and whole
        _fail(self.span, error_type, error)
        return whole

    @quietly
    def guarded(self, rung: str, about: Mapping[str, Any]) -> None:
        """Notes what a guard did: numbers and words of our own, no content."""
        told = {f"looptape.guard.{k}": v for k, v in about.items() if v is not None}
        self.span.add_event("looptape.guard", {"looptape.guard.rung": rung, **told})

    @quietly
    def end(self) -> None:
        """Ends the turn: the next one began, or its run is over."""
        self._end_chat()
        self.span.end()

    @quietly
    def _end_chat(self) -> None:
        chat, self.chat = self.chat, None
        if chat is not None:
            chat.end()


class ToolSpan:
    """The `execute_tool` span of one call; none of ours when the caller's SDK already made one."""

    def __init__(self, turn: TurnSpan | None, name: str, call_id: str) -> None:
        self.span: Span | None = None
        if not exporting() or _operation(trace.get_current_span()) == "execute_tool":
            return
        self.span = _start(f"execute_tool {name}", turn.span.get_span_context() if turn else None, SpanKind.INTERNAL)
        _set(
            self.span,
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id},
        )

    @quietly
    def end(self, error_type: str | None, error: str | None) -> None:
        """Ends the span, as an error when the tool raised. Its text is a tool result: content."""
        if self.span is not None:
            _set(self.span, {"error.type": error_type})
            _fail(self.span, error_type, error if wants_content() else None)
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
        result["gen_ai.system_instructions"] = json.dumps(genai_system(system), ensure_ascii=False)
    if tools:
        result["gen_ai.tool.definitions"] = json.dumps(genai_tools(tools), ensure_ascii=False)
    return result


def is_recorded(context: SpanContext) -> bool:
    """True for the span that somebody else made around a call which our transport has recorded."""
    return (context.trace_id, context.span_id) in _recorded


def step_name(span: Span) -> str | None:
    """The name of an enclosing span that is no GenAI span (a graph node, a workflow), None otherwise."""
    if not span.is_recording() or _operation(span) in _GENAI_OPERATIONS or _scope(span) == SCOPE:
        return None
    name = getattr(span, "name", None)
    return name if isinstance(name, str) else None


def enter(span: Span) -> tuple[object | None, Span]:
    """Makes a span current; give the result to `leave`. One that nobody exports must not reach request headers."""
    if isinstance(span, _Unseen):
        return None, span
    return otel_context.attach(trace.set_span_in_context(span)), span


def leave(token: tuple[object | None, Span], *, same_context: bool) -> None:
    """Ends being current. From another context nothing is detached: it would only log an error."""
    if token[0] is None:
        return
    if same_context:
        otel_context.detach(token[0])  # type: ignore[arg-type]
    else:
        _left[token[1].get_span_context().span_id] = getattr(token[1], "parent", None)
        _keep_newest(_left)


def _keep_newest(known: dict[Any, Any]) -> None:
    """Forgets the oldest beyond a thousand; other threads may be adding and forgetting as well."""
    if len(known) > 1000:
        for key in list(known)[:-1000]:
            known.pop(key, None)


def _start(title: str, parent: SpanContext | None, kind: SpanKind) -> Span:
    """A span of the application's provider; where that gives none, one that has ids and keeps nothing."""
    if exporting():
        try:
            span = trace.get_tracer(SCOPE).start_span(title, context=_under(parent), kind=kind)
            if span.get_span_context().is_valid and span.get_span_context() != parent:
                return span
        except Exception as error:  # a sampler's or a processor's trouble costs no turn
            trouble(f"a span of {SCOPE}", error)
    trace_id = parent.trace_id if parent is not None and parent.is_valid else _random(16)
    return _Unseen(SpanContext(trace_id, _random(8), is_remote=False))


def _random(size: int) -> int:
    """Not from `random`: a program that has seeded it must draw the same numbers as without us."""
    return int.from_bytes(os.urandom(size), "big") or 1


def _under(parent: SpanContext | None) -> otel_context.Context | None:
    """A context with only this parent. An empty one for None would detach us from the application's trace."""
    return None if parent is None else trace.set_span_in_context(NonRecordingSpan(parent))


def _parent_of(current: Span, *, native: bool) -> SpanContext | None:
    """Where a turn without a run span hangs: beside an SDK's own chat span, else under the current span."""
    found = getattr(current, "parent", None) if native else current.get_span_context()
    while isinstance(found, SpanContext) and found.span_id in _left:
        found = _left[found.span_id]  # still current here, though it is over
    if isinstance(found, SpanContext) and found.is_valid:
        return found
    return None if not current.get_span_context().is_valid else trace.INVALID_SPAN_CONTEXT


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


def _set(span: Span, attributes: Mapping[str, Any]) -> bool:
    """Sets what is not None. False when a limit of the provider cut something off."""
    given = {k: v for k, v in attributes.items() if v is not None}
    try:
        span.set_attributes(given)
        kept = getattr(span, "attributes", None)
        dropped = getattr(span, "dropped_attributes", 0)
    except Exception as error:  # somebody else's span class
        trouble(f"a span of {SCOPE}", error)
        return True
    return kept is None or (not dropped and all(kept.get(k) == v for k, v in given.items()))


def _fail(span: Span, error_type: str | None, error: str | None) -> None:
    if error_type or error:
        span.set_status(Status(StatusCode.ERROR, redact(error) if error else error_type))


def _usage(usage: Usage) -> dict[str, int | None]:
    writes = [w for w in (usage.cache_write_5m, usage.cache_write_1h) if w is not None]
    return {
        "gen_ai.usage.input_tokens": usage.context,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_write.input_tokens": sum(writes) if writes else None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }


def _input(text: str) -> dict[str, Any]:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = text
    return genai_message(message)


# -- attributes of what is stored already, for export ---------------------------------------------------------------


def run_attributes(run: Run) -> dict[str, Any]:
    """Of the `invoke_agent` span. Conversation is the session that the source told; none is ever made up."""
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": run.agent or run.name,
        "gen_ai.conversation.id": run.session,
        "looptape.run.name": run.name,
        "looptape.run.title": run.title,
        "looptape.run.task": run.task,
        "looptape.run.project": run.project,
        "looptape.run.source": run.source,
        "looptape.run.git_commit": run.git_commit,
        "looptape.run.tags": _json(run.tags),
        "looptape.run.outcome": _json(run.outcome),
        "looptape.run.limits": _json(run.limits),
        "looptape.run.warnings": _json(run.warnings),
        "looptape.run.parent": _json(run.parent and asdict(run.parent)),
        "looptape.run.status": run.status,
        "looptape.run.reason": run.reason,
        RUN_ID: run.id,
    }


def turn_attributes(turn: Turn) -> dict[str, Any]:
    """Of the `turn {n}` span: no usage and no messages, so that nobody counts or shows them twice."""
    return {
        "gen_ai.agent.name": turn.agent,
        "looptape.turn.flags": _json(turn.flags),
        "looptape.turn.inherited": turn.inherited or None,
        "looptape.turn.user_turn": turn.user_turn or None,
        "looptape.turn.step": turn.step,
        "looptape.turn.caller": turn.caller,
        "looptape.turn.status": turn.status,
        "error.type": turn.error_type or (turn.status if turn.status == "error" else None),
        RUN_ID: turn.run,
        TURN_NUMBER: turn.number,
    }


def chat_attributes(turn: Turn, request: Request | None, answer: Sequence[Any]) -> dict[str, Any]:
    """Of the `chat {model}` span: request, answer and usage. ``answer``: its messages in the provider's JSON."""
    params = request.params if request else {}
    made = [genai_message(m) for m in answer]
    if turn.stop_reason:
        made = [{**m, "finish_reason": _FINISH.get(turn.stop_reason, turn.stop_reason)} for m in made]
    first = None if turn.first_chunk_at is None or turn.started_at is None else turn.first_chunk_at - turn.started_at
    retries = len(turn.attempts) - 1
    return {
        **{f"gen_ai.request.{name}": params.get(key) for name, key in _PARAMS.items() if _is_plain(params.get(key))},
        "gen_ai.request.stream": turn.stream or None,
        "gen_ai.tool.definitions": _json(genai_tools(request.tools)) if request and request.tools else None,
        "gen_ai.system_instructions": _json(genai_system(request.system)) if request and request.system else None,
        "gen_ai.input.messages": _json([genai_message(m) for m in request.messages]) if request else None,
        "gen_ai.output.messages": _json(made),
        "gen_ai.response.time_to_first_chunk": first / 1e6 if first is not None else None,
        "looptape.request.params": _json(params),
        "looptape.attempts": _json([asdict(a) for a in turn.attempts]) if retries > 0 else None,
        "http.request.resend_count": retries if retries > 0 else None,
        **_usage(turn.usage),
        "looptape.usage": _json({n: v for n in (*BUCKETS, "origin", "partial") if (v := getattr(turn.usage, n))}),
        "looptape.cost_usd": turn.cost_usd,
        "looptape.api": turn.api,
        "looptape.stop_reason": turn.stop_reason,
        "error.type": turn.error_type or (turn.status if turn.status == "error" else None),
        "gen_ai.response.finish_reasons": [_FINISH.get(turn.stop_reason, turn.stop_reason)]
        if turn.stop_reason
        else None,
        "gen_ai.response.id": turn.response_id,
        "gen_ai.response.model": turn.model if answer or turn.response_id else None,
        "gen_ai.request.model": turn.request_model or turn.model,
        "gen_ai.provider.name": turn.provider,
        "gen_ai.operation.name": "chat",
        RUN_ID: turn.run,
        TURN_NUMBER: turn.number,
    }


def call_attributes(run: str, turn: int, call: ToolCall) -> dict[str, Any]:
    """Of the `execute_tool {name}` span; the result as the model saw it."""
    result = call.result
    return {
        "gen_ai.tool.call.arguments": call.arguments_raw,
        "gen_ai.tool.call.result": result if result is None or isinstance(result, str) else _json(result),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.name": call.name,
        "gen_ai.operation.name": "execute_tool",
        "error.type": (call.error_class or "tool_error") if call.is_error else None,
        "looptape.call.state": call.state,
        "looptape.call.timing": call.timing,
        "looptape.call.side_effect": None if call.side_effect == "unknown" else call.side_effect,
        "looptape.call.origin": call.origin,
        RUN_ID: run,
        TURN_NUMBER: turn,
    }


_PARAMS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "choice.count": "n",
    "stop_sequences": "stop_sequences",
}


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, list) and all(isinstance(v, str) for v in value))


def _json(value: Any) -> str | None:
    """JSON text of what is not empty."""
    if not value:
        return None
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False)
