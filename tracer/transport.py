"""Recording HTTP transports for httpx2 and httpx: they pass everything through and tell an exchange.

The same two classes serve both libraries; a response's stream is of the class that its own library wants.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from .exchange import Exchange, begin

SEEN = "looptape"
"""Marks a request that an outer transport of ours already records."""


def send(inner: Callable[[Any], Any], request: Any) -> Any:
    """Sends a request through a sync transport's ``handle_request`` and records it when it is a model call."""
    exchange = _begin(request)
    if exchange is None:
        return inner(request)
    try:
        response = inner(request)
    except BaseException as error:
        exchange.broken(error, cancelled=not isinstance(error, Exception))
        raise
    exchange.responded(response.status_code, response.headers)
    library = _library(response)
    if response.status_code >= 400:
        # on a streaming call the SDK never reads the body of an answer that it retries
        response.stream = library.ByteStream(_read(response.stream, exchange))
        return response
    response.stream = _sync_stream(library)(response.stream, exchange)
    return response


async def send_async(inner: Callable[[Any], Any], request: Any) -> Any:
    """The same for an async transport's ``handle_async_request``."""
    exchange = _begin(request)
    if exchange is None:
        return await inner(request)
    try:
        response = await inner(request)
    except BaseException as error:
        exchange.broken(error, cancelled=isinstance(error, asyncio.CancelledError))
        raise
    exchange.responded(response.status_code, response.headers)
    library = _library(response)
    if response.status_code >= 400:
        response.stream = library.ByteStream(await _read_async(response.stream, exchange))
        return response
    response.stream = _async_stream(library)(response.stream, exchange)
    return response


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
        return getattr(self.inner, name)


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
        return getattr(self.inner, name)


def _begin(request: Any) -> Exchange | None:
    extensions = request.extensions
    if extensions.get(SEEN):
        return None
    try:
        body = bytes(request.content)
    except Exception:  # a body that is streamed up is no JSON request of ours
        return None
    exchange = begin(request.method, request.url.path, str(request.url), request.headers, body)
    if exchange is not None:
        request.extensions = {**extensions, SEEN: True}
    return exchange


def _read(stream: Any, exchange: Exchange) -> bytes:
    try:
        parts = list(stream)
        stream.close()
    except Exception as error:
        exchange.broken(error)
        raise
    data = b"".join(parts)
    exchange.chunk(data)
    exchange.finished()
    return data


async def _read_async(stream: Any, exchange: Exchange) -> bytes:
    try:
        parts = [part async for part in stream]
        await stream.aclose()
    except BaseException as error:
        exchange.broken(error, cancelled=isinstance(error, asyncio.CancelledError))
        raise
    data = b"".join(parts)
    exchange.chunk(data)
    exchange.finished()
    return data


def _library(response: Any) -> Any:
    return importlib.import_module(type(response).__module__.partition(".")[0])


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

        def __init__(self, inner: Any, exchange: Exchange) -> None:
            self._inner = inner
            self._exchange = exchange

        def __iter__(self) -> Iterator[bytes]:
            return _Chunks(iter(self._inner), self._exchange)

        def close(self) -> None:
            self._exchange.abandoned()
            self._inner.close()

        def __del__(self) -> None:
            self._exchange.abandoned()

    return RecordedStream


@functools.cache
def _async_stream(library: Any) -> Any:
    class RecordedAsyncStream(library.AsyncByteStream):  # type: ignore[misc]
        """A response body that is read once and told to an exchange."""

        def __init__(self, inner: Any, exchange: Exchange) -> None:
            self._inner = inner
            self._exchange = exchange

        def __aiter__(self) -> AsyncIterator[bytes]:
            return _AsyncChunks(aiter(self._inner), self._exchange)

        async def aclose(self) -> None:
            self._exchange.abandoned()
            await self._inner.aclose()

        def __del__(self) -> None:
            self._exchange.abandoned()

    return RecordedAsyncStream
