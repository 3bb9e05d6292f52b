"""The virtual list: the selection, and what it costs."""

from __future__ import annotations

import asyncio

from textual.app import App, ComposeResult

from looptape.tui.app import LooptapeApp
from looptape.tui.picture import settled
from looptape.tui.widgets.cells import Column
from looptape.tui.widgets.virtual_list import VirtualList, found_again
from tui_fakes import many


def again(keys: str, key: str | None, before: int) -> int:
    return found_again(lambda i: keys[i], len(keys), key, before)


def test_the_selection_stays_on_its_key_whatever_came_or_went() -> None:
    assert again("abcd", "c", 2) == 2
    assert again("xxabcd", "c", 2) == 4
    assert again("cd", "c", 2) == 0


def test_the_selection_stays_near_when_its_row_is_gone() -> None:
    assert again("abd", "c", 2) == 2
    assert again("ab", "c", 2) == 1
    assert again("", "c", 2) == 0
    assert again("abc", None, 7) == 2


class Listing(App[None]):
    asked = 0

    def compose(self) -> ComposeResult:
        yield VirtualList[int]((Column("n", "number", 10, right=True),), str, self.cells)

    def cells(self, row: int, _column: str) -> tuple[tuple[str, str], ...]:
        self.asked += 1
        return ((f"row {row}", "text"),)


def test_only_rows_on_the_screen_are_asked_for() -> None:
    async def session() -> None:
        app = Listing()
        async with app.run_test(size=(40, 12)) as pilot:
            listing = app.query_one(VirtualList)
            listing.show(range(100_000))
            await pilot.pause()
            assert app.asked < 60
            listing.focus()
            await pilot.press("G")
            assert listing.selected == 99_999
            assert app.asked < 120
            listing.show(range(-5, 100_000))
            await pilot.pause()
            assert listing.selected == 99_999
            assert listing.scroll_offset.y == 100_005 - 11

    asyncio.run(session())


def test_new_rows_above_do_not_move_what_is_read() -> None:
    async def session() -> None:
        app = Listing()
        async with app.run_test(size=(40, 12)) as pilot:
            listing = app.query_one(VirtualList)
            listing.show(range(1000))
            listing.choose(500)
            await pilot.pause()
            place = listing.cursor - listing.scroll_offset.y
            listing.show(range(-30, 1000))
            await pilot.pause()
            assert listing.selected == 500
            assert listing.cursor - listing.scroll_offset.y == place

    asyncio.run(session())


def test_a_click_selects_and_a_second_one_opens() -> None:
    async def session() -> None:
        app = LooptapeApp(many(100))
        async with app.run_test(size=(100, 20)) as pilot:
            await settled(pilot)
            await pilot.click("#runs", offset=(10, 4))
            assert app.screen.query_one("#runs", VirtualList).cursor == 3
            await pilot.click("#runs", offset=(10, 4), times=2)
            await settled(pilot)
            assert app.screen.query("#turns")

    asyncio.run(session())
