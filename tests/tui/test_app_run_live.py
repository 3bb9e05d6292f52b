"""A run that goes on while somebody reads it: nothing moves under the reader, and following is told."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tui_driver import Seat, drive
from tui_fakes import FakeSource, long_run

RUN = "00000000000000ff"
TURNS = 200


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("looptape.tui.screens.run.watching.EVERY", 0.02)


def growing() -> tuple[FakeSource, list]:
    """A run of ten turns that is going on, and the turns that are still to come."""
    source = long_run(10 + TURNS)
    turns = list(source.turns[RUN])
    source.turns[RUN] = tuple(turns[:10])
    source.all_runs = (replace(source.all_runs[0], status="running", turns=10, ended_at=None),)
    return source, turns[10:]


async def stream(seat: Seat, source: FakeSource, turns: list, pieces: int = 10) -> None:
    size = len(turns) // pieces
    for piece in range(pieces):
        source.turns[RUN] = (*source.turns[RUN], *turns[piece * size : (piece + 1) * size])
        source.all_runs = (replace(source.all_runs[0], turns=len(source.turns[RUN])),)
        source.mark += 1
        known = len(source.turns[RUN])
        for _ in range(3_000):
            if not seat.app.screen.is_current or not hasattr(seat.app.screen, "turns"):
                break
            if len(seat.app.screen.turns.numbers) == known:
                break
            await asyncio.sleep(0.02)
    await seat.settle()


def test_200_new_turns_leave_the_reader_where_he_is_and_are_counted() -> None:
    source, coming = growing()

    async def steps(seat: Seat) -> None:
        await seat.press("j", "j", "j", "j")
        listing, detail = seat.app.screen.listing, seat.app.screen.detail
        await seat.press("l", "j")
        before = detail.scroll_offset, listing.scroll_offset, seat.app.screen.focused
        await stream(seat, source, coming)
        assert "   5 " in seat.chosen
        assert "turn 5 of 210" in seat.text
        assert (detail.scroll_offset, listing.scroll_offset, seat.app.screen.focused) == before
        assert "▼ 200 new turns" in seat.text
        assert "following" not in seat.text
        await seat.press("h", "G")
        assert "new turns" not in seat.text
        assert " 210 " in seat.chosen

    drive(source, steps, run=RUN)


def test_following_stays_at_the_end_until_one_moves_away() -> None:
    source, coming = growing()

    async def steps(seat: Seat) -> None:
        await seat.press("f")
        assert "▶ following" in seat.text
        await stream(seat, source, coming[:100], 5)
        assert " 110 " in seat.chosen
        assert "▶ following" in seat.text
        await seat.press("k")
        assert "following" not in seat.text
        await stream(seat, source, coming[100:], 5)
        assert " 109 " in seat.chosen
        assert "▼ 100 new turns" in seat.text
        await seat.press("f")
        assert " 210 " in seat.chosen
        await seat.press("f")
        assert "following" not in seat.text

    drive(source, steps, run=RUN)


def test_an_open_menu_stays_open_while_turns_come_in() -> None:
    source, coming = growing()

    async def steps(seat: Seat) -> None:
        await seat.press("j", "question_mark")
        menu = seat.app.screen
        await stream(seat, source, coming, 2)
        await asyncio.sleep(0.1)
        assert seat.app.screen is menu
        await seat.press("escape")
        assert "   2 " in seat.chosen

    drive(source, steps, run=RUN)


def test_an_open_search_line_keeps_what_is_typed_while_turns_come_in() -> None:
    source, coming = growing()

    async def steps(seat: Seat) -> None:
        await seat.press("slash", "a", "b")
        await stream(seat, source, coming, 2)
        await seat.press("c")
        assert "/ abc" in seat.text
        assert "   1 " in seat.chosen

    drive(source, steps, run=RUN)
