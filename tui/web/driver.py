"""Textual's driver for the browser, which here also ends the app when the server has gone without a word."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from functools import partial
from typing import Any

from textual import messages
from textual.drivers.web_driver import WebDriver


class Driver(WebDriver):
    """A killed server cannot say "quit": the end of stdin says it for it."""

    def __init__(self, app: Any, **how: Any) -> None:
        super().__init__(app, **how)
        self._speaking = threading.Lock()
        self._write = partial(self._whole)

    def _whole(self, data: bytes) -> int:
        """One packet at a time: a piece of a download is written by the thread that reads, and is more than a pipe
        holds at once; what the screen paints meanwhile would come into the middle of it."""
        with self._speaking:
            return os.write(self.fileno, data)

    def start_application_mode(self) -> None:
        """As Textual does, in the loop that the end must be told to."""
        self._loop = asyncio.get_running_loop()
        super().start_application_mode()

    def run_input_thread(self) -> None:
        """Read until the server closes the line."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            with contextlib.suppress(RuntimeError):  # the loop is closed: the app has ended already
                self._loop.call_soon_threadsafe(self._app.post_message, messages.ExitApp())

    def open_url(self, url: str, new_tab: bool = True) -> None:
        """Nothing here opens pages of the web."""

    def deliver_binary(self, binary: Any, **how: Any) -> None:
        """A file goes to the browser as a download, never as a page of ours."""
        super().deliver_binary(binary, **{**how, "open_method": "download"})
