"""The list of runs, as a user meets it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from looptape.tracer.model import Run
from looptape.tui.data.views import Found
from tui_driver import Seat, drive
from tui_fakes import NOW, FakeSource, held, many, shop


def test_every_run_is_listed_with_its_state_in_words_and_signs_not_only_in_colour() -> None:
    async def steps(seat: Seat) -> None:
        assert "11 runs · $5.25 + 1 unpriced · ● 1 running" in seat.text
        assert "▶ running" in seat.line("●  checkout-flow")
        assert "at the turn limit" in seat.line("✗  refund-agent")
        assert "↻ 2 in circles" in seat.lines[0]
        assert "◌  invoice-parse" in seat.text
        assert "sub-agent @12" in seat.line("└ price-lookup")
        assert "unpriced" in seat.line("09 Nov")
        assert "データ取込み" in seat.text.replace(" ", "")
        assert seat.chosen.startswith("▌ ●  checkout-flow")

    drive(shop(), steps)


@pytest.mark.parametrize(
    ("size", "there", "gone"),
    [((80, 24), "err", "cache"), ((120, 40), "cache", "project"), ((200, 60), "project", "…nothing…")],
)
def test_narrow_screens_drop_the_less_important_columns(size: tuple[int, int], there: str, gone: str) -> None:
    async def steps(seat: Seat) -> None:
        head = seat.line("turns")
        assert there in head
        assert gone not in head
        assert all(len(line) <= size[0] for line in seat.lines)

    drive(shop(), steps, size=size)


def test_a_filter_narrows_the_list_and_esc_takes_it_away() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("slash", *"refund status:limit")
        assert "1 of 11 runs" in seat.text
        await seat.press("enter")
        assert "refund-agent" in seat.chosen
        assert "invoice-parse" not in seat.text
        await seat.press("escape")
        assert "invoice-parse" in seat.text
        assert "of 11" not in seat.text

    drive(shop(), steps)


def test_a_filter_that_matches_nothing_says_so() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("slash", *"zzz")
        assert "no run matches zzz" in seat.text
        await seat.press("escape")
        assert "checkout-flow" in seat.chosen

    drive(shop(), steps)


def test_on_a_narrow_screen_the_counts_stay_and_the_place_gives_way() -> None:
    source = shop()
    source.place = "~/a/very/long/path/to/some/project/of/a/team/with/long/names"

    async def steps(seat: Seat) -> None:
        await seat.press("slash", *"checkout")
        assert "3 of 11 runs · $0.14 + 1 unpriced · ● 1 running" in seat.lines[0]

    drive(source, steps, size=(80, 24))


def test_s_lists_the_columns_and_sorts_by_the_chosen_one_and_keeps_the_selection() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("j")
        await seat.press("s")
        assert "sort by" in seat.text
        assert "how full its window was" in seat.text
        await seat.press("slash", *"cost", "enter", "enter")
        assert "sorted by cost" in seat.text
        assert "18m" in seat.chosen
        assert "▼$" in seat.lines[1]
        await seat.press("g")
        assert "2.24" in seat.chosen
        await seat.press("S", "g")
        assert "▲$" in seat.lines[1]
        assert "0.04" in seat.chosen
        await seat.press("G")
        assert "unpriced" in seat.chosen  # what has no value comes last either way

    source = shop()
    source.all_runs = tuple(r for r in source.all_runs if r.parent is None)
    drive(source, steps)


def test_a_new_run_appears_and_the_selection_stays_where_it_is() -> None:
    source = shop()

    async def steps(seat: Seat) -> None:
        await seat.press("j", "j")
        assert "refund-agent" in seat.chosen
        source.all_runs = (
            Run(id="f" * 16, name="brand-new", status="running", started_at=NOW, turns=1),
            *source.all_runs,
        )
        source.mark += 1
        await seat.until("brand-new")
        assert "refund-agent" in seat.chosen
        assert "1h" in seat.chosen

    drive(source, steps)


def test_nothing_is_read_again_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("looptape.tui.screens.runs.screen.EVERY", 0.05)
    source = shop()
    looks: list[object] = []
    version = source.version
    monkeypatch.setattr(source, "version", lambda: looks.append(None) or version())

    async def steps(seat: Seat) -> None:
        before, looked = source.reads, len(looks)
        await seat.met(lambda: len(looks) > looked + 3)
        assert source.reads == before

    drive(source, steps)


def test_follow_stays_on_the_newest_run() -> None:
    source = shop()

    async def steps(seat: Seat) -> None:
        await seat.press("j", "f")
        assert "following" in seat.text
        source.all_runs = (
            Run(id="f" * 16, name="brand-new", status="running", started_at=NOW, turns=1),
            *source.all_runs,
        )
        source.mark += 1
        await seat.until("brand-new")
        assert "brand-new" in seat.chosen

    drive(source, steps)


def test_a_held_store_is_a_line_on_the_screen_and_what_is_shown_stays() -> None:
    source = shop()

    async def steps(seat: Seat) -> None:
        source.fail = held()
        source.mark += 1
        await seat.until("PID 4711")
        assert "! python (PID 4711) has the store open. close it, or wait: nothing is lost" in seat.text
        assert "refund-agent" in seat.text
        source.fail = None
        await seat.until("PID 4711", gone=True)

    drive(source, steps)


def test_an_unreadable_store_at_the_start_is_not_called_empty() -> None:
    source = shop()
    source.fail = held()

    async def steps(seat: Seat) -> None:
        assert "could not be read" in seat.text
        assert "PID 4711" in seat.text
        assert "Nothing recorded" not in seat.text

    drive(source, steps)


def test_a_surprise_in_a_reading_is_a_line_too() -> None:
    source = shop()
    source.fail = ZeroDivisionError("[/oops")

    async def steps(seat: Seat) -> None:
        assert "ZeroDivisionError: [/oops" in seat.text

    drive(source, steps)


def test_what_the_store_has_to_say_is_shown() -> None:
    source = shop()
    source.notices = (
        "as of 14:02, 3 journals waiting: your notebook (python, PID 77) has the store open; nothing is lost",
    )

    async def steps(seat: Seat) -> None:
        assert "! as of 14:02, 3 journals waiting" in seat.text

    drive(source, steps)


def test_an_empty_store_says_how_to_record_and_what_was_found() -> None:
    async def steps(seat: Seat) -> None:
        assert "Nothing recorded yet." in seat.text
        assert "client = looptape.wrap(anthropic.Anthropic())" in seat.text
        assert "looptape record -- python agent.py" in seat.text
        assert "the demo: sample loops" in seat.text
        assert "import, and keep in step: 612 Claude Code sessions, 1.9 GB" in seat.text
        assert "d demo" in seat.lines[-1]
        assert "filter" not in seat.lines[-1]

    drive(FakeSource(found=[Found("612 Claude Code sessions, 1.9 GB", "looptape import --claude-code")]), steps)


def test_j_and_k_in_capitals_go_to_runs_with_errors() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("J")
        assert "refund-agent" in seat.chosen
        await seat.press("J")
        assert "flaky test" in seat.chosen or "fix the" in seat.chosen
        await seat.press("J")
        assert "no more runs with errors below" in seat.text
        await seat.press("K")
        assert "refund-agent" in seat.chosen

    drive(shop(), steps)


def test_the_question_mark_lists_the_keys_valid_here_and_enter_does_one() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("question_mark")
        assert "keys valid here" in seat.text
        assert "sort by a column" in seat.text
        assert "raw or pretty" not in seat.text
        await seat.press("j", "enter")
        assert "when it began" in seat.text
        await seat.press("escape", "question_mark", "escape")
        assert "keys valid here" not in seat.text

    drive(shop(), steps)


def test_the_command_palette_offers_our_commands() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("ctrl+p", *"light")
        assert "Colours: light" in seat.text
        await seat.press("enter")
        assert seat.app.theme == "looptape-light"

    drive(shop(), steps)


def test_q_leaves_with_status_zero() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("q")

    assert drive(shop(), steps) == 0


def test_ten_thousand_runs_are_filtered_and_walked() -> None:
    async def steps(seat: Seat) -> None:
        assert "10,000 runs" in seat.text
        await seat.press("G")
        assert "9.99" in seat.chosen or "10.00" in seat.chosen
        await seat.press("slash", *"agent-96")
        await seat.until("of 10,000 runs")
        assert "agent-96" in seat.chosen or "agent-96" in seat.text

    drive(many(10_000), steps)


def test_readings_happen_off_the_screen_thread() -> None:
    source = shop()

    async def steps(seat: Seat) -> None:
        await seat.press("enter", "enter", "6")
        assert source.reads >= 4
        assert "MainThread" not in source.threads

    drive(source, steps)


def test_a_run_without_end_shows_its_time_so_far() -> None:
    source = shop()
    source.all_runs = (replace(source.all_runs[0], started_at=NOW - 125 * 1_000_000),)

    async def steps(seat: Seat) -> None:
        assert "2:05" in seat.chosen

    drive(source, steps, size=(200, 40))


def test_forks_and_sub_agents_stand_below_their_parent() -> None:
    async def steps(seat: Seat) -> None:
        names = [line[5:25].strip() for line in seat.lines[2:8]]
        assert names == [
            "checkout-flow",
            "checkout-flow",
            "refund-agent",
            "└ price-lookup",
            "└ refund-agent",
            "invoice-parse",
        ]
        await seat.press("slash", *"price")
        assert "└" not in seat.text

    drive(shop(), steps)
