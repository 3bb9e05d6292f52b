"""The Textual app: themes, the first screen, who leads where."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App, SystemCommand
from textual.screen import Screen

from ..tracer.errors import LooptapeError
from . import keymap
from .safe_text import clean
from .screens.page import Page
from .screens.run import RunScreen
from .screens.runs import RunsScreen
from .source import Source, StoreSource
from .themes import DARK, LIGHT, THEMES

if TYPE_CHECKING:
    from ..replay.reference import Found


class LooptapeApp(App[int]):
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
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self, source: Source, run: str | None = None, *, turn: int | None = None, theme: str | None = None
    ) -> None:
        super().__init__()
        self.source = source
        self._run = run
        self._turn = turn
        for known in THEMES:
            self.register_theme(known)
        self.theme = self._theme_named(theme or os.environ.get("LOOPTAPE_THEME") or "dark")

    def on_mount(self) -> None:
        """The list of runs, and over it the run that was asked for."""
        self.push_screen(RunsScreen())
        if self._run is not None:
            self.open_run(self._run, self._turn)

    def open_run(self, run: str, turn: int | None = None) -> None:
        """Show a run."""
        self.push_screen(RunScreen(run, turn))

    def back(self) -> None:
        """One screen back; from the last one out."""
        if len(self.screen_stack) > 2:
            self.pop_screen()
        else:
            self.exit(0)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The command palette: the keys of the screen, the themes, quit."""
        if isinstance(screen, Page):
            for key in screen.KEYS:
                if key.action != "tab_at":
                    yield SystemCommand(
                        key.help[:1].upper() + key.help[1:], f"key {key.label}", self._runner(screen, key.action)
                    )
        yield SystemCommand("Dark theme", "light on dark", lambda: self._dress(DARK.name))
        yield SystemCommand("Light theme", "dark on light", lambda: self._dress(LIGHT.name))
        yield SystemCommand("All themes", "those of Textual too", self.action_change_theme)
        yield SystemCommand("Save a picture", "an SVG of this screen", self.deliver_screenshot)
        yield SystemCommand("Quit", "leave looptape", self.action_quit)

    def action_keys(self) -> None:
        """The menu of keys of whatever screen is on top."""
        if isinstance(self.screen, Page):
            self.screen.action_keys()

    def _runner(self, screen: Page, action: str) -> Callable[[], object]:
        return lambda: screen.call_later(screen.run_action, action)

    def _dress(self, name: str) -> None:
        self.theme = name

    def _theme_named(self, name: str) -> str:
        wanted = {"dark": DARK.name, "light": LIGHT.name}.get(name, name)
        return wanted if wanted in self.available_themes else DARK.name


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
    if os.environ.get("NO_COLOR") == "":
        del os.environ["NO_COLOR"]  # Textual takes an empty value for a yes; the convention says it means nothing
    app = LooptapeApp(source, run, turn=turn)
    result = app.run()
    if app.return_code and app.return_code != 0:
        raise LooptapeError(
            "tui-crash",
            clean("The screen program stopped on an error of its own"),
            "looptape runs and looptape show print the same",
        )
    return result or 0
