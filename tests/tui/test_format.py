"""Numbers, money, times as people read them."""

from __future__ import annotations

import pytest

from looptape.tracer.model import Parent, Run, Usage
from looptape.tui import format as fmt

NOW = 1_764_424_923_000_000
SECOND = 1_000_000


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, "unpriced"),
        (0, "$0.00"),
        (0.31, "$0.31"),
        (0.0042, "$0.0042"),
        (0.00001, "<$0.0001"),
        (1204, "$1,204.00"),
        (0.0096, "$0.01"),
    ],
)
def test_money_is_never_a_guess_and_never_rounded_to_nothing(usd: float | None, text: str) -> None:
    assert fmt.money(usd) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "-"),
        (12, "12 ms"),
        (800, "0.8 s"),
        (9_960, "10 s"),
        (59_600, "1:00"),
        (560_000, "9:20"),
        (3_725_000, "1:02:05"),
    ],
)
def test_durations(ms: float | None, text: str) -> None:
    assert fmt.duration(ms) == text


@pytest.mark.parametrize(
    ("tokens", "k", "short"),
    [
        (None, "-", "-"),
        (0, "0.0", "0"),
        (412, "0.4", "412"),
        (9_100, "9.1", "9.1k"),
        (1_904_000, "1,904", "1.9M"),
        (99_960, "100", "100k"),
    ],
)
def test_tokens(tokens: int | None, k: str, short: str) -> None:
    assert (fmt.thousands(tokens), fmt.short_tokens(tokens)) == (k, short)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "now"), (42, "42s"), (119, "1m"), (3 * 3600, "3h"), (86400 * 2, "2d")],
)
def test_times_are_relative_at_first(seconds: int, text: str) -> None:
    assert fmt.ago(NOW - seconds * SECOND, NOW) == text


def test_old_times_are_dates_and_clocks_name_their_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    try:
        with monkeypatch.context() as zone:
            zone.setenv("TZ", "Europe/Zurich")
            time.tzset()
            assert fmt.ago(NOW - 30 * 86400 * SECOND, NOW) == "2025-10-30"
            assert fmt.clock(NOW) == "2025-11-29 15:02:03 CET"
    finally:
        time.tzset()  # back to the zone that this process had


def test_json_times_are_iso_with_zone_to_the_microsecond() -> None:
    assert fmt.iso(NOW + 250) == "2025-11-29T14:02:03.000250+00:00"
    assert fmt.iso(None) is None


def test_cache_share_counts_all_that_was_read() -> None:
    assert fmt.cache_share(Usage(input=10, cache_read=80, cache_write_5m=10)) == "80 %"
    assert fmt.cache_share(Usage()) == "-"


def test_sizes() -> None:
    assert [fmt.size(n) for n in (640, 12_000, 1_900_000_000, 999_900)] == ["640 B", "12 kB", "1.9 GB", "1.0 MB"]


def test_signs_of_a_run_say_why_it_ended_and_whose_child_it_is() -> None:
    run = Run("a" * 16, status="limit", reason="at the turn limit (40)", parent=Parent("b" * 16, 31), unpriced_turns=2)
    assert fmt.run_signs(run) == "at the turn limit (40) · ⎇ fork @31 · 2 unpriced"
    again = Run("c" * 16, source="replay", status="completed", parent=Parent("b" * 16, 1))
    assert fmt.run_signs(again) == "⎇ replay @1"
