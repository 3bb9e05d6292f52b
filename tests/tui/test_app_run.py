"""One run: stepping through its turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from looptape.tui.screens.run.screen import RunScreen
from tui_driver import Seat, drive
from tui_fakes import FakeSource, long_run, shop

REFUND = "3f9a1c2072d94b10"
SETTLED = 7_777.0
"""Seconds that no timer of the screen has by itself."""


def test_the_turns_stand_left_and_the_selected_turn_right() -> None:
    async def steps(seat: Seat) -> None:
        assert "refund-agent  3f9a1c20  ✗ limit · at the turn limit (40)" in seat.text
        assert "claude-sonnet-4-5 · 40 turns · $2.24" in seat.text
        assert "✗ 6 turns with errors" in seat.text
        assert "context ▁" in seat.text
        assert "turn 1 of 40  agent.py:88" in seat.text
        assert "a prompt came in" in seat.text
        assert "Please refund order A-7731 to my gift card." in seat.text
        assert "GENERATE" in seat.text
        assert "first token 0.6 s" in seat.text
        assert "PARSE     1 call · arguments are valid JSON" in seat.text
        assert "EXECUTE" in seat.text
        assert "▒" in seat.chosen
        assert "█" in seat.chosen

    drive(shop(), steps, run=REFUND)


def test_capital_j_goes_to_the_next_error_and_its_turn_is_shown() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("J")
        assert "29 ✗" in seat.chosen
        assert "book_refund ✗" in seat.chosen
        assert "turn 29 of 40" in seat.text
        assert "→ Error: the payment method does not match the order" in seat.text
        await seat.press("J", "K", "K")
        assert "no more errors above" in seat.text

    drive(shop(), steps, run=REFUND)


def test_what_came_in_is_named_after_the_tool_that_gave_it() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("G", "k", "j")
        assert "turn 40 of 40" in seat.text
        assert "RESUME    1 result came in · 14 ms" in seat.text
        assert "↳ book_refund  ✗ error · permanent" in seat.text

    drive(shop(), steps, run=REFUND)


def test_moving_on_quickly_reads_only_the_turn_one_stops_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("looptape.tui.screens.run.screen.SETTLE", SETTLED)
    stood: list[Callable[[], object]] = []
    real = RunScreen.set_timer

    def set_timer(screen: RunScreen, delay: float, callback: Any = None, **more: Any) -> Any:
        """The moment that a selection must stand comes when the test says so."""
        return stood.append(callback) if delay == SETTLED else real(screen, delay, callback, **more)

    monkeypatch.setattr(RunScreen, "set_timer", set_timer)
    source = long_run(200)

    async def steps(seat: Seat) -> None:
        seat.app.open_run("00000000000000ff")
        await seat.met(lambda: stood, settle=False)
        for place in range(1, 6):
            await seat.pilot.press("j")
            await seat.met(
                lambda place=place: seat.app.screen.listing.cursor == place and len(stood) > place, settle=False
            )
        await seat.met(lambda: not any(worker.is_running for worker in seat.app.workers), settle=False)
        before = source.reads
        for callback in stood:
            seat.app.screen.call_later(callback)
        await seat.until("turn 6 of 200")
        assert source.reads - before == 1

    drive(source, steps)


def test_the_right_pane_takes_the_keys_and_gives_them_back() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("l")
        assert seat.app.screen.focused.id == "detail"
        await seat.press("j", "escape")
        assert seat.app.screen.focused.id == "turns"
        await seat.press("escape")
        assert "11 runs" in seat.text

    drive(shop(), steps, run=REFUND)


def test_space_reads_on_through_the_turn_and_then_the_next_one() -> None:
    async def steps(seat: Seat) -> None:
        assert "1 ›" in seat.chosen
        await seat.press("space", "space", "space")
        assert " 1 ›" not in seat.chosen

    drive(shop(), steps, run=REFUND)


def test_raw_shows_the_json_as_it_was() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("j")
        assert '"total": 129.9,' in seat.text
        await seat.press("R")
        assert '"total": 129.90, "paid_with"' in seat.text

    drive(shop(), steps, run=REFUND, size=(200, 60))


def test_a_running_run_grows_and_follow_stays_on_its_newest_turn() -> None:
    source = shop()
    run = source.all_runs[0].id

    async def steps(seat: Seat) -> None:
        await seat.press("f")
        assert "the answer is still coming" in seat.text
        last = source.turns[run][-1]
        done = replace(last, status="ok", stop_reason="end_turn", text="All done.", generate_ms=900.0)
        source.turns[run] = (*source.turns[run][:-1], done, replace(last, number=6))
        source.mark += 1
        await seat.met(lambda: "6 ●" in seat.chosen)
        await seat.press("k")
        assert "All done." in seat.text

    drive(source, steps, run=run)


def test_enter_opens_the_turn_whole_and_coming_back_stands_on_the_turn_one_went_to() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("enter")
        assert "1 conversation" in seat.text
        await seat.press("l", "l", "q")
        assert " 3 " in seat.chosen
        assert "turn 3 of 40" in seat.text

    drive(shop(), steps, run=REFUND)


def test_what_is_selected_is_the_turn_with_its_text_its_answer_and_its_caller() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("J")
        subject = seat.app.screen.subject()
        assert subject.place.written == f"{REFUND}:29"
        assert "Error: the payment method does not match the order" in subject.value
        assert subject.what == "turn 29"
        assert subject.json["id"] == "msg_0029"
        assert subject.caller == "agent.py:88"
        assert seat.app.screen.scope().runs == (REFUND,)

    drive(shop(), steps, run=REFUND)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_it_is_legible_at_every_size(size: tuple[int, int], theme: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("J")
        assert "refund-agent" in seat.text
        assert "limit · at the turn limit (40)" in seat.text
        assert "book_refund" in seat.chosen
        assert "turn 29 of 40" in seat.text
        assert "? keys" in seat.lines[-1]
        assert all(len(line) == size[0] for line in seat.lines)

    drive(shop(), steps, run=REFUND, size=size, theme=theme)


def test_a_run_without_turns_says_so() -> None:
    source = shop()
    only = FakeSource([replace(source.all_runs[0], turns=0)], {source.all_runs[0].id: ()})

    async def steps(seat: Seat) -> None:
        assert "This run has no turns yet." in seat.text
        await seat.press("j", "J", "enter", "y", "space", "R", "f")
        assert "This run has no turns yet." in seat.text

    drive(only, steps, run=only.all_runs[0].id)


def test_enter_on_an_empty_list_does_nothing() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("enter", "j", "G", "y", "J", "s", "f")
        assert "Nothing recorded yet." in seat.text

    drive(FakeSource(), steps)
