"""OTLP over HTTP: POST /v1/traces, /v1/logs, /v1/metrics, as protobuf or JSON."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from .intake import Intake, Taken
from .refusal import MAX_BODY, Refused, check_host, check_origin, too_large

SIGNALS = ("traces", "logs", "metrics")
_TYPES = {"application/x-protobuf": False, "application/protobuf": False, "application/json": True}
Take = Callable[[str, bytes, str, bool], Awaitable[Taken]]
PassOn = Callable[[str, bytes, list[tuple[str, str]]], None]


class HttpSide:
    """The HTTP application.

    Args:
        take: Takes (signal, octets as they came, their encoding, is it JSON?) in.
        pass_on: Gets (signal, octets as they came, headers) of every request that was taken.
    """

    def __init__(self, intake: Intake, take: Take, pass_on: PassOn | None, hosts: Collection[str]) -> None:
        self._intake = intake
        self._take = take
        self._pass_on = pass_on
        self._hosts = hosts

    def runner(self) -> web.AppRunner:
        """What serves it; bodies stay as they came."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._answer, expect_handler=self._expected)
        return web.AppRunner(
            app,
            auto_decompress=False,
            access_log=None,
            logger=_logger(self._intake),
            handle_signals=False,
            shutdown_timeout=3.0,
            lingering_time=2.0,  # for what a refused client still sends
        )

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        as_json = False
        try:
            self._check(request)
            signal = self._signal(request)
            as_json = self._is_json(request)
            body = await self._body(request)
            taken = await self._take(signal, body, request.headers.get("content-encoding", ""), as_json)
        except Refused as refused:
            self._intake.refused()
            return self._refuse(request, refused, as_json=as_json)
        if self._pass_on is not None:
            self._pass_on(signal, body, list(request.headers.items()))
        return _response(200, taken.reply(signal, as_json=as_json), as_json=as_json)

    async def _expected(self, request: web.Request) -> web.StreamResponse | None:
        """Who asks first ("Expect: 100-continue") hears a refusal before sending anything."""
        try:
            self._check(request)
        except Refused as refused:
            self._intake.refused()
            return self._refuse(request, refused, as_json=False)
        if request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return None

    def _check(self, request: web.Request) -> None:
        """What can be said before the body is read."""
        check_host(request.headers.get("host"), self._hosts)
        check_origin(request.headers.get("origin"))
        if request.content_length is not None and request.content_length > MAX_BODY:
            raise too_large(request.content_length)

    def _signal(self, request: web.Request) -> str:
        signal = request.path.rstrip("/").removeprefix("/v1/")
        if f"/v1/{signal}" != request.path.rstrip("/") or signal not in SIGNALS:
            raise Refused(404, "looptape takes OTLP here: POST /v1/traces, /v1/logs or /v1/metrics")
        if request.method != "POST":
            raise Refused(405, f"{request.path} takes POST only")
        return signal

    def _is_json(self, request: web.Request) -> bool:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in _TYPES:
            raise Refused(415, f"content-type {kind[:60]!r} is not OTLP: application/x-protobuf or application/json")
        return _TYPES[kind]

    async def _body(self, request: web.Request) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in request.content.iter_any():
            size += len(part)
            if size > MAX_BODY:
                raise too_large()
            parts.append(part)
        return b"".join(parts)

    def _refuse(self, request: web.Request, refused: Refused, *, as_json: bool) -> web.Response:
        as_json = as_json or "json" in request.headers.get("content-type", "") or request.method in ("GET", "HEAD")
        response = _response(refused.status, refused.body(as_json=as_json), as_json=as_json)
        if refused.status == 405:
            response.headers["Allow"] = "POST"
        if refused.status == 503:
            response.headers["Retry-After"] = "5"
        if refused.status in (403, 413):
            response.force_close()  # what is still to come of it need not be read
        return response


class _Strays(logging.Handler):
    """What the server would log with a traceback: told in a line, and only once."""

    def __init__(self, intake: Intake) -> None:
        super().__init__()
        self._intake = intake

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            self._intake.stray(
                "what came to the HTTP port is no HTTP (gRPC, which has a port of its own? TLS, which there is not?)"
            )
        elif record.levelno >= logging.ERROR:
            self._intake.stray(f"looptape had trouble with a request ({type(error).__name__})")


def _logger(intake: Intake) -> logging.Logger:
    logger = logging.Logger("looptape.receive", logging.DEBUG)  # TLS at this port is no more than that to the server
    logger.addHandler(_Strays(intake))
    return logger


def _response(status: int, body: bytes, *, as_json: bool) -> web.Response:
    kind = "application/json" if as_json else "application/x-protobuf"
    return web.Response(status=status, body=body, content_type=kind)


async def serve(runner: web.AppRunner, sockets: list[Any]) -> None:
    """Begins to answer on these sockets."""
    await runner.setup()
    for one in sockets:
        await web.SockSite(runner, one).start()
