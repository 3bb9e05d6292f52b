"""Results that come after the tool has returned: coroutines, futures, generators. Their call ends when they end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from . import tape
from .calls import Inside, RunningCall, end, shown
from .quiet import quietly

MAX_KEPT = 16 << 20


def conclude(running: RunningCall | None, result: Any) -> Any:
    """Ends the call; or gives, in place of a result that is still to come, one that ends the call when it has come.

    A coroutine is replaced by a coroutine, a generator by a generator; a future stays the same object.
    Other awaitables are returned as they are, and the call ends here: they may be more than awaitable.
    """
    if running is None:
        return result
    kind = type(result)  # not `isinstance`, which believes what a mock says of itself
    gave = _gave(kind, result)
    running.gave = running.gave or gave  # of a coroutine that gives a generator the program saw the coroutine
    if gave == "coroutine":
        return _named(_awaiting(running, result), result)
    if gave == "generator":
        return _named(generating(lambda: (running, result))(), result)
    if gave == "async_generator":
        return _named(generating_async(lambda: (running, result))(), result)
    if gave is not None:
        _watch(running, result)
    else:
        running.shows = True
        end(running, result, None)
    return shown(running, result)


def _gave(kind: type, result: Any) -> str | None:
    """coroutine, generator, async_generator, task (asyncio) or future (of a thread); None for a result that is here."""
    if issubclass(kind, Coroutine) or (issubclass(kind, GeneratorType) and inspect.isawaitable(result)):
        return "coroutine"
    if issubclass(kind, GeneratorType):
        return "generator"
    if issubclass(kind, AsyncGeneratorType):
        return "async_generator"
    if issubclass(kind, asyncio.Future):
        return "task"
    return "future" if issubclass(kind, concurrent.futures.Future) else None


async def _awaiting(running: RunningCall, awaitable: Any) -> Any:
    try:
        with Inside(running):
            result = await awaitable
    except BaseException as error:
        end(running, None, error)
        raise
    return conclude(running, result)


def generating(
    begin: Callable[..., tuple[RunningCall | None, Generator[Any, Any, Any]]],
) -> Callable[..., Generator[Any, Any, Any]]:
    """A generator function that does what the generator does that ``begin`` gives, as the tool of its call.

    Only the generator's own steps are inside the tool: between them runs the code that uses it.
    """

    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        running, inner = begin(*args, **kwargs)
        kept = _Kept(running)
        step: Callable[[], Any] = functools.partial(next, inner)
        while True:
            try:
                with Inside(running):
                    value = step()
            except StopIteration as stop:
                end(running, kept.result(stop.value), None)
                return stop.value
            except BaseException as error:
                end(running, None, error)
                raise
            kept.add(value)
            try:
                sent = yield value
            except GeneratorExit:
                try:
                    with Inside(running):
                        inner.close()
                except BaseException as error:
                    end(running, None, error)
                    raise
                end(running, kept.result(), None, state="cancelled")
                raise
            except BaseException as error:
                step = functools.partial(inner.throw, error)
            else:
                step = functools.partial(inner.send, sent)

    return call


def generating_async(
    begin: Callable[..., tuple[RunningCall | None, AsyncGenerator[Any, Any]]],
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """The same for async generators."""

    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        running, inner = begin(*args, **kwargs)
        kept = _Kept(running)
        step: Callable[[], Any] = functools.partial(anext, inner)
        while True:
            try:
                with Inside(running):
                    value = await step()
            except StopAsyncIteration:
                end(running, kept.result(), None)
                return
            except BaseException as error:
                end(running, None, error)
                raise
            kept.add(value)
            try:
                sent = yield value
            except GeneratorExit:
                try:
                    with Inside(running):
                        await inner.aclose()
                except BaseException as error:
                    end(running, None, error)
                    raise
                end(running, kept.result(), None, state="cancelled")
                raise
            except BaseException as error:
                step = functools.partial(inner.athrow, error)
            else:
                step = functools.partial(inner.asend, sent)

    return call


class _Kept:
    """What a generator has yielded, as it was then; beyond some megabytes only how much more there was."""

    def __init__(self, running: RunningCall | None) -> None:
        self._items: list[Any] = []
        self._room = MAX_KEPT if running is not None and running.active.content else 0
        self._wanted = running is not None
        self._more = 0

    @quietly
    def add(self, value: Any) -> None:
        """One more item."""
        if self._room <= 0:
            self._more += 1
        else:
            self._items.append(value if isinstance(value, str) else tape.plain(value))
            self._room -= len(value) if isinstance(value, str) else 200

    def result(self, returned: Any = None) -> Any:
        """Texts as one text, other items as a list; without any what the generator returned."""
        if not self._wanted:
            return None
        items = [*self._items, f"[{self._more} more items]"] if self._more else self._items
        if not items:
            return [] if returned is None else returned
        return "".join(items) if all(isinstance(i, str) for i in items) else items


@quietly
def _watch(running: RunningCall, future: Any) -> None:
    """Ends the call when the future is done; at once when it is done already."""

    @quietly
    def done(_: Any) -> None:
        if future.cancelled():
            end(running, None, asyncio.CancelledError())
            return
        # asked for by `exception()` it would count as retrieved: asyncio's own warning would be lost
        error = future._exception if isinstance(future, asyncio.Future) else future.exception()
        end(running, None if error is not None else future.result(), error)

    if future.done():
        done(future)
    else:
        future.add_done_callback(done)


def _named(fresh: Any, original: Any) -> Any:
    """The same name in warnings and tracebacks."""
    for name in ("__name__", "__qualname__"):
        said = getattr(original, name, None)
        if isinstance(said, str):
            setattr(fresh, name, said)
    return fresh


__all__ = ["conclude", "generating", "generating_async"]
