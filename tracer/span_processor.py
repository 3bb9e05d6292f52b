"""GenAI spans that the application already makes, taken in its own process: from their start, so that a kill loses none.

    provider.add_span_processor(looptape.SpanProcessor())

Each start and each end is one line in this process's journal. Calls that `wrap()` or `instrument()` record too are
told apart by the ids that the recorder notes (see `spans.py`); our own spans are passed over.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.sdk.trace import SpanProcessor as SdkSpanProcessor

from . import otlp, spans
from .fork_lock import ForkLock
from .process import recorder
from .quiet import quietly

_KEYS = ("gen_ai.", "llm.", "openinference.", "traceloop.", "anthropic.", "mcp.", "logfire.", "langsmith.", "ai.")
_SCOPES = (
    "anthropic", "openai", "genai", "gen_ai", "langchain", "langgraph", "llama", "openinference", "traceloop", "pydantic",
    "logfire", "smolagents", "bedrock", "vertex", "mistral", "cohere", "groq", "litellm", "crewai", "autogen", "haystack",
    "dspy", "strands", "mcp", "agent",
)  # fmt: skip
_MOST = 10_000


class SpanProcessor(SdkSpanProcessor):
    """Takes the GenAI spans of a tracer provider, and the spans around them. Never raises, never waits."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._open: dict[int, tuple[int | None, bool]] = {}  # span id -> its parent's, is it wanted?

    @quietly
    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        """Writes a GenAI span as far as it is known; it may be all that ever comes of it."""
        if _is_ours(span):
            return
        wanted = _is_genai(span)
        above = trace.get_current_span(parent_context).get_span_context() if span.parent is not None else None
        parent = above.span_id if above is not None else None
        with self._lock:
            if len(self._open) < _MOST:
                self._open[span.get_span_context().span_id] = (parent, wanted)
        if wanted:
            self._want(parent)
            _write(span, open=True)

    @quietly
    def on_end(self, span: ReadableSpan) -> None:
        """Writes a GenAI span, or one that stands around such."""
        if _is_ours(span):
            return
        context = span.get_span_context()
        with self._lock:
            parent, wanted = self._open.pop(context.span_id if context else 0, (None, False))
        genai = _is_genai(span)
        if genai and not wanted:
            self._want(span.parent.span_id if span.parent else parent)
        if (genai or wanted) and not (context and spans.is_recorded(context)):
            _write(span)

    def shutdown(self) -> None:
        """Nothing waits here: all is written."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """True: nothing waits here."""
        return True

    def _want(self, span: int | None) -> None:
        """The spans around a GenAI span are kept too: their names say which step it was."""
        with self._lock:
            while span is not None and span in self._open:
                parent, wanted = self._open[span]
                if wanted:
                    return
                self._open[span] = (parent, True)
                span = parent


def _write(span: ReadableSpan, **more: Any) -> None:
    active = recorder()
    if active is None:
        return
    resource = dict(span.resource.attributes) if span.resource else {}
    resource.setdefault("process.pid", os.getpid())
    scope = span.instrumentation_scope
    named = {"name": scope.name, "version": scope.version or ""} if scope else {}
    body = otlp.request(
        "traces", {"resource": {"attributes": otlp.attributes(resource)}}, {"scope": named}, [_item(span)]
    )
    active.journal.write(otlp.records("traces", body, content=active.content, **more))


def _item(span: ReadableSpan) -> dict[str, Any]:
    """A span as OTLP/JSON has it."""
    context = span.get_span_context()
    item: dict[str, Any] = {
        "traceId": f"{context.trace_id:032x}" if context else "",
        "spanId": f"{context.span_id:016x}" if context else "",
        "name": span.name,
        "kind": span.kind.value + 1,
        "startTimeUnixNano": str(span.start_time or 0),
        "attributes": otlp.attributes(span.attributes),
    }
    if span.parent is not None:
        item["parentSpanId"] = f"{span.parent.span_id:016x}"
    if span.end_time is not None:
        item["endTimeUnixNano"] = str(span.end_time)
    if span.events:
        item["events"] = [
            {"timeUnixNano": str(e.timestamp), "name": e.name, "attributes": otlp.attributes(e.attributes)}
            for e in span.events
        ]
    if span.links:
        item["links"] = [
            {"traceId": f"{k.context.trace_id:032x}", "spanId": f"{k.context.span_id:016x}"} for k in span.links
        ]
    if span.status.status_code.value:
        item["status"] = {"code": span.status.status_code.value, "message": span.status.description or ""}
    dropped = getattr(span, "dropped_attributes", 0)
    return {**item, "droppedAttributesCount": dropped} if dropped else item


def _is_ours(span: ReadableSpan) -> bool:
    scope = span.instrumentation_scope
    return scope is not None and scope.name == spans.SCOPE


def _is_genai(span: ReadableSpan) -> bool:
    given: Mapping[str, Any] = span.attributes or {}
    if any(key.startswith(_KEYS) for key in given):
        return True
    scope = span.instrumentation_scope
    name = scope.name.lower() if scope else ""
    return any(word in name for word in _SCOPES)
