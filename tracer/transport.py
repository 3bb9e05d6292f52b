"""Recording HTTP transports for httpx2 and httpx: they pass everything through and tell an exchange.

The same two classes serve both libraries; a response's stream is of the class that its own library wants.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import served
from .clock import monotonic
from .errors import LooptapeStop
from .exchange import Exchange, begin
from .process import quietly
from .substitute import Reply, Substitute, installed

SEEN = "looptape"
"""Marks a request that an outer transport of ours already records."""
RECORDED = "x-looptape-recorded"
"""Tells our own loopback proxy, and nobody else, that this request is recorded here."""

REST_SECONDS = 0.1
REST_BYTES = 64 << 10

Waits = dict[str, Any]


def send(inner: Callable[[Any], Any], request: Any) -> Any:
    """Sends a request through a sync transport's ``handle_request`` and records it when it is a model call.

    Where somebody stands in for the model (a replay), the answer is theirs.
    """
    standing_in = _standing_in(request)
    if standing_in is not None:
        request = served.prepared(standing_in, request, _library(request), _body(request))
    exchange = _begin(request)
    if exchange is None:
        if standing_in is not None:
            served.must_be_read(request)
        return inner(request)
    try:
        reply = None if standing_in is None else served.reply_to(standing_in, exchange, request)
        if reply is not None:
            response = served.respond(reply, request, _library(request))
        else:
            with _marked(request):
                response = inner(request)
    except BaseException as error:
        exchange.broken(error, cancelled=not isinstance(error, Exception))
        raise
    exchange.responded(response.status_code, response.headers)
    if not _known(reply, response, exchange):
        _watch(response, exchange, _waits(request, response))
    return response


async def send_async(inner: Callable[[Any], Any], request: Any) -> Any:
    """The same for an async transport's ``handle_async_request``."""
    standing_in = _standing_in(request)
    if standing_in is not None:
        request = served.prepared(standing_in, request, _library(request), _body(request))
    exchange = _begin(request)
    if exchange is None:
        if standing_in is not None:
            served.must_be_read(request)
        return await inner(request)
    try:
        reply = None if standing_in is None else served.reply_to(standing_in, exchange, request)
        if reply is not None:
            response = await served.respond_async(reply, request, _library(request))
        else:
            with _marked(request):
                response = await inner(request)
    except BaseException as error:
        exchange.broken(error, cancelled=isinstance(error, (asyncio.CancelledError, LooptapeStop)))
        raise
    exchange.responded(response.status_code, response.headers)
    if not _known(reply, response, exchange):
        _watch(response, exchange, _waits(request, response), is_async=True)
    return response


def _standing_in(request: Any) -> Substitute | None:
    """Who stands in for the model here: not below another transport of ours, which has asked them already."""
    standing_in = installed()
    return None if standing_in is None or request.extensions.get(SEEN) else standing_in


def _known(reply: Reply | None, response: Any, exchange: Exchange) -> bool:
    """Records a body that is here already. One that was served with a refusal the SDK may never read."""
    if reply is not None and response.status_code >= 300 and reply.error is None:
        exchange.loaded(b"".join(reply.chunks))
        return True
    return reply is None and _loaded(response, exchange)


class RecordingTransport:
    """Stands before a client's sync transport."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def handle_request(self, request: Any) -> Any:
        """Passes the request on and records it."""
        return send(self.inner.handle_request, request)

    def __enter__(self) -> RecordingTransport:
        self.inner.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self.inner.__exit__(*details)

    def close(self) -> None:
        """Closes the transport behind."""
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        return _of_inner(self, name)


class AsyncRecordingTransport:
    """Stands before a client's async transport."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def handle_async_request(self, request: Any) -> Any:
        """Passes the request on and records it."""
        return await send_async(self.inner.handle_async_request, request)

    async def __aenter__(self) -> AsyncRecordingTransport:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self.inner.__aexit__(*details)

    async def aclose(self) -> None:
        """Closes the transport behind."""
        await self.inner.aclose()

    def __getattr__(self, name: str) -> Any:
        return _of_inner(self, name)


def _of_inner(transport: Any, name: str) -> Any:
    """What the transport behind has. A copy that is being made has none yet, and Python's own names are its class's."""
    if name == "inner" or (name.startswith("__") and name.endswith("__")):
        raise AttributeError(name)
    return getattr(transport.inner, name)


@quietly
def _begin(request: Any) -> Exchange | None:
    if request.extensions.get(SEEN):
        return None
    body = _body(request)
    if body is None:
        return None
    exchange = begin(request.method, request.url.path, str(request.url), request.headers, body)
    proxy = os.environ.get("LOOPTAPE_PROXY")
    if exchange is not None and proxy and str(request.url).startswith(f"{proxy}/"):
        request.headers[RECORDED] = "1"
    return exchange


def _body(request: Any) -> bytes | None:
    """The body when it is at hand; None for one that is streamed up, which is no JSON request of a model call."""
    try:
        return bytes(request.content)
    except Exception:
        # the request that follows a redirect has only the stream of the first one
        kind = getattr(_library(request), "ByteStream", None)
        return b"".join(request.stream) if kind is not None and isinstance(request.stream, kind) else None


@contextmanager
def _marked(request: Any) -> Iterator[None]:
    """Marks a request while it passes the transports below; the same object may be sent again later."""
    before = request.extensions
    request.extensions = {**before, SEEN: True}
    try:
        yield
    finally:
        request.extensions = before


def _loaded(response: Any, exchange: Exchange) -> bool:
    """Records a response whose body is in memory already (a mock, a cache): its stream is never read."""
    try:
        data = response.content
    except Exception:  # ResponseNotRead of either library: the usual case
        return False
    exchange.loaded(bytes(data))
    return True


def _waits(request: Any, response: Any) -> Waits | None:
    """The time-outs that the connection looks at before it reads, where a refused body may be read at its close.

    On a streaming call the SDK never reads the body of an answer that it retries. It has mostly come with the
    head, but waiting for one that has not would be felt: so only where the wait can be made short.
    """
    waits = request.extensions.get("timeout")
    known = response.status_code >= 300 and "network_stream" in response.extensions
    return waits if known and isinstance(waits, dict) else None


@quietly
def _watch(response: Any, exchange: Exchange, waits: Waits | None, *, is_async: bool = False) -> None:
    """Lets the exchange see the body as the client reads it."""
    library = _library(response)
    make = _async_stream(library) if is_async else _sync_stream(library)
    response.stream = make(response.stream, exchange, waits)


class _Rest:
    """Decides how much of a refused body, which nobody will read any more, is looked at."""

    def __init__(self, exchange: Exchange, waits: Waits) -> None:
        self._exchange = exchange
        self._waits = waits
        self._size = 0
        self._until = monotonic() + REST_SECONDS

    @contextmanager
    def brief(self) -> Iterator[None]:
        """Reads inside wait only shortly for the network; trouble there is nobody's."""
        before = dict(self._waits)
        self._waits["read"] = REST_SECONDS / 2
        try:
            yield
        except Exception:  # it did not come in time, or not at all: the attempt keeps its status
            pass
        finally:
            self._waits.clear()
            self._waits.update(before)

    def enough(self, data: bytes) -> bool:
        """Takes a part; True when no more is wanted."""
        self._size += len(data)
        self._exchange.chunk(data)
        return self._size > REST_BYTES or monotonic() > self._until


def _library(message: Any) -> Any:
    """The library of a request or response, also of one whose class a user derived."""
    roots = [kind.__module__.partition(".")[0] for kind in type(message).__mro__]
    return importlib.import_module(next((r for r in roots if r in ("httpx2", "httpx")), roots[0]))


class _Chunks:
    """Iterates a sync body and tells the exchange; being dropped or closed early is told as well."""

    def __init__(self, chunks: Iterator[bytes], exchange: Exchange) -> None:
        self._chunks = chunks
        self._exchange = exchange

    def __iter__(self) -> _Chunks:
        return self

    def __next__(self) -> bytes:
        try:
            data = next(self._chunks)
        except StopIteration:
            self._exchange.finished()
            raise
        except BaseException as error:
            self._exchange.broken(error, cancelled=not isinstance(error, Exception))
            raise
        self._exchange.chunk(data)
        return data

    def close(self) -> None:
        """Called when the generator that delegates to us is closed."""
        self._exchange.abandoned()


class _AsyncChunks:
    """The same for an async body. No generator: its end must not depend on the event loop's finaliser."""

    def __init__(self, chunks: AsyncIterator[bytes], exchange: Exchange) -> None:
        self._chunks = chunks
        self._exchange = exchange

    def __aiter__(self) -> _AsyncChunks:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await self._chunks.__anext__()
        except StopAsyncIteration:
            self._exchange.finished()
            raise
        except BaseException as error:
            self._exchange.broken(error, cancelled=isinstance(error, (asyncio.CancelledError, GeneratorExit)))
            raise
        self._exchange.chunk(data)
        return data


@functools.cache
def _sync_stream(library: Any) -> Any:
    class RecordedStream(library.SyncByteStream):  # type: ignore[misc]
        """A response body that is read once and told to an exchange."""

        def __init__(self, inner: Any, exchange: Exchange, waits: Waits | None) -> None:
            self._inner = inner
            self._exchange = exchange
            self._waits = waits

        def __iter__(self) -> Iterator[bytes]:
            self._waits = None
            return _Chunks(iter(self._inner), self._exchange)

        def close(self) -> None:
            try:
                if self._waits is not None:
                    self._rest(_Rest(self._exchange, self._waits))
                self._exchange.abandoned()
            finally:
                self._inner.close()

        def _rest(self, rest: _Rest) -> None:
            self._waits = None
            with rest.brief():
                for data in self._inner:
                    if rest.enough(data):
                        break
                else:
                    self._exchange.finished()

        def __del__(self) -> None:
            self._exchange.abandoned()

    return RecordedStream


@functools.cache
def _async_stream(library: Any) -> Any:
    class RecordedAsyncStream(library.AsyncByteStream):  # type: ignore[misc]
        """A response body that is read once and told to an exchange."""

        def __init__(self, inner: Any, exchange: Exchange, waits: Waits | None) -> None:
            self._inner = inner
            self._exchange = exchange
            self._waits = waits

        def __aiter__(self) -> AsyncIterator[bytes]:
            self._waits = None
            return _AsyncChunks(aiter(self._inner), self._exchange)

        async def aclose(self) -> None:
            try:
                if self._waits is not None:
                    await self._rest(_Rest(self._exchange, self._waits))
                self._exchange.abandoned()
            finally:
                await self._inner.aclose()

        async def _rest(self, rest: _Rest) -> None:
            self._waits = None
            with rest.brief():
                async for data in self._inner:
                    if rest.enough(data):
                        break
                else:
                    self._exchange.finished()

        def __del__(self) -> None:
            self._exchange.abandoned()

    return RecordedAsyncStream
