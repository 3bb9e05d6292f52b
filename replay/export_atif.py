"""A run as an ATIF 1.8 trajectory: pure functions over recordings; what is lost is listed in docs/formats.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..tracer.model import Event, Request, Run, ToolCall, Turn, Usage
from . import atif_parts as parts
from .message_parts import plain_text
from .recording import Incoming, Recording, load

if TYPE_CHECKING:
    from ..tracer.store import Store

VERSION = "ATIF-v1.8"
DETERMINISTIC = "deterministic_step"  # what the importer makes of steps that called no model
_RUN_FACTS = ("name", "title", "agent", "project", "session", "task", "git_commit", "source", "reason", "tags", "versions", "outcome")  # fmt: skip
_TURN_FACTS = ("error", "error_type", "stop_reason", "response_id", "provider", "agent", "step", "caller", "trace_id", "span_id")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Family:
    """A recording with what a trajectory needs beside its turns.

    Attributes:
        request: The first turn's request, for system prompt and tools; None when there is none.
        children: The runs that its calls started.
    """

    recording: Recording
    request: Request | None = None
    children: tuple[Family, ...] = field(default=())


def gather(store: Store, run: Run, first: int | None = None, last: int | None = None) -> Family:
    """A run out of a store, whole with its sub-agents, or the turns ``first`` to ``last`` with those they started."""
    return _gather(store, run, first, last, {run.id})


def _gather(store: Store, run: Run, first: int | None, last: int | None, seen: set[str]) -> Family:
    recording = load(store, run, first, last)
    asked = next((t.number for t in recording.turns if t.message_count is not None), None)
    numbers = {t.number for t in recording.turns}
    quoted = run.id.replace("'", "''")
    query = (
        f"select id, parent_turn from runs where parent_run = '{quoted}' and parent_kind = 'sub-agent' "  # noqa: S608
        "order by started_at nulls last, id"
    )
    children = []
    for child, turn in store.sql(query)[2]:
        if child not in seen and (first is None or turn in numbers):
            seen.add(child)
            children.append(_gather(store, store.run(child), None, None, seen))
    request = None if asked is None else store.request(run.id, asked)
    return Family(recording, request, tuple(children))


def trajectory(family: Family) -> dict[str, Any]:
    """The trajectory as decoded JSON. Fields that are not known are left out."""
    recording, run = family.recording, family.recording.run
    steps = list(_steps(family))
    for number, step in enumerate(steps, 1):
        step["step_id"] = number
    own = [t for t in recording.turns if not t.inherited]
    extra = {k: v for e in recording.events if e.kind == "extra" for k, v in _mapping(e.detail.get("extra")).items()}
    found = {
        "schema_version": VERSION,
        "session_id": run.session,
        "trajectory_id": run.id,
        "agent": _agent(run, family.request),
        "steps": [{"step_id": s.pop("step_id"), **s} for s in steps],
        "notes": "\n".join(_notes(recording)) or None,
        "final_metrics": _totals(own, len(steps)),
        "subagent_trajectories": [trajectory(c) for c in family.children] or None,
        "extra": {**extra, "looptape": _run_facts(run)},
    }
    return _given(found)


def _agent(run: Run, request: Request | None) -> dict[str, Any]:
    name = run.agent or run.name or "unknown"
    tools = request.tools if request else None
    return _given(
        {
            "name": name,
            "version": run.versions.get(name) or "unknown",
            "model_name": run.models[0] if run.models else None,
            "tool_definitions": [parts.tool(t) for t in tools if isinstance(t, dict)]
            if isinstance(tools, list)
            else None,
        }
    )


def _run_facts(run: Run) -> dict[str, Any]:
    facts = {name: getattr(run, name) for name in _RUN_FACTS}
    facts = {k: dict(v) if isinstance(v, Mapping) else v for k, v in facts.items()}
    facts |= {
        "run": run.id,
        "status": None if run.status == "running" else run.status,
        "started_at": parts.iso(run.started_at),
        "ended_at": parts.iso(run.ended_at),
    }
    return {k: v for k, v in facts.items() if v not in (None, {})}


def _notes(recording: Recording) -> Iterator[str]:
    yield from (str(e.detail.get("text")) for e in recording.events if e.kind == "notes")
    run, turns = recording.run, recording.turns
    if turns and len(turns) < run.turns:
        yield f"Turns {turns[0].number} to {turns[-1].number} of a run with {run.turns}."
    if any(t.inherited for t in turns):
        yield "Steps with is_copied_context were paid for by another run; final_metrics leave them out."


def _totals(turns: list[Turn], steps: int) -> dict[str, Any]:
    metrics = [_metrics(t) or {} for t in turns]

    def sum_of(name: str) -> Any:
        known = [m[name] for m in metrics if m.get(name) is not None]
        return sum(known) if known else None

    costs = [_cost(t) for t in turns]
    known = [c for c in costs if c is not None]
    unpriced = len(costs) - len(known)
    found = {f"total_{n}": sum_of(n) for n in ("prompt_tokens", "completion_tokens", "cached_tokens")}
    return _given(
        {
            **found,
            "total_cost_usd": sum(known) if known else None,
            "total_steps": steps,
            "extra": {"unpriced_turns": unpriced} if known and unpriced else None,
        }
    )


# -- steps -------------------------------------------------------------------------------------------------------


def _steps(family: Family) -> Iterator[dict[str, Any]]:
    recording = family.recording
    system = family.request.system if family.request else None
    if system:
        yield {"source": "system", "message": plain_text(system)}
    dispatched = [e for e in recording.events if e.kind == DETERMINISTIC]
    yield from _events([e for e in recording.events if e.turn is None])
    children = {(p.turn, p.call): c.recording.run.id for c in family.children if (p := c.recording.run.parent)}
    for turn in recording.turns:
        yield from _incoming(turn, recording.incoming.get(turn.number, ()), dispatched)
        yield _turn(turn, children)
        yield from _events(recording.events_at(turn.number))


def _events(events: list[Event] | tuple[Event, ...]) -> Iterator[dict[str, Any]]:
    for event in events:
        if event.kind in ("notes", "extra"):
            continue
        step: dict[str, Any] = {"timestamp": parts.iso(event.at)}
        if event.kind == DETERMINISTIC:
            step |= {"source": "agent", "message": event.detail.get("message") or "", "llm_call_count": 0}
            step["tool_calls"] = event.detail.get("tool_calls")
            results = event.detail.get("results")
            step["observation"] = {"results": results} if results else None
        else:
            step |= {"source": "system", "message": f"[{event.kind}]"}
            step["extra"] = {"looptape": {"event": event.kind, "detail": dict(event.detail)}}
        yield _given(step)


def _incoming(turn: Turn, new: tuple[Incoming, ...], dispatched: list[Event]) -> Iterator[dict[str, Any]]:
    """What came in with a request, message by message, but for what stands in steps without a model anyway."""
    texts = {e.detail.get("message") for e in dispatched if isinstance(e.detail.get("message"), str)}
    calls = {c.get("tool_call_id") for e in dispatched for c in e.detail.get("tool_calls") or () if isinstance(c, dict)}
    for (_, role), group in groupby(new, key=lambda i: (i.number, i.role)):
        found = [i.part for i in group if i.part.kind != "result" or i.part.call not in calls]
        text = "\n".join(p.text for p in found if p.kind not in ("call", "thinking", "result"))
        results = [{"content": p.text} for p in found if p.kind == "result"]
        if not found or (role == "assistant" and text in texts):
            continue
        step: dict[str, Any] = {"source": "system", "message": text}
        if role == "user":
            step["source"] = "user"
            if not turn.user_turn:
                step["extra"] = {"looptape": {"prompt": False}}
        elif role == "assistant":
            step |= {"source": "agent", "llm_call_count": 0}
            step["tool_calls"] = [parts.call_of_text(p, n) for n, p in enumerate(found, 1) if p.kind == "call"] or None
        elif role not in ("system", "tool"):
            step["extra"] = {"looptape": {"role": role}}
        if results:
            step["observation"] = {"results": results}
        yield _given(step)


def _turn(turn: Turn, children: Mapping[tuple[int | None, str | None], str]) -> dict[str, Any]:
    ids = parts.call_ids(turn)
    results = [
        result
        for call, key in zip(turn.tool_calls, ids, strict=True)
        if (result := _result(call, key, children.get((turn.number, call.id))))
    ]
    facts: dict[str, Any] = {name: getattr(turn, name) for name in _TURN_FACTS}
    facts |= {
        "status": None if turn.status == "ok" else turn.status,
        "ended_at": parts.iso(turn.ended_at),
        "flags": list(turn.flags) or None,
    }
    ours = _given(facts)
    return _given(
        {
            "timestamp": parts.iso(turn.started_at),
            "source": "agent",
            "model_name": turn.model or turn.request_model,
            "message": turn.text or "",
            "reasoning_content": turn.thinking or None,
            "tool_calls": [_call(c, key) for c, key in zip(turn.tool_calls, ids, strict=True)] or None,
            "observation": {"results": results} if results else None,
            "metrics": _metrics(turn),
            "llm_call_count": 1,
            "is_copied_context": True if turn.inherited else None,
            "extra": {"looptape": ours} if ours else None,
        }
    )


def _call(call: ToolCall, key: str) -> dict[str, Any]:
    whole = call.valid and isinstance(call.arguments, dict)
    ours: dict[str, Any] = {} if whole else {"arguments_raw": call.arguments_raw}
    if call.timing == "measured":
        ours |= {"started_at": parts.iso(call.started_at), "ended_at": parts.iso(call.ended_at)}
    ours = _given(ours)
    return _given(
        {
            "tool_call_id": key,
            "function_name": call.name,
            "arguments": call.arguments if whole else {},
            "extra": {"looptape": ours} if ours else None,
        }
    )


def _result(call: ToolCall, key: str, child: str | None) -> dict[str, Any] | None:
    if call.result is None and child is None:
        return None
    ours = _given({"is_error": call.is_error, "error_class": call.error_class})
    return _given(
        {
            "source_call_id": key,
            "content": None if call.result is None else parts.content(call.result),
            "subagent_trajectory_ref": [{"trajectory_id": child}] if child else None,
            "extra": {"looptape": ours} if ours else None,
        }
    )


def _metrics(turn: Turn) -> dict[str, Any] | None:
    """Tokens with the cached ones among the prompt's, as ATIF has them."""
    usage: Usage = turn.usage
    extra = {
        "cache_write_5m": usage.cache_write_5m,
        "cache_write_1h": usage.cache_write_1h,
        "reasoning_tokens": usage.reasoning,
        "usage_origin": usage.origin if usage.origin not in ("recorded", "missing") else None,
        "usage_partial": True if usage.partial else None,
    }
    found = {
        "prompt_tokens": usage.context if usage.input is not None else None,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read,
        "cost_usd": _cost(turn),
        "extra": _given(extra) or None,
    }
    return _given(found) or None


def _cost(turn: Turn) -> float | None:
    return turn.cost_usd if turn.cost_usd is not None else turn.reported_cost_usd


def text(value: Mapping[str, Any]) -> str:
    """A trajectory as JSON text that any reader takes: lone surrogates stay escapes."""
    found = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        found.encode()
    except UnicodeEncodeError:
        found = json.dumps(value, indent=2)
    return found + "\n"


def _given(value: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in value.items() if v is not None}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
