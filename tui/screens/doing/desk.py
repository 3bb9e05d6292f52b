"""What the helpers of a page need of it: those that copy, open, export. They know no page, so pages may import them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from textual.app import App
from textual.message import Message

from ...data.source import Source
from ...place import Subject


class Desk(Protocol):
    """A page, seen by its helpers."""

    @property
    def app(self) -> App[Any]:
        """The app."""

    @property
    def source(self) -> Source:
        """Where the data comes from."""

    def subject(self) -> Subject:
        """What is selected."""

    def say(self, text: str) -> None:
        """A line that stays until the next key."""

    def read(self, job: Callable[[], Message], group: str) -> None:
        """Run a job in a thread and post what it gives."""

    def copy(self, text: str, what: str = "") -> None:
        """Copy a text."""
