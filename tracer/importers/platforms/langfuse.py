"""Langfuse exports: a trace with its observations, a list or page of observations, or JSON lines of them.

Relied on, as documented in the public API (`GET /api/public/traces/{id}`, `/observations`) and in the field
reference of the blob storage export (the same in snake_case, input and output as JSON text):
trace: id, name, sessionId, observations. Observation: id, traceId, type (GENERATION, TOOL, AGENT, SPAN, CHAIN, ...,
EVENT), name, startTime, endTime, completionStartTime, parentObservationId, input, output, model or
providedModelName, modelParameters, usageDetails, costDetails, totalCost, level, statusMessage.
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
from ..document import money, text
from ..reading import micros
from ..report import Notes
from . import wrapping
from .traced_words import decoded, words

FORMAT = "langfuse"
TITLE = "Langfuse export"

_AROUND = frozenset({"SPAN", "AGENT", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"})
_TYPES = _AROUND | {"GENERATION", "TOOL", "EVENT"}
# Langfuse sums all usage types to a total, so that they are disjoint unless a given total says otherwise
_READ = ("input_cached_tokens", "cache_read_input_tokens", "input_cache_read", "input_cached")
_WRITE = ("cache_creation_input_tokens", "input_cache_creation", "input_cache_write")
_REASONING = ("output_reasoning_tokens", "output_reasoning", "reasoning_tokens")


def recognise(head: bytes) -> bool:
    """True for a trace with observations, for observations, and for a page of either."""
    value = wrapping.first(head)
    listed = objects(value.get("data"))
    return any(_is_trace(v) or _is_observation(v) for v in (value, mapping(value.get("trace")), *listed[:1]))


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """Runs as the messages of the generations tell, see `assembly`."""
    reader = _Reader(notes)
    for value in wrapping.objects(source, notes):
        reader.take(value)
    if not reader.observations:
        if notes.counts["objects"]:
            notes.warn("no observations in it: export traces with their observations")
        return
    yield from assemble(reader.calls(), source=FORMAT, notes=notes, tools=reader.tools(), spans=reader.spans())


def _is_observation(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    known = isinstance(kind, str) and kind in _TYPES
    return known and bool({"traceId", "trace_id"} & value.keys()) and bool({"startTime", "start_time"} & value.keys())


def _is_trace(value: Mapping[str, Any]) -> bool:
    return "timestamp" in value and "id" in value and bool({"observations", "htmlPath"} & value.keys())


class _Reader:
    """Traces and observations, whichever way round they came."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self.observations: dict[str, dict[str, Any]] = {}
        self._traces: dict[str, dict[str, Any]] = {}

    def take(self, value: dict[str, Any]) -> None:
        """A trace, an observation, or a page of them."""
        if _is_observation(value):
            self._observation(value)
            return
        inner = [*objects(value.get("data")), *objects(value.get("observations"))]
        trace = mapping(value.get("trace")) or (value if "id" in value and "timestamp" in value else {})
        name = text(trace.get("id"))
        if name:
            self._traces[name] = trace
            self._notes.counts["scores"] += len(objects(trace.get("scores")))
            inner += objects(trace.get("observations")) if trace is not value else []
        for item in inner:
            if _is_observation(item) or (name and isinstance(item.get("type"), str) and text(item.get("id"))):
                self._observation({"traceId": name, **{k: v for k, v in item.items() if v is not None}})
            elif _is_trace(item):
                self.take(item)
            else:
                self._notes.strange("element without a type")
        if not inner and not name:
            self._notes.strange("object that is no observation")

    def _observation(self, value: dict[str, Any]) -> None:
        name, kind = text(value.get("id")), text(value.get("type"))
        if name is None or kind not in _TYPES:
            self._notes.strange(f"observation {str(kind)[:60]}")
            return
        self._notes.counts["observations"] += name not in self.observations
        self.observations[name] = value  # a later row of the same id holds more

    def calls(self) -> list[ModelCall]:
        """The generations."""
        return [self._call(o) for o in self._of("GENERATION")]

    def tools(self) -> list[ToolSpan]:
        """The tool observations."""
        return [_tool(o, self._place(o)) for o in self._of("TOOL")]

    def spans(self) -> list[AgentSpan]:
        """Everything around them. A trace's root is its agent, unless an observation says that it is one."""
        agents = {text(_get(o, "traceId")) for o in self._of("AGENT")}
        found = []
        for kind in sorted(_AROUND):
            for one in self._of(kind):
                above = "workflow" if text(_get(one, "traceId")) in agents else "agent"
                root = not text(_get(one, "parentObservationId")) and kind in ("SPAN", "CHAIN")
                found.append(
                    AgentSpan(
                        name=text(one.get("name")) or kind.lower(),
                        kind="agent" if kind == "AGENT" else above if root else "step",
                        status="error" if one.get("level") == "ERROR" else "ok",
                        error=text(_get(one, "statusMessage")) if one.get("level") == "ERROR" else None,
                        **self._place(one),
                    )
                )
        return found

    def _of(self, kind: str) -> list[dict[str, Any]]:
        found = [o for o in self.observations.values() if o.get("type") == kind]
        return sorted(found, key=lambda o: (micros(_get(o, "startTime")) or 0, str(o.get("id"))))

    def _place(self, one: Mapping[str, Any]) -> dict[str, Any]:
        trace = text(_get(one, "traceId"))
        about = self._traces.get(trace or "", {})
        return {
            "key": f"{trace}:{one.get('id')}",
            "trace_id": trace,
            "span_id": text(one.get("id")),
            "parent_span_id": text(_get(one, "parentObservationId")),
            "conversation": text(_get(one, "sessionId")) or text(_get(about, "sessionId")),
            "started_at": micros(_get(one, "startTime")),
            "ended_at": micros(_get(one, "endTime")),
        }

    def _call(self, one: Mapping[str, Any]) -> ModelCall:
        said = words(one.get("input"), one.get("output"))
        failed = one.get("level") == "ERROR"
        params = mapping(decoded(_get(one, "modelParameters")))
        costs = mapping(_get(one, "costDetails"))
        cost = money(costs.get("total"))
        return ModelCall(
            **self._place(one),
            api=said.api,
            messages=said.messages,
            system=said.system,
            tools=said.tools or _get(one, "toolDefinitions") or None,
            params=params or said.params,
            response=said.response,
            usage=_usage(one),
            model=text(one.get("model")) or text(_get(one, "providedModelName")),
            first_chunk_at=micros(_get(one, "completionStartTime")),
            status="error" if failed else "ok",
            error=text(_get(one, "statusMessage")) if failed else None,
            name=text(one.get("name")),
            reported_cost_usd=money(_get(one, "totalCost")) if cost is None and costs else cost,
        )


def _tool(one: Mapping[str, Any], place: Mapping[str, Any]) -> ToolSpan:
    failed = one.get("level") == "ERROR"
    given, about = decoded(one.get("input")), mapping(decoded(one.get("metadata")))
    return ToolSpan(
        **place,
        name=text(one.get("name")) or "tool",
        call=text(about.get("tool_call_id")) or text(mapping(decoded(one.get("output"))).get("tool_call_id")),
        arguments=given if isinstance(given, dict) else None,
        result=decoded(one.get("output")),
        is_error=True if failed else None,
        error=text(_get(one, "statusMessage")) if failed else None,
    )


def _usage(one: Mapping[str, Any]) -> Usage | None:
    raw = mapping(_get(one, "usageDetails")) or mapping(one.get("usage"))
    given, read, write = count(raw.get("input")), _first(raw, _READ), _first(raw, _WRITE)
    output, reasoning, total = count(raw.get("output")), _first(raw, _REASONING), count(raw.get("total"))
    if given is None and output is None:
        return Usage()
    apart = (read or 0) + (write or 0)
    if total is not None and apart and total == (given or 0) + (output or 0) and given is not None:
        given = max(0, given - apart)  # the total counts cached tokens once: they are inside the input
    elif total is not None and reasoning and output is not None:
        output += reasoning if total == (given or 0) + apart + output + reasoning else 0
    return Usage(
        input=given,
        cache_read=read,
        cache_write_5m=write,
        output=output,
        reasoning=reasoning,
        origin="recorded",
        raw=raw,
    )


def _first(raw: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((v for n in names if (v := count(raw.get(n))) is not None), None)


def _get(value: Mapping[str, Any], name: str) -> Any:
    """A field by its name in the API or in the blob storage export."""
    found = value.get(name)
    return found if found is not None else value.get("".join(f"_{c.lower()}" if c.isupper() else c for c in name))
