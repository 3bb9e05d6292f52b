"""The list of runs looked at in many ways: sorted, filtered, grouped, marked, live; and what it remembers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from looptape.sample_traces import demo
from looptape.tracer.importers import import_path
from looptape.tracer.model import Run
from looptape.tracer.store import open_store
from looptape.tui.data.source import StoreSource
from looptape.tui.place import Scope
from looptape.tui.screens.runs.lines import RunLines
from looptape.tui.widgets.virtual_list import VirtualList
from tui_driver import Seat, drive
from tui_fakes import NOW, FakeSource, held, hostile, many, shop


def newcomers(count: int) -> tuple[Run, ...]:
    return tuple(
        Run(id=f"new{i:05}", name=f"newcomer-{i}", status="running", started_at=NOW + 1 + i, turns=1)
        for i in reversed(range(count))
    )


def listing(seat: Seat) -> VirtualList[object]:
    return seat.app.screen.query_one("#runs", VirtualList)


def names(seat: Seat) -> list[str]:
    return [line[5:26].strip() for line in seat.lines[2:-1] if line.strip()]


def test_a_click_on_a_title_sorts_and_a_second_one_turns_it_round() -> None:
    async def steps(seat: Seat) -> None:
        at = seat.lines[1].index("turns")
        await seat.pilot.click("#runs", offset=(at + 1, 0))
        await seat.settle()
        assert "sorted by turns" in seat.text
        assert "▼turns" in seat.lines[1]
        assert names(seat)[0] == "refund-agent"
        await seat.pilot.click("#runs", offset=(at + 1, 0))
        await seat.settle()
        assert "▲turns" in seat.lines[1]
        assert names(seat)[0] == "price-lookup"

    source = shop()
    source.all_runs = tuple(replace(r, parent=None) for r in source.all_runs)
    drive(source, steps)


def test_p_groups_by_project_with_subtotals_and_enter_folds_one() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("p")
        assert "10 runs    125" in seat.line("▾  shop-agent")
        assert "5.17" in seat.line("▾  shop-agent")
        assert "└" not in seat.text
        await seat.press("g", "enter")
        assert "▸  shop-agent" in seat.text
        assert "refund-agent" not in seat.text
        assert "データ" in seat.text.replace(" ", "")
        await seat.press("m", "d")
        assert "nothing to compare here" in seat.text
        await seat.press("enter", "p")
        assert "as a list" in seat.lines[0]
        assert "└" not in seat.text
        await seat.press("p")
        assert "└ price-lookup" in seat.text

    drive(shop(), steps)


def test_a_wrong_filter_is_said_while_one_types_and_the_list_is_what_the_rest_picks() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("slash", *"turns:>20 eror:")
        assert "the filter has no key 'eror'" in seat.text
        assert "Did you mean error:" in seat.text
        assert "2 of 11 runs" in seat.text
        await seat.press("backspace", "backspace", "backspace", "backspace", "backspace")
        assert "no key" not in seat.text
        assert "2 of 11 runs" in seat.text

    drive(shop(), steps)


def test_the_filter_speaks_the_language_of_the_command_line() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("slash", *"source:claude* cost:>1", "enter")
        assert "1 of 11 runs" in seat.text
        assert "fix the flaky" in seat.chosen

    drive(shop(), steps)


def test_c_shows_only_runs_that_go_in_circles_and_all_again() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("c")
        assert "cycle:yes" in seat.lines[1]
        assert "2 of 11 runs" in seat.text
        await seat.press("c")
        assert "2 of" not in seat.text

    drive(shop(), steps)


def test_marks_stand_in_the_rows() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("j", "m")
        assert "◆ checkout-flow" in seat.chosen
        await seat.press("k")
        assert "◆" not in seat.chosen
        await seat.press("j", "m")
        assert "◆" not in seat.text

    drive(shop(), steps)


def test_cycles_findings_and_the_window_stand_in_columns_zero_is_a_dash_unknown_a_blank() -> None:
    source = shop()
    of_second = source.all_runs[1].id
    source.facts[of_second] = replace(source.facts[of_second], cycles=None, findings=None, context=None)

    async def steps(seat: Seat) -> None:
        head = seat.lines[1]
        circles, findings, context = head.index("↻"), head.index("!"), head.index("context")
        refund = seat.line("✗  refund-agent")
        assert (refund[circles], refund[findings]) == ("1", "3")
        assert "85 %" in refund[context : context + 14]
        fork = seat.line("└ refund-agent")
        assert (fork[circles], fork[findings]) == ("-", "-")
        unknown = next(line for line in seat.lines if "18m" in line)
        assert (unknown[circles], unknown[findings], unknown[context : context + 13].strip()) == (" ", " ", "")
        assert "8.2k" in seat.line("2d")  # no list says what its model can read: tokens, no share

    drive(source, steps)


def test_live_runs_move_neither_selection_nor_scroll_nor_focus() -> None:
    source = many(500)

    async def steps(seat: Seat) -> None:
        await seat.press(*["pagedown"] * 3)
        chosen = seat.chosen
        listing(seat).scroll_to(y=200, animate=False)  # read on, away from the selection
        await seat.settle()
        away = [line[:34] for line in seat.lines[2:10]]
        source.all_runs = (*newcomers(40), *source.all_runs)
        source.mark += 1
        await seat.until("540 runs")
        assert [line[:34] for line in seat.lines[2:10]] == away
        await seat.press("slash", "j")
        source.all_runs = (*newcomers(45)[:5], *source.all_runs)
        source.mark += 1
        await seat.until("of 545 runs")
        assert seat.lines[1].strip().startswith("/ j")
        await seat.press("escape")
        await seat.press("j", "k")
        assert seat.chosen.split()[:4] == chosen.split()[:4]

    drive(source, steps)


def test_following_stays_on_the_newest_run_until_one_moves_away() -> None:
    source = many(50)

    async def steps(seat: Seat) -> None:
        await seat.press("j", "j", "f")
        assert "▶ following" in seat.lines[0]
        assert listing(seat).cursor == 0
        source.all_runs = (*newcomers(1), *source.all_runs)
        source.mark += 1
        await seat.until("newcomer-0")
        assert "newcomer-0" in seat.chosen
        await seat.press("j")
        assert "following" not in seat.lines[0]

    drive(source, steps)


def test_a_long_list_reads_only_the_lines_one_sees() -> None:
    async def steps(seat: Seat) -> None:
        rows = listing(seat).rows
        assert isinstance(rows, RunLines)
        assert len(rows) == 5_000
        await seat.press("G")
        assert "agent-" in seat.chosen
        rows = listing(seat).rows
        assert isinstance(rows, RunLines)
        assert len(rows.read(0, len(rows))) < 600

    drive(many(5_000), steps)


def test_lines_that_could_not_be_read_are_read_when_the_store_is_free_again() -> None:
    source = many(5_000)

    async def steps(seat: Seat) -> None:
        ask = source.ask

        def refuse(_question: object) -> object:
            raise held()

        source.ask = refuse  # type: ignore[method-assign]
        await seat.press("G")
        assert "agent-" not in seat.chosen
        source.ask = ask  # type: ignore[method-assign]
        await seat.press("k", "j")
        assert "agent-" in seat.chosen

    drive(source, steps)


def test_the_next_run_with_errors_is_found_wherever_it_is() -> None:
    source = many(3_000)
    source.all_runs = tuple(replace(r, errors=int(i == 2_500)) for i, r in enumerate(source.all_runs))

    async def steps(seat: Seat) -> None:
        await seat.press("J")
        assert listing(seat).cursor == 2_500
        await seat.press("J")
        assert "no more runs with errors below" in seat.text

    drive(source, steps)


def test_findings_and_costs_are_about_the_runs_of_the_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Scope] = []

    async def steps(seat: Seat) -> None:
        monkeypatch.setattr(seat.app, "open_findings", asked.append)
        monkeypatch.setattr(seat.app, "open_costs", asked.append)
        await seat.press("slash", *"turns:>20", "enter", "exclamation_mark", "dollar_sign")
        await seat.press("escape", "p", "g", "dollar_sign")

    drive(shop(), steps)
    assert [s.filter for s in asked] == ["turns:>20", "turns:>20", 'project:"/home/kim/shop-agent"']


def test_order_filter_grouping_folds_and_selection_are_there_again_the_next_time(tmp_path: Path) -> None:
    def source() -> FakeSource:
        made = shop()
        made.home = tmp_path  # type: ignore[assignment]
        return made

    async def first(seat: Seat) -> None:
        await seat.press("p", "j", "j", "j", "j", "slash", *"model:claude*", "enter", "S")

    async def second(seat: Seat) -> None:
        assert "model:claude*" in seat.lines[1]
        assert "by project" in seat.lines[0]
        assert "▲when" in seat.lines[2]
        assert "10 of 11 runs" in seat.lines[0]
        assert "price-lookup" in seat.chosen

    drive(source(), first)
    drive(source(), second)


def test_a_remembered_filter_that_is_wrong_by_now_is_left_out_and_said(tmp_path: Path) -> None:
    (tmp_path / "screen.json").write_text('{"runs.filter": "colour:red", "runs.sort": ["beauty", 7], "runs.group": 3}')
    source = shop()
    source.home = tmp_path  # type: ignore[assignment]

    async def steps(seat: Seat) -> None:
        assert "11 runs" in seat.lines[0]
        assert "the filter of last time is left out" in seat.text

    drive(source, steps)


def test_hostile_texts_are_shown_in_every_grouping_and_width() -> None:
    async def steps(seat: Seat) -> None:
        for _ in range(3):
            await seat.press("p", "G", "g")
            assert "\x1b" not in seat.text
            assert "Nothing recorded" not in seat.text
        await seat.press("slash", *"[/ [b", "enter", "escape")

    for size in ((80, 24), (200, 60)):
        drive(hostile(), steps, size=size)


def test_what_cycles_and_rules_find_comes_in_by_itself_and_is_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with open_store(home) as store:
        for tape in sample_tapes(("cycle", "streaming")):
            import_path(store, tape)

    async def steps(seat: Seat) -> None:
        await seat.until("in circles")
        circles = seat.lines[1].index("↻")
        assert seat.line("where-is-my")[circles] in "123"
        assert "%" in seat.line("where-is-my")[seat.lines[1].index("context") :]
        await seat.press("c")
        assert "where-is-my" in seat.chosen

    drive(StoreSource(home), steps)
    with open_store(home) as store:
        kinds = {row["kind"] for row in store.rows("select distinct kind from base.derived")}
    assert kinds == {"listed", "wasted"}


def sample_tapes(wanted: Sequence[str]) -> list[Path]:
    return [tape for tape in demo.tapes() if tape.stem in wanted]


def test_a_store_that_cannot_be_written_leaves_the_facts_blank_and_says_nothing() -> None:
    source = shop()
    source.facts = {}

    def refuse(_work: object) -> object:
        raise held()

    source.change = refuse  # type: ignore[method-assign]

    async def steps(seat: Seat) -> None:
        assert "PID" not in seat.text
        assert seat.line("✗  refund-agent")[seat.lines[1].index("↻")] == " "

    drive(source, steps)


def test_a_menu_that_is_open_stays_open_while_runs_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("looptape.tui.screens.runs.screen.EVERY", 0.05)
    source = many(50)

    async def steps(seat: Seat) -> None:
        await seat.press("s", "j", "j")
        chosen = seat.app.screen.query_one(VirtualList).cursor
        source.all_runs = (*newcomers(3), *source.all_runs)
        source.mark += 1
        await seat.pilot.pause(0.3)
        assert "sort by" in seat.text
        assert seat.app.screen.query_one(VirtualList).cursor == chosen

    drive(source, steps)
