"""Compare: two runs or turns side by side, the first difference selected; every key of the screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import small_tape
from composed import START, Composed, Step
from looptape.tracer.store import open_store
from looptape.tui.data.source import StoreSource
from looptape.tui.place import Place
from tui_driver import Seat, drive, shown
from tui_fakes import EVIL

A, B, C, LEFT, RIGHT, WILD, WILDER = (f"{letter * 4}{n:012}" for n, letter in enumerate("abcdefg", 1))
LONG = " ".join(f"row {n} is fine" for n in range(100))


def long_runs() -> tuple[Composed, Composed]:
    """Forty turns; the other run asks another file in turn 11, and has a turn more after turn 20."""
    steps = [
        Step(arguments={"path": f"src/file_{n}.py"}, result=f"file {n}\nsecond line\nthird line") for n in range(1, 41)
    ]
    other = list(steps)
    other[10] = replace(
        other[10], arguments={"path": "src/other.py"}, result="file 11\nsecond LINE\nthird line", is_error=True
    )
    other.insert(20, Step(tool="search", arguments={"q": "where is it"}, result="here"))
    return Composed(LEFT, steps, name="checkout"), Composed(RIGHT, other, name="checkout", start=START + 3_600_000_000)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    with open_store(folder) as store:
        store.ingest(small_tape.records(A, name="one", result=LONG))
        store.ingest(small_tape.records(B, name="two", result=LONG.replace("row 50 is fine", "row 50 is red")))
        store.ingest(
            small_tape.records(
                C, name="three", result=LONG, arguments={"q": "profit"}, answer="No.", model="unheard-of"
            )
        )
        for run in long_runs():
            store.ingest(list(run.records()))
        wild: dict[str, Any] = {"name": EVIL, "question": EVIL, "tool": "search", "arguments": {EVIL: EVIL}}
        store.ingest(small_tape.records(WILD, **wild, result=EVIL, answer=EVIL, thinking=EVIL))
        store.ingest(small_tape.records(WILDER, **wild | {"question": "?"}, result=f"x{EVIL}y", answer=f"{EVIL}!"))
    return folder


def compare(home: Path, left: Place, right: Place, *keys: str, **more: Any) -> str:
    return shown(home, lambda app: app.open_compare(left, right), *keys, **more)


def chosen(text: str) -> str:
    return next((line for line in text.split("\n") if line.startswith("▌")), "")


def test_the_first_difference_is_named_at_the_head_and_selected(home: Path) -> None:
    text = compare(home, Place(LEFT), Place(RIGHT))
    assert "first difference: turn 11: calls[1].arguments.path edited" in text
    assert 'read {"path":"src/file_11.py"}' in chosen(text)
    assert '≠   11 ✗ read {"path":"src/other.py"}' in chosen(text)
    assert "src/file_11.py" in text.split("calls[1].arguments.path edited")[-1]


def test_a_turn_that_came_stands_alone_and_those_after_it_stay_aligned(home: Path) -> None:
    text = compare(home, Place(LEFT), Place(RIGHT), "n")
    assert chosen(text).split() == ["▌", "+", "21", "search", '{"q":"where', 'is', 'it"}']  # fmt: skip
    assert "this turn is only on the right" in text
    after = next(line for line in text.split("\n") if 'file_21.py"' in line)
    assert after.split()[0] == "21"
    assert '  22 read {"path":"src/file_21.py"}' in after


def test_equal_turns_are_folded_and_the_braces_say_how_many_stay(home: Path) -> None:
    assert "… 7 more" in compare(home, Place(LEFT), Place(RIGHT))
    assert "… 9 more" in compare(home, Place(LEFT), Place(RIGHT), "{")
    everything = compare(home, Place(LEFT), Place(RIGHT), "}", "}", "}")
    assert "everything is shown" in everything
    assert " more" not in everything


def test_enter_unfolds_what_is_folded(home: Path) -> None:
    text = compare(home, Place(LEFT), Place(RIGHT), "g", "enter")
    assert 'file_1.py"' in chosen(text)
    assert "… 7 more" not in text


def test_n_and_capital_n_go_from_difference_to_difference(home: Path) -> None:
    text = compare(home, Place(A), Place(C), "n")
    assert "No." in chosen(text)
    assert "no more differences below" in compare(home, Place(A), Place(C), "n", "n")
    assert "profit" in chosen(compare(home, Place(A), Place(C), "n", "N"))


def test_words_that_differ_stand_side_by_side_whole(home: Path) -> None:
    text = compare(home, Place(A), Place(B))
    assert "calls[1].result edited" in text
    left = next(line for line in text.split("\n") if "row 50 is" in line)
    assert "row 50 is fine" in left or "row 50 is red" in left
    assert "row 99" not in text.split("calls[1].result edited")[-1]


def test_a_run_compared_with_itself_says_no_difference(home: Path) -> None:
    text = compare(home, Place(LEFT), Place(LEFT))
    assert "no difference" in text
    assert "this is the same run on both sides" in text
    assert "≠" not in text


def test_enter_opens_the_pair_with_its_requests(home: Path) -> None:
    text = compare(home, Place(A), Place(C), "enter")
    assert "1 all" in text
    assert "turn 1" in text
    assert "messages" in text
    assert "unchanged" in text
    assert "first different act: calls[1].arguments.q edited" in text
    back = compare(home, Place(A), Place(C), "enter", "q")
    assert "1 turns" in back


def test_a_turn_that_stands_alone_opens_as_a_turn(home: Path) -> None:
    assert "turn 21" in compare(home, Place(LEFT), Place(RIGHT), "n", "enter")


def test_two_turns_are_compared_part_by_part(home: Path) -> None:
    text = compare(home, Place(A, 1), Place(A, 2))
    assert "first difference: messages[2] appended" in text
    line = next(line for line in text.split("\n") if "messages[3]" in line)
    assert "+ user: = row 0 is fine" in line
    assert "system" in text
    assert "unchanged" in text
    assert '→ search {"q": "revenue"}' in text


def test_enter_on_a_part_gives_it_the_whole_screen_and_escape_takes_it_back(home: Path) -> None:
    whole = compare(home, Place(A, 1), Place(A, 2), "enter")
    assert "messages[2] appended" in whole
    assert "▌ messages" not in whole
    assert "▌ messages" in compare(home, Place(A, 1), Place(A, 2), "enter", "escape")


def test_a_part_that_is_equal_shows_that_part_alone_not_what_differs_elsewhere(home: Path) -> None:
    text = compare(home, Place(A, 1), Place(A, 2), "k")
    assert "▌ tools" in text
    below = text.split("nothing differs here")[-1]
    assert "→ search" not in below
    requests = compare(home, Place(LEFT), Place(RIGHT), "2", "G", "k")
    below = requests.split("nothing differs here")[-1]
    assert "file_" not in below
    assert "≠" not in below


def test_a_view_without_a_difference_gives_way_to_one_that_has_it(home: Path) -> None:
    async def then(seat: Seat) -> None:
        seat.app.open_compare(Place(A, 1), Place(B, 1), "requests")
        await seat.settle()
        assert "≠ row" in chosen(seat.text)
        assert "calls[1].result edited" in seat.text

    compare(home, Place(A), Place(B), then=then)


def test_other_calls_show_what_each_of_them_brought_back(home: Path) -> None:
    text = compare(home, Place(LEFT, 1), Place(RIGHT, 21), "3")
    below = text.split("calls[1].result edited")[-1]
    assert "file 1" in below
    assert "here" in below


def test_a_turn_whose_request_is_not_recorded_is_compared_by_its_answer(home: Path, tmp_path: Path) -> None:
    whole = small_tape.records(B, name="two", result="blue")
    made = [r for r in whole if (r.get("kind"), r.get("turn")) != ("turn_start", 1)]
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records(A, name="one", result=LONG))
        store.ingest(made)
        assert store.turns(B)[0].message_count is None
    text = compare(tmp_path, Place(A, 1), Place(B, 1))
    assert "not recorded" in text
    assert "not compared" in text
    assert "messages[1]" not in text


def test_the_turns_number_stays_in_the_head_whatever_the_name(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records(A, name="a name without end " * 20))
    text = compare(tmp_path, Place(A, 1), Place(A, 2), size=(80, 24))
    assert "turn 1" in text.split("\n")[0]
    assert "turn 2" in text.split("\n")[1]


def test_the_totals_of_equal_runs_stand_there_whole(home: Path) -> None:
    text = compare(home, Place(LEFT), Place(LEFT), "4")
    assert "more" not in chosen(text)
    assert "cost" in text


def test_the_views_are_turns_requests_results_and_totals(home: Path) -> None:
    requests = compare(home, Place(A), Place(C), "v")
    assert "the same" in requests
    results = compare(home, Place(LEFT), Place(RIGHT), "v", "v")
    assert "✗ file 11 second LINE third line" in results
    totals = compare(home, Place(LEFT), Place(RIGHT), "4")
    assert "turns                    40 ≠           41           +1" in totals
    assert "errors" in totals
    assert "cost" in totals
    assert "1 turns" in compare(home, Place(LEFT), Place(RIGHT), "v", "v", "v", "v")


def test_the_command_line_calls_the_views_of_two_turns_as_their_tabs_do(home: Path) -> None:
    text = compare(home, Place(A, 1), Place(A, 2), "4", "colon", *"tab", "space", *"all", "enter")
    assert "unknown" not in text
    assert "▌ messages" in text


def test_s_swaps_the_sides(home: Path) -> None:
    text = compare(home, Place(LEFT), Place(RIGHT), "s", "n")
    assert "1 only in A" in text
    assert "-" in chosen(text).split()
    assert "this turn is only on the left" in text


def test_tab_says_which_side_the_other_keys_are_about(home: Path) -> None:
    async def then(seat: Seat) -> None:
        assert seat.app.screen.subject().place == Place(RIGHT, 11)
        await seat.press("tab")
        assert seat.app.screen.subject().place == Place(LEFT, 11)
        assert seat.app.screen.subject().value == "src/file_11.py"
        assert "about the left side" in seat.text
        assert "▸ A" in seat.text

    compare(home, Place(LEFT), Place(RIGHT), then=then)


def test_raw_keeps_json_as_it_was(home: Path) -> None:
    pretty = compare(home, Place(LEFT), Place(RIGHT), "n")
    assert '"q": "where is it"' in pretty
    raw = compare(home, Place(LEFT), Place(RIGHT), "n", "R")
    assert '→ search {"q": "where is it"}' in raw


def test_a_run_against_a_turn_compares_the_runs_and_stands_at_the_turn(home: Path) -> None:
    text = compare(home, Place(LEFT), Place(RIGHT, 31))
    assert "first difference: turn 11" in text
    assert '31 read {"path":"src/file_30.py"}' in chosen(text)
    among_equal = compare(home, Place(LEFT), Place(RIGHT, 3))
    assert '3 read {"path":"src/file_3.py"}' in chosen(among_equal)


def test_space_scrolls_the_texts_while_the_lines_keep_the_keys(home: Path) -> None:
    text = compare(home, Place(A, 1), Place(A, 2), "space", size=(80, 24))
    assert "▌ messages" in text
    assert "+ user:" in text
    assert "+ assistant: I look" in text


def test_a_mark_and_d_lead_here(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        seat.app.open_run(LEFT)
        await seat.settle()
        await seat.press("m", "j", "d")
        assert "first difference" in seat.text
        assert "turn 1" in seat.text
        assert "turn 2" in seat.text

    drive(StoreSource(home), steps)


def test_several_marks_are_each_compared_with_where_d_was_pressed(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        seat.app.marks.extend([Place(RIGHT), Place(A), Place(LEFT, 3)])
        seat.app.open_compare_many(Place(LEFT), seat.app.marks)
        await seat.settle()
        assert "A checkout" in seat.text
        assert "3 marks" in seat.text
        assert "turn 11: calls[1].arguments.path" in seat.line(RIGHT[:8])
        await seat.press("enter")
        assert "first difference: turn 11" in seat.text

    drive(StoreSource(home), steps)


def test_d_with_several_marks_shows_them_as_a_table(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        seat.app.marks.extend([Place(RIGHT), Place(A)])
        seat.app.open_run(LEFT)
        await seat.settle()
        await seat.press("d")
        assert "2 marks" in seat.text

    drive(StoreSource(home), steps)


def test_a_run_that_is_gone_is_told_of_and_the_others_are_compared(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        seat.app.open_compare_many(Place(LEFT), [Place("0000000000000000"), Place(RIGHT)])
        await seat.settle()
        assert "turn 11" in seat.line(RIGHT[:8])
        assert seat.line("00000000").strip()
        assert "comparing …" not in seat.text

    drive(StoreSource(home), steps)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 12)], ids=["80x24", "120x40", "40x12"])
def test_what_was_recorded_cannot_act_on_the_terminal(home: Path, size: tuple[int, int]) -> None:
    async def then(seat: Seat) -> None:
        for view in "1234":
            await seat.press(view, "n", "R")
            assert not any(c in seat.text.replace("\n", "") for c in map(chr, (*range(32), 127, *range(128, 160))))
        await seat.press("1", "enter", "G")
        assert "\x1b" not in seat.text

    compare(home, Place(WILD), Place(WILDER), size=size, then=then)


def test_a_text_of_megabytes_says_what_was_not_compared(tmp_path: Path) -> None:
    long = "word " * 200_000
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records(A, result="a" + long))
        store.ingest(small_tape.records(B, result="b" + long))
    assert "calls[1].result edited" in compare(tmp_path, Place(A), Place(B))

    async def then(seat: Seat) -> None:
        await seat.press("enter", "enter")
        assert "not compared word by word" in seat.text

    compare(tmp_path, Place(A, 1), Place(B, 1), "3", then=then)


def test_s_twice_in_one_breath_leaves_the_sides_as_they_were(home: Path) -> None:
    async def then(seat: Seat) -> None:
        before, screen = seat.text, seat.app.screen
        screen.action_swap()
        screen.action_swap()
        await seat.settle()
        assert seat.text == before
        assert screen.subject().place == Place(RIGHT, 11)
        screen.action_swap()
        await seat.settle()
        assert screen.subject().place == Place(RIGHT, 11)
        assert screen._side == 0

    compare(home, Place(LEFT), Place(RIGHT), then=then)
