"""LangSmith runs: JSON lines, a list, a page, or one root run with its `child_runs`.

Relied on, as documented in "Run (span) data format" and in the SDK's run schema: id, name, run_type (llm, tool,
chain, ...), parent_run_id, trace_id, child_runs, inputs, outputs, error, status, start_time, end_time (ISO 8601, or
milliseconds in JavaScript), first_token_time, session_id, prompt_tokens, completion_tokens, total_cost,
extra.metadata (ls_provider, ls_model_name), extra.invocation_params, and usage_metadata (input_tokens is the
sum of all input, with input_token_details.cache_read and cache_creation inside).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ... import tape
from ...model import Usage
from ...providers.answer import count, mapping, objects
from ..calls.assembly import assemble
from ..calls.model_call import AgentSpan, ModelCall, ToolSpan
from ..context import Context, Source
from ..document import money, seconds, text
from ..reading import micros
from ..report import Notes
from . import wrapping
from .traced_words import decoded, message_of, words

FORMAT = "langsmith"
TITLE = "LangSmith runs"

_MAX_DEPTH = 200


def recognise(head: bytes) -> bool:
    """True for a run, and for a list or a page of them."""
    value = wrapping.first(head)
    return any(_is_run(v) for v in (value, *objects(value.get("runs"))[:1]))


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """Runs as the messages of the model calls tell, see `assembly`."""
    found: dict[str, dict[str, Any]] = {}
    for value in wrapping.objects(source, notes):
        for run in [value] if _is_run(value) else objects(value.get("runs")):
            _collect(run, found, notes)
    if not found:
        return
    notes.counts["runs"] = len(found)
    if any("child_run_ids" in r and not r.get("inputs") and r.get("inputs_s3_urls") for r in found.values()):
        notes.warn("inputs of some runs are kept elsewhere (inputs_s3_urls): their messages are missing")
    ordered = sorted(found.values(), key=lambda r: (_time(r.get("start_time")) or 0, str(r.get("id"))))
    yield from assemble(
        [_call(r) for r in ordered if r.get("run_type") == "llm"],
        source=FORMAT,
        notes=notes,
        tools=[_tool(r) for r in ordered if r.get("run_type") == "tool"],
        spans=[_span(r) for r in ordered if r.get("run_type") not in ("llm", "tool")],
    )


def _is_run(value: Mapping[str, Any]) -> bool:
    named = bool({"id", "run_id"} & value.keys())
    return named and isinstance(value.get("run_type"), str) and bool({"inputs", "start_time"} & value.keys())


def _collect(run: dict[str, Any], found: dict[str, dict[str, Any]], notes: Notes) -> None:
    """The run and those below it, each under its id."""
    waiting = [(run, text(run.get("parent_run_id")), 0)]
    while waiting:
        one, above, depth = waiting.pop()
        name = text(one.get("id")) or text(one.get("run_id"))
        if name is None or not isinstance(one.get("run_type"), str):
            notes.strange("run without an id or a type")
            continue
        children = objects(one.get("child_runs"))
        found[name] = {
            **{k: v for k, v in one.items() if k != "child_runs"},
            "id": name,
            "parent_run_id": text(one.get("parent_run_id")) or above,
            "trace_id": text(one.get("trace_id")) or text(run.get("trace_id")) or text(run.get("id")),
        }
        if depth < _MAX_DEPTH:
            waiting += [(child, name, depth + 1) for child in children]
        elif children:
            notes.warn(f"runs nested deeper than {_MAX_DEPTH} are left out")


def _place(run: Mapping[str, Any]) -> dict[str, Any]:
    meta = _meta(run)
    thread = text(meta.get("thread_id")) or text(meta.get("session_id")) or text(meta.get("conversation_id"))
    return {
        "key": f"{run.get('trace_id')}:{run['id']}",
        "trace_id": text(run.get("trace_id")),
        "span_id": run["id"],
        "parent_span_id": text(run.get("parent_run_id")),
        "conversation": thread,
        "started_at": _time(run.get("start_time")),
        "ended_at": _time(run.get("end_time")),
    }


def _call(run: Mapping[str, Any]) -> ModelCall:
    outputs, meta = mapping(run.get("outputs")), _meta(run)
    given = run.get("inputs")
    asked = mapping(mapping(run.get("extra")).get("invocation_params"))
    said = words(given, _without_usage(outputs) or None)
    details = _generation(outputs)
    failed = text(run.get("error"))
    model = text(meta.get("ls_model_name")) or text(asked.get("model")) or text(asked.get("model_name"))
    reported = mapping(mapping(details.get("message")).get("response_metadata"))
    return ModelCall(
        **_place(run),
        api=said.api,
        messages=said.messages,
        system=said.system,
        tools=said.tools or asked.get("tools") or None,
        params={k: v for k, v in asked.items() if k not in ("tools", "messages")} or said.params,
        response=said.response,
        usage=_usage(run, outputs, details),
        provider=text(meta.get("ls_provider")),
        model=model or text(mapping(given).get("model")),
        response_model=text(reported.get("model_name")) or text(reported.get("model")),
        response_id=text(reported.get("id")),
        stop_reason=text(mapping(details.get("generation_info")).get("finish_reason"))
        or text(reported.get("finish_reason"))
        or text(reported.get("stop_reason")),
        first_chunk_at=_time(run.get("first_token_time")),
        status="error" if failed or run.get("status") == "error" else "ok",
        error=failed,
        name=text(run.get("name")),
        reported_cost_usd=_cost(run),
    )


def _tool(run: Mapping[str, Any]) -> ToolSpan:
    outputs = run.get("outputs")
    inner = mapping(outputs).get("output") if isinstance(outputs, dict) and len(outputs) == 1 else outputs
    message = message_of(inner)
    given = mapping(run.get("inputs"))
    arguments = decoded(given["input"]) if set(given) == {"input"} else given
    named = None
    call = mapping(arguments)
    if call.get("type") == "tool_call":
        arguments, named = call.get("args"), text(call.get("id"))
    failed = text(run.get("error"))
    told = mapping(mapping(inner).get("kwargs")) or mapping(inner)
    status = told.get("status") if message else None
    return ToolSpan(
        **_place(run),
        name=text(run.get("name")) or "tool",
        call=named or text(mapping(message).get("tool_call_id")) or text(_meta(run).get("tool_call_id")),
        arguments=arguments if isinstance(arguments, dict) else None,
        result=message.get("content") if message else inner,
        is_error=True if failed or status == "error" else False if status == "success" else None,
        error=failed,
    )


def _span(run: Mapping[str, Any]) -> AgentSpan:
    failed = text(run.get("error"))
    return AgentSpan(
        **_place(run),
        name=text(run.get("name")) or str(run.get("run_type")),
        kind="step" if text(run.get("parent_run_id")) else "agent",
        status="error" if failed or run.get("status") == "error" else "ok",
        error=failed,
    )


def _meta(run: Mapping[str, Any]) -> dict[str, Any]:
    return mapping(mapping(run.get("extra")).get("metadata")) or mapping(run.get("metadata"))


def _generation(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """LangChain's first generation, its message without the wrapping of the serialisation."""
    inner: Any = outputs.get("generations")
    while isinstance(inner, list) and inner:
        inner = inner[0]
    found = dict(mapping(inner))
    message = mapping(found.get("message")) or mapping((objects(outputs.get("messages")) or [dict(outputs)])[-1])
    found["message"] = mapping(message.get("kwargs")) or mapping(message.get("data")) or message
    return found


def _usage(run: Mapping[str, Any], outputs: Mapping[str, Any], details: Mapping[str, Any]) -> Usage:
    message = mapping(details.get("message"))
    for place in (outputs, message, _meta(run)):
        raw = mapping(place.get("usage_metadata"))
        if raw:
            return _split(raw)
    prompt, completion = count(run.get("prompt_tokens")), count(run.get("completion_tokens"))
    if not prompt and not completion:  # 0 and 0 is how the API says that nobody counted
        return Usage()
    raw = {"prompt_tokens": prompt, "completion_tokens": completion}
    parts = mapping(run.get("prompt_token_details"))
    return _split({"input_tokens": prompt, "output_tokens": completion, "input_token_details": parts}, raw)


def _split(given: Mapping[str, Any], raw: Mapping[str, Any] | None = None) -> Usage:
    inside, outside = mapping(given.get("input_token_details")), mapping(given.get("output_token_details"))
    total, read, write = (
        count(given.get("input_tokens")),
        count(inside.get("cache_read")),
        count(inside.get("cache_creation")),
    )
    return Usage(
        input=None if total is None else max(0, total - (read or 0) - (write or 0)),
        cache_read=read,
        cache_write_5m=write,
        output=count(given.get("output_tokens")),
        reasoning=count(outside.get("reasoning")),
        origin="recorded",
        raw=raw or dict(given),
    )


def _cost(run: Mapping[str, Any]) -> float | None:
    given = run.get("total_cost")
    if isinstance(given, str):  # decimals are texts in the API
        try:
            given = float(given)
        except ValueError:
            return None
    return money(given)


def _without_usage(outputs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        k: v
        for k, v in outputs.items()
        if k not in ("usage_metadata", "llm_output", "run", "type") or "role" in outputs
    }


def _time(value: Any) -> int | None:
    return seconds(value / 1000) if isinstance(value, (int, float)) and not isinstance(value, bool) else micros(value)
