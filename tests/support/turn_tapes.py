"""Turns as `rule_runs` writes them, as tape records: what a wrapped loop would have recorded, without its messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from looptape.replay.recording import Recording
from looptape.tracer.model import ToolCall, Turn
from looptape.tracer.tape import Record


def records(recording: Recording) -> list[Record]:
    """The records of a recording, its end included unless it is running."""
    return list(_records(recording))


def _records(recording: Recording) -> Iterator[Record]:
    run, turns = recording.run, recording.turns
    begin: Record = {
        "kind": "run_start",
        "run": run.id,
        "at": turns[0].started_at,
        "name": run.name,
        "source": run.source,
    }
    parent = run.parent
    if parent is not None:
        begin["parent"] = {"run": parent.run, "turn": parent.turn, "call": parent.call, "kind": parent.kind}
    yield {**begin, "limits": dict(run.limits), "task": run.task, "project": run.project or "/work"}
    for turn in turns:
        yield from _turn(turn)
    last = turns[-1].ended_at
    if run.status != "running":
        yield {"kind": "run_end", "run": run.id, "at": (last or 0) + 1, "status": run.status, "reason": run.reason}


def _turn(turn: Turn) -> Iterator[Record]:
    place: dict[str, Any] = {"run": turn.run, "turn": turn.number}
    yield {
        "kind": "turn_start", **place, "at": turn.started_at, "keep": 0, "append": [], "provider": turn.provider,
        "api": turn.api, "model": turn.model, "mode": "full", "agent": turn.agent, "flags": list(turn.flags),
    }  # fmt: skip
    usage = {"input": turn.usage.input, "cache_read": turn.usage.cache_read, "output": turn.usage.output,
             "origin": turn.usage.origin, "partial": False}  # fmt: skip
    calls = [{"id": c.id, "name": c.name, "arguments_raw": c.arguments_raw, "valid": c.valid} for c in turn.tool_calls]
    yield {
        "kind": "turn_end", **place, "at": turn.ended_at, "status": turn.status, "stop_reason": turn.stop_reason,
        "model": turn.model, "text": turn.text, "calls": calls, "usage": usage,
        "attempts": [{"status": 200, "wait_ms": 0, "started_at": turn.started_at, "ended_at": turn.ended_at}],
    }  # fmt: skip
    for call in turn.tool_calls:
        yield from _call(place, call, (turn.ended_at or 0) + 1_000)


def _call(place: dict[str, Any], call: ToolCall, at: int) -> Iterator[Record]:
    yield {"kind": "call_start", **place, "call": call.id, "at": at, "name": call.name, "side_effect": call.side_effect}
    if call.result is not None:
        yield {
            "kind": "call_end", **place, "call": call.id, "at": at + 1_000, "result": call.result,
            "is_error": call.is_error, "state": "done", "digest": call.result_digest, "length": len(str(call.result)),
        }  # fmt: skip
