"""GenAI semantic conventions of every generation: v0.1.0, the ones before, native anthropic, google-genai, pydantic-ai."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..calls.model_call import AgentSpan, ModelCall, ToolSpan
from . import figures
from .blocks import Conversation, add_openai, answer, answer_blocks, arguments, from_parts
from .figures import text
from .histories import Histories
from .wire import RawEvent, RawSpan, nested

CHATS = frozenset({"chat", "text_completion", "generate_content", "completion"})
AGENTS = frozenset({"invoke_agent", "agent"})
WORKFLOWS = frozenset({"invoke_workflow", "workflow", "create_agent", "plan"})
DETAILS = "gen_ai.client.inference.operation.details"
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "choice",
}
_USED = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "gen_ai.usage.output_tokens")


def read(span: RawSpan, histories: Histories | None = None) -> ModelCall | ToolSpan | AgentSpan | None:
    """A GenAI span; None when it is none. ``histories``: of the other spans that are read with it."""
    given = span.attributes
    operation = text(given.get("gen_ai.operation.name"))
    if operation in CHATS or (operation is None and _is_chat(given)):
        return call(span, histories)
    if operation == "execute_tool" or (operation is None and "gen_ai.tool.name" in given):
        return tool(span)
    if operation in AGENTS or operation in WORKFLOWS:
        return agent(span, "agent" if operation in AGENTS else "workflow")
    return None


def call(span: RawSpan, histories: Histories | None = None) -> ModelCall:
    """An inference span with its events and log records."""
    given = span.attributes
    details = next((e for e in (*span.logs, *span.events) if e.name == DETAILS), None)
    if details is not None:
        given = {**details.attributes, **_body(details), **given}
    status, error, error_type = figures.failure(span)
    stop = figures.finish(given)
    said, told, stop = _content(span, given, stop, histories)
    provider = figures.provider(given)
    flags = figures.flags(span)
    cut = said.cut or told.cut or given.get("anthropic.content.truncated") is True
    if cut and "truncated_at_source" not in flags:
        flags.append("truncated_at_source")
    blocks = answer_blocks(told)
    response_id = text(given.get("gen_ai.response.id"))
    model = text(given.get("gen_ai.response.model"))
    body = answer(blocks, id=response_id, model=model, stop_reason=stop) if blocks else None
    if not said.messages and body is None:
        flags.append("content_not_kept")
    return ModelCall(
        key=span.key,
        api="manual",
        messages=tuple(said.messages),
        system=_system(given, said),
        tools=_tools(given),
        params=figures.params(given),
        response=body,
        usage=figures.usage(given),
        provider=provider,
        model=text(given.get("gen_ai.request.model")),
        response_model=model,
        response_id=response_id,
        request_id=text(given.get("anthropic.request.id")),
        stop_reason=stop,
        mode=_mode(given, said),
        previous=text(given.get("gen_ai.request.previous_response.id")),
        stream=given.get("gen_ai.request.stream") is True or given.get("gen_ai.is_streaming") is True,
        started_at=span.start,
        ended_at=span.end,
        first_chunk_at=_first_chunk(span, given),
        status=status,
        error=error,
        error_type=error_type,
        attempts=_attempts(given, error_type),
        trace_id=span.trace,
        span_id=span.span,
        parent_span_id=span.parent,
        scope=span.scope,
        name=text(given.get("logfire.msg")) or span.name,
        conversation=text(given.get("gen_ai.conversation.id")),
        agent=text(given.get("gen_ai.agent.name")),
        service=span.service,
        flags=tuple(flags),
        reported_cost_usd=cost if isinstance(cost := given.get("operation.cost"), (int, float)) else None,
    )


def tool(span: RawSpan) -> ToolSpan:
    """An execute_tool span."""
    given = span.attributes
    result = next((given[k] for k in ("gen_ai.tool.call.result", "tool_response") if given.get(k) is not None), None)
    if result is None and given.get("anthropic.tool_result.content") is not None:
        result = nested(given["anthropic.tool_result.content"])
    told = given.get("gen_ai.tool.call.arguments", given.get("tool_arguments"))
    return figures.tool_span(
        span,
        name=text(given.get("gen_ai.tool.name")) or span.name.removeprefix("execute_tool "),
        call=text(given.get("gen_ai.tool.call.id")),
        arguments=arguments(told),
        result=result,
        conversation=text(given.get("gen_ai.conversation.id")),
    )


def agent(span: RawSpan, kind: str) -> AgentSpan:
    """A span around calls; its usage is a sum of theirs and never counted."""
    given = span.attributes
    status, error, error_type = figures.failure(span)
    name = (
        text(given.get("gen_ai.agent.name")) or text(given.get("agent_name")) or text(given.get("gen_ai.workflow.name"))
    )
    plain = text(given.get("logfire.msg")) or span.name
    for word in ("invoke_agent ", "invoke_workflow "):
        plain = plain.removeprefix(word)
    return AgentSpan(
        key=span.key,
        name=name or plain,
        kind=kind,
        agent=name,
        started_at=span.start,
        ended_at=span.end,
        status=status,
        error=error or error_type,
        trace_id=span.trace,
        span_id=span.span,
        parent_span_id=span.parent,
        conversation=text(given.get("gen_ai.conversation.id")),
        service=span.service,
        scope=span.scope,
        usage=figures.usage(given),
    )


def from_events(events: list[RawEvent]) -> tuple[Conversation, Conversation, str | None]:
    """Request, answer and finish reason of the per-message events (body of a log, attributes of a span event)."""
    said, told, stop = Conversation(), Conversation(), None
    for event in events:
        role = _MESSAGE_EVENTS.get(event.name)
        if role is None:
            continue
        body = _body(event)
        if role == "choice":
            message = nested(body.get("message"))
            if body.get("index") in (0, None, "0"):
                stop = text(body.get("finish_reason")) or stop
                message = message if isinstance(message, dict) else {"content": body.get("content", message)}
                add_openai(told, {"role": "assistant", **message})
        else:
            calls = nested(body.get("tool_calls"))
            add_openai(said, {**body, "role": role, "tool_calls": calls if isinstance(calls, list) else []})
    return said, told, stop


def _content(
    span: RawSpan, given: Mapping[str, Any], stop: str | None, histories: Histories | None
) -> tuple[Conversation, Conversation, str | None]:
    asked, answered = given.get("gen_ai.input.messages"), given.get("gen_ai.output.messages")
    if asked is not None or answered is not None:
        said = histories.read(span.trace, asked) if histories else from_parts(asked)
        listed = nested(answered)
        told = from_parts(listed if isinstance(listed, list) else answered)
        if stop is None and isinstance(listed, list) and listed and isinstance(listed[-1], dict):
            stop = text(listed[-1].get("finish_reason"))
        return said, told, stop
    events = [*span.events, *span.logs]
    if any(e.name in _MESSAGE_EVENTS for e in events):
        said, told, reason = from_events(events)
        return said, told, stop or reason
    listed = nested(given.get("events"))
    if isinstance(listed, list):  # pydantic-ai before 1.0 keeps the events in one attribute
        made = [RawEvent(str(e.get("event.name")), None, {}, body=e) for e in listed if isinstance(e, dict)]
        said, told, reason = from_events(made)
        return said, told, stop or reason
    return Conversation(), Conversation(), stop


def _body(event: RawEvent) -> dict[str, Any]:
    body = nested(event.body)
    return {**event.attributes, **body} if isinstance(body, dict) else dict(event.attributes)


def _is_chat(given: Mapping[str, Any]) -> bool:
    """An old span without an operation: a model, and tokens or messages."""
    if "gen_ai.request.model" not in given or "gen_ai.tool.name" in given:
        return False
    return any(k in given for k in _USED) or "gen_ai.input.messages" in given or "looptape.turn.number" in given


def _system(given: Mapping[str, Any], said: Conversation) -> Any:
    told = nested(given.get("gen_ai.system_instructions"))
    if isinstance(told, list):
        texts = [
            p if isinstance(p, str) else p.get("content", p.get("text")) for p in told if isinstance(p, (str, dict))
        ]
        return "\n\n".join(t for t in texts if isinstance(t, str)) or said.system
    return text(told) or said.system


def _tools(given: Mapping[str, Any]) -> Any:
    told = nested(given.get("gen_ai.tool.definitions"))
    return told if isinstance(told, list) and told else None


def _mode(given: Mapping[str, Any], said: Conversation) -> str:
    """The server holds what came before, where the request begins with results or an answer is continued."""
    if given.get("gen_ai.request.previous_response.id"):
        return "previous_response"
    return "thread" if _begins_with_results(said) else "full"


def _begins_with_results(said: Conversation) -> bool:
    head = said.messages[0]["content"] if said.messages else []
    return bool(head) and head[0].get("type") == "tool_result"


def _first_chunk(span: RawSpan, given: Mapping[str, Any]) -> int | None:
    waited = given.get("gen_ai.response.time_to_first_chunk", given.get("gen_ai.client.operation.time_to_first_chunk"))
    if isinstance(waited, (int, float)) and span.start is not None:
        return span.start + round(waited * 1_000_000)
    return None


def _attempts(given: Mapping[str, Any], error_type: str | None) -> tuple[Mapping[str, Any], ...]:
    """The attempts that are told of: how many were sent again, and the status of the last."""
    status = figures.number(given.get("http.response.status_code"))
    again = figures.number(given.get("http.request.resend_count")) or 0
    if status is None:
        return ()
    failed: Mapping[str, Any] = {"status": None, "error": "sent again; the producer does not say why"}
    return (*[failed] * min(again, 20), {"status": status, "error_type": error_type})


def with_content(base: ModelCall, **more: Any) -> ModelCall:
    """A call with content from elsewhere; what marked it as lost is taken away."""
    flags = (*base.flags, *more.pop("flags", ()))
    kept = tuple(dict.fromkeys(f for f in flags if f != "content_not_kept"))
    return replace(base, flags=kept, **more)
