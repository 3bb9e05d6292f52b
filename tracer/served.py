"""Answers in the server's place: who stands in for the model is asked, and its reply becomes a response of the library.

Nothing here falls through to the network by accident: a model call that cannot be read, and a substitute that
breaks, stop the program with a `LooptapeStop`.
"""

from __future__ import annotations

import asyncio
import builtins
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from . import backoff
from .errors import LooptapeStop
from .exchange import Exchange
from .providers import Provider, by_path
from .quiet import words
from .substitute import Hold, Reply, ReplyError, Substitute

P = ParamSpec("P")
T = TypeVar("T")

CANCEL_SECONDS = 30.0
"""How long an answer that was cancelled in the recording is kept back for the program to cancel it again."""
OUR_CANCELS = ("CancelledError", "GeneratorExit")
_NOT_OURS = ("content-encoding", "content-length", "transfer-encoding", "connection")


class NotServed(LooptapeStop):
    """A model call cannot be answered from the recording, and is not sent."""


def prepared(standing_in: Substitute, request: Any, library: Any, body: bytes | None) -> Any:
    """The request as it shall be recorded and sent: the same object, or one with another body."""
    provider = _provider(request)
    if provider is None or body is None:
        return request
    wanted = stopping(standing_in.prepare, provider, body)
    if wanted == body:
        return request
    headers = [(k, v) for k, v in request.headers.multi_items() if k.lower() not in _NOT_OURS]
    return library.Request(request.method, request.url, headers=headers, content=wanted, extensions=request.extensions)


def must_be_read(request: Any) -> None:
    """Stops at a model call that recording could not read: a replay never sends what it has not looked at.

    Raises:
        NotServed: The request is a model call.
    """
    if _provider(request) is not None:
        raise NotServed(
            f"looptape: a model call to {request.url.path} cannot be replayed, because recording could not read it "
            "(its body is no JSON object that is sent at once, or recording is off). Nothing was sent"
        )


def reply_to(standing_in: Substitute, exchange: Exchange, request: Any) -> Reply | None:
    """Asks who stands in for the model; None when the request is to be sent after all."""
    asked = exchange.asked(str(request.url), request.headers)
    if asked is None:
        must_be_read(request)
        return None
    reply = stopping(standing_in.answer, asked)
    exchange.served(reply is not None)
    backoff.keep()
    return reply


def stopping(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls a substitute. Trouble in it stops the program: as an Exception the SDK would retry it, and hide it."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        raise NotServed(
            f"looptape: the replay broke ({type(error).__name__}: {words(error)}). Nothing was sent"
        ) from error


def _provider(request: Any) -> Provider | None:
    return by_path(request.url.path) if request.method == "POST" else None


def respond(reply: Reply, request: Any, library: Any) -> Any:
    """The reply as a response of the client's own library, once its turn has come.

    Raises:
        Exception: The recorded failure, when no answer came.
    """
    _waiting(reply.hold)
    if reply.status is None:
        _let_go(reply.hold)
        raise raised(library, reply.error or ReplyError("ConnectError", "no answer came"), request)
    return _response(reply, request, library, _body(library))


async def respond_async(reply: Reply, request: Any, library: Any) -> Any:
    """The same for an async client."""
    if reply.hold is not None:
        try:
            await reply.hold.wait_async()
        except BaseException:
            reply.hold.release()
            raise
    if reply.status is None:
        _let_go(reply.hold)
        if reply.error is not None and reply.error.kind in OUR_CANCELS:
            await asyncio.sleep(CANCEL_SECONDS)
        raise raised(library, reply.error or ReplyError("ConnectError", "no answer came"), request)
    return _response(reply, request, library, _async_body(library))


def _waiting(hold: Hold | None) -> None:
    if hold is not None:
        try:
            hold.wait()
        except BaseException:
            hold.release()
            raise


def _let_go(hold: Hold | None) -> None:
    if hold is not None:
        hold.release()


def _response(reply: Reply, request: Any, library: Any, body: Any) -> Any:
    headers = [(k, v) for k, v in reply.headers if k.lower() not in _NOT_OURS]
    return library.Response(
        reply.status,
        headers=headers,
        stream=body(_Pieces(reply, request, library)),
        request=request,
        extensions={"http_version": b"HTTP/1.1"},
    )


def raised(library: Any, error: ReplyError, request: Any) -> BaseException:
    """The recorded exception as the client's own library raises it, with this request attached.

    A name that neither the library nor Python has becomes the library's `TransportError`.
    """
    backoff.skip()
    if error.kind == "KeyboardInterrupt":
        return KeyboardInterrupt()
    found = getattr(library, error.kind, None)
    if isinstance(found, type) and issubclass(found, library.RequestError):
        made: BaseException = found(error.message, request=request)
        return made
    known = getattr(builtins, error.kind, None)
    if isinstance(known, type) and issubclass(known, OSError):
        return known(error.message)
    other: BaseException = library.TransportError(f"{error.kind}: {error.message}", request=request)
    return other


class _Pieces:
    """The body, piece by piece; its end (or being dropped) lets the next answer go."""

    def __init__(self, reply: Reply, request: Any, library: Any) -> None:
        self._left = iter(reply.chunks)
        self._reply = reply
        self._request = request
        self._library = library

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = next(self._left, None)
        if piece is not None:
            return piece
        self.over()
        if self._reply.error is not None:
            raise raised(self._library, self._reply.error, self._request)
        raise StopIteration

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = next(self._left, None)
        if piece is not None:
            return piece
        self.over()
        if self._reply.error is None:
            raise StopAsyncIteration
        if self._reply.error.kind in OUR_CANCELS:
            await asyncio.sleep(CANCEL_SECONDS)
        raise raised(self._library, self._reply.error, self._request)

    def over(self) -> None:
        """Nobody will read on."""
        _let_go(self._reply.hold)


@functools.cache
def _body(library: Any) -> Any:
    class ServedStream(library.SyncByteStream):  # type: ignore[misc]
        """A recorded body for a sync client."""

        def __init__(self, pieces: _Pieces) -> None:
            self._pieces = pieces

        def __iter__(self) -> Iterator[bytes]:
            return self._pieces

        def close(self) -> None:
            self._pieces.over()

        def __del__(self) -> None:
            self._pieces.over()

    return ServedStream


@functools.cache
def _async_body(library: Any) -> Any:
    class ServedAsyncStream(library.AsyncByteStream):  # type: ignore[misc]
        """A recorded body for an async client."""

        def __init__(self, pieces: _Pieces) -> None:
            self._pieces = pieces

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self._pieces

        async def aclose(self) -> None:
            self._pieces.over()

        def __del__(self) -> None:
            self._pieces.over()

    return ServedAsyncStream
