"""Tools that are wrapped: exact times, results at once, and (on replay) answers from the recording.

`@tool` on a function, `tools(dispatcher)` on a ``(name, arguments)`` dispatcher. A call binds to the
tool_use that waits for it: equal name and canonical arguments, in this context's run first, else
where only one in the process fits.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

from . import records, spans, tape
from .canonical import digest
from .clock import now
from .live import PendingCall, Where, call_key, where
from .model import SideEffect
from .process import here, quietly, recorder
from .quiet import words
from .recorder import Recorder
from .redaction import redact

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F) -> F: ...
@overload
def tool(
    *, name: str | None = None, side_effect: SideEffect | None = None, loop_key: Callable[..., str] | str | None = None
) -> Callable[[F], F]: ...


def tool(
    function: Any = None,
    *,
    name: str | None = None,
    side_effect: SideEffect | None = None,
    loop_key: Callable[..., str] | str | None = None,
) -> Any:
    """Records the calls of a tool function; sync or async, with or without arguments to the decorator.

    Args:
        function: The tool. It is called as always; what it returns or raises is passed on as it is.
        name: The tool's name for the model; the function's name otherwise.
        side_effect: ``read``, ``mutate``, ``poll`` or ``bookkeeping``, for the cycle detector and replay.
        loop_key: What tells two calls apart for the cycle detector: a text, or a function of the arguments.
    """

    def decorate(target: F) -> F:
        title = name or target.__name__
        signature = _signature(target)

        def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any]:
            return title, _arguments(signature, args, kwargs)

        return _wrapped(target, bind, side_effect, loop_key)

    return decorate(function) if function is not None else decorate


def tools(dispatcher: F) -> F:
    """Records the calls of a dispatcher ``(name, arguments)``, sync or async. Returns the wrapped dispatcher."""
    signature = _signature(dispatcher)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any]:
        values = (
            list(_arguments(signature, args, kwargs, defaults=True).values())
            if signature
            else [*args, *kwargs.values()]
        )
        return (str(values[0]), values[1] if len(values) > 1 else {}) if values else ("", {})

    return _wrapped(dispatcher, bind, None, None)


def _wrapped(
    target: F,
    bind: Callable[[tuple[Any, ...], dict[str, Any]], tuple[str, Any]],
    side_effect: SideEffect | None,
    loop_key: Callable[..., str] | str | None,
) -> F:
    if inspect.iscoroutinefunction(target):

        @functools.wraps(target)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            running = _start(bind, args, kwargs, side_effect, loop_key)
            token = where.set(running.inside) if running else None
            try:
                result = await target(*args, **kwargs)
            except BaseException as error:
                _end(running, None, error)
                raise
            finally:
                if token is not None:
                    where.reset(token)
            _end(running, result, None)
            return result

        return call_async  # type: ignore[return-value]

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        running = _start(bind, args, kwargs, side_effect, loop_key)
        token = where.set(running.inside) if running else None
        try:
            result = target(*args, **kwargs)
        except BaseException as error:
            _end(running, None, error)
            raise
        finally:
            if token is not None:
                where.reset(token)
        _end(running, result, None)
        return result

    return call  # type: ignore[return-value]


class RunningCall:
    """A call whose tool is running."""

    def __init__(self, active: Recorder, call: PendingCall, span: spans.ToolSpan) -> None:
        self.active = active
        self.call = call
        self.span = span
        self.inside = Where(call.run, call)


def start_call(
    active: Recorder,
    call: PendingCall,
    *,
    arguments_raw: str | None = None,
    side_effect: str | None = None,
    loop_key: str | None = None,
) -> RunningCall:
    """Writes that a call's tool begins now."""
    call.measured = True
    turn = call.run.last
    span = spans.ToolSpan(turn.span if turn is not None else None, call.name, call.id)
    record = records.call_start(call, now(), side_effect=side_effect, loop_key=loop_key)
    if arguments_raw is not None and active.content:
        record["arguments_raw"] = redact(arguments_raw)
    active.journal.write([record])
    return RunningCall(active, call, span)


def end_call(running: RunningCall, result: Any, error: BaseException | None, *, is_error: bool | None = None) -> None:
    """Writes what a call's tool returned or raised."""
    if running.call.run.pid != os.getpid():
        return  # a forked child comes back from its parent's tool as well
    at = now()
    failed = error is not None if is_error is None else is_error
    value = f"{type(error).__name__}: {words(error)}" if error is not None else _result(result)
    text = redact(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    record: tape.Record = {
        "kind": "call_end",
        "run": running.call.run.id,
        "turn": running.call.turn,
        "call": running.call.id,
        "at": at,
        "is_error": failed,
        "error_class": error_class(error) if error is not None else None,
        "state": "cancelled" if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt)) else "done",
        "digest": digest(text),
        "length": len(text),
    }
    if running.active.content:
        record["result"] = text if isinstance(value, str) else json.loads(text)
    running.active.journal.write([record])
    running.span.end(type(error).__name__ if error is not None else None, text[:500] if failed else None)


def error_class(error: BaseException) -> str | None:
    """transient, permanent, denied or cancelled, judged by the exception's kind; None when it does not say."""
    if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt)):
        return "cancelled"
    if isinstance(error, (TimeoutError, ConnectionError, InterruptedError)):
        return "transient"
    if isinstance(error, PermissionError):
        return "denied"
    if isinstance(error, (ValueError, TypeError, LookupError, AttributeError, FileNotFoundError, NotImplementedError)):
        return "permanent"
    return None


@quietly
def _start(
    bind: Callable[[tuple[Any, ...], dict[str, Any]], tuple[str, Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    side_effect: str | None,
    loop_key: Callable[..., str] | str | None,
) -> RunningCall | None:
    active = recorder()
    if active is None:
        return None
    name, arguments = bind(args, kwargs)
    arguments = tape.plain(arguments)
    place = here()
    with active.lock:
        call = _claim(active, place, name, arguments)
    if call is None:
        return None
    key = loop_key(**arguments) if callable(loop_key) and isinstance(arguments, dict) else loop_key
    raw = json.dumps(arguments, ensure_ascii=False) if call.invented else None
    return start_call(
        active, call, arguments_raw=raw, side_effect=side_effect, loop_key=key if isinstance(key, str) else None
    )


_end = quietly(lambda running, result, error: end_call(running, result, error) if running is not None else None)


def _claim(active: Recorder, place: Where | None, name: str, arguments: Any) -> PendingCall | None:
    """The waiting call that this is, in this context first, else the only one in the process."""
    key = call_key(name, arguments)
    waiting = [c for c in active.pending.get(key, []) if not c.claimed]
    mine = [c for c in waiting if place is not None and c.run is place.run]
    call = mine[0] if mine else waiting[0] if len({id(c.run) for c in waiting}) == 1 else None
    if call is not None:
        call.claimed = True
        return call
    turn = place.run.last if place is not None and place.call is None else None
    if place is None or turn is None:
        return None
    # no tool_use asked for it (the loop parsed it out of text): it belongs to the run's last turn
    turn.invented += 1
    return PendingCall(
        f"call_{turn.number}_{turn.invented}",
        name,
        call_key(name, arguments),
        place.run,
        turn.number,
        claimed=True,
        invented=True,
    )


def _result(value: Any) -> Any:
    """A tool's return value as JSON can hold it; the text of it where a model would be given text."""
    return value if isinstance(value, str) else tape.plain(value)


def _signature(target: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(target)
    except (TypeError, ValueError):
        return None


def _arguments(
    signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any], *, defaults: bool = False
) -> dict[str, Any]:
    if signature is None:
        return {**{f"argument_{i}": v for i, v in enumerate(args, 1)}, **kwargs}
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return dict(kwargs)
    if defaults:
        bound.apply_defaults()
    values = dict(bound.arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            values.update(values.pop(parameter.name, {}))
    values.pop("self", None)
    return values
