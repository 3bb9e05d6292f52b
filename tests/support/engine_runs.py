"""Runs of the built-in loop for tests: a start, a scripted model, tools as functions, and what was recorded of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from looptape.replay.engine import Hooks, Policy, run
from looptape.replay.engine.models.scripted import Scripted
from looptape.replay.engine.tools.registry import Registry
from looptape.replay.fork.start import Start
from looptape.tracer.store import Filter, memory_store
from recorded import Recorded, recording

PARENT = "a" * 16
ANTHROPIC, CHAT, RESPONSES = "anthropic.messages", "openai.chat", "openai.responses"
QUESTION = {"role": "user", "content": "What is 7% of last year's revenue?"}


def start(api: str = ANTHROPIC, **body: Any) -> Start:
    """A start at turn 1 of a run that need not be stored."""
    key = "input" if api == RESPONSES else "messages"
    given = {"model": "claude-sonnet-4-5", "max_tokens": 200, key: [QUESTION], **body}
    return Start(PARENT, 1, api, given)


def call(name: str, call_id: str | None = None, **arguments: Any) -> dict[str, Any]:
    """A call in a script."""
    return {"name": name, "arguments": arguments, **({"id": call_id} if call_id else {})}


def calls(*made: dict[str, Any], usage: Any = None) -> dict[str, Any]:
    """A scripted answer that calls tools."""
    return {"calls": list(made), "usage": usage or {"input_tokens": 10, "output_tokens": 5}}


def says(text: str, usage: Any = None) -> dict[str, Any]:
    """A scripted last word."""
    return {"text": text, "usage": usage or {"input_tokens": 10, "output_tokens": 5}}


class Waits:
    """Stands in for waiting: keeps what was waited for, and moves its own clock."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.now = 1000.0

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now

    def hooks(self, **more: Any) -> Hooks:
        return Hooks(sleep=self.sleep, clock=self.clock, **more)


class Bench:
    """A store directory in which the loop runs."""

    def __init__(self, home: Any) -> None:
        self.home = home

    def play(
        self, script: Any, tools: Any = (), policy: Policy | None = None, *, begin: Start | None = None, **more: Any
    ) -> Any:
        """Runs a script with tools from its start to its end."""
        model = Scripted(script) if isinstance(script, list) or callable(script) else script
        box = Registry(tools) if isinstance(tools, (list, tuple, dict)) else tools
        return run(begin or start(), model, box, policy or Policy(backoff=0.001, backoff_cap=0.002), **more)

    def runs(self) -> list[Recorded]:
        """Every run, the earliest first, as a store that took the journal in gives it."""
        self.home.end()
        store = memory_store()
        store.ingest(self.home.records())
        found = sorted(store.runs(Filter(limit=0, include_empty=True)), key=lambda r: (r.started_at, r.id))
        made = []
        for one in found:
            turns = store.turns(one.id)
            made.append(Recorded(one, turns, [store.request(one.id, t.number) for t in turns]))
        return made

    def run(self) -> Recorded:
        """The only run."""
        (only,) = self.runs()
        return only

    def records(self, kind: str) -> list[dict[str, Any]]:
        """What the journal holds so far, of a kind."""
        return [r for r in self.home.records() if r["kind"] == kind]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Details of the events of a kind."""
        return [r["detail"] for r in self.records("event") if r["event"] == kind]


@contextmanager
def bench(path: Path) -> Iterator[Bench]:
    """A bench below a path."""
    with recording(path) as home:
        yield Bench(home)


def told(run_of: Any, turn: int, call_index: int = 0) -> Any:
    """What the model was told of a call: JSON decoded where it is JSON."""
    result = run_of.turns[turn - 1].tool_calls[call_index].result
    try:
        return json.loads(result)
    except (ValueError, TypeError):
        return result
