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
    return figures.tool_span(
        span,
        name=text(given.get("gen_ai.tool.name")) or span.name.rsplit(" ", 1)[-1],
        call=text(given.get("gen_ai.tool.call.id")),
        arguments=given.get("gen_ai.tool.call.arguments"),
        result=given.get("gen_ai.tool.call.result"),
        detail=True,
    )
