"""A call whose tool runs: the record of its beginning, the place its code is in, the record of its end."""

from __future__ import annotations

import asyncio
import json
import os
from contextvars import Token
from types import TracebackType
from typing import Any

from . import observers, records, spans, tape
from .canonical import digest
from .clock import now
from .live import PendingCall, Where, leave, where
from .quiet import quietly, words
from .recorder import Recorder
from .redaction import redact
from .shapes import shape

STOPPED = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


class RunningCall:
    """A call whose tool is running."""

    def __init__(self, active: Recorder, call: PendingCall, span: spans.ToolSpan) -> None:
        self.active = active
        self.call = call
        self.span = span
        self.inside = Where(call.run, call)
        self.gave: str | None = None
        """What a plain function gave back, where its result came later: see `outlasting.conclude`."""
        self.declared: tuple[str | None, str | None] = (None, None)
        """Side effect and loop key, as the tool's author says."""
        self.refused = False
        """A guard did not let it run: its result is the refusal."""
        self.shows = False
        """What the program gets can still be added to: it has not seen any of it."""
        self.addition: observers.Addition | None = None


class Inside:
    """The code of this block is the call's tool. It may be left in another context than entered."""

    __slots__ = ("_running", "_token")

    def __init__(self, running: RunningCall | None) -> None:
        self._running = running
        self._token: Token[Where | None] | None = None

    def __enter__(self) -> None:
        if self._running is not None:
            self._token = where.set(self._running.inside)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        token, self._token = self._token, None
        if self._running is not None and token is not None and not leave(token):
            self._running.call.left = True


def start_call(
    active: Recorder,
    call: PendingCall,
    *,
    arguments_raw: str | None = None,
    side_effect: str | None = None,
    loop_key: str | None = None,
    origin: str = "live",
) -> RunningCall:
    """Writes that a call's tool begins now. ``origin``: see `records.call_start`."""
    call.measured = True
    turn = call.run.last
    span = spans.ToolSpan(turn.span if turn is not None else None, call.name, call.id)
    key = redact(loop_key) if loop_key else None
    record = records.call_start(call, now(), side_effect=side_effect, loop_key=key, origin=origin)
    if arguments_raw is not None and active.content:
        record["arguments_raw"] = redact(arguments_raw)
    active.journal.write([record])
    running = RunningCall(active, call, span)
    running.declared = (side_effect, key)
    return running


def end_call(
    running: RunningCall,
    result: Any,
    error: BaseException | None,
    *,
    is_error: bool | None = None,
    state: str | None = None,
    failure_class: str | None = None,
) -> None:
    """Writes what a call's tool returned or raised. ``state``, ``failure_class``: others than the error says."""
    if running.call.run.pid != os.getpid():
        return  # a forked child comes back from its parent's tool as well
    at = now()
    failed = running.refused or (error is not None if is_error is None else is_error)
    value, raw = _result(result) if error is None else (said := f"{type(error).__name__}: {words(error)}", said)
    text = redact(raw)
    record: tape.Record = {
        "kind": "call_end",
        "run": running.call.run.id,
        "turn": running.call.turn,
        "call": running.call.id,
        "at": at,
        "is_error": failed,
        "error_class": "denied" if running.refused else failure_class or (error_class(error) if error else None),
        "error_type": f"{type(error).__module__}.{type(error).__qualname__}" if error is not None else None,
        "state": state or ("cancelled" if isinstance(error, STOPPED) else "done"),
        "digest": digest(text),
        "length": len(text),
    }
    if running.gave is not None:
        record["gave"] = running.gave
    if running.active.content:
        record["result"] = text if isinstance(value, str) else json.loads(text)
        made = _shape(result) if error is None else _made_of(error)
        if made is not None:
            record["shape"] = made
    running.active.journal.write([record])
    if running.call.run.observers:
        given = None if error is not None else result
        running.addition = observers.tool_ended(
            observers.Ended(
                running.call, given, text, failed, running.declared, running.refused, running.shows, running.gave
            )
        )
    running.span.end(type(error).__name__ if error is not None else None, text[:500] if failed else None)


@quietly
def end(running: RunningCall | None, result: Any, error: BaseException | None, *, state: str | None = None) -> None:
    """`end_call` of a call that may not be recorded; nothing of it reaches the agent."""
    if running is not None:
        end_call(running, result, error, state=state)


def shown(running: RunningCall | None, result: Any) -> Any:
    """The result of a call that has ended, as the program gets it: with what a guard has to say."""
    return result if running is None else observers.added(result, running.addition)


def error_class(error: BaseException) -> str | None:
    """transient, permanent, denied or cancelled, judged by the exception's kind; None when it does not say."""
    if isinstance(error, STOPPED):
        return "cancelled"
    if isinstance(error, (TimeoutError, ConnectionError, InterruptedError)):
        return "transient"
    if isinstance(error, PermissionError):
        return "denied"
    if isinstance(error, (ValueError, TypeError, LookupError, AttributeError, FileNotFoundError, NotImplementedError)):
        return "permanent"
    return None


def _shape(value: Any) -> Any:
    """The shape of a result that is no text; an object that will not be looked at has none."""
    try:
        return shape(value)
    except Exception:
        return None


def _made_of(error: BaseException) -> dict[str, Any] | None:
    """What an exception was made with, where that is more than its words and JSON can hold it."""
    try:
        given = list(error.args)
    except Exception:  # a foreign object
        return None
    if given == [words(error)] or not all(isinstance(a, (str, int, float, type(None))) for a in given):
        return None
    return {"args": json.loads(redact(json.dumps(tape.plain(given), ensure_ascii=False)))}


def _result(value: Any) -> tuple[Any, str]:
    """A tool's return value as JSON can hold it, and its text: as it is where a model would be given text."""
    if isinstance(value, str):
        return value, value
    try:
        found = tape.plain(value)
        return found, found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    except Exception:  # a container that will not be read: the call has ended all the same
        return (said := f"<{type(value).__name__}>"), said
