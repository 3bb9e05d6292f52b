"""A small tape, made record by record: a question, a tool call, its result, a last word."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from looptape.tracer.tape import Record, blob, header, line

START = 1_764_424_923_000_000
SECOND = 1_000_000
RUN = "0123456789abcdef"


def records(
    run: str = RUN,
    *,
    name: str | None = "revenue",
    question: str = "What is 7% of last year's revenue?",
    tool: str = "search",
    arguments: dict[str, Any] | None = None,
    result: Any = "revenue: 1200",
    is_error: bool = False,
    answer: str = "It is 84.",
    thinking: str | None = None,
    start: int = START,
    model: str = "claude-sonnet-4-5",
    **run_start: Any,
) -> list[Record]:
    """Two turns: one call of a tool with this result, then the answer; ended by end_turn."""
    arguments = {"q": "revenue"} if arguments is None else arguments
    out: list[Record] = []

    def kept(value: Any) -> str:
        record = blob(json.dumps(value))
        out.append(record)
        return str(record["hash"])

    call = {"type": "tool_use", "id": "c1", "name": tool, "input": arguments}
    thought = [{"type": "thinking", "thinking": thinking, "signature": "s"}] if thinking else []
    said = {"role": "assistant", "content": [*thought, {"type": "text", "text": "I look it up."}, call]}
    seen = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": result, "is_error": is_error}],
    }
    out.append(
        {"kind": "run_start", "run": run, "at": start, "name": name, "source": "sdk", "project": "/work", **run_start}
    )
    shared = {"system": kept("You are a careful analyst."), "params": kept({"max_tokens": 100}), "provider": "anthropic",
              "tools": kept([{"name": tool, "description": "looks up", "input_schema": {"type": "object"}}]),
              "api": "anthropic.messages", "model": model, "stream": False, "mode": "full", "caller": "agent.py:12"}  # fmt: skip
    first = {"keep": 0, "append": [kept({"role": "user", "content": question})], "user_turn": True}
    out.append({"kind": "turn_start", "run": run, "turn": 1, "at": start, **shared, **first})
    calls = [{"id": "c1", "name": tool, "arguments_raw": json.dumps(arguments), "valid": True}]
    out.append(
        _end(
            run, 1, start + SECOND, kept(_body(said["content"], "tool_use", model)), "tool_use", model, calls, 1200, 300
        )
    )
    shared2 = {"keep": 1, "base": 1, "append": [kept(said), kept(seen)]}
    out.append({"kind": "turn_start", "run": run, "turn": 2, "at": start + 2 * SECOND, **shared, **shared2})
    out.append({"kind": "call_seen", "run": run, "turn": 1, "call": "c1", "at": start + 2 * SECOND, "message": shared2["append"][1],
                "path": "$.content[0].content", "is_error": is_error})  # fmt: skip
    last = _body([{"type": "text", "text": answer}], "end_turn", model)
    out.append(_end(run, 2, start + 3 * SECOND, kept(last), "end_turn", model, [], 1500, 20))
    out.append({"kind": "run_end", "run": run, "at": start + 3 * SECOND, "status": "completed", "reason": "end_turn"})
    return out


def write(path: Path, *runs: Iterable[Record]) -> Path:
    """A tape file of these records."""
    path.write_bytes(b"".join(map(line, [header(writer="test", started_at=START), *(r for run in runs for r in run)])))
    return path


def _body(content: list[Any], stop: str, model: str) -> dict[str, Any]:
    return {
        "id": f"msg_{stop}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop,
    }


def _end(
    run: str, turn: int, at: int, response: str, stop: str, model: str, calls: list[Record], read: int, wrote: int
) -> Record:
    usage = {
        "input": read,
        "cache_read": 100,
        "cache_write_5m": 0,
        "output": wrote,
        "origin": "recorded",
        "partial": False,
    }
    attempt = {
        "status": 200,
        "wait_ms": 0,
        "started_at": at - SECOND,
        "ended_at": at,
        "request_id": f"req_{turn}",
        "headers": {},
    }
    return {
        "kind": "turn_end", "run": run, "turn": turn, "at": at, "status": "ok", "stop_reason": stop, "model": model,
        "response": response, "calls": calls, "usage": usage, "usage_raw": {}, "attempts": [attempt],
        "response_id": f"msg_{run[:4]}_{turn}", "request_id": f"req_{turn}", "parse": "ok" if calls else "no_calls",
    }  # fmt: skip
