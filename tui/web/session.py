"""One page's app process: textual-serve's service, which here always tells the page when the app has gone."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import sys
from collections.abc import Sequence

from textual_serve.app_service import AppService

SIDES = (2, 1000)
"""Columns and lines that a page may have."""
_PATIENCE = 10.0


class Session(AppService):
    """The app process of one page."""

    async def run(self) -> None:
        """Hand on what the app paints until it ends; then the page shows that it has."""
        try:
            await super().run()
        finally:
            await self._gone()
            await self.remote_close()

    async def _gone(self) -> None:
        """The app says no more: see its process end, so that nothing of it outlives the server's loop."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _PATIENCE)

    async def end(self) -> None:
        """Ask the app to leave, and make sure of it."""
        try:
            await asyncio.wait_for(self.stop(), _PATIENCE)
        except TimeoutError:
            if self._process is not None and self._process.returncode is None:
                self._process.kill()

    async def obey(self, message: object) -> None:
        """One message of the page: keys, a new size, focus. Others are let go by."""
        match message:
            case ["stdin", str(keys)]:
                await self.send_bytes(keys.encode("utf-8", "replace"))
            case ["resize", {"width": int(width), "height": int(height)}]:
                await self.set_terminal_size(sane(width), sane(height))
            case ["ping", str(when)]:
                with contextlib.suppress(ConnectionResetError):  # the app has ended, and its page is being closed
                    await self.remote_write_str(f'["pong", "{int(when)}"]' if when.isdigit() else '["pong", "0"]')
            case ["focus"]:
                await self.focus()
            case ["blur"]:
                await self.blur()


def sane(side: int) -> int:
    """A width or height that no screen exceeds: the app would paint it."""
    return min(max(side, SIDES[0]), SIDES[1])


def command_line(arguments: Sequence[str]) -> str:
    """What a shell runs in place of itself: this interpreter, the app, its arguments, all quoted."""
    module = f"{__package__.rpartition('.')[0]}.cli.page"
    return "exec " + shlex.join([sys.executable, "-P", "-m", module, *arguments])
