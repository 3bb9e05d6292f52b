"""Pictures of the screens as SVG, made by the program itself: no browser, no remote font, the same bytes every time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .app import LooptapeApp
from .data.source import Source, StoreSource
from .outside.svg import clean_svg

SCREENS: dict[str, Sequence[str]] = {
    "runs": (),
    "run": ("enter",),
    "waterfall": ("enter", "w"),
    "transcript": ("enter", "t"),
    "turn": ("enter", "enter"),
    "request": ("enter", "enter", "2"),
    "context": ("enter", "enter", "6"),
    "compare": ("enter", "m", "j", "d"),
    "fork": ("enter", "r"),
    "findings": ("exclamation_mark",),
    "costs": ("dollar_sign",),
    "keys": ("enter", "question_mark"),
}
"""Name of a picture and the keys that lead to it from the list of runs."""


def picture(
    home_or_source: Path | Source,
    screen: str = "runs",
    size: tuple[int, int] = (120, 32),
    *,
    keys: Sequence[str] = (),
    run: str | None = None,
    turn: int | None = None,
    theme: str = "dark",
    clock: Callable[[], int] | None = None,
    title: str = "looptape",
) -> str:
    """A screen as SVG text.

    Args:
        home_or_source: A store's home folder, or a source.
        screen: One of ``SCREENS``.
        size: Columns and lines.
        keys: Keys pressed after the screen is there.
        run: The run of the screen (id, prefix or name); the newest where it is None.
        turn: The turn that is selected.
        clock: Microseconds since the epoch, for a clock that stands; the source's own where it is None.
    """
    source = StoreSource(home_or_source) if isinstance(home_or_source, Path) else home_or_source
    return asyncio.run(_taken(_Still(source, clock), SCREENS[screen], size, keys, run, turn, theme, title))


async def _taken(
    source: Any,
    road: Sequence[str],
    size: tuple[int, int],
    keys: Sequence[str],
    run: str | None,
    turn: int | None,
    theme: str,
    title: str,
) -> str:
    steps = list(road)
    opened = None
    if run is not None and steps[:1] == ["enter"]:
        opened, steps = source.find(run), steps[1:]
    app = LooptapeApp(source, opened, turn=turn, theme=theme)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        for key in (*steps, *keys):
            await pilot.press(key)
            await settled(pilot)
        return clean_svg(app.export_screenshot(title=title))


async def settled(pilot: Any) -> None:
    """Wait until no reading is on its way and everything read is painted, for a minute at most."""
    quiet, end = 0, time.monotonic() + 60
    while time.monotonic() < end:
        await pilot.pause(0.004)
        still = not getattr(pilot.app.screen, "waiting", False) and not any(w.is_running for w in pilot.app.workers)
        quiet = quiet + 1 if still else 0
        if quiet == 3:
            return


class _Still:
    """A source with a clock of its own, whose screen remembers nothing."""

    def __init__(self, source: Source, clock: Callable[[], int] | None) -> None:
        self._source = source
        self._clock = clock

    @property
    def home(self) -> Path | None:
        """None: a picture leaves nothing behind, and nothing that was remembered is in it."""
        return None

    def now(self) -> int:
        """The clock that stands."""
        return self._clock() if self._clock is not None else self._source.now()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)
