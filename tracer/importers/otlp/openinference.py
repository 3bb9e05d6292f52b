"""OpenInference: raw bodies in input.value and output.value first, the flattened attributes where those are no bodies."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from ...model import Usage
from ..calls.model_call import AgentSpan, ModelCall, ToolSpan
from . import figures, flattened, langchain, raw
from .blocks import Conversation, answer_blocks, arguments
from .figures import number, text
from .wire import RawSpan, nested

KIND = "openinference.span.kind"


def read(span: RawSpan) -> ModelCall | ToolSpan | AgentSpan | None:
    """A span with an OpenInference kind; None for the kinds that only stand around (their name is a step)."""
    kind = str(span.attributes.get(KIND)).upper()
    if kind == "LLM":
        return call(span)
    if kind == "TOOL":
        return tool(span)
    return agent(span, kind)


def call(span: RawSpan) -> ModelCall:
    """An LLM span."""
    given = span.attributes
    status, error, error_type = figures.failure(span)
    provider = figures.provider(given)
    flags = figures.flags(span)
    params = nested(given.get("llm.invocation_parameters"))
    found, cut = _content(given, provider, params if isinstance(params, dict) else {})
    if cut and "truncated_at_source" not in flags:
        flags.append("truncated_at_source")
    if not found["messages"] and found["response"] is None:
        flags.append("content_not_kept")
    body = found["response"] if isinstance(found["response"], dict) else {}
    name = text(given.get("llm.model_name"))
    counted = body.get("usage") if found["api"] != "manual" else None
    tool_list = found.pop("tools", None) or flattened.tools(given)
    model = found.pop("model", None) or text(given.get("llm.request.model_name")) or name
    return ModelCall(
        key=span.key,
        **found,
        tools=tool_list,
        model=model,
        usage=None if isinstance(counted, dict) and counted else usage(given),
        provider=provider,
        response_model=text(given.get("llm.response.model_name")) or name,
        response_id=text(body.get("id")),
        stop_reason=_stop(given, body),
        started_at=span.start,
        ended_at=span.end,
        status=status,
        error=error,
        error_type=error_type,
        trace_id=span.trace,
        span_id=span.span,
        parent_span_id=span.parent,
        scope=span.scope,
        name=span.name,
        conversation=text(given.get("session.id")),
        service=span.service,
        flags=tuple(flags),
    )


def tool(span: RawSpan) -> ToolSpan:
    """A TOOL span. Few producers keep the call id; LangChain has it in the output."""
    given = span.attributes
    result, call_id, failed = langchain.tool_output(given.get("output.value"))
    told = arguments(given.get("input.value"))
    if isinstance(told, str) and told.startswith("{'"):
        told = _python_dict(told)
    if isinstance(told, dict) and isinstance(told.get("kwargs"), dict):  # smolagents
        told = told["kwargs"]
    return figures.tool_span(
        span,
        failed=failed,
        name=text(given.get("tool.name")) or span.name,
        call=text(given.get("tool_call.id")) or call_id,
        arguments=told,
        result=result,
        conversation=text(given.get("session.id")),
    )


def agent(span: RawSpan, kind: str) -> AgentSpan:
    """AGENT spans hold runs; a graph's node and a workflow's root are no agents of their own."""
    given = span.attributes
    status, error, error_type = figures.failure(span)
    metadata = nested(given.get("metadata"))
    node = metadata.get("langgraph_node") if isinstance(metadata, dict) else None
    role = "step"
    if kind == "AGENT":
        workflow = span.scope.endswith("openai_agents") and "agent.name" not in given and span.parent is None
        role = "workflow" if workflow else "step" if node == span.name else "agent"
    name = text(given.get("agent.name"))
    return AgentSpan(
        key=span.key,
        name=name or span.name.removesuffix(".run"),
        kind=role,
        agent=name or (span.name.removesuffix(".run") if role == "agent" else None),
        started_at=span.start,
        ended_at=span.end,
        status=status,
        error=error or error_type,
        trace_id=span.trace,
        span_id=span.span,
        parent_span_id=span.parent,
        conversation=text(given.get("session.id")),
        service=span.service,
        scope=span.scope,
        usage=usage(given),
        facts={"native_turn": True} if kind == "CHAIN" and span.name == "turn" else {},
    )


def usage(given: Mapping[str, Any]) -> Usage | None:
    """Token counts; ``prompt`` includes cached tokens, except in old versions (see `figures.split`)."""
    names = {
        "total": "llm.token_count.prompt",
        "output": "llm.token_count.completion",
        "read": "llm.token_count.prompt_details.cache_read",
        "write": "llm.token_count.prompt_details.cache_write",
        "reasoning": "llm.token_count.completion_details.reasoning",
    }
    counts = {k: number(given.get(v)) for k, v in names.items()}
    return figures.split(**counts, raw={k: v for k, v in given.items() if k.startswith("llm.token_count.")})


def _content(given: Mapping[str, Any], provider: str | None, params: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Messages, system, tools, parameters and response; and whether something was cut at the source."""
    asked, answered = nested(given.get("input.value")), nested(given.get("output.value"))
    said, told = flattened.messages(given, "llm.input_messages."), flattened.messages(given, "llm.output_messages.")
    facts = {"stop_reason": text(given.get("llm.finish_reason")), "model": text(given.get("llm.model_name"))}
    api = raw.request_api(asked, provider)
    answer_api = raw.response_api(answered)
    if api is None and isinstance(asked, list) and answer_api in (raw.RESPONSES, raw.CHAT):  # openai-agents
        key = by_list_key(answer_api)
        system = answered.get("instructions") if answer_api == raw.RESPONSES else None
        asked = {key: asked, "model": None, **({"instructions": system} if system else {})}
        api = answer_api
    if api is not None:
        found = raw.parts(asked, api)
        whole = answer_api == api
        response = answered if whole else raw.as_response(api, answer_blocks(told), facts)
        return {**found, "response": response, "lossless": whole}, False
    if langchain.recognised(asked):
        said, told = langchain.messages(asked), langchain.answer(answered) or told
    cut = (said.cut or told.cut) and not said.messages
    shown = {k: v for k, v in params.items() if v is not None and k not in ("tools", "messages", "system")}
    return {
        "api": "manual",
        "messages": tuple(said.messages),
        "system": said.system,
        "params": shown or None,
        "response": raw.as_response("manual", answer_blocks(told), facts),
    }, cut or said.cut


def _python_dict(text: str) -> Any:
    """Arguments that an old version wrote down as Python does."""
    if len(text) > 100_000:
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def by_list_key(api: str) -> str:
    """Where that API's request has its messages."""
    return "input" if api == raw.RESPONSES else "messages"


def _stop(given: Mapping[str, Any], body: Mapping[str, Any]) -> str | None:
    """The raw response knows best; openai-agents writes ``stop`` whatever happened."""
    if body.get("stop_reason") or body.get("choices") or body.get("object") == "response":
        return None
    return text(given.get("llm.finish_reason"))


__all__ = ["KIND", "Conversation", "agent", "call", "read", "tool", "usage"]
