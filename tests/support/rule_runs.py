"""Runs for the rules, written short: `run_of(turn(call("read", {"f": "a"}, "text")), turn(text="Done."))`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from looptape.replay.recording import Recording
from looptape.replay.rules.facts import RunFacts, facts_of
from looptape.replay.rules.rule import Finding, Unknown
from looptape.tracer.canonical import digest
from looptape.tracer.model import Event, Run, ToolCall, Turn, Usage

SECOND = 1_000_000
START = 1_764_424_923 * SECOND
MODEL = "claude-sonnet-4-5"


def call(name: str, arguments: Any = None, result: Any = "ok", *, error: bool = False, **more: Any) -> ToolCall:
    """A call with its result; ``result=None``: it never came."""
    given = {} if arguments is None else arguments
    answered = result is not None
    fields: dict[str, Any] = {
        "id": f"{name}-{digest(json.dumps(given))[:6]}", "name": name, "arguments_raw": json.dumps(given),
        "arguments": given, "result": result, "result_digest": digest(str(result)) if answered else None,
        "is_error": error if answered else None, "state": "done" if answered else "no_result",
    }  # fmt: skip
    return ToolCall(**{**fields, **more})


def turn(*calls: ToolCall, text: str = "", tokens: int = 1_000, **more: Any) -> Turn:
    """A turn, whole; its number and times are given by `run_of`."""
    fields: dict[str, Any] = {
        "run": "", "number": 0, "provider": "anthropic", "api": "anthropic.messages", "model": MODEL, "status": "ok",
        "stop_reason": "tool_use" if calls else "end_turn", "text": text, "tool_calls": calls,
        "usage": Usage(input=tokens, cache_read=0, output=50, origin="recorded"), "cost_usd": 0.001, "response": {},
    }  # fmt: skip
    return Turn(**{**fields, **more})


def recording_of(*turns: Turn, events: Sequence[Event] = (), **run: Any) -> Recording:
    """A recording of these turns: ten seconds each, completed, with a limit, unless said otherwise."""
    fields: dict[str, Any] = {
        "id": "0123456789abcdef", "name": "job", "source": "sdk", "status": "completed", "reason": "end_turn",
        "limits": {"turns": 200}, "turns": len(turns),
    }  # fmt: skip
    known = Run(**{**fields, **run})
    return Recording(known, numbered(turns, known.id), tuple(events))


def numbered(turns: Iterable[Turn], run: str) -> tuple[Turn, ...]:
    """The turns with numbers from 1 and times."""
    return tuple(
        replace(
            t,
            run=run,
            number=n,
            started_at=t.started_at or START + n * 10 * SECOND,
            ended_at=t.ended_at or START + (n * 10 + 4) * SECOND,
        )
        for n, t in enumerate(turns, 1)
    )


def run_of(*turns: Turn, more: dict[str, Any] | None = None, **run: Any) -> RunFacts:
    """Facts of such a run. ``more``: fields of `RunFacts`."""
    return facts_of(recording_of(*turns, **run), **(more or {}))


def work(count: int, tokens: Callable[[int], int] | None = None) -> list[Turn]:
    """Turns that look at something new each time."""
    sizes = tokens or (lambda n: 1_000 + 20 * n)
    return [
        turn(call("read_page", {"page": n}, f"page {n} tells of {digest(str(n))} and more"), tokens=sizes(n))
        for n in range(1, count + 1)
    ]


def found(rule: Any, facts: RunFacts) -> list[Finding]:
    """What a rule finds; its own trouble is raised."""
    return [one for one in rule.check(facts) if isinstance(one, Finding)]


def unknown(rule: Any, facts: RunFacts) -> list[Unknown]:
    """What a rule cannot judge."""
    return [one for one in rule.check(facts) if isinstance(one, Unknown)]
