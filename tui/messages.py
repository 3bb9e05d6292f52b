"""What workers tell the screens: the app's vocabulary on one page."""

from __future__ import annotations

from collections.abc import Callable

from textual.message import Message

from .data.views import RunsView, RunsWanted, Trouble, TurnView


class RunsLoaded(Message):
    """The list of runs was read, as it was wanted, in this state of the source."""

    def __init__(self, view: RunsView, wanted: RunsWanted, version: object) -> None:
        super().__init__()
        self.view = view
        self.wanted = wanted
        self.version = version


class TurnLoaded(Message):
    """One turn was read whole, when things stood as ``stood`` says (as far as whoever asked wants to know)."""

    def __init__(self, view: TurnView, stood: object = None) -> None:
        super().__init__()
        self.view = view
        self.stood = stood


class Failed(Message):
    """Something could not be read; the screen keeps what it shows and says so."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self.trouble = trouble


class Unchanged(Message):
    """Nothing new since the last reading."""


class Answered(Message):
    """A job in a thread is done; what follows is run where screens may be touched."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.then = then
