"""How the app may end: told from outside, by an error of its own, without its terminal; always as one leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from textual.app import App

from ..tracer.errors import LooptapeError
from . import crash

INTERRUPTED = 130
_ROUNDS = 8
"""Rounds of the event loop after which it has told of every signal that came before."""
_PATIENCE = 10.0
"""Seconds that the end may take where nobody reads what is still to be written."""


class EndingApp(App[int]):
    """An app that gives the terminal back, and leaves at most one line of words and a log without data.

    Attributes:
        trouble: Why it ended, when that was not the user's wish.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.trouble: LooptapeError | None = None
        self._away = 0

    @property
    def home(self) -> Path | None:
        """The folder for the log."""
        raise NotImplementedError

    def keep(self) -> None:
        """Write what must outlive the app."""
        raise NotImplementedError

    def heed_signals(self) -> None:
        """Told to end from outside, leave as one leaves: the terminal as it was, what was remembered written."""
        if self.is_headless or threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self._told_to_end, number)

    def _told_to_end(self, number: signal.Signals) -> None:
        self.keep()
        if number is signal.SIGINT:
            if not self._away:
                self.exit(INTERRUPTED)
            return
        self._ended(f"The screen was ended by {number.name}", None)
        self.exit(return_code=1)
        if number is signal.SIGHUP:
            self._leave_soon()

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Another program has the terminal; an interrupt meanwhile is for that one alone."""
        self._away += 1
        try:
            with super().suspend():
                yield
        finally:
            self._back_in(_ROUNDS)

    def _back_in(self, rounds: int) -> None:
        """The loop is told of a signal some rounds after it came, however long a round takes: only then one is back."""
        if rounds and self._loop is not None:
            self._loop.call_soon(self._back_in, rounds - 1)
        else:
            self._away -= 1

    def _ended(self, what: str, error: BaseException | None) -> None:
        """The first reason counts: what comes after it is its echo."""
        if self.trouble is None:
            self.trouble = crash.ended(what, crash.log(self.home, what, error))

    def _leave_soon(self) -> None:
        """Without a terminal nobody reads what is still to be written, and the writer may wait for ever."""
        patience = threading.Timer(_PATIENCE, os._exit, (1,))
        patience.daemon = True
        patience.start()

    def _handle_exception(self, error: Exception) -> None:
        self._ended("The screen stopped on an error of its own", error)
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Textual would print a page of source lines and local variables, which hold the user's data."""
        self._close_messages_no_wait()

    def panic(self, *_renderables: object) -> None:
        """The terminal can no longer be read, or a style sheet is wrong."""
        self._ended("The screen stopped: its terminal is gone", sys.exc_info()[1])
        self._return_code = 1
        self._close_messages_no_wait()
        if not self.is_headless:
            self._leave_soon()
