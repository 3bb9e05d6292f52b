"""Runs put together from turns of known usage: the history grows by an answer and a result a turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from looptape.tracer.tape import Record, blob

START = 1_764_424_923_000_000
SECOND = 1_000_000


@dataclass(frozen=True)
class Step:
    """A turn: what it read, wrote, called, and how it went."""

    input: int | None = 100
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = 50
    tool: str | None = "read"
    arguments: Any = None  # its number by default, so that no two are equal
    result: str | None = None
    is_error: bool = False
    model: str = "claude-sonnet-4-5"
    status: str = "ok"
    attempts: tuple[dict[str, Any], ...] = ({"status": 200, "wait_ms": 0},)
    caller: str = "agent.py:12"
    again: bool = False  # sends the messages of the turn before, and nothing more
    tools: tuple[str, ...] = ("read",)
    seconds: float = 1.0  # from the request to the answer
    first_chunk: float | None = None  # seconds until the first piece of a stream
    tool_seconds: float | None = None  # of a wrapped tool
    pause: float = 1.0  # until the next request


@dataclass
class Composed:
    """A run of steps; `records` says it as a tape does."""

    run: str
    steps: Sequence[Step]
    name: str | None = "job"
    task: str | None = None
    start: int = START
    provider: str = "anthropic"
    outcome: str | None = None
    status: str = "completed"
    parent: dict[str, Any] | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def records(self) -> Iterator[Record]:
        """The records of the run."""
        at = self.start
        yield {
            "kind": "run_start", "run": self.run, "at": at, "name": self.name, "task": self.task, "source": "sdk",
            "project": "/work", "parent": self.parent, **self.more,
        }  # fmt: skip
        history = 1
        pending: list[Record] = [blob(json.dumps({"role": "user", "content": f"go {self.name}"}))]
        seen: tuple[str, str, Step] | None = None
        for number, step in enumerate(self.steps, 1):
            yield from pending
            tools = blob(json.dumps([{"name": t, "description": "does", "input_schema": {}} for t in step.tools]))
            yield tools
            yield {
                "kind": "turn_start", "run": self.run, "turn": number, "at": at, "keep": history - len(pending),
                "base": number - 1 if number > 1 else None, "append": [b["hash"] for b in pending], "tools": tools["hash"],
                "provider": self.provider, "api": "anthropic.messages", "model": step.model, "mode": "full",
                "stream": step.first_chunk is not None, "caller": step.caller,
            }  # fmt: skip
            if seen is not None and pending:
                yield {
                    "kind": "call_seen", "run": self.run, "turn": int(seen[1]), "call": seen[0], "at": at,
                    "message": pending[-1]["hash"], "path": "$.content[0].content", "is_error": seen[2].is_error,
                }  # fmt: skip
            yield from self._answer(number, step, at)
            at += round((step.seconds + (step.tool_seconds or 0) + step.pause) * SECOND)
            nxt = self.steps[number] if number < len(self.steps) else None
            if nxt is not None and nxt.again:
                pending, seen = [], None
                continue
            pending, seen = self._follow(number, step)
            history += len(pending)
        if self.outcome:
            yield {"kind": "run_update", "run": self.run, "at": at, "outcome": {"verdict": self.outcome}}
        yield {"kind": "run_end", "run": self.run, "at": at, "status": self.status, "reason": "end_turn"}

    def _answer(self, number: int, step: Step, at: int) -> Iterator[Record]:
        end = at + round(step.seconds * SECOND)
        content: list[Any] = [{"type": "text", "text": f"step {number}"}]
        calls = []
        if step.tool and step.status == "ok":
            given = {"n": number} if step.arguments is None else step.arguments
            content.append({"type": "tool_use", "id": f"t{number}", "name": step.tool, "input": given})
            calls = [{"id": f"t{number}", "name": step.tool, "arguments_raw": json.dumps(given), "valid": True}]
        body = {"id": f"m{number}", "type": "message", "role": "assistant", "model": step.model, "content": content}
        response = blob(json.dumps(body))
        usage = {
            "input": step.input, "cache_read": step.cache_read, "cache_write_5m": step.cache_write,
            "output": step.output, "origin": "recorded" if step.input is not None else "missing", "partial": False,
        }  # fmt: skip
        yield response
        yield {
            "kind": "turn_end", "run": self.run, "turn": number, "at": end, "status": step.status, "model": step.model,
            "stop_reason": "tool_use" if calls else "end_turn", "response": response["hash"], "calls": calls,
            "response_id": f"msg_{self.run}_{number}", "usage": usage, "attempts": list(step.attempts),
            "parse": "ok" if calls else "no_calls", "error": None if step.status == "ok" else "overloaded",
            "first_chunk_at": None if step.first_chunk is None else at + round(step.first_chunk * SECOND),
        }  # fmt: skip
        if calls and step.tool_seconds is not None:
            place = {"run": self.run, "turn": number, "call": f"t{number}"}
            done = end + round(step.tool_seconds * SECOND)
            yield {"kind": "call_start", **place, "name": step.tool, "at": end, "side_effect": "read"}
            result = step.result or f"result {number}"
            yield {"kind": "call_end", **place, "at": done, "result": result, "is_error": step.is_error}

    def _follow(self, number: int, step: Step) -> tuple[list[Record], tuple[str, str, Step] | None]:
        """What the next request adds: the answer, and the result of its call."""
        if step.status != "ok" or not step.tool:
            text = {"role": "user", "content": f"go on after {number}"}
            said = {"role": "assistant", "content": f"step {number}"}
            return [blob(json.dumps(said)), blob(json.dumps(text))], None
        given = {"n": number} if step.arguments is None else step.arguments
        use = {"type": "tool_use", "id": f"t{number}", "name": step.tool, "input": given}
        result = {
            "type": "tool_result", "tool_use_id": f"t{number}", "content": step.result or f"result {number} of {self.run}",
            "is_error": step.is_error,
        }  # fmt: skip
        new = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        return [blob(json.dumps(m)) for m in new], (f"t{number}", str(number), step)


def healthy(turns: int = 8, **changes: Any) -> list[Step]:
    """Turns of a loop whose prefix is cached: each reads what was there and writes what came in."""
    steps, there = [], 0
    for number in range(1, turns + 1):
        new = 6000 if number == 1 else 1200
        last = number == turns
        steps.append(
            Step(
                **{
                    "input": 4,
                    "cache_read": there,
                    "cache_write": new,
                    "output": 220,
                    "tool": None if last else "read",
                    **changes,
                }
            )
        )
        there += new
    return steps
