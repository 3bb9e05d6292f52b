"""One turn whole, in its tabs."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from looptape.tracer.errors import LooptapeError
from looptape.tracer.model import Usage
from looptape.tui.data.views import TurnView
from looptape.tui.place import Place
from looptape.tui.widgets.blocks import Body
from tui_driver import Seat, drive
from tui_fakes import FakeSource, shop, wire_of

REFUND = "3f9a1c2072d94b10"


def opened(steps, source=None, turn: int = 31, **more):
    async def at_the_turn(seat: Seat) -> None:
        await seat.press("enter")
        await steps(seat)

    return drive(source or shop(), at_the_turn, run=REFUND, turn=turn, **more)


def test_the_tabs_are_reached_by_number_by_bracket_and_by_tab() -> None:
    async def steps(seat: Seat) -> None:
        assert "▐1 conversation▌" in seat.text
        await seat.press("2")
        assert "▐2 request (61)▌" in seat.text
        await seat.press("right_square_bracket")
        assert "▐3 response▌" in seat.text
        await seat.press("tab")
        assert "▐4 calls (1)▌" in seat.text
        await seat.press("left_square_bracket", "left_square_bracket")
        assert "▐2 request (61)▌" in seat.text
        for number, name in enumerate(("5 usage", "6 context", "7 wire", "8 findings"), 5):
            await seat.press(str(number))
            assert f"▐{name}" in seat.text
        await seat.press("1", "shift+tab")
        assert "▐8 findings" in seat.text

    opened(steps)


def test_the_request_is_what_the_model_saw_with_the_new_messages_marked() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("2")
        assert "You help customers of a small shop." in seat.line("system")
        assert seat.line("[1..59]").startswith(" ▸ ≡")
        assert seat.line("[61] user").startswith(" ▾ +")
        await seat.press("right_parenthesis", "right_parenthesis", "enter")
        assert "book_refund" in seat.line("Books a refund. Cannot be undone.")

    opened(steps)


def test_response_calls_and_usage_say_all_there_is() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("3")
        assert "→ book_refund  toolu_0031" in seat.text
        await seat.press("4")
        assert "toolu_0031" in seat.line("    id ")
        assert "done" in seat.line("    state ")
        assert "measured" in seat.line("    time ")
        assert "permanent" in seat.line("    error ")
        await seat.press("5")
        assert "cache read" in seat.text
        assert "39,380" in seat.text
        assert seat.line("= read").split()[2] == "40,580"
        assert seat.line("= this turn").split()[3] == "40,913"
        assert "msg_0031" in seat.text
        await seat.press("R")
        assert '"input_tokens": 1200' in seat.text

    opened(steps)


def test_tokens_nobody_knows_are_not_zero() -> None:
    source = shop()
    turns = list(source.turns[REFUND])
    turns[0] = replace(turns[0], usage=Usage(), cost_usd=None)
    source.turns[REFUND] = tuple(turns)

    async def steps(seat: Seat) -> None:
        await seat.press("5")
        assert "missing" in seat.text
        assert seat.line("input, uncached").split()[-1] == "-"
        assert "unpriced" in seat.line("PRICE")

    opened(steps, source, turn=1)


def test_the_wire_shows_chunks_with_their_times_and_raw_shows_them_joined() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("7")
        assert "STREAM    6 chunks" in seat.text
        assert "0.690 s" in seat.text
        await seat.press("R")
        assert "0.690 s" not in seat.text
        await seat.press("right_parenthesis", "enter")
        assert '"stream":true' in seat.text

    opened(steps)


def test_the_neighbours_are_a_key_away() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("l")
        assert "turn 32 of 40" in seat.text
        await seat.press("h", "h")
        assert "turn 30 of 40" in seat.text
        await seat.press("h")
        assert "turn 29 of 40" in seat.text

    opened(steps)


def test_the_tab_stays_when_the_turn_changes() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("5", "l")
        assert "▐5 usage▌" in seat.text
        assert "msg_0032" in seat.text

    opened(steps)


def test_retries_are_told() -> None:
    async def steps(seat: Seat) -> None:
        assert "attempt 1  529 overloaded_error" in seat.text
        assert "attempt 2  200  after a wait of 0.8 s" in seat.text
        await seat.press("7")
        assert "✗ 529 overloaded_error" in seat.line("1  ✗")
        assert "after a wait of 0.8 s" in seat.line("2  200")

    opened(steps, turn=12)


def test_a_request_that_is_not_known_is_said_so() -> None:
    source = shop()
    source.requests = None

    async def steps(seat: Seat) -> None:
        assert "request not recorded" in seat.text
        await seat.press("2")
        assert "The request of this turn is not known." in seat.text

    opened(steps, source)


def test_a_twenty_megabyte_result_opens_and_its_end_is_one_key_away() -> None:
    source = shop()
    turns = list(source.turns[REFUND])
    body = "\n".join(f"line {i} " + "x" * 430 for i in range(45_000))
    turns[0] = replace(turns[0], tool_calls=(replace(turns[0].tool_calls[0], result=body),))
    source.turns[REFUND] = tuple(turns)

    async def steps(seat: Seat) -> None:
        assert "45,000 lines, 19,878,889 characters" in seat.text
        await seat.press("G")
        assert "line 44999" in seat.text
        await seat.press("g")
        assert "RESUME" in seat.text

    opened(steps, source, turn=1)


def test_beside_the_list_a_long_result_is_cut_and_says_so() -> None:
    source = shop()
    turns = list(source.turns[REFUND])
    turns[0] = replace(
        turns[0], tool_calls=(replace(turns[0].tool_calls[0], result="\n".join(f"line {i}" for i in range(500))),)
    )
    source.turns[REFUND] = tuple(turns)

    async def steps(seat: Seat) -> None:
        assert "… 486 more lines" in seat.text

    drive(source, steps, run=REFUND, size=(120, 60))


def test_the_wire_of_another_turn_is_read_anew() -> None:
    source = shop()
    source.wires = lambda run, number: replace(wire_of(run, number), request=f'{{"turn": {number}}}')

    async def steps(seat: Seat) -> None:
        await seat.press("7", "right_parenthesis", "enter")
        assert '{"turn": 31}' in seat.text
        await seat.press("l")
        assert '{"turn": 32}' in seat.text

    opened(steps, source)


def test_a_click_on_a_tab_opens_it() -> None:
    async def steps(seat: Seat) -> None:
        line = seat.line("5 usage")
        await seat.pilot.click(offset=(line.index("5 usage") + 2, seat.lines.index(line)))
        await seat.settle()
        assert "▐5 usage▌" in seat.text
        assert "= this turn" in seat.text

    opened(steps)


def test_a_turn_that_goes_on_is_read_again_and_stays_where_it_was() -> None:
    source = shop()
    run = source.all_runs[0]

    async def steps(seat: Seat) -> None:
        seat.app.open_turn(Place(run.id, run.turns), "conversation")
        await seat.settle()
        assert "the answer is still coming" in seat.text
        turns = list(source.turns[run.id])
        turns[-1] = replace(turns[-1], status="ok", text="Here it is.")
        source.turns[run.id] = tuple(turns)
        source.mark += 1
        await seat.until("Here it is.")
        assert "▐1 conversation▌" in seat.text

    drive(source, steps)


class HeldBack(FakeSource):
    """Gives what is new in a turn at once, and all of it only when it is let."""

    def __init__(self, like: FakeSource) -> None:
        super().__init__(like.all_runs, like.turns, requests=like.requests, wires=like.wires)
        self.let = threading.Event()

    def turn(self, run: str, number: int, *, fresh: bool = False) -> TurnView:
        if not fresh:
            assert self.let.wait(120)
        return super().turn(run, number, fresh=fresh)


def test_what_the_run_shows_of_a_turn_is_there_before_all_of_it_is_read() -> None:
    source = HeldBack(shop())

    async def steps(seat: Seat) -> None:
        try:
            await seat.pilot.press("enter")
            await seat.met(lambda: "▐1 conversation▌" in seat.text and "book_refund" in seat.text, settle=False)
            assert "EARLIER" not in seat.text or "reading" in seat.line("EARLIER")
            await seat.pilot.press("2")
            # the request tab tells nothing that is half known
            await seat.met(lambda: "▐2 request" in seat.text and "reading …" in seat.text, settle=False)
            assert seat.app.screen.subject().value is None
            await seat.pilot.press("1")
        finally:
            source.let.set()
        await seat.settle()
        assert "59 messages" in seat.line("EARLIER")

    drive(source, steps, run=REFUND, turn=31)


def test_a_large_text_is_not_written_out_to_name_what_lays_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    source = shop()
    turns = list(source.turns[REFUND])
    call = replace(turns[30].tool_calls[0], result="\n".join(f"row {n}" for n in range(20_000)))
    turns[30] = replace(turns[30], tool_calls=(call,))
    source.turns[REFUND] = tuple(turns)
    written: list[int] = []
    monkeypatch.setattr(Body, "__repr__", lambda body: written.append(len(body.text)) or "body")

    async def steps(seat: Seat) -> None:
        await seat.press("4", "G")
        assert "row 19999" in seat.text
        assert not written

    opened(steps, source)


def test_a_turn_that_could_not_be_read_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("looptape.tui.screens.patience.FIRST", 0.05)
    source = shop()
    real, refused = source.turn, [0]

    def held(run: str, number: int, *, fresh: bool = False) -> TurnView:
        refused[0] += 1
        if refused[0] < 4:
            raise LooptapeError("store-held", "the store is held")
        return real(run, number, fresh=fresh)

    async def steps(seat: Seat) -> None:
        monkeypatch.setattr(source, "turn", held)
        seat.app.open_turn(Place(REFUND, 31))
        await seat.until("book_refund")
        assert "the store is held" not in seat.text

    drive(source, steps, run=None)
