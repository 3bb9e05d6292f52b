"""The fork screen in a test: a recorded run, the screen on it, and waiting until a fork is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from looptape.tracer import process
from looptape.tracer.model import Run
from looptape.tracer.store import Filter, open_store
from looptape.tui.data.source import StoreSource
from looptape.tui.place import Place
from tui_driver import Seat, Size, drive

Steps = Callable[[Seat], Awaitable[None]]

TOOLS = '''
RAN = []

def search(q: str) -> str:
    """looks up"""
    RAN.append(q)
    return "really " + q

TOOLS = [{"name": "search", "function": search, "side_effect": "mutate"}]
'''
"""A module of live tools, as `--tool-module` takes it."""


def home_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store that this process records into, without a key; what the fixture `home` of the fork screen's tests gives."""
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "home"))
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    former = process.replace(None)
    yield tmp_path / "home"
    process.replace(former)


def fork_screen(home: Path, run: str, turn: int | None, steps: Steps, *, size: Size = (120, 40)) -> None:
    """Does the steps on the fork screen of a run in a store, which this process then records into as well."""

    async def opened(seat: Seat) -> None:
        seat.app.open_fork(Place(run, turn))
        await seat.settle()
        await seat.settle()
        await steps(seat)

    try:
        drive(StoreSource(home), opened, size=size)
    finally:
        active = process.replace(None)
        if active is not None:
            active.at_exit()


async def wrote(seat: Seat, text: str) -> None:
    """Types a text, key by key."""
    for char in text:
        await seat.pilot.press(char)
    await seat.settle()


def words(seat: Seat) -> str:
    """What stands on the screen, without line ends and repeated blanks."""
    return " ".join(seat.text.split())


def in_box(seat: Seat) -> str:
    """The same of the box in the middle."""
    inside = " ".join(" ".join(line.split("│")[1:-1]) for line in seat.lines if line.count("│") > 1)
    return " ".join(inside.split())


async def ended(seat: Seat) -> None:
    """Waits until the fork that runs is over and its verdict stands there."""
    from looptape.tui.screens.fork.watch import ForkWatch

    watch = next(iter(screen.query_one(ForkWatch) for screen in seat.app.screen_stack if screen.query(ForkWatch)))
    await seat.settle()
    for _ in range(4800):
        await asyncio.sleep(0.025)  # to settle each time would cost more than the fork itself
        if not watch.running:
            await seat.settle()
            await seat.settle()  # the verdict's lines take their room
            return
    raise AssertionError("the fork does not end")


async def at(seat: Seat, words: str) -> None:
    """Goes down to the line that holds these words."""
    await seat.press("g")
    listing = seat.app.screen.listing  # type: ignore[attr-defined]
    for place in range(len(listing.rows)):
        await seat.met(lambda place=place: listing.cursor == place, settle=False)  # type: ignore[misc]
        if words in seat.chosen:
            await seat.settle()
            return
        await seat.pilot.press("j")
    raise AssertionError(f"no line with {words!r}:\n{seat.text}")


def runs_of(home: Path) -> list[Run]:
    """All runs of a store, the earliest first."""
    with open_store(home) as store:
        return sorted(store.runs(Filter(limit=0)), key=lambda r: (r.started_at or 0, r.id))


def forked(home: Path) -> Any:
    """The run that has a parent."""
    found = [r for r in runs_of(home) if r.parent is not None]
    assert len(found) == 1, found
    return found[0]
