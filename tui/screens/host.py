"""What a screen may ask of the app it stands in: where to go, what is remembered, how keys and colours are set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..data.source import Source
from ..memory import Memory
from ..place import Place, Scope

if TYPE_CHECKING:
    from ..data.views import TurnView
    from ..keymap import Key


Back = Callable[[int | None], None]
"""Is told the number of the turn that was shown last."""


class Host(Protocol):
    """The app as its screens know it: screens are opened by it, and it by none of them.

    Attributes:
        source: Where the data comes from.
        marks: Places marked for a comparison.
        memory: What is remembered from one start to the next.
    """

    source: Source
    marks: list[Place]
    memory: Memory

    def open_demo(self, home: Path) -> None:
        """Show the runs of the demo's store; behind them one's own."""

    def take(self, source: Source) -> None:
        """From now on this source is what screens ask; marks were set in another."""

    def open_run(self, run: str, turn: int | None = None) -> None:
        """Show a run."""

    def open_runs(self, text: str) -> None:
        """Back to the list of runs, with this filter."""

    def open_turn(self, place: Place, tab: str = "", back: Back | None = None, known: TurnView | None = None) -> None:
        """Show a turn whole."""

    def open_compare(self, left: Place, right: Place, view: str = "") -> None:
        """Two runs or two turns side by side; ``view``: turns, requests, results or totals."""

    def open_compare_many(self, base: Place, others: Sequence[Place]) -> None:
        """Several places, each compared with one, as a table that leads to each pair."""

    def open_fork(self, place: Place) -> None:
        """Go on from a turn (of a run: after its last) with something changed."""

    def open_findings(self, scope: Scope) -> None:
        """Findings of some runs."""

    def open_rule(self, rule: str) -> None:
        """The page of a rule, or of a kind of cycle."""

    def open_costs(self, scope: Scope) -> None:
        """Costs of some runs."""

    def toggle_mark(self, place: Place) -> str:
        """Mark a place or take its mark away; says which."""

    def back(self) -> None:
        """One screen back; from the last one out."""

    def home_screen(self) -> None:
        """Back to the list of runs, however far away."""

    def rebound(self, keys: Sequence[Key]) -> Sequence[Key]:
        """The commands with the keys they have here."""

    def dress(self, name: str) -> None:
        """Other colours, remembered for next time."""

    def save_picture(self) -> None:
        """An SVG of the screen, in the working directory."""
