"""Runs the receiver: both servers in one loop, the work beside it, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.util import find_spec

from ..errors import UsageError
from .decoding import missing
from .forward import Forwarder
from .intake import Intake, Taken, Totals
from .ports import listen, port_of
from .refusal import Refused, hostname, unpacked

IN_FLIGHT = 256 << 20
"""Octets of requests that are worked on at once; beyond it exporters are asked to come again."""
_HANDS = 2


@dataclass(frozen=True, slots=True)
class Options:
    """How to receive. Ports of 0 are free ones; ``grpc_port`` None: none.

    Attributes:
        forward: Base URL of the OTLP/HTTP endpoint that gets everything too.
        hosts: Names beside those of loopback that requests may be addressed to.
    """

    http_port: int = 4318
    grpc_port: int | None = 4317
    forward: str | None = None
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Addresses:
    """The ports that are listened on."""

    http_port: int
    grpc_port: int | None


def serve(options: Options, *, say: Callable[[str], None], ready: Callable[[Addresses], None]) -> Totals:
    """Receives until SIGINT or SIGTERM; what was taken in by then is in the journal.

    Args:
        say: Takes lines for people, from any thread.
        ready: Called once, when both ports answer.

    Raises:
        LooptapeError: ``no-server`` (the extra is not installed), ``port-taken``.
        UsageError: ``forward`` is no address, or our own.
    """
    for package in ("aiohttp", *(() if options.grpc_port is None else ("h2",))):
        if find_spec(package) is None:
            raise missing(package)
    if options.forward:
        _check_forward(options)
    return asyncio.run(_serve(options, say, ready))


async def _serve(options: Options, say: Callable[[str], None], ready: Callable[[Addresses], None]) -> Totals:
    from . import http  # aiohttp is there only with the extra

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        intake = Intake(say)
        stack.callback(intake.close)
        hands = stack.enter_context(ThreadPoolExecutor(_HANDS, "looptape-receive"))
        take = _Work(intake, hands).take
        pass_on = None
        if options.forward:
            forwarder = Forwarder(options.forward, intake.totals, say)
            await forwarder.start()
            stack.push_async_callback(forwarder.stop)
            pass_on = forwarder.pass_on
        web = listen(options.http_port, "--http-port")
        stack.callback(_close, web)
        grpc_port = None
        if options.grpc_port is not None:
            from .grpc import GrpcSide

            side = GrpcSide(intake, take, pass_on, options.hosts)
            sockets = listen(options.grpc_port, "--grpc-port")
            servers = [await loop.create_server(side, sock=s) for s in sockets]
            stack.push_async_callback(side.close)
            stack.callback(_close, servers)
            grpc_port = port_of(sockets)
        runner = http.HttpSide(intake, take, pass_on, options.hosts).runner()
        stack.push_async_callback(runner.cleanup)
        await http.serve(runner, web)
        ready(Addresses(port_of(web), grpc_port))
        await stop.wait()
    return intake.totals


def _close(listening: Iterable[socket.socket | asyncio.Server]) -> None:
    for one in listening:
        one.close()


class _Work:
    """Takes requests in beside the loop, a bounded amount of them at once."""

    def __init__(self, intake: Intake, hands: ThreadPoolExecutor) -> None:
        self._intake = intake
        self._hands = hands
        self._size = 0

    async def take(self, signal: str, data: bytes, encoding: str, as_json: bool) -> Taken:
        """Unpacks, decodes and writes a request. Raises Refused."""
        if self._size + len(data) > IN_FLIGHT:
            raise Refused(503, "more comes in than can be written; try again")
        self._size += len(data)
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._hands, self._one, signal, data, encoding, as_json)
        finally:
            self._size -= len(data)

    def _one(self, signal: str, data: bytes, encoding: str, as_json: bool) -> Taken:
        return self._intake.take(signal, unpacked(data, encoding), as_json=as_json)


def _check_forward(options: Options) -> None:
    given = options.forward or ""
    if not given.startswith(("http://", "https://")) or not hostname(given):
        raise UsageError("bad-url", f"--forward {given} is no http address", "Give one like https://collector:4318")
    own = (f":{options.http_port}", f":{options.grpc_port}")
    if hostname(given) in ("localhost", "127.0.0.1", "::1") and given.rstrip("/").endswith(own):
        raise UsageError("bad-url", "--forward leads back here", "Give the address of another endpoint")
