"""The pages: ours with its scripts and fonts, downloads, and a websocket for each app process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from string import Template

from aiohttp import WSMsgType, web
from aiohttp.typedefs import Handler
from textual_serve.download_manager import DownloadManager

from ...tracer.receiver.ports import port_of
from ...tracer.receiver.refusal import Refused
from . import admission
from .session import Session, command_line, sane

PAGES = 12
"""Pages that are open at once: each is a process of some 100 MB."""
_HOST = "looptape.host"
_OURS = ("page.css", "page.js")
_THEIRS = (
    "js/textual.js",
    "css/xterm.css",
    "fonts/RobotoMono-VariableFont_wght.ttf",
    "fonts/RobotoMono-Italic-VariableFont_wght.ttf",
)
_KINDS = {"css": "text/css", "js": "text/javascript", "ttf": "font/ttf"}
# Nothing from elsewhere, no window that opens, no page around ours. Styles: xterm writes its own into the page.
_POLICY = Template(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; img-src 'self' data:; "
    "connect-src 'self' ws://$host; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox allow-scripts allow-same-origin allow-downloads"
)


class Site:
    """What answers on the port, and the app processes that run for open pages.

    Args:
        arguments: What every app process is started with.
        sockets: Where it listens.
    """

    def __init__(self, arguments: Sequence[str], sockets: list[socket.socket]) -> None:
        self._command = command_line(arguments)
        self._port = port_of(sockets)
        self._downloads = DownloadManager()
        self._open: dict[Session, web.WebSocketResponse] = {}

    @property
    def address(self) -> str:
        """Where a browser on this machine finds it."""
        return f"http://127.0.0.1:{self._port}/"

    def application(self) -> web.Application:
        """Everything that is served; what is not named here is not."""
        made = web.Application(middlewares=[self._admit])
        made.router.add_get("/", self._page)
        made.router.add_get("/ws", self._websocket)
        made.router.add_get("/download/{key}", self._download)
        made.router.add_get("/static/{path:.+}", self._static)
        return made

    async def close(self) -> None:
        """End every app process."""
        await asyncio.gather(*(session.end() for session in tuple(self._open)), return_exceptions=True)

    @web.middleware
    async def _admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            request[_HOST] = admission.check(request.headers.get("host"), request.headers.get("origin"), self._port)
            peer = request.transport.get_extra_info("peername") if request.transport is not None else None
            admission.check_user(self._port, peer)
        except Refused as refused:
            return web.Response(status=refused.status, text=refused.message + "\n")
        return await handler(request)

    async def _page(self, request: web.Request) -> web.Response:
        """The page; it knows the server by the name that the browser called."""
        text = Template(_ours("index.html").read_text("utf-8")).substitute(host=request[_HOST])
        headers = {
            "Content-Security-Policy": _POLICY.substitute(host=request[_HOST]),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def _static(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        if path in _OURS:
            found = _ours(path)
        elif path in _THEIRS:
            found = resources.files("textual_serve").joinpath("static", path)
        else:
            raise web.HTTPNotFound
        headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
        return web.Response(body=found.read_bytes(), content_type=_KINDS[path.rpartition(".")[2]], headers=headers)

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        if len(self._open) >= PAGES:
            raise web.HTTPServiceUnavailable(text=f"{PAGES} pages are open already: close one\n")
        socket = web.WebSocketResponse(heartbeat=15, max_msg_size=1 << 20)
        await socket.prepare(request)
        session = Session(
            self._command,
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=_closer(socket),
            download_manager=self._downloads,
        )
        self._open[session] = socket
        try:
            await session.start(_side(request, "width", 80), _side(request, "height", 24))
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    with contextlib.suppress(ValueError):
                        await session.obey(message.json())
        finally:
            del self._open[session]
            await session.end()
        return socket

    async def _download(self, request: web.Request) -> web.StreamResponse:
        """A file that the app gave out, as a download and nothing else."""
        key = request.match_info["key"]
        try:
            what = await self._downloads.get_download_metadata(key)
        except KeyError:
            raise web.HTTPNotFound from None
        answer = web.StreamResponse(headers={"X-Content-Type-Options": "nosniff"})
        answer.content_type = "application/octet-stream"
        name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in what.file_name)
        answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
        await answer.prepare(request)
        async for piece in self._downloads.download(key):
            await answer.write(piece)
        await answer.write_eof()
        return answer


def _closer(socket: web.WebSocketResponse) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        await socket.close()

    return close


def _ours(name: str) -> Traversable:
    return resources.files(__package__).joinpath("page", name)


def _side(request: web.Request, name: str, usual: int) -> int:
    given = request.query.get(name, "")
    return sane(int(given)) if given.isascii() and given.isdigit() and len(given) < 7 else usual
