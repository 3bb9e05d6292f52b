"""OTLP over gRPC: the three Export calls on top of the HTTP/2 library h2, without TLS, as exporters speak to localhost.

A call is one request of one message and one reply, so what is needed of gRPC is its framing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from .http import PassOn, Take
from .intake import Intake
from .refusal import MAX_BODY, Refused, check_host, check_origin, too_large

PATHS = {
    f"/opentelemetry.proto.collector.{name}.v1.{service}Service/Export": signal
    for signal, name, service in (
        ("traces", "trace", "Trace"),
        ("logs", "logs", "Logs"),
        ("metrics", "metrics", "Metrics"),
    )
}
_HEAD = 5  # a flag and four octets of length before a message
_WINDOW = 1 << 20
_STREAMS = 64
_OWN = ("content-type", "grpc-encoding", "grpc-accept-encoding", "grpc-timeout", "te", "user-agent")
Headers = list[tuple[str, str]]


@dataclass(slots=True)
class _Call:
    headers: dict[str, str]
    signal: str
    size: int = 0
    parts: list[bytes] = field(default_factory=list)


class GrpcSide:
    """What the connections share; makes one for each client (`asyncio.Server` calls it)."""

    def __init__(self, intake: Intake, take: Take, pass_on: PassOn | None, hosts: Collection[str]) -> None:
        self.intake = intake
        self.take = take
        self.pass_on = pass_on
        self.hosts = hosts
        self.connections: set[_Connection] = set()

    def __call__(self) -> _Connection:
        """The protocol of a new connection."""
        return _Connection(self)

    async def close(self) -> None:
        """Lets calls that are under way end, then says goodbye."""
        busy = [task for connection in self.connections for task in connection.tasks]
        if busy:
            await asyncio.wait(busy, timeout=3.0)
        for connection in list(self.connections):
            connection.goodbye()


class _Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, side: GrpcSide) -> None:
        self._side = side
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        given = {SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW, SettingCodes.MAX_CONCURRENT_STREAMS: _STREAMS}
        self._h2.local_settings = Settings(client=False, initial_values=given)
        self._calls: dict[int, _Call] = {}
        self._transport: Any = None
        self._greeted = False
        self.tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._side.connections.add(self)
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW)
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:
        self._side.connections.discard(self)
        self._calls.clear()

    def data_received(self, data: bytes) -> None:
        try:
            for event in self._h2.receive_data(data):
                self._event(event)
        except (ProtocolError, ValueError):  # a browser, an exporter at the wrong port; or what came behind a goodbye
            if not self._greeted:
                self._side.intake.stray("what came to the gRPC port is no gRPC (HTTP, which has a port of its own?)")
            self._flush()
            self._transport.close()
            return
        self._flush()

    def goodbye(self) -> None:
        """No more calls."""
        try:
            self._h2.close_connection()
            self._flush()
        except ProtocolError:
            pass  # it is closed already
        self._transport.close()

    def _event(self, event: Event) -> None:
        if isinstance(event, RemoteSettingsChanged):
            self._greeted = True
        elif isinstance(event, RequestReceived):
            self._begin(event.stream_id, dict(event.headers))
        elif isinstance(event, DataReceived):
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self._more(event.stream_id, event.data)
        elif isinstance(event, StreamEnded):
            call = self._calls.pop(event.stream_id, None)
            if call is not None:
                task = asyncio.get_running_loop().create_task(self._answer(event.stream_id, call))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
        elif isinstance(event, StreamReset):
            self._calls.pop(event.stream_id, None)
        elif isinstance(event, ConnectionTerminated):
            self._transport.close()

    def _begin(self, stream: int, headers: dict[Any, Any]) -> None:
        try:
            if not str(headers.get("content-type", "")).startswith("application/grpc"):
                raise Refused(415, "this port speaks gRPC; OTLP over HTTP has its own")
            check_host(headers.get(":authority") or headers.get("host"), self._side.hosts)
            check_origin(headers.get("origin"))
            signal = PATHS.get(headers.get(":path", ""))
            if signal is None:
                raise Refused(404, f"there is no {str(headers.get(':path'))[:100]} here")
        except Refused as refused:
            self._refuse(stream, refused)
            return
        self._calls[stream] = _Call(headers, signal)

    def _more(self, stream: int, data: bytes) -> None:
        call = self._calls.get(stream)
        if call is None:
            return
        call.size += len(data)
        if call.size > MAX_BODY + _HEAD:
            del self._calls[stream]
            self._refuse(stream, too_large())
        else:
            call.parts.append(data)

    async def _answer(self, stream: int, call: _Call) -> None:
        try:
            message, encoding = _message(call)
            taken = await self._side.take(call.signal, message, encoding, False)
        except Refused as refused:
            self._refuse(stream, refused)
            return
        except Exception as error:  # ours: the exporter gets a word, the receiver goes on
            self._refuse(stream, Refused(500, f"looptape had trouble ({type(error).__name__})"))
            return
        if self._side.pass_on is not None:
            self._side.pass_on(call.signal, message, _as_http(call.headers, encoding))
        reply = taken.reply(call.signal, as_json=False)
        self._send(stream, [], b"\0" + len(reply).to_bytes(4, "big") + reply, [("grpc-status", "0")])

    def _refuse(self, stream: int, refused: Refused) -> None:
        self._side.intake.refused()
        said = [("grpc-status", str(refused.grpc)), ("grpc-message", quote(refused.message, safe=" ,.:;()'/"))]
        self._send(stream, said, None, None)

    def _send(self, stream: int, more: Headers, data: bytes | None, trailers: Headers | None) -> None:
        head = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-accept-encoding", "identity,gzip")]
        try:
            self._h2.send_headers(stream, [*head, *more], end_stream=trailers is None)
            if data is not None:
                self._h2.send_data(stream, data)
            if trailers is not None:
                self._h2.send_headers(stream, trailers, end_stream=True)
            else:
                self._h2.reset_stream(stream, ErrorCodes.NO_ERROR)  # the rest of a refused request need not come
        except ProtocolError:
            pass  # the client has given this call up, or had nothing more to send
        self._flush()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


def _message(call: _Call) -> tuple[bytes, str]:
    """The one message of a call as it came, and its encoding."""
    data = b"".join(call.parts)
    if len(data) < _HEAD or len(data) != _HEAD + int.from_bytes(data[1:_HEAD], "big"):
        raise Refused(400, "the call holds no whole message, or more than one")
    return data[_HEAD:], call.headers.get("grpc-encoding", "") if data[0] else ""


def _as_http(headers: dict[str, str], encoding: str) -> Headers:
    """A call's metadata as the headers of OTLP over HTTP: the message is the same."""
    kept = [(k, v) for k, v in headers.items() if not k.startswith(":") and k not in _OWN and not k.endswith("-bin")]
    kept.append(("content-type", "application/x-protobuf"))
    return [*kept, ("content-encoding", encoding)] if encoding not in ("", "identity") else kept
