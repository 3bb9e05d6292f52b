"""Reading the text of a turn: folds, search, huge bodies, what odd characters do to it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.cells import cell_len

from tui_driver import Seat, drive
from tui_fakes import HOSTILE, shop

REFUND = "3f9a1c2072d94b10"


def with_result(result, **more):
    source = shop()
    turns = list(source.turns[REFUND])
    call = replace(turns[0].tool_calls[0], result=result, **more)
    turns[0] = replace(turns[0], tool_calls=(call,))
    source.turns[REFUND] = tuple(turns)
    return source


def reading(result, steps, tab: str = "4", **more):
    """Opens the calls of a turn whose tool gave this result."""

    async def at_the_turn(seat: Seat) -> None:
        await seat.press("enter", tab)
        await steps(seat)

    drive(with_result(result), at_the_turn, run=REFUND, turn=1, **more)


DEEP = json.dumps(
    {
        "order": {"id": "A-7731", "items": [{"sku": f"K-{n}", "size": [1, 2, {"deep": n}]} for n in range(3)]},
        "end": True,
    }
)


def top_line(seat: Seat) -> str:
    """The line with the mark."""
    return next((line for line in seat.lines if line.startswith("▌")), "")


def test_json_folds_where_the_mark_stands_and_says_how_much_is_folded() -> None:
    async def steps(seat: Seat) -> None:
        while '"items"' not in top_line(seat):
            await seat.press("right_parenthesis")
        await seat.press("enter")
        assert '"items": [ … ' in top_line(seat)
        assert "lines … ]" in top_line(seat)
        assert "▸" in top_line(seat)
        assert "K-1" not in seat.text
        assert '"end": true' in seat.text
        await seat.press("enter")
        assert "K-1" in seat.text

    reading(DEEP, steps)


def test_enter_inside_something_folds_what_is_around_it() -> None:
    async def steps(seat: Seat) -> None:
        while '"sku": "K-1"' not in top_line(seat):
            await seat.press("j")
        await seat.press("enter")
        assert "K-1" not in seat.text
        assert "K-2" in seat.text
        assert "{ … " in top_line(seat)

    reading(DEEP, steps)


def test_minus_folds_everything_and_plus_unfolds_it() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("minus")
        assert "K-1" not in seat.text
        assert "arguments" not in seat.text
        assert "get_customer" in seat.text
        await seat.press("plus")
        assert "K-1" in seat.text

    reading(DEEP, steps)


def test_a_click_on_a_fold_folds_it() -> None:
    async def steps(seat: Seat) -> None:
        row = next(y for y, line in enumerate(seat.lines) if "▾ result" in line)
        await seat.pilot.click(offset=(4, row))
        await seat.settle()
        assert "K-1" not in seat.text
        assert "▸ result" in seat.text

    reading(DEEP, steps)


def test_j_scrolls_a_long_text_by_a_line_and_the_mark_rides_along() -> None:
    async def steps(seat: Seat) -> None:
        pane = seat.app.screen.pane
        await seat.press("j", "j", "j")
        assert pane.scroll_offset.y == 3
        assert pane._now.row == 3
        await seat.press("G")
        assert "line 299" in top_line(seat)
        await seat.press("k")
        assert "line 298" in top_line(seat)
        await seat.press("g")
        assert pane.scroll_offset.y == 0

    reading("\n".join(f"line {n}" for n in range(300)), steps)


def test_a_fold_stays_as_it_is_when_one_goes_away_and_comes_back() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("minus", "5", "4")
        assert "K-1" not in seat.text
        await seat.press("l", "h")
        assert "turn 1 of 40" in seat.text
        assert "K-1" not in seat.text

    reading(DEEP, steps)


def test_search_marks_the_hits_while_one_types_and_steps_through_them() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("slash", *"needle")
        assert "1 of 3" in seat.text
        await seat.press("enter", "n")
        assert "2 of 3" in seat.text
        assert "needle 5000" in seat.text
        await seat.press("n", "n")
        assert "1 of 3" in seat.text
        await seat.press("N")
        assert "3 of 3" in seat.text
        assert "needle 9999" in seat.text
        styles = {
            str(s.style) for strip in seat.app.screen._compositor.render_strips() for s in strip if s.text == "needle"
        }
        assert styles
        await seat.press("slash", "escape", "n")
        assert "nothing is searched for" in seat.text

    reading("\n".join(f"{'needle' if n in (7, 5000, 9999) else 'hay'} {n}" for n in range(10_000)), steps)


def test_words_that_are_not_there_are_said_so() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("slash", *"nowhere")
        assert "'nowhere' is not in this text" in seat.text

    reading("some text", steps)


def test_capital_letters_count_only_when_they_are_typed() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("slash", *"zebra")
        assert "1 of 2" in seat.text
        await seat.press("escape", "slash", *"Zebra")
        assert "1 of 1" in seat.text

    reading("Zebra and zebra", steps)


def test_a_hit_that_is_folded_away_is_unfolded() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("minus")
        assert "K-2" not in seat.text
        await seat.press("slash", *"K-2")
        assert "K-2" in seat.text
        assert "1 of 1" in seat.text

    reading(DEEP, steps)


@pytest.mark.parametrize(
    "body",
    [
        "\n".join(f"line {n} " + "x" * 430 for n in range(45_000)) + "\nthe last words",
        "x" * 5_000_000 + " the last words",
        "word 漢字 " * 1_600_000 + "the last words",
    ],
    ids=["45,001 lines", "a line of 5 MB", "a line of 13 million wide characters"],
)
def test_the_end_of_a_huge_result_is_reached_by_key_and_by_search(body: str) -> None:
    async def steps(seat: Seat) -> None:
        lines = f"{body.count(chr(10)) + 1:,} line"
        assert lines in seat.text
        await seat.press("G")
        assert "the last words" in seat.text
        await seat.press("g")
        assert "the last words" not in seat.text
        await seat.press("slash", *"last words")
        assert "1 of 1" in seat.text
        assert "the last words" in seat.text

    reading(body, steps)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_odd_characters_are_found_as_they_are_shown_and_break_no_line(text: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("slash", *"after")
        assert "1 of 1" in seat.text
        assert all(cell_len(line) <= 80 for line in seat.lines)
        raw = "".join(seat.lines)
        assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in raw)

    reading(f"before {text} after", steps, size=(80, 24))
