"""Writes tapes turn by turn from short descriptions, for faults that no sound recorder or provider would let happen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..tracer import tape
from ..tracer.canonical import digest
from .taping import FACTS, VERSIONS

SECOND = 1_000_000
MODEL = "claude-haiku-4-5"


@dataclass(frozen=True)
class Call:
    """A tool call and what came back; ``result`` None: nothing did. ``raw``: arguments that are no JSON object."""

    name: str
    arguments: Mapping[str, Any]
    result: str | None
    error: bool = False
    raw: str | None = None
    effect: str = "read"

    @property
    def said(self) -> str:
        """The arguments as the model wrote them."""
        return json.dumps(self.arguments) if self.raw is None else self.raw


@dataclass(frozen=True)
class Try:
    """One attempt of a request. ``wait``: seconds since the attempt before it."""

    status: int
    wait: float = 0.0
    error: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """A turn. ``asked``: what a person says before it; ``fresh`` and ``cached``: tokens read, estimated unless given.

    ``lost``: it happened and its records are missing. ``start`` and ``end`` take the place of fields of its records.
    """

    calls: tuple[Call, ...] = ()
    text: str = ""
    asked: str | None = None
    fresh: int | None = None
    cached: int = 0
    tries: tuple[Try, ...] = (Try(200),)
    lost: bool = False
    start: Mapping[str, Any] = field(default_factory=dict)
    end: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """A run; its first turn says what was ``asked``. ``events``: turn, kind and detail. ``began``: µs since the epoch."""

    name: str
    turns: tuple[Turn, ...]
    began: int
    status: str = "completed"
    reason: str = "end_turn"
    limits: Mapping[str, Any] = field(default_factory=lambda: {"turns": 20})
    source: str = "sdk"
    events: tuple[tuple[int, str, Mapping[str, Any]], ...] = ()


def write(*runs: Run) -> bytes:
    """A tape with these runs; the same bytes for the same runs."""
    head = tape.header(writer=f"looptape {VERSIONS['looptape']}", python=VERSIONS["python"], content="full")
    records = [head]
    for run in runs:
        records += _Writer(run).records()
    return b"".join(map(tape.line, records))


class _Writer:
    """Keeps the conversation of one run while its records are made."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._id = digest(f"{run.name} {run.began}")[:16]
        self._at = run.began
        self._out: list[tape.Record] = []
        self._kept: set[str] = set()
        self._messages: list[str] = []
        self._base, self._known = 0, 0
        tools = {call.name: sorted(call.arguments) for turn in run.turns for call in turn.calls}
        self._tools = [
            {"name": name, "description": name.replace("_", " "), "input_schema": {"type": "object", "properties": {k: {} for k in keys}}}
            for name, keys in tools.items()
        ]  # fmt: skip

    def records(self) -> list[tape.Record]:
        """All records of the run, each blob before its first use."""
        run = self._run
        self._put(
            "run_start", name=run.name, task=run.name, source=run.source, limits=dict(run.limits),
            project=FACTS["project"], git_commit=FACTS["git_commit"], versions=VERSIONS,
        )  # fmt: skip
        for number, turn in enumerate(run.turns, 1):
            self._turn(number, turn)
        for number, kind, detail in run.events:
            self._put("event", turn=number, event=kind, detail=dict(detail))
        self._put("run_end", status=run.status, reason=run.reason)
        return self._out

    def _put(self, kind: str, **fields: Any) -> None:
        self._out.append({"kind": kind, "run": self._id, "at": self._at, **fields})

    def _blob(self, value: Any) -> str:
        record = tape.blob(json.dumps(value))
        if record["hash"] not in self._kept:
            self._kept.add(record["hash"])
            self._out.append(record)
        return str(record["hash"])

    def _turn(self, number: int, turn: Turn) -> None:
        if turn.asked is not None:
            self._messages.append(self._blob({"role": "user", "content": turn.asked}))
        content: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
        for place, call in enumerate(turn.calls, 1):
            given = dict(call.arguments) if call.raw is None else {}
            content.append({"type": "tool_use", "id": f"toolu_{number}_{place}", "name": call.name, "input": given})
        before, self._at = len(self._out), self._at + SECOND
        self._begin(number, turn)
        self._end(number, turn, content)
        self._ran(number, turn)
        if turn.lost:
            del self._out[before:]
        else:
            self._base = number
            self._known = len(self._messages)
        self._messages.append(self._blob({"role": "assistant", "content": content}))
        self._answer(number, turn)

    def _begin(self, number: int, turn: Turn) -> None:
        shared = {
            "system": self._blob("You look after a small ceramics shop. Look things up before you answer."),
            "tools": self._blob(self._tools) if self._tools else None,
            "params": self._blob({"max_tokens": 1024, "model": MODEL}),
        }
        said = {
            "provider": "anthropic", "api": "anthropic.messages", "model": MODEL, "stream": False, "mode": "full",
            "user_turn": turn.asked is not None, "flags": [], "caller": "agents/shop.py:40",
        }  # fmt: skip
        new = self._messages[self._known :]
        place = {"turn": number, "keep": self._known, "base": self._base or None, "append": new}
        self._put("turn_start", **place, **shared, **{**said, **turn.start})

    def _end(self, number: int, turn: Turn, content: list[dict[str, Any]]) -> None:
        stop = "tool_use" if turn.calls else "end_turn"
        attempts = [self._attempt(one) for one in turn.tries]
        written = sum(len(json.dumps(block)) for block in content) // 4
        read = 400 + 60 * len(self._messages) if turn.fresh is None else turn.fresh
        usage = {"input": read, "cache_read": turn.cached, "cache_write_5m": 0, "cache_write_1h": 0, "output": written}
        body = {"id": f"msg_{self._id[:6]}_{number}", "type": "message", "role": "assistant", "model": MODEL,
                "content": content, "stop_reason": stop}  # fmt: skip
        said = {
            "status": "ok", "stop_reason": stop, "model": MODEL, "response_id": body["id"], "response": self._blob(body),
            "parse": "ok" if turn.calls else "no_calls", "attempts": attempts,
            "usage": {**usage, "origin": "recorded", "partial": False},
            "calls": [_written(number, place, call) for place, call in enumerate(turn.calls, 1)],
        }  # fmt: skip
        self._put("turn_end", turn=number, **{**said, **turn.end})

    def _attempt(self, one: Try) -> dict[str, Any]:
        began = self._at + round(one.wait * SECOND)
        self._at = began + SECOND
        return {"status": one.status, "error": one.error, "wait_ms": one.wait * 1000, "started_at": began,
                "ended_at": self._at, "headers": dict(one.headers)}  # fmt: skip

    def _ran(self, number: int, turn: Turn) -> None:
        for place, call in enumerate(turn.calls, 1):
            where = {"turn": number, "call": f"toolu_{number}_{place}"}
            self._put("call_start", **where, name=call.name, origin="live", side_effect=call.effect)
            if call.result is not None:
                self._at += SECOND // 5
                self._put("call_end", **where, result=call.result, is_error=call.error, state="done",
                          digest=digest(call.result), length=len(call.result))  # fmt: skip

    def _answer(self, number: int, turn: Turn) -> None:
        """The results as a message of the next request; after the last turn nobody asks again."""
        answered = [(place, call) for place, call in enumerate(turn.calls, 1) if call.result is not None]
        if not answered or number == len(self._run.turns):
            return
        blocks = [
            {"type": "tool_result", "tool_use_id": f"toolu_{number}_{place}", "content": call.result, "is_error": call.error}
            for place, call in answered
        ]  # fmt: skip
        message = self._blob({"role": "user", "content": blocks})
        self._messages.append(message)
        for index, (place, call) in enumerate(answered if not turn.lost else ()):
            self._put("call_seen", turn=number, call=f"toolu_{number}_{place}", message=message,
                      path=f"$.content[{index}].content", is_error=call.error)  # fmt: skip


def _written(number: int, place: int, call: Call) -> dict[str, Any]:
    reason = None if call.raw is None else "no valid JSON"
    return {"id": f"toolu_{number}_{place}", "name": call.name, "arguments_raw": call.said, "valid": call.raw is None,
            "invalid_reason": reason}  # fmt: skip


def steps(asked: str, *turns: Sequence[Call] | Turn | str) -> tuple[Turn, ...]:
    """Turns of a run: a list of calls, a last word, or a `Turn` as it is; the first one answers ``asked``."""
    made = [
        turn if isinstance(turn, Turn) else Turn(text=turn) if isinstance(turn, str) else Turn(tuple(turn))
        for turn in turns
    ]
    return (replace(made[0], asked=asked), *made[1:])
