"""The JSON that scripts rely on: RUN, TURN, USAGE. Fields are added freely, never renamed or removed."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from ...tracer.model import BUCKETS, Event, Request, Run, ToolCall, Turn, Usage
from ..format import iso


def usage(value: Usage) -> dict[str, Any]:
    """USAGE: integers or null, where they come from, and whether they are only lower bounds."""
    return {name: getattr(value, name) for name in BUCKETS} | {"origin": value.origin, "partial": value.partial}


def run(value: Run) -> dict[str, Any]:
    """RUN: figures are the run's own; inherited turns and children are in ``inclusive`` only."""
    parent = value.parent
    return {
        "id": value.id,
        "name": value.name,
        "title": value.title,
        "agent": value.agent,
        "project": value.project,
        "session": value.session,
        "task": value.task,
        "outcome": None if value.outcome is None else dict(value.outcome),
        "source": value.source,
        "status": value.status,
        "reason": value.reason,
        "started_at": iso(value.started_at),
        "ended_at": iso(value.ended_at),
        "turns": value.turns,
        "tool_calls": value.tool_calls,
        "errors": value.errors,
        "models": list(value.models),
        "limits": dict(value.limits),
        "usage": usage(value.usage),
        "cost_usd": value.cost_usd,
        "cost_partial": value.unpriced_turns > 0,
        "unpriced_turns": value.unpriced_turns,
        "assumed_turns": value.assumed_turns,
        "price_sources": list(value.price_sources),
        "reported_cost_usd": value.reported_cost_usd,
        "cost_difference_usd": value.cost_difference_usd,
        "list_price": value.list_price,
        "inclusive": {
            "usage": usage(value.inclusive_usage),
            "cost_usd": value.inclusive_cost_usd,
            "unpriced_turns": value.inclusive_unpriced_turns,
        },
        "parent": None
        if parent is None
        else {"run": parent.run, "turn": parent.turn, "call": parent.call, "kind": parent.kind},
        "tags": dict(value.tags),
        "warnings": list(value.warnings),
        "versions": dict(value.versions),
        "git_commit": value.git_commit,
    }


def cost_sum(runs: Sequence[Run]) -> dict[str, Any]:
    """What the listed runs cost together, each turn counted once; null when none of them has a price."""
    costs = [Decimal(str(r.cost_usd)) for r in runs if r.cost_usd is not None]
    unpriced = sum(r.unpriced_turns for r in runs)
    return {"cost_usd": float(sum(costs)) if costs else None, "cost_partial": unpriced > 0, "unpriced_turns": unpriced}


def turn(value: Turn) -> dict[str, Any]:
    """TURN with its attempts and tool calls."""
    return {
        "number": value.number,
        "agent": value.agent,
        "user_turn": value.user_turn,
        "inherited": value.inherited,
        "flags": list(value.flags),
        "provider": value.provider,
        "api": value.api,
        "model": value.model,
        "stop_reason": value.stop_reason,
        "status": value.status,
        "error": value.error,
        "error_type": value.error_type,
        "request_id": value.request_id,
        "response_id": value.response_id,
        "trace_id": value.trace_id,
        "span_id": value.span_id,
        "caller": value.caller,
        "step": value.step,
        "stream": value.stream,
        "started_at": iso(value.started_at),
        "generate_ms": value.generate_ms,
        "parse_ms": value.parse_ms,
        "execute_ms": value.execute_ms,
        "resume_ms": value.resume_ms,
        "usage": usage(value.usage),
        "cost_usd": value.cost_usd,
        "price": {
            "source": value.price.source,
            "matched": value.price.matched,
            "why": value.price.why,
            "assumed": list(value.price.assumed),
            "served": dict(value.price.served),
        },
        "reported_cost_usd": value.reported_cost_usd,
        "text": value.text,
        "thinking": value.thinking,
        "attempts": [
            {"status": a.status, "error": a.error, "error_type": a.error_type, "wait_ms": a.wait_ms}
            for a in value.attempts
        ],
        "tool_calls": [call(c) for c in value.tool_calls],
    }


def call(value: ToolCall) -> dict[str, Any]:
    """A tool call; ``arguments`` is the decoded object, or the raw text when it was not valid."""
    return {
        "id": value.id,
        "name": value.name,
        "arguments": value.arguments if value.valid else value.arguments_raw,
        "valid": value.valid,
        "invalid_reason": value.invalid_reason,
        "result": value.result,
        "is_error": value.is_error,
        "error_class": value.error_class,
        "state": value.state,
        "started_at": iso(value.started_at),
        "ms": value.ms,
        "timing": value.timing,
        "side_effect": value.side_effect,
        "origin": value.origin,
        "child_run": value.child_run,
    }


def event(value: Event) -> dict[str, Any]:
    """Something that is no turn."""
    return {"kind": value.kind, "at": iso(value.at), "turn": value.turn, "detail": dict(value.detail)}


def request(value: Request) -> dict[str, Any]:
    """What the model saw; ``kept`` leading messages are those of the turn before."""
    return {
        "system": value.system,
        "tools": value.tools,
        "params": dict(value.params),
        "messages": list(value.messages),
        "kept": value.kept,
    }
