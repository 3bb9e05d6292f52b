"""A run whose times are chosen one by one, in seconds after its beginning, put into a store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from looptape.tracer.store import open_store
from looptape.tracer.tape import Record, blob

START = 1_764_424_923_000_000
RUN = "71aed00000000001"


@dataclass(frozen=True)
class Did:
    """A tool call: from when to when it ran; without times its result only comes back in the next request."""

    name: str
    begin: float | None = None
    end: float | None = None
    arguments: str = "{}"
    result: str = "fine"
    is_error: bool = False
    state: str = "done"


@dataclass(frozen=True)
class Asked:
    """A turn: when its request went out, when its answer was there, what it called."""

    begin: float | None
    end: float | None
    calls: Sequence[Did] = ()
    first: float | None = None
    text: str = "well"
    more: dict[str, Any] = field(default_factory=dict)
    attempts: Sequence[dict[str, Any]] = ()


def at(seconds: float | None) -> int | None:
    return None if seconds is None else START + int(seconds * 1_000_000)


def records(turns: Sequence[Asked], run: str = RUN, *, ended: bool = True, **start: Any) -> list[Record]:
    out: list[Record] = [
        {"kind": "run_start", "run": run, "at": START, "name": "timed", "source": "sdk", "project": "/work", **start}
    ]
    for number, turn in enumerate(turns, 1):
        out += _turn(run, number, turn)
    if ended:
        last = max([*(t.end or 0 for t in turns), *(c.end or 0 for t in turns for c in t.calls)])
        out.append({"kind": "run_end", "run": run, "at": at(last + 1), "status": "completed", "reason": "end_turn"})
    return out


def store(home: Path, *runs: Sequence[Record]) -> Path:
    with open_store(home) as opened:
        for run in runs:
            opened.ingest(run)
    return home


def _turn(run: str, number: int, turn: Asked) -> list[Record]:
    where = {"run": run, "turn": number}
    listed = [
        {"id": f"c{number}.{i}", "name": c.name, "arguments_raw": c.arguments, "valid": True}
        for i, c in enumerate(turn.calls)
    ]
    out: list[Record] = [
        {"kind": "turn_start", **where, "at": at(turn.begin), "keep": 0, "append": [], "provider": "anthropic",
         "api": "anthropic.messages", "model": "claude-sonnet-4-5", "mode": "full", **turn.more}
    ]  # fmt: skip
    if turn.end is None and turn.begin is not None:
        return out
    uses = [{"type": "tool_use", "id": c["id"], "name": c["name"], "input": {}} for c in listed]
    response = blob(json.dumps({"role": "assistant", "content": [{"type": "text", "text": turn.text}, *uses]}))
    out.append(response)
    end: Record = {
        "kind": "turn_end", **where, "at": at(turn.end), "status": "ok", "response": response["hash"], "calls": listed,
        "stop_reason": "tool_use" if turn.calls else "end_turn", "first_chunk_at": at(turn.first),
        "attempts": [*turn.attempts],
    }  # fmt: skip
    out.append(end)
    for call, did in zip(listed, turn.calls, strict=True):
        if did.begin is not None:
            out.append({"kind": "call_start", **where, "call": call["id"], "at": at(did.begin), "name": did.name})
        if did.end is not None:
            out.append({"kind": "call_end", **where, "call": call["id"], "at": at(did.end), "result": did.result,
                        "is_error": did.is_error, "state": did.state, "digest": "d", "length": len(did.result)})  # fmt: skip
    return out
