"""The three views of a run, with one selection: the list of turns, the run over time, the run as one text."""

from __future__ import annotations

from collections.abc import Sequence

from ...place import Place
from .jumps import Jumps
from .transcript import Transcript
from .waterfall import Waterfall

VIEWS = ("turns", "waterfall", "transcript")


class Views(Jumps):
    """A page over the turns of one run in several views. Subclasses compose them and keep ``turns``."""

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.view = VIEWS[0]

    def head_changed(self) -> None:
        """What the head says changed."""

    def came_back(self, number: int | None) -> None:
        """From a turn that was shown whole: stand on the one that was shown last."""
        if number is not None:
            self.go(number)

    @property
    def aside(self) -> Waterfall | Transcript | None:
        """The view that stands in place of the list; None while that is shown."""
        if self.view == "waterfall":
            return self.query_one(Waterfall)
        return self.query_one(Transcript) if self.view == "transcript" else None

    def show_view(self) -> None:
        """Show the view that is chosen, and give it the keys."""
        self.query_one("#run-body").display = self.aside is None
        for kind in (Waterfall, Transcript):
            view = self.query_one(kind)
            view.display = view is self.aside
        if self.aside is not None and self.turns is not None:
            self.aside.show(self.turns.view, self.place.turn)
        self.take_keys()
        self.head_changed()

    def _choose_view(self, name: str) -> None:
        self.view = name
        self.loop_app.memory.put("run.view", name)
        self.show_view()

    def tab_names(self) -> Sequence[str]:
        """The views, for the command line."""
        return VIEWS

    def show_tab(self, name: str) -> None:
        """That view."""
        self._choose_view(name)

    def action_view(self) -> None:
        """The next of the three."""
        self._choose_view(VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)])

    def only_turns(self) -> bool:
        """True where the list of turns is shown; else say that the key belongs to it."""
        if self.aside is not None:
            self.say("this key is about the turn beside the list: v leads there")
        return self.aside is None

    def action_waterfall(self) -> None:
        """The run over time, or the turns again."""
        self._choose_view(VIEWS[0] if self.view == "waterfall" else "waterfall")

    def action_transcript(self) -> None:
        """The run as one text, or the turns again."""
        self._choose_view(VIEWS[0] if self.view == "transcript" else "transcript")

    def on_waterfall_moved(self, message: Waterfall.Moved) -> None:
        """The selection is one for all views."""
        self.go(message.turn)

    def on_transcript_moved(self, message: Transcript.Moved) -> None:
        """The selection is one for all views."""
        self.go(message.turn)

    def on_waterfall_opened(self, message: Waterfall.Opened) -> None:
        """The turn whole, or the sub-agent."""
        if message.run is not None:
            self.loop_app.open_run(message.run)
        else:
            self._open(message.turn)

    def on_transcript_opened(self, message: Transcript.Opened) -> None:
        """The turn whole."""
        self._open(message.turn)

    def _open(self, turn: int) -> None:
        self.loop_app.open_turn(Place(self.run_id, turn), back=self.came_back)

    def take_keys(self) -> None:
        """To what is shown."""
        if self.aside is not None:
            self.aside.take_keys()
        else:
            self.set_focus(self.listing)
