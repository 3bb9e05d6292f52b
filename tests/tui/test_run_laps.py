"""Brackets of cycles beside turns."""

from __future__ import annotations

import pytest

from looptape.replay.cycles import CycleFinding, Waste
from looptape.tui.screens.run.laps import brackets, lap_of
from looptape.tui.screens.run.turns import beyond


def cycle(turns: tuple[int, ...], laps: int, period: int, last: int = 0) -> CycleFinding:
    return CycleFinding(
        None, None, "exact", turns[0], last or turns[-1], turns[0], laps, period, ("f()",), turns, Waste()
    )


@pytest.mark.parametrize(
    ("found", "drawn"),
    [
        ([cycle((3, 4, 5), 3, 1)], {3: " ↻┌", 4: " 2├", 5: " 3└"}),
        ([cycle((3, 5, 7), 3, 1)], {3: " ↻┌", 4: "  │", 5: " 2├", 6: "  │", 7: " 3└"}),
        ([cycle((1, 2, 3, 4), 2, 2)], {1: " ↻┌", 2: "  │", 3: " 2├", 4: "  └"}),
        ([cycle((6,), 9, 1)], {6: " ↻ "}),
        ([cycle((2, 3, 4, 5), 3, 1)], {2: " ↻┌", 3: "  ├", 4: "  ├", 5: "  └"}),
        ([cycle((2, 3), 2, 1), cycle((1, 2, 3, 4), 4, 1)], {1: " ↻┌", 2: " 2├", 3: " 3├", 4: " 4└"}),
    ],
    ids=[
        "each turn a lap",
        "turns between",
        "laps of two",
        "one turn",
        "more turns than laps",
        "the wider one is drawn",
    ],
)
def test_a_bracket_shows_where_a_cycle_and_its_laps_begin(found: list[CycleFinding], drawn: dict[int, str]) -> None:
    assert brackets(found) == drawn


def test_a_turn_knows_its_lap() -> None:
    found = cycle((3, 5, 7), 3, 1)
    assert [lap_of(found, n) for n in (2, 3, 4, 5, 7, 8)] == [None, 1, 1, 2, 3, None]


def test_no_lap_is_named_where_laps_cannot_be_told_apart() -> None:
    assert [lap_of(cycle((12, 19, 20, 22, 23), 3, 1), n) for n in (11, 12, 21, 23)] == [None, 0, 0, 0]


@pytest.mark.parametrize(
    ("at", "step", "found"), [(1, 1, 3), (3, 1, 7), (7, 1, None), (7, -1, 3), (5, -1, 3), (3, -1, None)]
)
def test_the_next_of_sorted_numbers(at: int, step: int, found: int | None) -> None:
    assert beyond([3, 7], at, step) == found
