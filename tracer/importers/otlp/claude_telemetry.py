"""Claude Code's own telemetry: spans with tokens and tool output, log records with the raw bodies where those are on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...model import Usage
from ..calls.model_call import AgentSpan, ModelCall, ToolSpan
from ..document import money
from . import figures, genai, raw
from .blocks import arguments
from .figures import number, text
from .wire import RawEvent, RawSpan, nested

_SCOPE = "com.anthropic.claude_code"
_PREFIX = "claude_code."


def owns(one: RawSpan | RawEvent) -> bool:
    """True for a span or a log record of Claude Code."""
    return one.scope.startswith(_SCOPE)


def read(spans: Sequence[RawSpan], logs: Sequence[RawEvent]) -> Iterator[ModelCall | ToolSpan | AgentSpan]:
    """What a session's telemetry tells; log records alone give calls too, without spans."""
    told = _Logs(logs)
    asked: set[str] = set()
    children = {s.parent: s for s in spans if s.name.endswith("tool.execution") and s.parent}
    for span in sorted(spans, key=lambda s: s.start or 0):
        kind = span.attributes.get("span.type")
        if kind == "llm_request" or span.name.endswith("llm_request"):
            call = _call(span, told)
            asked.add(call.request_id or "")
            yield call
        elif kind == "tool" or span.name == "claude_code.tool":
            yield _tool(span, children.get(span.span or ""), told)
        elif kind == "interaction" or span.name.endswith("interaction"):
            yield replace(genai.agent(span, "agent"), name="claude-code", agent=None)
    yield from told.calls_without_span(asked, bool(spans))


class _Logs:
    """Log records by what ties them to spans."""

    def __init__(self, logs: Iterable[RawEvent]) -> None:
        self.requests: list[RawEvent] = []
        self.bodies: dict[str, RawEvent] = {}
        self.usage: dict[str, RawEvent] = {}
        self.said: dict[str, str] = {}
        self.results: dict[str, RawEvent] = {}
        self.failed: list[RawEvent] = []
        self._responses: list[RawEvent] = []
        for log in sorted(logs, key=lambda e: e.at or 0):
            self._keep(log)
        self.free = list(self.requests)

    def _keep(self, log: RawEvent) -> None:
        given = log.attributes
        name = log.name.removeprefix(_PREFIX)
        request = text(given.get("request_id"))
        if name == "api_request_body":
            self.requests.append(log)
        elif name == "api_response_body" and request:
            self.bodies[request] = log
        elif name == "api_request" and request:
            self.usage[request] = log
        elif name == "assistant_response" and request and text(given.get("response")) not in (None, "<REDACTED>"):
            self.said[request] = given["response"]
        elif name == "tool_result" and text(given.get("tool_use_id")):
            self.results[given["tool_use_id"]] = log
        elif name == "api_error":
            self.failed.append(log)

    def request_of(self, request: str | None, trace: str | None, start: int | None, end: int | None) -> RawEvent | None:
        """The request's body: by its id through the response's, else the last free one within the call's time."""
        response = self.bodies.get(request or "")
        wanted = response.attributes.get("request_body_id") if response else None
        found = [r for r in self.free if wanted and r.attributes.get("request_body_id") == wanted]
        if not found and not wanted:
            slack = 2_000_000
            low, high = (start or 0) - slack, (end or 2**62)
            found = [r for r in self.free if r.trace == trace and low <= (r.at or 0) <= high][:1]
        for one in found:
            self.free.remove(one)
        return found[0] if found else None

    def calls_without_span(self, asked: set[str], spans: bool) -> Iterator[ModelCall]:
        """Calls that only log records tell of."""
        for request, log in self.usage.items():
            if request not in asked:
                yield _call_of_log(request, log, self, log.span if spans else None)


def _call(span: RawSpan, told: _Logs) -> ModelCall:
    base = genai.call(span)
    given = span.attributes
    request = text(given.get("request_id"))
    ok = given.get("success")
    attempts = _attempts(given, span)
    base = replace(
        base,
        api=raw.ANTHROPIC,
        request_id=request,
        response_id=None,  # the attribute holds the request's id
        usage=_usage(given, told.usage.get(request or "")) or base.usage,
        reported_cost_usd=_cost(told.usage.get(request or "")),
        stop_reason=text(given.get("stop_reason")),
        conversation=text(given.get("session.id")),
        attempts=attempts,
        agent=None,
        first_chunk_at=_plus(span.start, given.get("ttft_ms")),
        status="error" if ok is False else base.status,
        error=base.error or text(given.get("error")),
        error_type=base.error_type or text(given.get("error_class")),
    )
    return _with_bodies(base, told, span.start, span.end)


def _with_bodies(base: ModelCall, told: _Logs, start: int | None, end: int | None) -> ModelCall:
    """The raw bodies, where they were logged; else what the answer said, if that was."""
    asked = told.request_of(base.request_id, base.trace_id, start, end)
    answered = told.bodies.get(base.request_id or "")
    request = nested(asked.attributes.get("body")) if asked else None
    response = nested(answered.attributes.get("body")) if answered else None
    cut = (asked is not None and not isinstance(request, dict)) or (
        answered is not None and not isinstance(response, dict)
    )
    flags = ("truncated_at_source",) if cut else ()
    more: dict[str, Any] = {}
    if isinstance(request, dict):
        parts = raw.parts(request, raw.ANTHROPIC)
        more = {**parts, "model": base.model or parts["model"]}
    if isinstance(response, dict):
        more |= {"response": response, "response_id": text(response.get("id"))}
    elif base.request_id in told.said:
        blocks = [{"type": "text", "text": told.said[base.request_id or ""]}]
        more["response"] = raw.as_response(
            raw.ANTHROPIC, blocks, {"model": base.response_model, "stop_reason": base.stop_reason}
        )
        flags = (*flags, "answer_text_only")
    if not more:
        return replace(base, flags=tuple(dict.fromkeys([*base.flags, *flags])))
    lossless = isinstance(request, dict) and (isinstance(response, dict) or base.status != "ok")
    return genai.with_content(base, **more, lossless=lossless, flags=flags)


def _call_of_log(request: str, log: RawEvent, told: _Logs, parent: str | None) -> ModelCall:
    given = log.attributes
    waited = number(given.get("duration_ms"))
    start = log.at - waited * 1000 if log.at is not None and waited is not None else None
    base = ModelCall(
        key=request,
        api=raw.ANTHROPIC,
        provider="anthropic",
        model=text(given.get("model")),
        request_id=request,
        usage=_usage(given, log),
        reported_cost_usd=_cost(log),
        started_at=start,
        ended_at=log.at,
        first_chunk_at=_plus(start, given.get("ttft_ms")),
        trace_id=log.trace,
        parent_span_id=parent,
        scope=log.scope,
        name="api_request",
        conversation=text(given.get("session.id")),
        service=text(log.resource.get("service.name")),
        flags=("content_not_kept",),
    )
    return _with_bodies(base, told, start, log.at)


def _usage(given: Any, log: RawEvent | None) -> Usage | None:
    split = log.attributes if log is not None else {}
    write = number(given.get("cache_creation_tokens"))
    hour = number(split.get("cache_creation_1h_tokens"))
    counted, output = number(given.get("input_tokens")), number(given.get("output_tokens"))
    if counted is None and output is None:
        return None
    five = write if hour is None or write is None else max(0, write - hour)
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "speed")
    return Usage(
        input=counted,
        cache_read=number(given.get("cache_read_tokens")),
        cache_write_5m=five,
        cache_write_1h=hour,
        output=output,
        origin="recorded",
        raw={k: v for k, v in {**split, **given}.items() if k in names},
    )


def _cost(log: RawEvent | None) -> float | None:
    """What Claude Code itself worked out for the call."""
    return money(log.attributes.get("cost_usd")) if log is not None else None


def _attempts(given: Any, span: RawSpan) -> tuple[dict[str, Any], ...]:
    """One for every attempt that the span tells of; the status only of the last."""
    tries = [e for e in span.events if e.name == "gen_ai.request.attempt"]
    count = max(len(tries), number(given.get("attempt")) or 0, 1)
    status = number(given.get("status_code")) or (200 if given.get("success") is True else None)
    earlier: dict[str, Any] = {"status": None, "error": "failed; the producer does not say why"}
    return (*[earlier] * min(count - 1, 20), {"status": status, "error_type": text(given.get("error_class"))})


def _tool(span: RawSpan, ran: RawSpan | None, told: _Logs) -> ToolSpan:
    given = span.attributes
    call = text(given.get("tool_use_id"))
    log = told.results.get(call or "")
    output = next((e.attributes for e in span.events if e.name == "tool.output"), {})
    error = text(ran.attributes.get("error")) if ran else None
    failed = ran is not None and (ran.attributes.get("success") is False or ran.code == 2)
    success = ran.attributes.get("success") if ran else None
    flags = figures.flags(span)
    if output.get("output_truncated"):
        flags.append("truncated_at_source")
    if log is not None and log.attributes.get("success") in ("false", False):
        failed = True
    return replace(
        genai.tool(span),
        name=text(given.get("tool_name")) or text(given.get("gen_ai.tool.name")) or "tool",
        call=call,
        arguments=arguments(log.attributes.get("tool_input")) if log and log.attributes.get("tool_input") else None,
        result=output.get("output") or output.get("content"),
        is_error=True if failed else False if success is True else None,
        error=error,
        started_at=(ran.start if ran else None) or span.start,
        ended_at=(ran.end if ran else None) or span.end,
        conversation=text(given.get("session.id")),
        flags=tuple(dict.fromkeys(flags)),
    )


def _plus(start: int | None, ms: Any) -> int | None:
    waited = number(ms)
    return None if start is None or waited is None else start + waited * 1000
