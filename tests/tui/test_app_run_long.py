"""A run of thousands of turns: at once where one stood, then whole; its end, its errors, a search, what is not done unasked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import long_run_store
from looptape.tui.data.source import StoreSource
from looptape.tui.data.views import RunView
from looptape.tui.memory import FILE
from tui_driver import Seat, drive

TURNS = 4_000


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("long")
    long_run_store.make(home, TURNS)
    return home


@pytest.fixture
def made(filled: Path) -> Path:
    """The store, with nothing remembered of the screens before."""
    (filled / FILE).unlink(missing_ok=True)
    return filled


class Watched(StoreSource):
    """A store whose readings of the run are kept."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, place="~/shop-agent")
        self.views: list[RunView] = []

    def run(self, run: str, known: RunView | None = None, around: int | None = None) -> RunView:
        view = super().run(run, known, around)
        self.views.append(view)
        return view


def test_it_opens_where_one_stood_the_last_time_and_reads_the_rest_behind_it(made: Path) -> None:
    (made / FILE).write_text(json.dumps({"run.at": {long_run_store.RUN: 2_000}}))
    source = Watched(made)

    async def steps(seat: Seat) -> None:
        assert " 2000 " in seat.chosen
        assert [v.whole for v in source.views[:2]] == [False, True]
        assert (source.views[0].turns[0].number, source.views[0].turns[-1].number) == (1_600, 2_400)
        assert "turn 2000 of 4000" in seat.text
        await seat.press("g")
        assert "   1 ›" in seat.chosen
        await seat.press("G")
        assert "4000" in seat.chosen
        await seat.press("K", "K")
        assert "3999 ✗" not in seat.chosen

    drive(source, steps, run=long_run_store.RUN)


def test_end_error_and_search_lead_where_they_should(made: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("J")
        assert "  97 ✗" in seat.chosen
        await seat.press("u")
        assert "1001 ›" in seat.chosen
        await seat.press("slash", *long_run_store.NEEDLE, "enter")
        assert f"{TURNS - long_run_store.CYCLE}   /" in seat.chosen
        assert f"/ found   in result of bash: {long_run_store.NEEDLE} at line 7" in seat.text

    drive(StoreSource(made), steps, run=long_run_store.RUN)


def test_of_a_long_run_only_the_last_turns_are_looked_through_and_that_is_said(made: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.met(lambda: "1 cycle" in seat.lines[3])
        assert "4,000 turns are not explained unasked: looptape why 30000000 does it" in seat.lines[0]
        assert "cycles are looked for from turn 2,001 on; ! looks for findings in all of it" in seat.lines[1]
        await seat.press("c")
        assert "↻┌ 3989 ✗" in seat.chosen
        await seat.press("greater_than_sign")
        assert "findings of a run as long as this are not looked for by themselves: ! does it" in seat.text

    drive(StoreSource(made), steps, run=long_run_store.RUN, size=(200, 40))
