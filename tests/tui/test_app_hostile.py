"""Data that attacks: on every screen it is shown, never obeyed, never a crash."""

from __future__ import annotations

import re

import pytest

from tui_driver import Seat, drive
from tui_fakes import hostile

FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def check(seat: Seat) -> None:
    """Nothing on the screen may act, and no line may be longer than the screen."""
    width = seat.app.size.width
    for strip in seat.app.screen._compositor.render_strips():
        text = "".join(segment.text for segment in strip)
        assert not FORBIDDEN.search(text), ascii(text)
        assert strip.cell_length == width
        for segment in strip:
            assert segment.style is None or not (segment.style.link or segment.style.meta.get("@click"))


def test_the_list_of_runs_shows_hostile_names_as_they_are() -> None:
    async def steps(seat: Seat) -> None:
        check(seat)
        assert "[/ unclosed" in seat.text
        assert "[b + bold" in seat.text
        assert "[@click=app.quit]" in seat.text
        assert "␛]52;c;" in seat.text
        await seat.press("slash", "left_square_bracket", "slash")
        check(seat)
        await seat.press("enter", "s", "y", "question_mark")
        check(seat)

    drive(hostile(), steps)


@pytest.mark.parametrize("place", [0, 3, 15])
def test_a_run_and_its_turns_show_hostile_texts(place: int) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press(*["j"] * place, "enter")
        check(seat)
        await seat.press("G", "J", "R", "l", "G", "pageup", "y")
        check(seat)

    drive(hostile(), steps)


@pytest.mark.parametrize("tab", ["1", "2", "3", "4", "5", "6"])
def test_every_tab_of_a_turn_shows_hostile_texts(tab: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("enter", "enter", tab)
        for key in ("pagedown", "G", "R", "G", "g"):
            await seat.press(key)
            check(seat)

    drive(hostile(), steps, size=(100, 30))


def test_a_click_on_data_that_looks_like_an_action_does_nothing() -> None:
    async def steps(seat: Seat) -> None:
        row = next(y for y, line in enumerate(seat.lines) if "[@click" in line and "now" in line)
        await seat.pilot.click(offset=(12, row))
        await seat.settle()
        assert "[@click" in seat.chosen

    assert drive(hostile(), steps) is None


def test_a_pasted_filter_is_cleaned_too() -> None:
    async def steps(seat: Seat) -> None:
        from textual import events

        await seat.press("slash")
        seat.app.screen.focused.post_message(events.Paste("\x1b]52;c;eA==\x07\x9b2J"))
        await seat.settle()
        check(seat)
        assert "␛]52" in seat.text

    drive(hostile(), steps)


def test_an_error_message_made_of_hostile_text_is_shown_not_obeyed() -> None:
    from looptape.tracer.errors import LooptapeError
    from tui_fakes import EVIL

    source = hostile()
    source.fail = LooptapeError("bad", EVIL, EVIL)

    async def steps(seat: Seat) -> None:
        check(seat)
        assert "[/ unclosed" in seat.text

    drive(source, steps)
