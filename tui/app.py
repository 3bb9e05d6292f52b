"""The Textual app: themes, the first screen, who leads where."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..tracer.errors import LooptapeError
from . import crash, keymap, keys_file, terminal
from .data.source import Source, StoreSource, shortened
from .ending import EndingApp
from .memory import Memory
from .place import Place, Scope
from .screens.page import Page
from .screens.runs.screen import RunsScreen
from .themes import DARK, NAMES, TERMINAL, THEMES, called, meant

if TYPE_CHECKING:
    from ..replay.reference import Found
    from .data.views import TurnView
    from .screens.host import Back, Host

THEME = "theme"
"""Name of the remembered colours."""


class LooptapeApp(EndingApp):
    """looptape on a terminal.

    Args:
        source: Where the data comes from.
        run: A run's id to open at once; the list of runs stays behind it.
        turn: The turn of that run to stand on.
        theme: Name of a theme; ``LOOPTAPE_THEME`` (dark, light or a Textual theme) where it is None.
    """

    TITLE = "looptape"
    CSS_PATH = "looptape.tcss"
    BINDINGS = keymap.bindings(keymap.EVERYWHERE)
    ENABLE_COMMAND_PALETTE = False  # ours is action_command_palette

    def __init__(
        self, source: Source, run: str | None = None, *, turn: int | None = None, theme: str | None = None
    ) -> None:
        super().__init__(ansi_color=True if os.environ.get("NO_COLOR") else None)
        self.source = source
        self._run = run
        self._turn = turn
        self.marks: list[Place] = []
        self.memory = Memory(source.home)
        for known in THEMES:
            self.register_theme(known)
        self._rebinding = keys_file.read()
        self.set_keymap(self._rebinding.bound)
        self._first_words = list(self._rebinding.problems)
        self.theme = self._theme_at_first(theme)

    def on_mount(self) -> None:
        """The list of runs, and over it the run that was asked for."""
        self.push_screen(RunsScreen())
        if self._run is not None:
            self.open_run(self._run, self._turn)
        if self._first_words:
            self.call_after_refresh(self._tell, "\n".join(self._first_words))
        self.heed_signals()

    # where one can go

    def open_demo(self, home: Path) -> None:
        """Show the runs of the demo's store; behind them one's own."""
        self.take(StoreSource(home, place=shortened(home)))
        self.push_screen(RunsScreen(demo=home))

    def take(self, source: Source) -> None:
        """From now on this source is what screens ask; marks were set in another."""
        if source is not self.source:
            self.source = source
            self.marks.clear()

    def open_run(self, run: str, turn: int | None = None) -> None:
        """Show a run."""
        from .screens.run.screen import RunScreen  # not needed for the first list

        self.push_screen(RunScreen(run, turn))

    def open_runs(self, text: str) -> None:
        """Back to the list of runs, with this filter."""
        while len(self.screen_stack) > 2 and not isinstance(self.screen, RunsScreen):
            self.pop_screen()
        if isinstance(self.screen, RunsScreen):
            self.screen.filter_by(text)

    def open_turn(self, place: Place, tab: str = "", back: Back | None = None, known: TurnView | None = None) -> None:
        """Show a turn whole.

        Args:
            back: Is told where one went.
            known: What was read of the turn already: shown until all of it is read.
        """
        from .screens.turn.screen import TurnScreen

        self.push_screen(TurnScreen(place, tab, known), back)

    def open_compare(self, left: Place, right: Place, view: str = "") -> None:
        """Two runs or two turns side by side; ``view``: turns, requests, results or totals."""
        from .screens.compare.screen import CompareScreen

        self.push_screen(CompareScreen(left, right, view))

    def open_compare_many(self, base: Place, others: Sequence[Place]) -> None:
        """Several places, each compared with one, as a table that leads to each pair."""
        from .screens.compare.many import CompareManyScreen

        self.push_screen(CompareManyScreen(base, others))

    def open_fork(self, place: Place) -> None:
        """Go on from a turn (of a run: after its last) with something changed."""
        from .screens.fork.screen import ForkScreen

        self.push_screen(ForkScreen(place))

    def open_findings(self, scope: Scope) -> None:
        """Findings of some runs."""
        from .screens.findings.screen import FindingsScreen

        self.push_screen(FindingsScreen(scope))

    def open_rule(self, rule: str) -> None:
        """The page of a rule, or of a kind of cycle."""
        from .screens.findings.rule_page import RulePage

        self.push_screen(RulePage(rule))

    def open_costs(self, scope: Scope) -> None:
        """Costs of some runs."""
        from .screens.costs.screen import CostsScreen

        self.push_screen(CostsScreen(scope))

    def toggle_mark(self, place: Place) -> str:
        """Mark a place or take its mark away; says which."""
        if place in self.marks:
            self.marks.remove(place)
            return f"no mark on {place.written} any more"
        self.marks.append(place)
        return f"{place.written} marked; d on another one compares them"

    @property
    def home(self) -> Path | None:
        """The folder of the store."""
        return self.source.home

    def keep(self) -> None:
        """What was remembered is written."""
        self.memory.save()

    def on_unmount(self) -> None:
        """The end, however it came."""
        self.keep()

    def back(self) -> None:
        """One screen back; from the last one out."""
        if len(self.screen_stack) > 2:
            self.pop_screen()
        else:
            self.exit(0)

    def home_screen(self) -> None:
        """Back to the list of runs, however far away."""
        while len(self.screen_stack) > 2:
            self.pop_screen()

    def rebound(self, keys: Sequence[keymap.Key]) -> Sequence[keymap.Key]:
        """The commands with the keys they have here."""
        return keymap.rebound(keys, self._rebinding.keys)

    def dress(self, name: str) -> None:
        """Other colours, remembered for next time."""
        theme = meant(name)
        if self.no_color:
            self._tell("NO_COLOR is set: there are no colours to choose")
        elif theme not in self.available_themes:
            self._tell(f"there is no theme {name!r}; there are {', '.join(NAMES)}")
        else:
            self.theme = theme
            self.memory.put(THEME, called(theme))

    def _tell(self, text: str) -> None:
        """On whatever screen is on top; a menu says nothing."""
        self._on_page(lambda page: page.say(text))

    def save_picture(self) -> None:
        """An SVG of the screen, in the working directory."""
        from .outside.export_files import write_texts
        from .outside.svg import clean_svg

        path = Path.cwd() / f"looptape-{datetime.now():%Y%m%d-%H%M%S}.svg"
        try:
            write_texts(path, iter([clean_svg(self.export_screenshot(title=self.TITLE))]))
        except LooptapeError as error:
            self._tell(str(error))
        else:
            self._tell(f"wrote {path}")

    # keys of every screen: the one on top answers them

    def action_keys(self) -> None:
        """The menu of keys valid here."""
        self._on_page(lambda page: page.action_keys())

    def action_command(self) -> None:
        """Type a command."""
        self._on_page(lambda page: page.action_command())

    def action_command_palette(self) -> None:
        """Find a command by its words."""
        from .screens.doing.palette import open_palette

        self._on_page(open_palette)

    def action_help_quit(self) -> None:
        """ctrl+c is how one copies elsewhere: it ends nothing here."""
        self._tell("ctrl+q leaves looptape, q goes back")

    def action_findings(self) -> None:
        """Findings of what is shown."""
        self._on_page(lambda page: page.action_findings())

    def action_costs(self) -> None:
        """Costs of what is shown."""
        self._on_page(lambda page: page.action_costs())

    def action_theme(self) -> None:
        """The menu of colours."""
        self._on_page(lambda page: page.action_theme())

    def _on_page(self, does: Callable[[Page], None]) -> None:
        if isinstance(self.screen, Page):
            does(self.screen)

    def _theme_at_first(self, given: str | None) -> str:
        """Without colours the terminal's own; else what was asked for, what was chosen last time, dark."""
        if self.no_color:
            return TERMINAL.name
        asked = given or os.environ.get("LOOPTAPE_THEME", "").strip()
        remembered = self.memory.get(THEME, "dark")
        wanted = meant(asked or remembered)
        if wanted in self.available_themes:
            return wanted
        if asked:
            self._first_words.append(f"the theme {asked!r} is unknown; there are {', '.join(NAMES)}")
        return DARK.name


if TYPE_CHECKING:
    _offers_all: type[Host] = LooptapeApp  # what screens ask for is here


def run_app(home: Path, run: str | None = None, *, turn: int | None = None, tape: Found | None = None) -> int:
    """Open the app on the store under ``home``, at a run if one is named; the exit status.

    Args:
        tape: A run read from a tape file: the app shows that file's runs instead.

    Raises:
        LooptapeError: the run that was named does not exist, or the store cannot be read.
    """
    if tape is not None:
        store = tape.store
        return show(StoreSource(home, place=run or "", opener=lambda: nullcontext(store)), tape.run.id, turn)
    source = StoreSource(home)
    return show(source, source.find(run) if run else None, turn)


def show(source: Source, run: str | None = None, turn: int | None = None) -> int:
    """Run the app over any source until the user leaves; the exit status."""
    terminal.prepare(os.environ)
    sys.setswitchinterval(0.001)  # keys do not wait long for a thread that reads
    app = LooptapeApp(source, run, turn=turn)
    result = app.run()
    if app.trouble is not None or app.return_code:
        raise app.trouble or crash.ended("The screen stopped", None)
    return result or 0
