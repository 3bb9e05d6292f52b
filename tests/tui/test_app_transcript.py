"""The run as one text: what it tells, how it moves, that it reads only what is looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import small_tape
from commandline import looptape
from looptape.tracer.store import open_store
from looptape.tui.data.source import StoreSource
from timed_tape import RUN, Asked, Did, records, store
from tui_driver import Seat, drive
from tui_fakes import EVIL, HOSTILE

LONG = "first line\n" + "x" * 900


class Counting(StoreSource):
    """A store that counts the questions, and beside which the screen remembers nothing."""

    asked = 0
    left: int | None = None
    """From now on the store has only turns up to this one."""

    @property
    def home(self) -> Path | None:
        return None

    def ask(self, question: Callable[[Any], Any]) -> Any:
        self.asked += 1
        return super().ask(question if self.left is None else lambda store: question(Fewer(store, self.left)))


class Fewer:
    """A store whose runs lost their last turns."""

    def __init__(self, store: Any, left: int) -> None:
        self._store, self._left = store, left

    def turns(self, run: str, first: int, last: int) -> Any:
        return self._store.turns(run, first, min(last, self._left))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def small(home: Path, **more: Any) -> Counting:
    with open_store(home) as opened:
        opened.ingest(small_tape.records(**more))
    return Counting(home, place="~/x")


def run_of(home: Path, turns: int) -> Counting:
    made = [
        Asked(
            i,
            i + 0.5,
            [Did("look", i + 0.5, i + 0.9, is_error=i == 70, result=f"result {i}")],
            text=f"words of turn {i + 1}",
        )
        for i in range(turns)
    ]
    return Counting(store(home, records(made)), place="~/x")


def test_the_run_is_told_from_system_prompt_to_last_word(tmp_path: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("t")
        text = seat.text
        said = ("[system] You are a careful analyst.", "> What is 7% of last year's revenue?", "~ hm", "I look it up.",
                '→ search {"q": "revenue"}', "= revenue: 1200", "It is 84.")  # fmt: skip
        places = [text.index(words) for words in said]
        assert places == sorted(places)
        assert seat.line("What is 7%").startswith("▌")  # its turn is the selected one
        assert seat.line("It is 84.").startswith(" ")

    drive(small(tmp_path, thinking="hm"), steps, run=small_tape.RUN)


def test_it_tells_what_show_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    source = small(tmp_path, thinking="hm", is_error=True, result="no such order")
    printed = [line.strip() for line in looptape("show", small_tape.RUN).out.splitlines() if line.strip()]

    async def steps(seat: Seat) -> None:
        await seat.press("t")
        for line in printed:
            assert line in seat.text

    drive(source, steps, run=small_tape.RUN, size=(200, 50))


def test_long_texts_are_cut_with_a_count_and_z_shows_more(tmp_path: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("t")
        assert "= first line" in seat.text
        assert "… 611 more characters: z" in seat.text
        await seat.press("z")
        assert "more characters" not in seat.text
        assert seat.text.count("x" * 50) >= 8
        await seat.press("z")
        assert "… 611 more characters: z" in seat.text

    drive(small(tmp_path, result=LONG), steps, run=small_tape.RUN)


def test_a_huge_result_is_never_laid_out_whole(tmp_path: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("t", "z")
        assert "more characters: Enter" in seat.text or "y" * 100 in seat.text
        await seat.press("G")
        assert "It is 84." in seat.text

    drive(small(tmp_path, result="y" * 3_000_000), steps, run=small_tape.RUN)


def test_turns_that_are_gone_from_the_store_meanwhile_are_said_and_not_asked_for_again(tmp_path: Path) -> None:
    source = run_of(tmp_path, 120)

    async def steps(seat: Seat) -> None:
        await seat.press("j")  # the run is read, its transcript is not
        source.left = 2
        before = source.asked
        await seat.press("t")
        await seat.until("3  is not in the store any more")
        assert "words of turn 2" in seat.text
        assert source.asked - before <= 4

    drive(source, steps, run=RUN)


def test_the_selection_is_one_with_the_turn_list(tmp_path: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("j", "j", "t")
        assert seat.line("words of turn 3").startswith("▌")
        await seat.press("J")
        assert seat.line("words of turn 71").startswith("▌")
        assert "✗ result 70" in seat.text
        await seat.press("pagedown", "t")
        number = int(seat.chosen.split()[1])
        assert 71 < number < 90

    drive(run_of(tmp_path, 120), steps, run=RUN)


def test_lines_and_screens_and_both_ends(tmp_path: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("t")
        top = seat.text
        await seat.press("j")
        assert seat.text != top
        await seat.press("k")
        assert seat.text == top
        await seat.press("G")
        assert seat.line("words of turn 120").startswith("▌")
        last = max(i for i, line in enumerate(seat.lines) if "result 119" in line)
        assert last > len(seat.lines) - 5  # the end stands at the foot
        await seat.press("k")
        assert seat.line("words of turn 119").startswith("▌")
        assert "result 119" in seat.text
        await seat.press("pageup", "pageup")
        assert "result 119" not in seat.text
        await seat.press("g")
        assert seat.text == top

    drive(run_of(tmp_path, 120), steps, run=RUN)


def test_only_what_is_looked_at_is_read(tmp_path: Path) -> None:
    source = run_of(tmp_path, 600)

    async def steps(seat: Seat) -> None:
        await seat.press("t")
        before = source.asked
        await seat.press("G")
        assert "words of turn 600" in seat.text
        await seat.press("g")
        assert "words of turn 1" in seat.text
        assert source.asked - before <= 4
        view = seat.app.screen.query_one("#transcript")
        assert len(view._told) < 250

    drive(source, steps, run=RUN)


def test_enter_opens_the_turn_at_the_top(tmp_path: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("t", "J", "enter")
        assert "conversation" in seat.text
        await seat.press("q")
        assert seat.line("words of turn 71").startswith("▌")

    drive(run_of(tmp_path, 120), steps, run=RUN)


def test_the_wheel_scrolls_it(tmp_path: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("t")
        view = seat.app.screen.query_one("#transcript")
        top = seat.text
        view.action_move(3)
        await seat.settle()
        scrolled = seat.text
        view.action_move(-3)
        await seat.settle()
        assert seat.text == top
        from textual import events

        view.post_message(events.MouseScrollDown(view, 5, 5, 0, 1, 0, False, False, False))
        await seat.settle()
        assert seat.text == scrolled

    drive(run_of(tmp_path, 60), steps, run=RUN)


def test_a_narrow_screen_wraps_and_keeps_the_turn(tmp_path: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("t", "J")
        await seat.pilot.resize_terminal(80, 24)
        await seat.settle()
        assert seat.line("words of turn 71").startswith("▌")

    drive(run_of(tmp_path, 120), steps, run=RUN)


def test_turns_that_come_in_are_told(tmp_path: Path) -> None:
    source = run_of(tmp_path, 2)

    async def steps(seat: Seat) -> None:
        await seat.press("t")
        assert "words of turn 3" not in seat.text
        run_of(tmp_path, 3)
        await seat.until("words of turn 3")
        assert seat.line("words of turn 1").startswith("▌")

    drive(source, steps, run=RUN)


def test_a_store_that_cannot_be_read_is_said_and_asked_again(tmp_path: Path) -> None:
    from looptape.tracer.errors import LooptapeError

    source = run_of(tmp_path, 3)
    whole = source.ask

    def broken(question: Callable[[Any], Any]) -> Any:
        raise LooptapeError("store-held", "python (PID 4711) has the store open", "close it")

    async def steps(seat: Seat) -> None:
        source.ask = broken  # type: ignore[method-assign]
        await seat.press("t")
        assert "PID 4711 has the store open" in seat.text.replace("(", "").replace(")", "")
        source.ask = whole  # type: ignore[method-assign]
        await seat.press("j")
        assert "words of turn 1" in seat.text

    drive(source, steps, run=RUN)


def test_hostile_texts_are_shown_as_they_are(tmp_path: Path) -> None:
    calls = [Did(text, 1, 2, arguments=EVIL, result=EVIL, is_error=True) for text in HOSTILE]
    home = store(tmp_path, records([Asked(0, 1, calls, text=EVIL)], name=EVIL, reason=EVIL))

    async def steps(seat: Seat) -> None:
        await seat.press("t")
        for key in ("pagedown", "pagedown", "z", "G"):
            raw = [
                c
                for line in seat.lines
                for c in line
                if c < " " or "\x7f" <= c < "\xa0" or c in "\u202e\u2066\u200b\ufeff"
            ]
            assert raw == []
            assert "[@click=app.quit]click me[/]" in seat.text
            await seat.press(key)

    drive(Counting(home, place="x"), steps, run=RUN)
