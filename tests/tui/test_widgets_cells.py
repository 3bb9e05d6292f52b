"""Spans into cells and columns into a width."""

from __future__ import annotations

from itertools import pairwise

import pytest
from rich.cells import cell_len

from looptape.tui.widgets.cells import Column, fit, lay_out, spread
from looptape.tui.widgets.spark import phase_bar, sparkline


def plain(spans) -> str:
    return "".join(text for text, _ in spans)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ab",
        "a long text that is cut",
        "漢字漢字漢字漢字",
        "a漢b字c",
        "👩‍👩‍👧 family",
        "é́́́",
        "\x1b[2J\x00",
        "x" * 100_000,
    ],
)
@pytest.mark.parametrize("width", [1, 2, 3, 7, 12])
def test_a_text_takes_exactly_the_cells_it_is_given(text: str, width: int) -> None:
    assert cell_len(plain(fit(((text, "text"),), width))) == width
    assert cell_len(plain(fit(((text, "text"), (text, "dim")), width))) == width


def test_a_cut_text_says_so() -> None:
    assert plain(fit((("checkout-flow", "text"),), 8)) == "checkou…"
    assert plain(fit((("check", "text"), ("out", "dim")), 5)) == "chec…"
    assert plain(fit((("check", "text"),), 5)) == "check"


def test_numbers_stand_right() -> None:
    assert plain(fit((("42", "text"),), 5, right=True)) == "   42"


def test_control_codes_become_visible_marks() -> None:
    assert "\x1b" not in plain(fit((("\x1b[2J", "text"),), 10))
    assert plain(fit((("[/x] [b", "text"),), 7)) == "[/x] [b"


COLUMNS = (
    Column("sign", "", 1, keep=10),
    Column("name", "run", 10, keep=9, grow=2, most=20),
    Column("cost", "$", 6, right=True, keep=5),
    Column("model", "model", 10, keep=1, grow=1),
)


def keys(width: int) -> list[str]:
    return [slot.column.key for slot in lay_out(COLUMNS, width)]


def test_where_room_is_short_the_least_important_column_goes_first() -> None:
    assert keys(33) == ["sign", "name", "cost", "model"]
    assert keys(32) == ["sign", "name", "cost"]
    assert keys(20) == ["sign", "name"]
    assert keys(2) == ["sign"]


@pytest.mark.parametrize("width", range(1, 140, 3))
def test_columns_never_overlap_and_never_pass_the_edge(width: int) -> None:
    slots = lay_out(COLUMNS, width)
    for before, after in pairwise(slots):
        assert after.x == before.x + before.width + 2
    if len(slots) > 1:
        assert slots[-1].x + slots[-1].width <= width


def test_room_left_over_goes_to_the_columns_that_grow_up_to_their_limit() -> None:
    widths = {slot.column.key: slot.width for slot in lay_out(COLUMNS, 100)}
    assert widths["name"] == 20
    assert widths["cost"] == 6
    assert widths["model"] == 100 - 6 - 1 - 20 - 6


def test_facts_at_the_right_end_give_way_from_the_first_and_the_last_one_stays() -> None:
    facts = [(("claude-sonnet", "dim"),), (("40 turns", "dim"),), (("$2.24", "dim"),)]
    assert plain(spread((("refund", "text"),), facts, 50)).endswith("claude-sonnet · 40 turns · $2.24")
    assert plain(spread((("refund", "text"),), facts, 30)).endswith("  40 turns · $2.24")
    assert plain(spread((("a very long name indeed", "text"),), facts, 20)).endswith("  $2.24")


def test_a_sparkline_shows_the_highest_value_of_what_shares_a_bar() -> None:
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([1, 8, 1, 1], 2) == "█▁"
    assert sparkline([None, 4], 5) == " █"
    assert sparkline([0, 0], 5) == "▁▁"
    assert sparkline([], 5) == ""


def test_both_phases_of_a_turn_are_seen_even_when_one_is_short() -> None:
    assert plain(phase_bar(5000, 1, 5000, 6)) == "▒▒▒▒▒█"
    assert plain(phase_bar(50_000, 50_000, 1000, 6)) == "▒▒▒███"
    assert plain(phase_bar(None, None, 0, 6)) == ""
