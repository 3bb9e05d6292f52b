"""MCP's own spans: a tool's transport, without arguments and results. Only more of a tool that others tell of."""

from __future__ import annotations

from ..calls.model_call import AgentSpan, ToolSpan
from . import figures
from .figures import text
from .wire import RawSpan

METHOD = "mcp.method.name"


def read(span: RawSpan) -> ToolSpan | AgentSpan | None:
    """A tools/call as a tool's detail; None for the protocol's other messages."""
    given = span.attributes
    if given.get(METHOD) != "tools/call":
        return None
    status, error, error_type = figures.failure(span)
    return ToolSpan(
        key=span.key,
        name=text(given.get("gen_ai.tool.name")) or span.name.rsplit(" ", 1)[-1],
        call=text(given.get("gen_ai.tool.call.id")),
        arguments=given.get("gen_ai.tool.call.arguments"),
        result=given.get("gen_ai.tool.call.result"),
        is_error=True if status == "error" else None,
        error=error or (error_type if status == "error" else None),
        started_at=span.start,
        ended_at=span.end,
        trace_id=span.trace,
        span_id=span.span,
        parent_span_id=span.parent,
        scope=span.scope,
        service=span.service,
        detail=True,
    )
