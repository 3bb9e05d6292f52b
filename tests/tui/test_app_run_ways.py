"""One run: the ways through it, its three views, what is drawn beside its turns. On sample runs in a real store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import small_tape
from looptape.sample_traces import demo
from looptape.tracer.importers import import_path
from looptape.tracer.store import open_store
from looptape.tui.data.source import StoreSource
from looptape.tui.place import Place
from tui_driver import Seat, drive
from tui_fakes import HOSTILE, held, hostile, shop

USED = ("cycle", "sub_agent", "compaction", "tool_errors")
REFUND = "3f9a1c2072d94b10"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ways")
    with open_store(folder) as store:
        for tape in demo.tapes():
            if tape.stem in USED:
                import_path(store, tape)
    return folder


def source_of(home: Path, name: str) -> tuple[StoreSource, str]:
    source = StoreSource(home, place="~/shop-agent")
    (home / "screen.json").unlink(missing_ok=True)
    return source, source.find(name)


def test_why_it_cost_so_much_stands_in_two_lines_at_the_head(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        assert seat.lines[0].startswith(" why  where-is-my-parcel took $0.0082 and 8 turns")
        assert "Could be saved: turns in cycles, $0.0031 (38 %)" in seat.lines[1]
        assert "where-is-my-parcel  a6de3ec6" in seat.lines[2]

    source, run = source_of(home, "where-is-my-parcel")
    drive(source, steps, run=run)


def test_a_cycle_is_a_bracket_with_its_laps_and_c_leads_to_its_beginning(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("G", "C")
        assert seat.chosen.startswith("▌  ↻┌   1 ✗›!")
        assert [seat.line(f"  {n} ")[2:5] for n in (2, 3, 7)] == ["  │", " 2├", " 4└"]
        assert "↻ cycle   lap 1 of 4: Turns 1 to 7" in seat.text
        assert "known at turn 5; since then 3" in seat.text
        assert "↻ 1 cycle" in seat.text
        await seat.press("c")
        assert "no more cycles below" in seat.text

    source, run = source_of(home, "where-is-my-parcel")
    drive(source, steps, run=run, size=(200, 40))


def test_a_finding_has_its_sign_and_the_angle_brackets_lead_to_it(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("G", "less_than_sign")
        assert "!" in seat.chosen
        assert "! L05" in seat.text
        assert "! 2 findings" in seat.text
        await seat.press("less_than_sign")
        assert "no more findings above" in seat.text
        await seat.press("G", "greater_than_sign")
        assert "no more findings below" in seat.text

    source, run = source_of(home, "where-is-my-parcel")
    drive(source, steps, run=run)


def test_the_star_goes_to_the_next_call_of_the_same_tool_and_the_hash_back() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("J", "asterisk")
        assert "31 ✗" in seat.chosen
        await seat.press("number_sign", "number_sign")
        assert "29 ✗" in seat.chosen
        assert "no more calls of book_refund above" in seat.text

    drive(shop(), steps, run=REFUND)


def test_u_goes_to_the_words_of_the_user() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("G", "U")
        assert " 1 ›" in seat.chosen
        await seat.press("u")
        assert "no more words of the user below" in seat.text

    drive(shop(), steps, run=REFUND)


def test_a_search_marks_its_hits_counts_them_and_n_steps_through_them(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("n")
        assert "/ searches in this run" in seat.text
        await seat.press("slash", *"no order", "enter")
        assert "4 matches in 4 turns; n and N step through them" in seat.text
        assert "/ 4 in 4 turns" in seat.text
        assert " 1 ✗›/" in seat.chosen
        assert "/ found   in result of find_order: Error: no order A-1OO42" in seat.text
        await seat.press("n")
        assert " 3 ✗ /" in seat.chosen
        await seat.press("N", "N")
        assert "no more turns with no order above" in seat.text
        await seat.press("escape")
        assert "/ 4 in 4 turns" not in seat.text
        assert seat.app.screen.run_id == run
        await seat.press("slash", *"nowhere at all", "enter")
        assert "nowhere at all is nowhere in this run" in seat.text
        await seat.press("slash", "escape")
        assert "nothing found" not in seat.text

    source, run = source_of(home, "where-is-my-parcel")
    drive(source, steps, run=run, size=(200, 40))


def test_v_goes_round_the_three_views_and_the_next_time_the_last_one_is_there(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("j", "j", "v")
        assert "waterfall" in seat.lines[2]
        assert "a cell" in seat.text
        assert "3 ✗" in seat.chosen
        await seat.press("J")
        assert "5 ✗" in seat.chosen
        await seat.press("v")
        assert "transcript" in seat.lines[2]
        assert "EXECUTE" not in seat.text
        await seat.press("v")
        assert "▌  3├   5 ✗" in seat.chosen
        await seat.press("t", "t", "w")
        assert "waterfall" in seat.lines[2]

    async def again(seat: Seat) -> None:
        assert "waterfall" in seat.lines[2]
        await seat.press("w")
        assert "▌  3├   5 ✗" in seat.chosen  # the turn is remembered too

    source, run = source_of(home, "where-is-my-parcel")
    drive(source, steps, run=run)
    drive(StoreSource(home), again, run=run)


def test_moving_in_the_waterfall_moves_the_selection_of_all_views(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("w", "j", "j", "w")
        assert "▌  2├   3 ✗" in seat.chosen

    source, run = source_of(home, "where-is-my-parcel")
    drive(source, steps, run=run)


def test_i_goes_into_a_sub_agent_and_p_back_to_the_run_that_called_it(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        assert "$0.0048 ($0.0072 with sub-agents)" in seat.text
        assert "research×2 ↳" in seat.chosen
        assert "↳ agent   research  2 turns, $0.0012 in all" in seat.text
        assert "i opens it" in seat.text
        await seat.press("p")
        assert "no other run started this one" in seat.text
        await seat.press("i")
        assert "which sub-agent" in seat.text
        await seat.press("2")
        assert "sub-agent of f4aad462 @1" in seat.text
        assert "research  " in seat.lines[2]
        await seat.press("i")
        assert "no sub-agent was started in this turn" in seat.text
        await seat.press("p")
        assert "suppliers" in seat.lines[2]
        assert seat.app.screen.run_id == run

    source, run = source_of(home, "suppliers")
    drive(source, steps, run=run)


def test_p_opens_the_parent_at_the_turn_where_one_did_not_come_from_there(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("p")
        assert "suppliers" in seat.lines[2]
        assert "turn 1 of 2" in seat.text

    source, _ = source_of(home, "suppliers")
    drive(source, steps, run=source.find("d314f473812e22b0"))


def test_a_compaction_has_its_sign(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        assert "▤" in seat.line("  6 ")

    source, run = source_of(home, "broken-returns")
    drive(source, steps, run=run)


def test_m_marks_a_turn_and_d_compares_another_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[Place, Place]] = []

    async def steps(seat: Seat) -> None:
        monkeypatch.setattr(seat.app, "open_compare", lambda left, right: compared.append((left, right)))
        await seat.press("j", "m")
        assert "◆" in seat.chosen
        await seat.press("j", "d")

    drive(shop(), steps, run=REFUND)
    assert compared == [(Place(REFUND, 2), Place(REFUND, 3))]


def test_r_x_bang_and_dollar_lead_on_from_the_selected_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    async def steps(seat: Seat) -> None:
        for name in ("open_fork", "open_findings", "open_costs"):
            monkeypatch.setattr(seat.app, name, lambda what, name=name: asked.append((name, what)))
        monkeypatch.setattr(
            seat.app, "open_turn", lambda place, tab="", back=None, known=None: asked.append((tab, place))
        )
        await seat.press("j", "r", "x", "exclamation_mark", "dollar_sign")

    drive(shop(), steps, run=REFUND)
    here = Place(REFUND, 2)
    assert asked[:2] == [("open_fork", here), ("context", here)]
    assert [(name, what.runs) for name, what in asked[2:]] == [("open_findings", (REFUND,)), ("open_costs", (REFUND,))]


def test_in_a_narrow_terminal_the_turn_stands_below_and_grows_when_it_has_the_keys() -> None:
    async def steps(seat: Seat) -> None:
        listing, detail = seat.app.screen.listing, seat.app.screen.detail
        assert listing.size.width == detail.size.width == 80
        assert "fresh  read write   out      $     s" in seat.text
        small = detail.size.height
        await seat.press("tab")
        assert detail.size.height > small
        await seat.press("j", "tab")
        assert detail.size.height == small

    drive(shop(), steps, run=REFUND, size=(80, 24))


def test_the_buckets_of_tokens_are_shown_where_there_is_room() -> None:
    async def steps(seat: Seat) -> None:
        assert "in fresh  read write   out" in seat.text
        assert " 4.0k  1.2k  2.9k     -   243    .01   2.2" in seat.chosen

    drive(shop(), steps, run=REFUND, size=(200, 40))


def test_a_store_that_cannot_be_asked_leaves_the_run_readable() -> None:
    source = shop()
    source.store = object()  # whatever is asked of it fails

    async def steps(seat: Seat) -> None:
        assert "turn 1 of 40" in seat.text
        await seat.press("slash", *"x", "enter", "j")
        assert "searching" not in seat.text

    drive(source, steps, run=REFUND)


def test_what_a_held_store_did_not_answer_is_said_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("looptape.tui.screens.run.watching.EVERY", 0.02)
    monkeypatch.setattr("looptape.tui.screens.run.watching.AGAIN", 0.02)
    source = shop()
    answer = source.ask
    held_open = True

    def ask(question: Callable[[Any], Any]) -> Any:
        if held_open:
            raise held()
        return answer(question)

    source.ask = ask  # type: ignore[method-assign]

    async def steps(seat: Seat) -> None:
        nonlocal held_open
        assert "why  not known: python (PID 4711) has the store open" in seat.lines[0]
        assert "cycles and findings not known" in seat.text
        assert "turn 1 of 40" in seat.text
        held_open = False
        await seat.until("not known", gone=True)
        assert "why  refund-agent took" in seat.lines[0]
        assert "not known" not in seat.text

    drive(source, steps, run=REFUND)


@pytest.mark.parametrize("view", ["turns", "waterfall", "transcript"])
def test_hostile_data_changes_nothing_but_the_text(tmp_path: Path, view: str) -> None:
    name = "".join(HOSTILE)[:200] if not isinstance(HOSTILE, str) else HOSTILE[:200]
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records(run="a" * 16, thinking=name))

    async def steps(seat: Seat) -> None:
        for _ in range(["turns", "waterfall", "transcript"].index(view)):
            await seat.press("v")
        await seat.press("j", "slash", *"[/", "enter")
        assert not set("".join(seat.lines)) & {chr(c) for c in range(32)}

    drive(StoreSource(tmp_path), steps, run="a" * 16)
    drive(hostile(), steps, run=hostile().all_runs[0].id)
