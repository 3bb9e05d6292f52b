"""Runs the site on loopback until it is told to stop; the app processes end before it does."""

from __future__ import annotations

import asyncio
import contextlib
import io
import signal
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from ...tracer.errors import LooptapeError
from ...tracer.receiver.ports import listen


def serve(arguments: Sequence[str], port: int, *, say: Callable[[str], None], ready: Callable[[str], None]) -> None:
    """Serve the app until SIGINT or SIGTERM.

    Args:
        arguments: What every app process is started with.
        port: On loopback; 0 takes a free one.
        say: Takes lines for people.
        ready: Called once with the address, when it answers.

    Raises:
        LooptapeError: ``no-web`` (the extra is not installed), ``port-taken``.
    """
    if find_spec("textual_serve") is None:
        raise LooptapeError(
            "no-web",
            "the screen in a browser needs the package textual-serve",
            "Install it with: pip install 'looptape[web]'",
            exit_code=2,
        )
    sockets = listen(port, "--port")
    try:
        asyncio.run(_serve(arguments, sockets, say, ready))
    finally:
        for one in sockets:
            one.close()


async def _serve(
    arguments: Sequence[str], sockets: list[Any], say: Callable[[str], None], ready: Callable[[str], None]
) -> None:
    from aiohttp import web  # there only with the extra

    from .site import Site

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    site = Site(arguments, sockets)
    runner = web.AppRunner(site.application(), access_log=None, handle_signals=False, shutdown_timeout=3.0)
    await runner.setup()
    try:
        for one in sockets:
            await web.SockSite(runner, one).start()
        ready(site.address)
        with contextlib.redirect_stdout(_Lines(say)):  # textual-serve prints what a failed app said
            await stop.wait()
            await site.close()
    finally:
        await runner.cleanup()


class _Lines(io.TextIOBase):
    """What is printed becomes lines for people, cleaned as all of them are."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def write(self, text: str) -> int:
        for line in text.splitlines():
            if line.strip():
                self._say(line)
        return len(text)
