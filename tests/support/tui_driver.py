"""Drives the app headless: press keys, read what stands on the screen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from textual import _wait

from looptape.tui.app import LooptapeApp
from looptape.tui.data.source import StoreSource
from looptape.tui.memory import FILE
from looptape.tui.picture import settled

Size = tuple[int, int]

# Textual's pilot sleeps 20 ms before and after each key, and up to a second each time while any thread works. `settled`
# below looks at what is really on its way, so the pilot need only let go for a moment.
_wait.SLEEP_GRANULARITY = 0.001


class Seat:
    """Where a test sits: keys in, screen out."""

    def __init__(self, app: LooptapeApp, pilot: Any) -> None:
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> Seat:
        for key in keys:
            await self.pilot.press(key)
            await settled(self.pilot)
        return self

    async def settle(self) -> None:
        await settled(self.pilot)

    async def until(self, words: str, *, gone: bool = False, seconds: float = 60) -> None:
        """Wait until these words stand on the screen (or stand there no more)."""
        await self.met(lambda: (words in self.text) != gone, seconds=seconds)

    async def met(self, condition: Callable[[], object], *, settle: bool = True, seconds: float = 60) -> None:
        """Wait until something is so; what stands on the screen is told when it never is.

        ``settle=False`` where a reading is held on its way: nothing would come to rest.
        """
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            await self.pilot.pause(0.02)
        if settle:
            await settled(self.pilot)
        assert condition(), self.text

    @property
    def lines(self) -> list[str]:
        return ["".join(s.text for s in strip) for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines)

    def line(self, words: str) -> str:
        """The first line that holds these words."""
        return next((line for line in self.lines if words in line), "")

    @property
    def chosen(self) -> str:
        """The line of the selected row."""
        return next((line for line in self.lines if line.startswith("▌")), "")


def shown(
    home: Path,
    opened: Callable[[LooptapeApp], object],
    *keys: str,
    size: Size = (120, 40),
    then: Callable[[Seat], Awaitable[Any]] | None = None,
) -> str:
    """What stands on a screen of a store that ``opened`` opens, after these keys; nothing remembered from before."""
    seen: list[str] = []
    (home / FILE).unlink(missing_ok=True)

    async def steps(seat: Seat) -> None:
        opened(seat.app)
        await seat.settle()
        await seat.press(*keys)
        seen.append(seat.text)
        if then is not None:
            await then(seat)

    drive(StoreSource(home), steps, size=size)
    return seen[0]


def drive(
    source: Any,
    steps: Callable[[Seat], Awaitable[None]],
    *,
    run: str | None = None,
    size: Size = (120, 40),
    **more: Any,
) -> Any:
    """Run the app over a source, do the steps, and give back what the app returned."""

    async def session() -> Any:
        app = LooptapeApp(source, run, **more)
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            await steps(Seat(app, pilot))
        return app.return_value

    return asyncio.run(session())
