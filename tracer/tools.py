"""Tools that are wrapped: exact times, results at once, and (on replay) answers from the recording.

`@tool` on a function, `tools(dispatcher)` on a ``(name, arguments)`` dispatcher. A call binds to the
tool_use that waits for it: equal name and canonical arguments, in this context's run first, else
where only one in the process fits.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, overload

from . import given, observers, tape
from .calls import Inside, RunningCall, end, start_call
from .live import PendingCall, Where, call_key
from .model import SideEffect
from .outlasting import conclude, generating, generating_async
from .process import here, quietly, recorder
from .quiet import trouble
from .recorder import Recorder
from .served import stopping
from .served_tools import give_as, give_async, give_items, give_items_async
from .substitute import Substitute, ToolAsked, ToolReply, installed, register

F = TypeVar("F", bound=Callable[..., Any])
Bind = Callable[[tuple[Any, ...], dict[str, Any]], tuple[str, Any]]
Begun = tuple[RunningCall | None, ToolReply | None]
Begin = Callable[[tuple[Any, ...], dict[str, Any]], Begun]


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
    """Records the calls of a tool; sync or async, with or without arguments to the decorator.

    A call whose tool gives back a coroutine, a future or a generator ends when that ends.

    Args:
        function: The tool: a function, a method (also a class or static method), a partial, any callable. It is
            called as always; what it returns or raises is passed on as it is.
        name: The tool's name for the model; the function's name otherwise.
        side_effect: ``read``, ``mutate``, ``poll`` or ``bookkeeping``, for the cycle detector and replay.
        loop_key: What tells two calls apart for the cycle detector: a text, or a function of the arguments.
    """
    if isinstance(function, str):  # @tool("search")
        function, name = None, name or function

    def decorate(target: Any, *, of_class: bool = False) -> Any:
        if isinstance(target, (classmethod, staticmethod)):
            return type(target)(decorate(target.__func__, of_class=isinstance(target, classmethod)))
        if not callable(target):
            return target
        title = given.text(name) or _name(target)
        signature = _signature(target)
        register(title)

        def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any]:
            return title, _arguments(signature, args, kwargs, of_class=of_class)

        return _wrapped(target, title, bind, side_effect, loop_key)

    return decorate(function) if function is not None else decorate


def tools(dispatcher: F) -> F:
    """Records the calls of a dispatcher ``(name, arguments)``, sync or async. Returns the wrapped dispatcher."""
    if not callable(dispatcher):
        return dispatcher
    signature = _signature(dispatcher)
    register(None)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any]:
        values = (
            list(_arguments(signature, args, kwargs, defaults=True).values())
            if signature
            else [*args, *kwargs.values()]
        )
        return (str(values[0]), values[1] if len(values) > 1 else {}) if values else ("", {})

    return _wrapped(dispatcher, _name(dispatcher), bind, None, None)  # type: ignore[no-any-return]


def _wrapped(
    target: Callable[..., Any],
    title: str,
    bind: Bind,
    side_effect: SideEffect | None,
    loop_key: Callable[..., str] | str | None,
) -> Any:
    """The target as it was, of the same kind (plain, coroutine, generator function), with its calls recorded."""

    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Begun:
        standing_in = installed()
        if standing_in is not None:
            return _start_served(standing_in, bind, args, kwargs, side_effect, loop_key)
        return _start(bind, args, kwargs, side_effect, loop_key) or (None, None)

    if inspect.iscoroutinefunction(target):
        kind = _coroutine_function(target, begin)
    elif inspect.isgeneratorfunction(target):
        kind = generating(_beginning(target, begin, give_items))
    elif inspect.isasyncgenfunction(target):
        kind = generating_async(_beginning(target, begin, give_items_async))
    else:
        kind = _function(target, begin)
    wrapper = _like(kind, target, title)
    wrapper.__dict__["looptape_tool"] = {"name": title, "side_effect": given.text(side_effect)}  # for the built-in loop
    return wrapper


def _function(target: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        running, reply = begin(args, kwargs)
        if reply is not None:
            return give_as(running, reply)
        try:
            with Inside(running):
                result = target(*args, **kwargs)
        except BaseException as error:
            end(running, None, error)
            raise
        return conclude(running, result)

    return call


def _coroutine_function(target: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        running, reply = begin(args, kwargs)
        if reply is not None:
            return await give_async(running, reply)
        try:
            with Inside(running):
                result = await target(*args, **kwargs)
        except BaseException as error:
            end(running, None, error)
            raise
        return conclude(running, result)

    return call


def _beginning(
    target: Callable[..., Any], begin: Begin, giving: Callable[[ToolReply], Any]
) -> Callable[..., tuple[RunningCall | None, Any]]:
    def call(*args: Any, **kwargs: Any) -> tuple[RunningCall | None, Any]:
        running, reply = begin(args, kwargs)
        if reply is not None:
            return running, giving(reply)
        try:
            return running, target(*args, **kwargs)
        except BaseException as error:  # these are not its arguments
            end(running, None, error)
            raise

    return call


def _like(wrapper: Callable[..., Any], target: Any, title: str) -> Callable[..., Any]:
    """Name, documentation and signature as the target has them; the tool's name where it has none."""
    wrapper.__name__ = wrapper.__qualname__ = title
    try:
        return functools.wraps(target)(wrapper)
    except Exception:  # an object with attributes of its own mind
        return wrapper


def _name(target: Any) -> str:
    """A function's name; of a partial that of what it calls, of an object that of its class."""
    while isinstance(target, functools.partial):
        target = target.func
    try:
        found = target.__name__
    except Exception:
        found = None
    return found if isinstance(found, str) else type(target).__name__


@quietly
def _start(
    bind: Bind,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    side_effect: str | None,
    loop_key: Callable[..., str] | str | None,
) -> Begun:
    """A call begins; where a guard refuses it, with what is given in the tool's place."""
    active = recorder()
    if active is None:
        return None, None
    call, arguments = _find(active, *bind(args, kwargs))
    if call is None:
        return None, None
    refused = observers.refusal(call)
    origin = "live" if refused is None else "stub"
    running = _write(active, call, arguments, side_effect, loop_key, origin)
    if refused is None:
        return running, None
    running.refused = True
    return running, ToolReply(refused.value, refused.error, origin, gave=refused.gave)


def _start_served(
    standing_in: Substitute,
    bind: Bind,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    side_effect: str | None,
    loop_key: Callable[..., str] | str | None,
) -> Begun:
    """Asks who stands in for the tools before this one runs. Where that cannot be asked it does not run."""
    active, running = recorder(), None
    name, arguments = stopping(bind, args, kwargs)
    call, arguments = stopping(_find, active, name, arguments)
    asked = replace(_asked(call, name, arguments), side_effect=given.text(side_effect))
    reply = stopping(standing_in.tool, asked)
    if active is not None and call is not None:
        running = quietly(_write)(active, call, arguments, side_effect, loop_key, reply.origin if reply else "live")
    return running, reply


def _find(active: Recorder | None, name: str, arguments: Any) -> tuple[PendingCall | None, Any]:
    """The waiting call that this is, and its arguments as plain JSON."""
    arguments = tape.plain(arguments)
    if active is None:
        return None, arguments
    place = here()
    with active.lock:
        return _claim(active, place, name, arguments), arguments


def _asked(call: PendingCall | None, name: str, arguments: Any) -> ToolAsked:
    """What is asked. Inside a call that was taken up by hand (`turn.tool`) the tool is that call's."""
    if call is None:
        place = here()
        held = place.call if place is not None else None
        call = held if held is not None and held.key == call_key(name, arguments) else None
    if call is None:
        return ToolAsked(name, arguments)
    return ToolAsked(name, arguments, call.run, call.turn, None if call.invented else call.id)


def _write(
    active: Recorder,
    call: PendingCall,
    arguments: Any,
    side_effect: str | None,
    loop_key: Callable[..., str] | str | None,
    origin: str = "live",
) -> RunningCall:
    raw = json.dumps(arguments, ensure_ascii=False) if call.invented else None
    key = _loop_key(loop_key, arguments)
    side_effect = given.text(side_effect)
    return start_call(active, call, arguments_raw=raw, side_effect=side_effect, loop_key=key, origin=origin)


def _loop_key(loop_key: Callable[..., str] | str | None, arguments: Any) -> str | None:
    """The caller's key for these arguments; none where its function does not work."""
    if not callable(loop_key):
        return given.text(loop_key)
    try:
        return given.text(loop_key(**arguments))
    except Exception as error:  # the call is recorded all the same
        trouble("a tool's loop_key", error)
        return None


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


def _signature(target: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(target)
    except Exception:  # a builtin has none; a foreign object may raise what it likes
        return None


def _arguments(
    signature: inspect.Signature | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    defaults: bool = False,
    of_class: bool = False,
) -> dict[str, Any]:
    """The arguments by name, as the model gave them: without the object or class that the method is called on."""
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
    first = next(iter(signature.parameters), "")
    if of_class or first in ("self", "cls"):
        values.pop(first, None)
    return values
