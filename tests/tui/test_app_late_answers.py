"""Answers that come late, out of their order, or when the screen is gone: none of them is shown in place of a newer one."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.message import Message
from textual.worker import Worker

from looptape.tui.data.views import Trouble, TurnView
from looptape.tui.messages import Answered
from looptape.tui.place import Place
from looptape.tui.screens.fork.bars import PlanBar
from looptape.tui.screens.fork.running import Broke
from looptape.tui.screens.fork.watch import ForkWatch
from looptape.tui.screens.run import answers
from looptape.tui.screens.turn.reading import Built
from tui_driver import Seat, drive
from tui_fakes import shop

REFUND = "3f9a1c2072d94b10"


def test_what_an_older_reading_gives_after_a_newer_one_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    posted: list[int] = []
    slow_one: list[int] = []
    go_on = threading.Event()

    def slow() -> Message:
        slow_one.append(threading.get_ident())
        assert go_on.wait(60)
        return Answered(lambda: shown.append("older"))

    async def steps(seat: Seat) -> None:
        page = seat.app.screen
        post = page.post_message
        # the thread looked whether it was replaced just before it was
        monkeypatch.setattr(Worker, "is_cancelled", property(lambda _worker: False))
        monkeypatch.setattr(page, "post_message", lambda m: (post(m), posted.append(threading.get_ident()))[0])
        page.read(slow, "anything")
        await seat.met(lambda: slow_one, settle=False)
        page.read(lambda: Answered(lambda: shown.append("newer")), "anything")
        await seat.met(lambda: shown, settle=False)
        posted.clear()
        go_on.set()
        await seat.met(lambda: slow_one[0] in posted, settle=False)
        await seat.settle()
        assert shown == ["newer"]

    drive(shop(), steps)


def test_a_turn_that_changed_while_it_was_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("looptape.tui.screens.run.screen.SETTLE", 1.0)  # what was read comes before one reads again
    monkeypatch.setattr("looptape.tui.screens.run.watching.EVERY", 0.02)
    source = shop()
    run = source.all_runs[0].id
    last = source.turns[run][-1]
    real, read, go_on = source.turn, threading.Event(), threading.Event()

    def turn(run: str, number: int, *, fresh: bool = False) -> TurnView:
        view = real(run, number, fresh=fresh)
        if number == last.number and not read.is_set():
            read.set()
            assert go_on.wait(60)
        return view

    source.turn = turn  # type: ignore[method-assign]

    async def steps(seat: Seat) -> None:
        await seat.pilot.press("G")
        await seat.met(read.is_set, settle=False)
        done = replace(last, status="ok", stop_reason="end_turn", text="All done.", generate_ms=900.0)
        source.turns[run] = (*source.turns[run][:-1], done)
        source.mark += 1
        await seat.met(lambda: seat.app.screen.turns.row(last.number).status == "ok", settle=False)
        go_on.set()
        await seat.until("All done.")
        assert "the answer is still coming" not in seat.text

    drive(source, steps, run=run)


def test_a_turn_that_is_left_while_its_tab_waits_leaves_nothing_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = shop()
    source.home = tmp_path  # type: ignore[assignment]
    waits, go_on = threading.Event(), threading.Event()

    def sleep(_seconds: float) -> None:
        waits.set()
        assert go_on.wait(60)

    async def steps(seat: Seat) -> None:
        await seat.press("enter", "enter")
        screen = seat.app.screen
        monkeypatch.setattr("looptape.tui.screens.turn.screen.time.sleep", sleep)
        await seat.pilot.press("6")
        await seat.met(waits.is_set, settle=False)
        await seat.pilot.press("q")
        await seat.met(lambda: not screen.is_attached and not screen.children, settle=False)
        go_on.set()

    drive(source, steps)
    assert not (tmp_path / "screen.log").exists()


def test_what_was_made_of_a_turn_before_it_was_read_again_is_not_kept() -> None:
    async def steps(seat: Seat) -> None:
        seat.app.open_turn(Place(REFUND, 31))
        await seat.settle()
        screen = seat.app.screen
        older = replace(screen._view, last=30)
        screen.post_message(Built(older, screen._want(), (), {"context": "of before"}))
        await seat.settle()
        assert "book_refund" in seat.text
        assert "context" not in screen._extras

    drive(shop(), steps)


def test_what_a_fork_says_while_its_screen_is_taken_down_breaks_nothing() -> None:
    async def steps(seat: Seat) -> None:
        seat.app.open_fork(Place(REFUND, 31))
        await seat.settle()
        assert seat.app.screen.beside._ready is None
        screen, go_on = seat.app.screen, asyncio.Event()
        watch, bar = screen.query_one(ForkWatch), screen.query_one(PlanBar)
        watch.call_later(go_on.wait)  # it is behind with its messages
        watch.post_message(Broke(Trouble("it broke")))
        seat.app.pop_screen()
        for _ in range(6_000):  # the app itself waits until the screen is gone: its pilot would too
            if bar not in screen.children:
                break
            await asyncio.sleep(0.01)
        missing = bar not in screen.children and watch in screen.children
        go_on.set()
        assert missing
        await seat.met(lambda: watch not in screen.children)
        assert "11 runs" in seat.text

    drive(shop(), steps)


def test_an_answer_that_another_thread_lets_go_is_still_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "KEPT", 1)
    source: Any = shop()
    found, other = threading.Event(), threading.Event()

    class Slow(OrderedDict[Any, Any]):
        """Takes its time between the look whether an answer is there and the answer."""

        def __contains__(self, key: object) -> bool:
            there = super().__contains__(key)
            if there:
                found.set()
                other.wait(0.5)
            return there

    answers._answers[source] = Slow({("first",): 1})

    def asks_another() -> None:
        assert found.wait(60)
        answers._once(source, ("second",), lambda: 2)
        other.set()

    with ThreadPoolExecutor() as threads:
        second = threads.submit(asks_another)
        assert answers._once(source, ("first",), lambda: 0) == 1
        second.result(60)
