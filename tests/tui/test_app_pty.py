"""The real program on a real pseudo-terminal, from the first key to the last."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pty_terminal import LOOPTAPE, Terminal, terminal
from sample_store import filled


@pytest.fixture
def on(tmp_path: Path) -> Iterator[Terminal]:
    """The program over the sample tapes; gone afterwards, whatever happens."""
    with terminal(
        [*LOOPTAPE, "tui"], environment={"LOOPTAPE_HOME": str(filled(tmp_path / "home")), "TZ": "UTC"}
    ) as made:
        yield made


def chosen(on: Terminal) -> str:
    """The line of the selected row."""
    return next((line for line in on.grid.lines if line.startswith("▌")), "")


def test_from_start_to_quit_through_filter_run_turn_diff_and_fork(on: Terminal) -> None:
    on.until("13 runs", "broken-returns")

    on.send("/")
    on.until("turns:>20")
    on.send("broken")
    on.until("1 of 13")
    on.send("\r")
    on.quiet(0.3)  # one at a time: Textual hands a burst of keys to what had the focus before it
    on.send("\r")
    on.until("why  broken-returns", "GENERATE")

    on.send("j")
    on.until("turn 2 of 8")
    on.send("\r")
    on.until("1 conversation", "turn 2 of 8")
    on.send("l")
    on.until("turn 3 of 8")
    on.send("4")
    on.until("▐4 calls")
    on.send("q")
    on.until("why  broken-returns", "turn 3 of 8")

    on.send("q")
    on.until("1 of 13")
    on.send("m")
    on.until("marked")
    on.send("\x1b")
    on.until("13 runs", "weather")
    on.send("j")
    on.wait(lambda grid: "weather" in chosen(on))
    on.send("d")
    on.until("swap", "broken-returns", "weather")
    on.send("q")
    on.until("13 runs", "q quit")

    on.wait(lambda grid: "weather" in chosen(on))
    on.send("\r")
    on.until("why  weather", "GENERATE")
    on.send("j")
    on.until("turn 2 of 3")
    on.send("r")
    on.until("run on from weather", "Will run live: nothing")
    on.send("\x12")
    on.until("✓ completed", "no request was sent")
    on.send("\r")
    on.until("weather", "⎇", "fork of")

    for words in ("no request was sent", "Asks the model for turn 2", "why  weather", "14 runs"):
        on.send("q")
        on.until(words)
    on.send("q")
    assert on.status() == 0


def test_leaving_gives_the_terminal_back(on: Terminal) -> None:
    on.until("13 runs")
    on.send("q")
    assert on.status() == 0
    assert on.seen.rindex(b"\x1b[?1049l") > on.seen.rindex(b"\x1b[?1049h")
    assert on.seen.rindex(b"\x1b[?25h") > on.seen.rindex(b"\x1b[?25l")
    assert re.search(rb"\x1b\[\?1000l", on.seen)
