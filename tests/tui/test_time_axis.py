"""The time axis: to scale, with long pauses cut short."""

from __future__ import annotations

import pytest

from looptape.tui.told.time_axis import SECOND, axis_of, elapsed, round_step

HOUR = 3600 * SECOND
DAY = [
    (0, 10 * SECOND),
    (12 * SECOND, 20 * SECOND),
    (2 * HOUR, 2 * HOUR + 10 * SECOND),
    (5 * HOUR, 5 * HOUR + 5 * SECOND),
]


def test_hours_without_work_take_a_few_cells() -> None:
    axis = axis_of(DAY)
    assert axis.total == 35 * SECOND  # a gap of two seconds stays
    assert axis.length(SECOND) == 35 + 2 * axis.gap(SECOND)
    assert axis.gap(SECOND) == 3
    assert axis.at(2 * HOUR, SECOND) == 23
    assert axis.at(HOUR, SECOND) == 21.5  # inside a pause: its middle


def test_pauses_are_found_where_they_are_seen() -> None:
    axis = axis_of(DAY)
    assert [(x, p.ms) for x, p in axis.pauses(0, 100, SECOND)] == [(20, 7_180_000.0), (33, 10_790_000.0)]
    assert [x for x, _ in axis.pauses(30, 100, SECOND)] == [33]
    assert axis.pauses(40, 100, SECOND) == []
    pause = axis.pause_before(2 * HOUR)
    assert pause is not None
    assert pause.ms == 7_180_000.0
    assert axis.pause_before(2 * HOUR + 1) is None


def test_many_pauses_never_fill_more_than_a_quarter_of_the_chart() -> None:
    axis = axis_of([(i * HOUR, i * HOUR + SECOND) for i in range(500)])
    scale = axis.fitting(100)
    assert axis.length(scale) <= 100
    assert axis.gap(scale) * 499 <= axis.length(scale) * 0.26


@pytest.mark.parametrize("width", [20, 80, 200])
def test_the_whole_run_fits_whatever_the_width(width: int) -> None:
    axis = axis_of(DAY)
    assert axis.length(axis.fitting(width)) <= width


def test_ticks_are_round_times_since_the_beginning() -> None:
    axis = axis_of([(0, 60 * SECOND)])
    assert axis.ticks(0, 60, SECOND) == [(0, 0), (15, 15 * SECOND), (30, 30 * SECOND), (45, 45 * SECOND)]
    assert axis.ticks(20, 20, SECOND) == [(10, 30 * SECOND)]


def test_times_that_run_backwards_are_put_in_order() -> None:
    axis = axis_of([(10 * SECOND, 9 * SECOND), (0, SECOND)])
    assert axis.origin == 0
    assert axis.at(-5, SECOND) == 0


def test_a_run_without_times_has_an_empty_axis() -> None:
    axis = axis_of([])
    assert (axis.total, axis.length(SECOND), axis.ticks(0, 50, SECOND), axis.pauses(0, 50, SECOND)) == (0, 0.0, [], [])


@pytest.mark.parametrize(
    ("micros", "step", "said"),
    [
        (200_000, 100_000, "0.2s"),
        (15 * SECOND, SECOND, "15s"),
        (80 * SECOND, 10 * SECOND, "1:20"),
        (2 * HOUR + 300 * SECOND, HOUR, "2:05:00"),
    ],
)
def test_moments_are_said_as_short_as_the_scale_allows(micros: int, step: int, said: str) -> None:
    assert elapsed(micros, step) == said


def test_steps_are_round_and_never_end() -> None:
    assert round_step(3_000) == 5_000
    assert round_step(11 * SECOND) == 15 * SECOND
    assert round_step(100 * HOUR) == 5 * 24 * HOUR
