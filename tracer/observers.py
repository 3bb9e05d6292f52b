"""What may watch a run while it goes on (a guard): told of requests, answers and tools, asked before they happen.

Nothing here knows what a guard is. Requests are never rewritten; an observer acts by raising a `LooptapeStop`
before a model call goes out, and through wrapped tools: a refusal in a tool's place, words added to its result.
Whatever else an observer raises is its own trouble and never reaches the agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .live import OpenRun, OpenTurn, PendingCall
from .providers.answer import Answer, SeenResult
from .quiet import quietly

MARK = "[looptape guard]"
"""Begins everything that a guard says to the model, so that nobody takes it for the tool's or a person's words."""
STATE = "guard_state"
"""The event that holds what a guard has to know when a later run goes on: what was new in a turn."""
KEY = "looptape_guard"
"""The key under which it stands in a result that is a JSON object as text."""
_SUFFIX = f"\n\n{MARK} "
_IN_JSON = re.compile(rf',?\s*"{KEY}":\s*"(?:[^"\\]|\\.)*"\s*(?=}}\s*$)')


@dataclass(frozen=True, slots=True)
class NextCall:
    """A model call that is about to be made.

    Attributes:
        run: None for the first call of a sub-agent that begins with it.
        results: Tool results that came in with it.
        prompt: A person's message that it ends with, decoded; None without one.
        tools, model: Tool definitions and the model's name, as the request has them.
        again: Another attempt of the same call.
    """

    run: OpenRun | None
    results: tuple[SeenResult, ...] = ()
    prompt: Any = None
    tools: Any = None
    model: str | None = None
    compaction: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """In place of running a tool: ``value`` is returned, or ``error`` raised. ``text``: the same for the record.

    ``gave``: see `substitute.ToolReply`.
    """

    text: str
    value: Any = None
    error: BaseException | None = None
    gave: str | None = None


@dataclass(frozen=True, slots=True)
class Addition:
    """What the model is told beside a tool's result. ``instead``: a text in place of a payload that it has already."""

    notice: str | None = None
    instead: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A wrapped tool is over.

    Attributes:
        result: What it returned; None when it raised.
        text: The same, or what it raised, as it is recorded: redacted text.
        declared: Side effect and loop key, as the tool's author says.
        refused: It did not run: the result is the refusal.
        shows: The program has not seen any of the result: words can be added.
        gave: See `substitute.ToolReply`.
    """

    call: PendingCall
    result: Any
    text: str
    is_error: bool
    declared: tuple[str | None, str | None] = (None, None)
    refused: bool = False
    shows: bool = False
    gave: str | None = None


class Teller(Protocol):
    """Where an observer records what it did: the recorder."""

    def event(
        self, run: OpenRun, kind: str, turn: int | None, detail: Mapping[str, Any], *, redacted: bool = False
    ) -> None:
        """Writes what is no turn; ``redacted``: it is already."""

    def update_run(self, run: OpenRun, **more: Any) -> None:
        """Writes more about a run."""


class Observer(Protocol):
    """Watches one run and the sub-agents in it. Called from every thread that the loop uses."""

    def asking(self, call: NextCall) -> None:
        """Before a model call goes out; a `LooptapeStop` that is raised here ends the loop."""

    def answered(self, turn: OpenTurn, answer: Answer) -> None:
        """GENERATE of a turn is over, whole or not; again after a retry."""

    def tool_starting(self, call: PendingCall, *, straight: bool = False) -> Refusal | None:
        """Before a wrapped tool runs; None lets it run. ``straight``: no program stands between it and the model."""

    def tool_ended(self, ended: Ended) -> Addition | None:
        """A tool is over: what the model is told beside its result."""

    def notice(self, run: OpenRun) -> str | None:
        """What waits to be told to the model of this run, once (for a loop of our own)."""

    def done(self, text: str) -> str | None:
        """The model says it is done: None, or what to tell it when it is not."""

    async def done_async(self, text: str) -> str | None:
        """The same where the check is a coroutine."""

    def closing(self, run: OpenRun) -> None:
        """The run is about to end."""


class Watcher(Protocol):
    """What `run(guard=...)` takes: makes an observer for each run."""

    @property
    def goal(self) -> Any:
        """``goal(text, run id)``, None without one."""

    def given(self) -> dict[str, int | float]:
        """The limits it enforces, by the names of `Limits`."""

    def earlier(self, reference: str) -> Mapping[str, Any] | None:
        """What is known of an earlier run: ``run``, ``session``, ``turns``, ``state``; None when there is none."""

    def watch(self, run: OpenRun, active: Teller | None, state: Any = None) -> Observer:
        """An observer for a run that is open now. ``active`` is None while recording is off.

        ``state``: what `earlier` gave; or ``states``, the details of the `STATE` events of a run that goes on itself.
        """


@quietly
def watch(guard: Watcher, run: OpenRun, active: Teller | None, state: Any = None) -> None:
    """Puts a guard's observer first among those that watch a run."""
    run.observers = (guard.watch(run, active, state), *run.observers)


def asking(observers: tuple[Observer, ...], call: NextCall) -> None:
    """Asks everyone who watches; a `LooptapeStop` reaches the loop."""
    for observer in observers:
        quietly(observer.asking)(call)


def answered(turn: OpenTurn, answer: Answer) -> None:
    """Tells everyone who watches the turn's run."""
    for observer in turn.run.observers:
        quietly(observer.answered)(turn, answer)


def refusal(call: PendingCall, *, straight: bool = False) -> Refusal | None:
    """The first refusal of a call, None when its tool may run. ``straight``: see `Observer.tool_starting`."""
    for observer in call.run.observers:
        found: Refusal | None = quietly(observer.tool_starting)(call, straight=straight)
        if found is not None:
            return found
    return None


def tool_ended(ended: Ended) -> Addition | None:
    """Tells everyone who watches that a tool is over; the first addition to its result."""
    said = [quietly(o.tool_ended)(ended) for o in ended.call.run.observers]
    return next((a for a in said if a is not None), None)


def notice(run: OpenRun) -> str | None:
    """What waits to be told to the model of a run, marked; asked by a loop of our own."""
    said = [n for o in run.observers if (n := quietly(o.notice)(run)) is not None]
    return f"{MARK} {said[0]}" if said else None


def closing(run: OpenRun) -> None:
    """Tells everyone who watches that the run ends."""
    for observer in run.observers:
        quietly(observer.closing)(run)


def shape(result: Any) -> str:
    """How a result can be added to: ``text``, ``json`` (an object as text), ``blocks`` (content blocks) or ``other``."""
    if type(result) is str:
        return _shape_of_text(result)
    if type(result) is list and result and all(type(b) is dict and isinstance(b.get("type"), str) for b in result):
        return "blocks"
    return "other"


@quietly
def _added(result: Any, addition: Addition) -> Any:
    kind, said = shape(result), addition.notice
    if addition.instead is not None and kind in ("text", "blocks"):
        text = f"{addition.instead}{_SUFFIX}{said}" if said else addition.instead
        return text if kind == "text" else [{"type": "text", "text": text}]
    if said is None:
        return result
    if kind == "text":
        return f"{result}{_SUFFIX}{said}"
    if kind == "json":
        head = result.rstrip()[:-1].rstrip()
        comma = "" if head.endswith("{") else ", "
        return f"{head}{comma}{json.dumps(KEY)}: {json.dumps(f'{MARK} {said}', ensure_ascii=False)}}}"
    return [*result, {"type": "text", "text": f"{MARK} {said}"}] if kind == "blocks" else result


def added(result: Any, addition: Addition | None) -> Any:
    """A result as the program gets it: a new object, of the same shape; what cannot be added to stays as it is."""
    if addition is None:
        return result
    found = _added(result, addition)
    return result if found is None else found


def without(text: str) -> str:
    """A result or message without what a guard has added: empty when nothing else was in it."""
    if MARK not in text:
        return text
    if text.lstrip().startswith(MARK):
        return ""
    return _IN_JSON.sub("", text.partition(_SUFFIX)[0].partition(f"\n{MARK} ")[0])


def _shape_of_text(text: str) -> str:
    """A program may decode a result that is JSON: then it must stay JSON."""
    begin = text.lstrip()[:1]
    if begin not in ("{", "["):
        return "text"
    try:
        return "json" if isinstance(json.loads(text), dict) else "other"
    except (ValueError, RecursionError):
        return "text"
