"""What the list of runs offers to someone who has none, and at any time: sessions of this machine, the demo."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from textual.message import Message
from textual.worker import get_current_worker

from ...data.views import RunsView, Trouble
from ...messages import Answered
from ...widgets.welcome import Welcome
from ..menu import Choice, Menu
from ..page import Page, told
from . import jobs as runs_jobs

OFFERS = "offers"
"""Group of the jobs that these keys begin."""


class Offers(Page):
    """The keys i and d (D) of the list of runs."""

    def __init__(self) -> None:
        super().__init__()
        self.doing = ""
        self._demo: Path | None = None
        self._view: RunsView | None = None

    @abstractmethod
    def tell_notices(self) -> None:
        """Say anew what is to be said, ``doing`` first."""

    @abstractmethod
    def reload(self, *, force: bool = False) -> None:
        """Read the list anew."""

    def action_import_found(self) -> None:
        """Bring in what other tools left here; asked first, unless the empty list says what it is."""
        source, asked = self.source, self._view is not None and not self._view.listing.every.runs

        def job() -> Message:
            what, folders = runs_jobs.offered(source)
            return Answered(lambda: self._bring_in(folders) if asked else self._offer(what, folders))

        if self.doing:
            self.say(f"not yet: {self.doing}")
        else:
            self.read(job, OFFERS)

    def action_demo(self) -> None:
        """Make the demo and show its runs."""
        source = self.source

        def job() -> Message:
            worker = get_current_worker()
            home = runs_jobs.make_demo(source, lambda: worker.is_cancelled)
            return Answered(lambda: self._show_demo(home))

        if self.doing:
            self.say(f"not yet: {self.doing}")
        elif self._demo is not None:
            self.say(f"this is the demo: {self._demo}")
        else:
            self._does("recording sample loops for the demo: the real SDK, a scripted model, no key, no network")
            self.read(job, OFFERS)

    def _show_demo(self, home: Path) -> None:
        self._does("")
        self.loop_app.open_demo(home)

    def _offer(self, what: list[str], folders: list[Path]) -> None:
        choices = [Choice("yes", f"import {', '.join(what)}, and keep in step", "i"), Choice("no", "leave it", "n")]
        menu = Menu("found on this machine", choices)
        menu.ask(self.app, lambda answer: self._bring_in(folders) if answer == "yes" else None)

    def _bring_in(self, folders: list[Path]) -> None:
        source = self.source
        self._does("importing …")

        def tell(text: str) -> None:
            self.post_message(Answered(lambda: self._does(text, read=True)))

        def job() -> Message:
            worker = get_current_worker()
            said = runs_jobs.bring_in(source, folders, tell, lambda: worker.is_cancelled)
            return Answered(lambda: self._brought_in(said))

        self.read(job, OFFERS)

    def _brought_in(self, said: str) -> None:
        self._does("", read=True)
        self.say(said)

    def _failed(self, group: str, trouble: Trouble) -> Message:
        """The trouble of a job of these keys is a line that passes: the list itself is fine."""
        if group == OFFERS:
            return Answered(lambda: self._ended(told(trouble)))
        return super()._failed(group, trouble)

    def _ended(self, said: str) -> None:
        self._does("")
        self.say(said)

    def _does(self, text: str, *, read: bool = False) -> None:
        """What is being done now; empty when nothing is."""
        self.doing = text
        self.tell_notices()
        self.query_one(Welcome).doing(text)
        if read:
            self.reload(force=True)
