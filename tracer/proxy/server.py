"""The proxy's HTTP side: takes a request on loopback, sends it on through a recording transport, streams back."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from ..errors import LooptapeStop
from ..live import strand_given
from ..transport import RECORDED
from ..wrap import wrap

_HOP_BY_HOP = frozenset(
    [
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
        "transfer-encoding", "upgrade", "host", "content-length", "expect", "accept-encoding",
    ]
)  # fmt: skip
_FRAMING = frozenset(["connection", "keep-alive", "transfer-encoding", "trailer", "upgrade"])
_READABLE = ("gzip", "deflate", "identity")
MAX_BODY = 256 << 20
_PATIENCE = 2.0
"""Seconds that the end waits for answers still on their way."""


class ProxyServer:
    """Listens on a free loopback port while its block runs.

    Args:
        targets: First path segment to the base URL that requests below it go to.
    """

    def __init__(self, targets: dict[str, str]) -> None:
        self.http = http_library()
        self.targets = {name: url.rstrip("/") for name, url in targets.items()}
        # with the environment's own proxies and certificates, as the program would have it
        # and no limit of ours: a call beyond it would wait for another's end
        limits = self.http.Limits(max_connections=None, max_keepalive_connections=100)
        self.silent = self.http.Client(timeout=None, limits=limits)
        self.client = wrap(self.http.Client(timeout=None, limits=limits))
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._busy, self._changed = 0, threading.Condition()
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Counts a request while it is passed on: the end waits for it."""
        with self._changed:
            self._busy += 1
        try:
            yield
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ProxyServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        # the program has the last byte before the handler has recorded that it was the last
        with self._changed:
            self._changed.wait_for(lambda: self._busy == 0, timeout=_PATIENCE)
        self._server.server_close()
        self.client.close()
        self.silent.close()


def http_library() -> Any:
    """httpx2, or httpx where an older SDK brought that."""
    try:
        return importlib.import_module("httpx2")
    except ImportError:
        return importlib.import_module("httpx")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a program that went away is no news, and stderr belongs to it."""


class _Refused(Exception):
    """The request gets an answer of the proxy itself. ``final``: asking again would change nothing."""

    def __init__(self, status: int, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.final = final


class _Handler(BaseHTTPRequestHandler):
    """One connection of the program."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: ProxyServer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: stderr belongs to the program."""

    def do_GET(self) -> None:
        """As every method: pass it on."""
        try:
            request = self._request()
            # a program that records itself says so: then only its own recording counts
            client = self.proxy.silent if self.headers.get(RECORDED) else self.proxy.client
            with self.proxy.busy():
                self._pass_on(client, request)
        except _Refused as refused:
            self._refuse(refused)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the program went away, or the answer was cut

    do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_GET

    def _request(self) -> Any:
        """The program's request, addressed to where it would have gone. No client header is added, none kept back."""
        body = self._body()  # first: a connection closed on unread bytes loses our answer
        name, _, rest = self.path.lstrip("/").partition("/")
        target = self.proxy.targets.get(name)
        if target is None:
            raise _Refused(404, f"looptape's proxy has no target {name!r}")
        headers = [(k, v) for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP | {RECORDED}]
        headers.append(("accept-encoding", _encodings(self.headers.get("accept-encoding", ""))))
        if not body and self.headers.get("content-length") == "0":
            headers.append(("content-length", "0"))
        return self.proxy.http.Request(self.command, f"{target}/{rest}", headers=headers, content=body)

    def _pass_on(self, client: Any, request: Any) -> None:
        strand_given.set((id(self.proxy), 0))  # a program's retry may come on another connection, so another thread
        try:
            response = client.send(request, stream=True, auth=None, follow_redirects=False)
        except LooptapeStop as stop:  # it cannot reach the program's loop as an exception: as an error it does
            raise _Refused(400, str(stop), final=True) from None
        except Exception as error:  # whatever the upstream did becomes one clear answer
            where = f"{request.url.scheme}://{request.url.host}"
            raise _Refused(
                502, f"looptape's proxy got no answer from {where}: {type(error).__name__}: {error}"
            ) from None
        try:
            self._answer(response)
        finally:
            response.close()

    def _answer(self, response: Any) -> None:
        empty = self.command == "HEAD" or response.status_code in (204, 304)
        chunked = not empty and "content-length" not in response.headers and self.request_version != "HTTP/1.0"
        self.send_response_only(response.status_code, response.reason_phrase)
        for key, value in response.headers.multi_items():
            if key.lower() not in _FRAMING:
                self.send_header(key, value)
        if chunked:
            self.send_header("transfer-encoding", "chunked")
        elif not empty and "content-length" not in response.headers:
            self.send_header("connection", "close")
        self.end_headers()
        end = b"0\r\n\r\n" if chunked else b""
        told = response.headers.get("content-length", "")
        length = int(told) if told.isdecimal() else 0
        for chunk in () if empty else _pieces(response):
            length -= len(chunk)
            if chunked:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            elif length:
                self.wfile.write(chunk)
            else:
                end = chunk
        self.wfile.write(end)  # now it is recorded: what the program sends next comes after it

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunked_body()
        length = self.headers.get("content-length") or "0"
        if not length.isdigit():
            raise _Refused(400, f"content-length {length!r} is no number")
        return self._exactly(_allowed(int(length)))

    def _chunked_body(self) -> bytes:
        parts, total = [], 0
        while size := _size(self.rfile.readline()):
            total = _allowed(total + size)
            parts.append(self._exactly(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return b"".join(parts)

    def _exactly(self, size: int) -> bytes:
        data = self.rfile.read(size)
        if len(data) < size:
            raise ConnectionResetError  # the program went away: half a request must not be sent on
        return data

    def _refuse(self, refused: _Refused) -> None:
        error = {"type": "looptape_proxy", "message": str(refused)}
        data = json.dumps({"type": "error", "error": error}).encode()
        self.send_response_only(refused.status)
        if refused.final:
            self.send_header("x-should-retry", "false")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _pieces(response: Any) -> Iterator[bytes]:
    """The body as it comes; when it is cut, the program must see it cut too."""
    try:
        for chunk in response.iter_raw():
            if chunk:
                yield chunk
    except Exception:
        raise BrokenPipeError from None


def _encodings(accepted: str) -> str:
    """Of the encodings that the program takes, those that the recording can read."""
    names = [part.split(";")[0].strip().lower() for part in accepted.split(",")]
    return ", ".join(n for n in names if n in _READABLE) or "identity"


def _allowed(size: int) -> int:
    if size > MAX_BODY:
        raise _Refused(413, f"looptape's proxy takes bodies up to {MAX_BODY >> 20} MB")
    return size


def _size(line: bytes) -> int:
    try:
        return int(line.split(b";")[0].strip() or b"0", 16)
    except ValueError:
        raise _Refused(400, "a chunk's size is no number") from None
