"""What the recorder writes, as tape records: pure functions from what is open to one record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import facts, tape
from .caller import caller
from .live import Chain, OpenRun, OpenTurn, PendingCall
from .model import BUCKETS, Usage
from .providers import Answer, Provider
from .providers.answer import AnswerCall, SeenResult
from .redaction import redact
from .requests import Incoming

Parts = tuple[str | None, str | None, str | None]


def run_start(run: OpenRun, at: int, more: Mapping[str, Any]) -> tape.Record:
    """A run begins. ``more``: title, task, tags."""
    return {
        "kind": "run_start",
        "run": run.id,
        "at": at,
        "name": run.name,
        "agent": run.agent,
        "project": facts.project(),
        "session": run.session,
        "source": run.source or facts.source(),
        "parent": run.parent,
        "limits": run.limits,
        "versions": facts.versions(),
        "git_commit": facts.git_commit(),
        **more,
    }


def run_end(run: OpenRun, at: int, status: str, reason: str | None) -> tape.Record:
    """A run is over (until a later turn opens it again)."""
    return {
        "kind": "run_end",
        "run": run.id,
        "at": at,
        "status": status,
        "reason": redact(reason) if reason else reason,
    }


def turn_start(
    turn: OpenTurn,
    provider: Provider,
    incoming: Incoming,
    hashes: tuple[str, ...],
    parts: Parts,
    base: Chain | None,
    url: str | None,
) -> tape.Record:
    """A request. ``base``: the conversation of the same run whose leading messages it keeps."""
    last = incoming.messages[-1] if incoming.messages else None
    return {
        "kind": "turn_start",
        "run": turn.run.id,
        "turn": turn.number,
        "at": turn.started_at,
        "keep": len(incoming.kept) if base else 0,
        "base": base.turn if base else None,
        "append": list(hashes if base else incoming.kept + hashes),
        "system": parts[0],
        "tools": parts[1],
        "params": parts[2],
        "provider": provider.NAME,
        "api": provider.API,
        "model": incoming.parts.model,
        "stream": incoming.parts.stream,
        "mode": incoming.parts.mode,
        "agent": turn.agent or turn.run.agent,
        "user_turn": provider.is_prompt(last),
        "flags": turn.flags,
        "caller": caller(),
        "url": url,
        **(turn.span.facts if turn.span else {}),
    }


def turn_end(
    turn: OpenTurn,
    answer: Answer,
    response: str | None,
    *,
    at: int,
    partial: bool,
    first_chunk_at: int | None,
    content: bool,
) -> tape.Record:
    """GENERATE and PARSE are over."""
    calls = [_call(c, content=content) for c in answer.calls]
    parse = None
    if turn.status == "ok" or calls:
        parse = "no_calls" if not calls else "ok" if all(c["valid"] for c in calls) else "invalid_arguments"
    return {
        "kind": "turn_end",
        "run": turn.run.id,
        "turn": turn.number,
        "at": at,
        "status": turn.status,
        "error": redact(turn.error) if turn.error and content else None,
        "error_type": turn.error_type,
        "stop_reason": answer.stop_reason,
        "model": answer.model,
        "response_id": answer.id,
        "request_id": next((a["request_id"] for a in reversed(turn.attempts) if a.get("request_id")), None),
        "response": response,
        "first_chunk_at": first_chunk_at,
        "calls": calls,
        "usage": usage(answer.usage, partial=partial),
        "usage_raw": answer.usage.raw,
        "attempts": turn.attempts,
        "parse": parse,
        "flags": turn.flags,
        **({} if turn.served is None else {"inherited": turn.served}),
    }


def usage(figures: Usage, *, partial: bool = False) -> dict[str, Any]:
    """Usage as records hold it: the buckets by name, origin and partial."""
    buckets = {name: getattr(figures, name) for name in BUCKETS}
    return {**buckets, "origin": figures.origin, "partial": partial or figures.partial}


def call_start(
    call: PendingCall, at: int, *, side_effect: str | None, loop_key: str | None, origin: str = "live"
) -> tape.Record:
    """A call's tool begins. ``origin``: ``recorded`` or ``stub`` where its result is given in the tool's place."""
    return {
        "kind": "call_start",
        "run": call.run.id,
        "turn": call.turn,
        "call": call.id,
        "name": call.name,
        "at": at,
        "origin": origin,
        "side_effect": side_effect,
        "loop_key": loop_key,
    }


def call_seen(call: PendingCall, result: SeenResult, message: str, at: int) -> tape.Record:
    """A result as the model saw it, inside a request's message; it belongs to the turn that called."""
    return {
        "kind": "call_seen",
        "run": call.run.id,
        "turn": call.turn,
        "call": call.id,
        "at": at,
        "message": message,
        "path": result.path,
        "is_error": result.is_error,
    }


def _call(call: AnswerCall, *, content: bool) -> tape.Record:
    record: tape.Record = {
        "id": call.id,
        "name": call.name,
        "arguments_raw": redact(call.arguments_raw) if content else None,
        "valid": call.valid,
        "invalid_reason": call.invalid_reason,
    }
    if call.state:
        record["state"] = call.state
    if call.provider_side:
        record |= {
            "origin": "provider",
            "state": "requested" if call.result is None else "done",
            "is_error": call.is_error,
        }
        if call.result is not None and content:
            record["result"] = json.loads(redact(json.dumps(call.result)))
    return record
