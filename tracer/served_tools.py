"""Results in a tool's place: the wrapped tool's body does not run, its call is recorded with what was given."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from .calls import RunningCall, end, shown
from .outlasting import generating, generating_async
from .substitute import ToolReply


def give_as(running: RunningCall | None, reply: ToolReply) -> Any:
    """What a plain function gives back: the result, or what gives it later, as it did in the recording."""
    if running is not None:
        running.gave = reply.gave
    if reply.gave == "coroutine":
        return give_async(running, reply)
    if reply.gave == "task":
        return asyncio.ensure_future(give_async(running, reply))
    if reply.gave == "future":
        return _future(running, reply)
    if reply.gave == "generator":
        return generating(lambda: (running, give_items(reply)))()
    if reply.gave == "async_generator":
        return generating_async(lambda: (running, give_items_async(reply)))()
    return give(running, reply)


def _future(running: RunningCall | None, reply: ToolReply) -> Future[Any]:
    """A future that is done when its turn has come, in a thread of its own where it must wait for that."""
    future: Future[Any] = Future()

    def finish() -> None:
        try:
            value = give(running, reply)
        except BaseException as error:
            with suppress(InvalidStateError):  # the program has cancelled it meanwhile, as a time limit does
                future.set_exception(error)
        else:
            with suppress(InvalidStateError):
                future.set_result(value)

    if reply.hold is None:
        finish()
    else:
        threading.Thread(target=finish, daemon=True).start()
    return future


def give(running: RunningCall | None, reply: ToolReply) -> Any:
    """The result once its turn has come.

    Raises:
        BaseException: What the tool raised in the recording.
    """
    try:
        if reply.hold is not None:
            reply.hold.wait()
        value = _given(reply)
    except BaseException as error:
        _raised(running, reply, error)
        raise
    return _ended(running, reply, value)


async def give_async(running: RunningCall | None, reply: ToolReply) -> Any:
    """The same for a coroutine."""
    try:
        if reply.hold is not None:
            await reply.hold.wait_async()
        value = _given(reply)
    except BaseException as error:
        _raised(running, reply, error)
        raise
    return _ended(running, reply, value)


def give_items(reply: ToolReply) -> Generator[Any, Any, Any]:
    """The same for a generator: a text is one item, a list its items, anything else what it returns."""
    try:
        if reply.hold is not None:
            reply.hold.wait()
        items = _items(_given(reply))
        if items is None:
            return reply.value
        yield from items
        return None
    finally:
        _let_go(reply)


async def give_items_async(reply: ToolReply) -> AsyncGenerator[Any, Any]:
    """The same for an async generator."""
    try:
        if reply.hold is not None:
            await reply.hold.wait_async()
        value = _given(reply)
        for item in _items(value) or ():
            yield item
    finally:
        _let_go(reply)


def _given(reply: ToolReply) -> Any:
    if reply.error is not None:
        raise reply.error
    return reply.value


def _items(value: Any) -> list[Any] | None:
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) else None


def _raised(running: RunningCall | None, reply: ToolReply, error: BaseException) -> None:
    end(running, None, error)
    _let_go(reply)


def _ended(running: RunningCall | None, reply: ToolReply, value: Any) -> Any:
    if running is not None:
        running.shows = True
    end(running, value, None)
    _let_go(reply)
    return shown(running, value)


def _let_go(reply: ToolReply) -> None:
    if reply.hold is not None:
        reply.hold.release()
