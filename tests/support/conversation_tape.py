"""Tapes of conversations said turn by turn: each turn gives its whole request and its answer, the tape keeps what is new."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from looptape.tracer.tape import Record, blob

START, SECOND = 1_764_424_923_000_000, 1_000_000
MODEL = "claude-sonnet-4-5"


@dataclass
class Said:
    """A turn: its whole request and the content of its answer."""

    messages: list[Any]
    answer: list[dict[str, Any]]
    usage: dict[str, int | None] | None = None
    system: Any = "You are an agent."
    tools: Any = None
    params: dict[str, Any] = field(default_factory=lambda: {"max_tokens": 100})
    model: str = MODEL
    flags: Sequence[str] = ()
    at: int | None = None


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": content}]}


def assistant(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def grown(steps: Iterable[tuple[list[dict[str, Any]], list[Any]]], first: str = "go", **shared: Any) -> list[Said]:
    """Turns of a loop whose request only grows: each step is an answer and the messages that follow it."""
    messages: list[Any] = [user(first)]
    found = []
    for answer, following in steps:
        found.append(Said(list(messages), answer, **shared))
        messages = [*messages, assistant(*answer), *following]
    return found


def records(turns: Sequence[Said], run: str = "c" * 16, name: str = "talk") -> list[Record]:
    """The tape of these turns."""
    out: list[Record] = [
        {"kind": "run_start", "run": run, "at": START, "name": name, "source": "sdk", "project": "/work"}
    ]
    before: list[str] = []
    known: dict[int, str] = {}
    called: dict[str, int] = {}
    for number, turn in enumerate(turns, 1):
        at = turn.at if turn.at is not None else START + 10 * number * SECOND
        fresh = [m for m in turn.messages if id(m) not in known]  # turns share their messages: each is written once
        blobs = [blob(json.dumps(m)) for m in fresh]
        known |= {id(m): b["hash"] for m, b in zip(fresh, blobs, strict=True)}
        hashes = [known[id(m)] for m in turn.messages]
        keep = next(
            (i for i, (a, b) in enumerate(zip(before, hashes, strict=False)) if a != b), min(len(before), len(hashes))
        )
        parts = {n: None if v is None else blob(json.dumps(v)) for n, v in _parts(turn).items()}
        out += [*blobs, *(p for p in parts.values() if p)]
        out.append(
            {"kind": "turn_start", "run": run, "turn": number, "at": at, "keep": keep, "base": number - 1 if keep else None,
             "append": hashes[keep:], **{n: p and p["hash"] for n, p in parts.items()}, "provider": "anthropic",
             "api": "anthropic.messages", "model": turn.model, "mode": "full", "flags": list(turn.flags)}
        )  # fmt: skip
        out += _seen(run, at, turn.messages, hashes, keep, called)
        out += _end(run, number, at, turn)
        called |= {b["id"]: number for b in turn.answer if b["type"] == "tool_use"}
        before = hashes
    out.append({"kind": "run_end", "run": run, "at": at + SECOND, "status": "completed", "reason": "end_turn"})
    return out


def _parts(turn: Said) -> dict[str, Any]:
    return {"system": turn.system, "tools": turn.tools, "params": turn.params}


def _seen(run: str, at: int, messages: list[Any], hashes: list[str], keep: int, called: dict[str, int]) -> list[Record]:
    """What the model saw of the results that stand in the messages."""
    found = []
    for message, name in zip(messages[keep:], hashes[keep:], strict=True):
        content = message["content"] if isinstance(message["content"], list) else []
        for place, block in enumerate(content):
            turn = called.get(block.get("tool_use_id", "")) if block.get("type") == "tool_result" else None
            if turn is not None:
                found.append(
                    {"kind": "call_seen", "run": run, "turn": turn, "call": block["tool_use_id"], "at": at,
                     "message": name, "path": f"$.content[{place}].content", "is_error": False}
                )  # fmt: skip
    return found


def _end(run: str, number: int, at: int, turn: Said) -> list[Record]:
    stop = "tool_use" if any(b["type"] == "tool_use" for b in turn.answer) else "end_turn"
    body = {"id": f"msg_{run}_{number}", "type": "message", "model": turn.model, "role": "assistant",
            "content": turn.answer, "stop_reason": stop}  # fmt: skip
    response = blob(json.dumps(body))
    calls = [
        {"id": b["id"], "name": b["name"], "arguments_raw": json.dumps(b["input"]), "valid": True}
        for b in turn.answer
        if b["type"] == "tool_use"
    ]
    usage = None if turn.usage is None else {**turn.usage, "origin": "recorded"}
    return [
        response,
        {"kind": "turn_end", "run": run, "turn": number, "at": at + SECOND, "status": "ok", "stop_reason": stop,
         "model": turn.model, "response": response["hash"], "response_id": body["id"], "calls": calls, "usage": usage,
         "attempts": [{"status": 200, "wait_ms": 0}], "parse": "ok" if calls else "no_calls"},
    ]  # fmt: skip
