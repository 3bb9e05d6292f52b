"""Traceloop / OpenLLMetry before 0.60: prompts and completions spread over gen_ai.prompt.N and gen_ai.completion.N."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..calls.model_call import AgentSpan, ModelCall, ToolSpan
from . import figures, flattened, genai
from .blocks import answer, answer_blocks
from .figures import text
from .wire import RawSpan, arguments_of

MARKS = frozenset({"traceloop.span.kind", "llm.request.type", "gen_ai.request.model", "gen_ai.system"})
"""A span without any of these is not of that generation."""
_LAST = (".role", ".content")
_KINDS = {"workflow": "workflow", "agent": "agent", "task": "step"}


def recognised(given: Mapping[str, Any]) -> bool:
    """True for attributes of that generation."""
    if "traceloop.span.kind" in given or given.get("llm.request.type") in ("chat", "completion"):
        return True
    if "gen_ai.request.model" not in given and "gen_ai.system" not in given:  # most spans: no need to look further
        return False
    names = "\n".join(given)
    if "gen_ai.prompt." not in names and "gen_ai.completion." not in names:
        return False
    return any(k.startswith(("gen_ai.prompt.", "gen_ai.completion.")) and k.endswith(_LAST) for k in given)


def read(span: RawSpan) -> ModelCall | ToolSpan | AgentSpan:
    """A model call, a tool, or what stands around."""
    kind = span.attributes.get("traceloop.span.kind")
    if kind == "tool":
        return tool(span)
    if isinstance(kind, str) and kind in _KINDS:
        return agent(span, _KINDS[kind])
    return call(span)


def call(span: RawSpan) -> ModelCall:
    """A span with flattened messages."""
    base = genai.call(span)
    given = span.attributes
    # thinking may stand in a completion of its own, before the words
    said, told = flattened.messages(given, "gen_ai.prompt."), flattened.messages(given, "gen_ai.completion.")
    stop = _finish(given) or base.stop_reason
    blocks = answer_blocks(told)
    body = answer(blocks, id=base.response_id, model=base.response_model, stop_reason=stop) if blocks else None
    if not said.messages and body is None:
        return base
    return genai.with_content(
        base,
        messages=tuple(said.messages),
        system=said.system,
        tools=flattened.tools(given) or base.tools,
        response=body,
        stop_reason=stop,
        stream=given.get("llm.is_streaming") is True,
        flags=("truncated_at_source",) if said.cut else (),
    )


def tool(span: RawSpan) -> ToolSpan:
    """A tool with its input and output as JSON."""
    given = span.attributes
    return figures.tool_span(
        span,
        name=text(given.get("traceloop.entity.name")) or span.name.removesuffix(".tool"),
        arguments=arguments_of(given.get("traceloop.entity.input")),
        result=given.get("traceloop.entity.output"),
    )


def agent(span: RawSpan, kind: str) -> AgentSpan:
    """A workflow, an agent or a task."""
    status, error, error_type = figures.failure(span)
    name = text(span.attributes.get("traceloop.entity.name")) or span.name
    return AgentSpan(
        key=span.key,
        name=name,
        kind=kind,
        agent=name if kind == "agent" else None,
        started_at=span.start,
        ended_at=span.end,
        status=status,
        error=error or error_type,
        trace_id=span.trace,
        span_id=span.span,
        parent_span_id=span.parent,
        service=span.service,
        scope=span.scope,
    )


def _finish(given: Mapping[str, Any]) -> str | None:
    rows = flattened.tree(given, "gen_ai.completion.")
    rows = rows if isinstance(rows, list) else []
    return next((r["finish_reason"] for r in rows if isinstance(r, dict) and text(r.get("finish_reason"))), None)
