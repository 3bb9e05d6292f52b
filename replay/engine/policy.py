"""How a run of the built-in loop goes on and when it ends: limits, retries, context, goal. JSON both ways."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from ...tracer.errors import UsageError
from ...tracer.model import Limits
from ...tracer.observers import Watcher
from .toolbox import Definition, ToolResult

ContextPolicy = Literal["stop", "drop", "summarise", "offload"]
CONTEXT_POLICIES = ("stop", "drop", "summarise", "offload")


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one run. None means no such limit.

    Attributes:
        max_turns: Turns of its own (inherited ones do not count).
        max_seconds: Time from its start, waits included.
        max_tokens: Everything read and written by the model.
        max_cost_usd: List price of its own model calls.
        max_errors: Turns in a row in which every call failed.
        call_timeout: Seconds for one attempt of a call, where the tool says nothing else.
        call_retries, model_retries: How often a transient failure is tried again.
        model_timeout: Seconds for one attempt of a model call.
        parallel: Calls of a turn that run at the same time.
        on_tool_miss: A call that no source can answer ends the run (``stop``) or is told to the model (``tell``).
        context: What is done when the request is over the window: ``stop``, ``drop`` (stale results),
            ``summarise`` (through the model), ``offload`` (bulky results into files).
        window_tokens: The model's window; None: known only when the server refuses.
        keep_results: The latest results that ``drop`` and ``offload`` leave alone.
        bulky: Characters from which ``offload`` takes a result out.
        goal: A command that judges the run's last text (stdin): exit 0 is a pass.
        on_goal_failed: ``feed`` tells the model why and goes on, at most ``goal_tries`` times; ``end`` ends.
        only: Tools that are offered at all: names, or ``namespace__*``; empty: all.
        backoff, backoff_cap: Seconds before the first retry, doubled for each further one, and their end.
    """

    max_turns: int | None = 50
    max_seconds: float | None = 1800.0
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_errors: int | None = 5
    call_timeout: float = 120.0
    call_retries: int = 3
    model_timeout: float = 600.0
    model_retries: int = 5
    parallel: int = 8
    on_tool_miss: Literal["stop", "tell"] = "stop"
    context: ContextPolicy = "stop"
    window_tokens: int | None = None
    keep_results: int = 3
    bulky: int = 20_000
    goal: str | None = None
    on_goal_failed: Literal["feed", "end"] = "feed"
    goal_tries: int = 3
    goal_timeout: float = 300.0
    only: tuple[str, ...] = ()
    backoff: float = 0.5
    backoff_cap: float = 60.0

    def limits(self) -> dict[str, int | float]:
        """As a run records its configured limits."""
        return Limits(self.max_turns, self.max_seconds, self.max_tokens, self.max_cost_usd, self.max_errors).given()

    def as_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {**asdict(self), "only": list(self.only)}


def from_json(given: Mapping[str, Any]) -> Policy:
    """A policy that `Policy.as_json` wrote; unknown names are left out.

    Raises:
        UsageError: ``bad-policy``: a choice that does not exist.
    """
    known = {f.name for f in fields(Policy)}
    values = {k: v for k, v in given.items() if k in known}
    values["only"] = tuple(values.get("only", ()))
    if values.get("context", "stop") not in CONTEXT_POLICIES:
        raise UsageError("bad-policy", f"context {values['context']!r} is none of {', '.join(CONTEXT_POLICIES)}")
    return Policy(**values)


@dataclass(frozen=True, slots=True)
class CallDone:
    """A call of a turn with what came of it, for observers."""

    id: str
    name: str
    arguments: Any
    result: ToolResult


@dataclass(frozen=True, slots=True)
class TurnDone:
    """A turn that is over, for observers: the answer's text, its calls with their results, what it read and wrote."""

    run: str
    number: int
    text: str | None
    calls: tuple[CallDone, ...]
    tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Advice:
    """What an observer wants: ``note`` adds a text to the turn's last result, ``stop`` ends the run with it."""

    kind: Literal["note", "stop"]
    text: str


Observer = Callable[[TurnDone], Advice | None]
Goal = Callable[[str, str], "bool | str | None"]
"""``goal(final text, run id)``: True or None is a pass; False, or a text that says what is missing, is not."""
Subset = Callable[[int, Sequence[Definition]], Collection[str]]
"""``subset(turn number, definitions)``: the names that are offered in this turn."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a program adds to a run and no file can hold.

    Attributes:
        goal: Judges the last text, before the policy's command.
        observer: Sees every turn (a cycle guard); a `LooptapeStop` that it raises ends the run as well.
        subset: Chooses the tools of a turn.
        guard: A `looptape.Guard`: its limits and its ladder hold, its goal is asked where there is no other.
        stop: Set it to end the run at the next possible moment.
        sleep, clock: Waiting and the time in seconds, for tests.
    """

    goal: Goal | None = None
    observer: Observer | None = None
    subset: Subset | None = None
    guard: Watcher | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    sleep: Callable[[float], None] | None = None
    clock: Callable[[], float] = time.monotonic
