"""Costs: figures, the chart of the days, tables by model, tool and the like; every key of the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import turn_tapes
from composed import START, Composed, Step
from looptape.tracer.store import open_store
from looptape.tui.place import Place, Scope
from looptape.tui.screens.costs.table import combined
from looptape.tui.widgets.column_chart import grouped
from rule_runs import call, recording_of, turn, work
from tui_driver import Seat, shown
from tui_fakes import EVIL

DAY = 86_400_000_000
DEAR, CHEAP, UNPRICED, WILD, CIRCLES = (f"{n:016x}" for n in (1, 2, 3, 4, 5))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    steps = [Step(input=1000, cache_read=9000, output=500, tool="search") for _ in range(6)]
    cheap = [Step(input=10, output=5, model="claude-haiku-4-5") for _ in range(3)]
    loop = [turn(call("find_order", {"number": "A-1"}, "Error: none", error=True)) for _ in range(12)]
    with open_store(folder) as store:
        store.ingest(list(Composed(DEAR, steps, name="checkout", task="buy a mug", outcome="pass").records()))
        store.ingest(list(Composed(CHEAP, cheap, name="mail", start=START + 3 * DAY).records()))
        store.ingest(list(Composed(UNPRICED, [Step(model="unheard-of")], name="new", start=START + DAY).records()))
        wild = [Step(model=EVIL, tool=EVIL)]
        store.ingest(list(Composed(WILD, wild, name=EVIL, task=EVIL, outcome=EVIL, start=START + DAY).records()))
        store.ingest(turn_tapes.records(recording_of(*work(2), *loop, turn(text="No."), id=CIRCLES, name="orders")))
    return folder


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


def costs(home: Path, scope: Scope, *keys: str, **more: Any) -> str:
    return shown(home, lambda app: app.open_costs(scope), *keys, **{"size": (140, 40)} | more)


def line(text: str, words: str) -> str:
    return next((row for row in text.split("\n") if words in row), "")


def test_the_figures_of_all_runs_stand_at_the_head(home: Path) -> None:
    head, figures = costs(home, Scope()).split("\n")[:2]
    assert "costs  all runs" in head
    assert "5 runs" in head
    assert "≥$" in head  # two turns have no price
    assert "in cycles" in head
    assert "26 turns" in figures
    assert "cache " in figures
    assert "errors " in figures
    assert "retried " in figures
    assert "generate 4.0 s, p95 4.0 s" in figures


def test_by_model_there_is_a_bar_and_what_cannot_be_priced_is_no_zero(home: Path) -> None:
    text = costs(home, Scope())
    dear = line(text, "claude-sonnet-4-5")
    assert "█" in dear
    assert line(text, "claude-haiku-4-5").count("█") < dear.count("█")
    assert "-" in line(text, "unheard-of").split()
    assert "2 turns cannot be priced: sums over them are partial (≥)" in text


def test_the_days_are_a_chart_with_its_scale(home: Path) -> None:
    text = costs(home, Scope())
    assert "cost by day" in text
    assert "2025-11-29" in text
    assert "2025-12-02" in text
    assert "▏" in text
    assert "cost by day" not in costs(home, Scope((CHEAP,)))  # one day is no chart
    assert "cost by day" not in costs(home, Scope(), size=(80, 18))


def test_tab_and_brackets_go_from_table_to_table(home: Path) -> None:
    tools = costs(home, Scope(), "tab")
    assert "find_order" in tools
    assert "12" in line(tools, "find_order").split()
    days = costs(home, Scope(), "tab", "right_square_bracket")
    assert "Sat 2025-11-29" in days
    assert "Tue 2025-12-02" in days
    assert "Sat 2025-11-29" in costs(home, Scope(), "3")
    runs = costs(home, Scope(), "left_square_bracket")
    assert "checkout  00000000" in runs
    tasks = costs(home, Scope(), *["tab"] * 4)
    assert "buy a mug" in tasks
    assert "100 %" in line(tasks, "buy a mug")
    outcomes = costs(home, Scope(), *["tab"] * 5)
    assert "pass" in outcomes
    assert "not said" in outcomes


def test_the_table_that_was_seen_last_is_seen_first(home: Path) -> None:
    async def then(seat: Seat) -> None:
        await seat.press("q")
        seat.app.open_costs(Scope())
        await seat.settle()
        assert "find_order" in seat.text

    costs(home, Scope(), "tab", then=then)


def test_s_sorts_by_a_column(home: Path) -> None:
    async def then(seat: Seat) -> None:
        await seat.press("s")
        assert "sort by" in seat.text
        await seat.press("escape")
        seat.app.screen.sort_by("turns")
        await seat.settle()
        assert [row["turns"] for row in seat.app.screen.listing.rows] == [15, 6, 3, 1, 1]
        seat.app.screen.sort_by("nothing")
        await seat.settle()
        assert "no column nothing" in seat.text

    costs(home, Scope(), "left_square_bracket", then=then)


def test_slash_picks_runs_by_the_filter_of_the_runs(home: Path) -> None:
    async def then(seat: Seat) -> None:
        await seat.press("slash", *"name:mail", "enter")
        await seat.until("costs  name:mail")
        await seat.until("1 run")
        assert "claude-sonnet" not in seat.text
        assert "claude-haiku" in seat.text

    costs(home, Scope(), then=then)


def test_a_filter_that_cannot_be_read_is_told_and_the_table_stays(home: Path) -> None:
    async def then(seat: Seat) -> None:
        await seat.press("slash", *"nonsense:1", "enter")
        await seat.until("the filter has no key 'nonsense'")

    costs(home, Scope(), then=then)


def test_enter_leads_to_the_runs_behind_a_row(home: Path) -> None:
    async def then(seat: Seat) -> None:
        await seat.press("enter")
        await seat.until("model:claude-sonnet-4-5")
        assert "checkout" in seat.text
        assert "mail" not in seat.text

    costs(home, Scope(), then=then)


def test_enter_on_a_run_opens_it(home: Path) -> None:
    assert "turn 1" in costs(home, Scope(), "left_square_bracket", "enter")


def test_one_run_has_its_costs(home: Path) -> None:
    async def then(seat: Seat) -> None:
        assert seat.app.screen.subject().place == Place(CHEAP)
        assert seat.app.screen.scope() == Scope((CHEAP,))
        await seat.press("dollar_sign")
        assert "these are the costs" in seat.text

    text = costs(home, Scope((CHEAP,)), then=then)
    assert "3 turns" in text
    assert "claude-haiku-4-5" in text


def test_another_filter_of_a_key_takes_the_place_of_the_first() -> None:
    assert combined("since:7d error:yes", "since:2026-11-29") == "error:yes since:2026-11-29"
    assert combined('name:"a b" x', "model:m") == 'name:"a b" x model:m'


def test_many_days_share_columns() -> None:
    sums, marked, each = grouped([1.0] * 10, 4, 9)
    assert (sums, marked, each) == ([3.0, 3.0, 3.0, 1.0], 3, 3)
    assert grouped([1.0, 2.0], 60, None) == ([1.0, 2.0], None, 1)


@pytest.mark.parametrize("size", [(80, 24), (140, 40), (40, 12)], ids=["80x24", "140x40", "40x12"])
def test_what_was_recorded_cannot_act_on_the_terminal(home: Path, size: tuple[int, int]) -> None:
    async def then(seat: Seat) -> None:
        for _ in range(7):
            await seat.press("tab")
            assert not any(c in seat.text.replace("\n", "") for c in map(chr, (*range(32), 127, *range(128, 160))))

    costs(home, Scope(), size=size, then=then)
