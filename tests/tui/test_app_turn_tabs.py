"""The tabs of a turn over a real store: what changed, where the cache broke, the context, findings, jumps."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest

import conversation_tape as talk
from looptape.sample_traces import demo
from looptape.tracer.importers import import_path
from looptape.tracer.store import memory_store
from looptape.tui.data.source import StoreSource
from looptape.tui.place import Place
from tui_driver import Seat, drive

RUN = "c" * 16
TOOLS = [
    {"name": "read", "description": "reads a file", "input_schema": {"type": "object"}},
    {"name": "write", "description": "writes a file", "input_schema": {"type": "object"}},
]
CATALOG = " ".join(f"item-{n}" for n in range(900))


def edited() -> list[talk.Said]:
    """Four turns; in the last one an early result is cut, a message is gone, and the cache is read no more."""
    steps = [
        ([talk.call("read", f"t{n}", n=n)], [talk.result(f"t{n}", CATALOG if n == 1 else f"result {n}")])
        for n in range(1, 5)
    ]
    found = talk.grown(steps, tools=TOOLS)
    usages = [(10, 0, 5000, 0), (10, 5000, 500, 0), (10, 5500, 400, 0), (10, 0, 5900, 0)]
    names = ("input", "cache_read", "cache_write_5m", "cache_write_1h")
    for turn, figures in zip(found, usages, strict=True):
        turn.usage = {**dict(zip(names, figures, strict=True)), "output": 20}
    last = found[3]
    first, asked, _, _, _, again, came = last.messages
    last.messages = [first, asked, talk.result("t1", CATALOG[:200]), again, came]
    return found


def source(given: list[talk.Said]) -> StoreSource:
    store = memory_store()
    store.ingest(talk.records(given))
    return StoreSource(Path(tempfile.mkdtemp()), opener=lambda: nullcontext(store))


def at(steps, given=None, turn: int = 4, tab: str = "request", **more):
    """Opens a turn of a conversation on a tab and does the steps."""
    where = given if isinstance(given, StoreSource) else source(given or edited())
    run = more.pop("run", RUN)

    async def opened(seat: Seat) -> None:
        seat.app.open_turn(Place(run, turn), tab)
        await seat.settle()
        await steps(seat)

    return drive(where, opened, **more)


@pytest.fixture(scope="module")
def samples() -> StoreSource:
    store = memory_store()
    for tape in demo.tapes():
        import_path(store, tape)
    return StoreSource(Path(tempfile.mkdtemp()), opener=lambda: nullcontext(store))


def test_the_request_says_what_is_new_cut_and_gone_and_how_many_tokens_each_part_has() -> None:
    async def steps(seat: Seat) -> None:
        assert "5,910 tokens · 5,900 written to the cache · 10 new" in seat.line("REQUEST")
        assert seat.line("[1..2]").lstrip(" ▌").startswith("▸ ≡")
        assert "✂ [3]" in seat.line("[3] user")
        assert "cut from" in seat.line("[3] user")
        assert "✎ [4]" in seat.line("[4] assistant")
        assert "1 truncated, 2 edited" in seat.line("messages 5")
        figures = [
            int(word.replace(",", "")) for word in seat.line("messages 5").split() if word.replace(",", "").isdigit()
        ]
        assert figures[0] == 5
        assert figures[1] > 100

    at(steps)


def test_messages_that_are_gone_stand_where_they_stood() -> None:
    given = edited()
    whole = talk.grown(
        [([talk.call("read", f"t{n}", n=n)], [talk.result(f"t{n}", f"result {n}")]) for n in range(1, 5)]
    )
    given[2].messages = whole[2].messages
    given[3].messages = [whole[3].messages[0], *whole[3].messages[3:]]

    async def steps(seat: Seat) -> None:
        rows = [line.strip(" ▌▸▾")[:5] for line in seat.lines if "] " in line and line.strip(" ▌▸▾")[:1] in "≡+-✎"]
        assert rows == ["≡ [1]", "- [2]", "- [3]", "≡ [2.", "+ [4]", "+ [5]"]
        assert "dropped: [2] of turn 3" in seat.line("- [2]")
        assert "- dropped" in seat.text

    at(steps, given)


def test_the_place_where_the_cache_broke_is_marked_with_what_it_cost() -> None:
    async def steps(seat: Seat) -> None:
        assert "the prefix broke at messages[3]" in seat.line("CACHE")
        assert "more than from the cache" in seat.text
        assert "← the cache broke here (-5.9k read)" in seat.line("[3] user")

    at(steps, size=(160, 40))


def test_braces_show_more_and_less_around_what_changed() -> None:
    async def steps(seat: Seat) -> None:
        assert "[1..2]" in seat.text
        await seat.press("right_curly_bracket")
        assert seat.line("[2] assistant")
        assert "[1..2]" not in seat.text
        await seat.press("left_curly_bracket")
        assert "[1..2]" in seat.text
        await seat.press("left_curly_bracket")
        assert "only what changed is shown" in seat.text
        await seat.press("1", "right_curly_bracket")
        assert "are for the request tab" in seat.text

    at(steps)


def test_tools_that_were_never_called_are_told() -> None:
    async def steps(seat: Seat) -> None:
        assert "1 of 2 ever called" in seat.line("tools 2")
        await seat.press("right_parenthesis", "right_parenthesis", "enter")
        assert "called" in seat.line("reads a file")
        assert "never" in seat.line("writes a file")

    at(steps)


def test_a_fold_that_other_turns_have_too_stands_there_as_it_was_left() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("right_parenthesis", "right_parenthesis", "enter")
        assert "reads a file" in seat.text
        await seat.press("h")
        assert "turn 3 of 4" in seat.text
        assert "reads a file" in seat.text
        assert seat.app.memory.get("fold.turn", {}) == {"request.tools": True}
        await seat.press("q")
        seat.app.open_turn(Place(RUN, 2), "request")
        await seat.settle()
        assert "reads a file" in seat.text

    at(steps)


def test_what_came_before_is_folded_under_what_is_new_and_opens() -> None:
    async def steps(seat: Seat) -> None:
        assert "↳ read" in seat.text
        assert seat.line("EARLIER").lstrip(" ▌").startswith("▸")
        await seat.press("minus", "G", "enter")
        assert "[1] user" in seat.text
        assert seat.line("EARLIER").lstrip(" ▌").startswith("▾")

    at(steps, turn=3, tab="conversation")


def test_x_shows_what_fills_the_window_and_leads_back() -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("x")
        assert "▐6 context▌" in seat.text
        assert "5,910 tokens recorded" in seat.line("WINDOW")
        assert "results of read" in seat.text
        assert "█" in seat.line("results of read")
        assert "GREW" in seat.text
        assert "turn 4 (this)" in seat.text
        await seat.press("x")
        assert "▐4 calls (1)▌" in seat.text

    at(steps, tab="calls")


def test_costs_of_the_buckets_add_up_to_the_cost_of_the_turn() -> None:
    async def steps(seat: Seat) -> None:
        parts = [
            float(seat.line(label).split()[-1]) for label in ("  input, uncached", "  cache write 5 m", "  output  ")
        ]
        whole = float(seat.line("= this turn").split()[-1])
        assert sum(parts) == pytest.approx(whole, abs=1e-12)
        assert f"priced ${whole}" in seat.text
        assert "genai-prices" in seat.text

    at(steps, tab="usage")


def test_the_next_error_and_the_next_call_of_the_same_tool_are_a_key_away(samples: StoreSource) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("J")
        assert "turn 3 of 8  ✗" in seat.text
        await seat.press("asterisk")
        assert "turn 5 of 8  ✗" in seat.text
        await seat.press("number_sign", "number_sign", "number_sign")
        assert "turn 1 of 8" in seat.text
        assert "no more calls of find_order above" in seat.text
        await seat.press("l", "asterisk")
        assert "turn 4 of 8" in seat.text
        await seat.press("K")
        assert "turn 3 of 8" in seat.text
        await seat.press("J", "J", "J")
        assert "turn 7 of 8" in seat.text
        assert "no more errors below" in seat.text

    at(steps, samples, turn=1, tab="conversation", run="a6de3ec6d44c7d99")


def test_findings_that_touch_the_turn_are_told_with_waste_cure_and_rule(samples: StoreSource) -> None:
    async def steps(seat: Seat) -> None:
        assert "▐8 findings (3)▌" in seat.text
        assert "L05  Cycle noticed only at the cap  turns 1-7" in seat.text
        assert "3 turns" in seat.line("wasted")
        assert "looptape lint --explain L05" in seat.text
        assert "agents/cycle.py:66" in seat.line("caller")
        await seat.press("l")
        assert "none for this turn · 2 findings and 1 cycle elsewhere in the run" in seat.text

    at(steps, samples, turn=7, tab="findings", run="a6de3ec6d44c7d99", size=(120, 60))


def test_what_is_chosen_is_what_is_copied(samples: StoreSource) -> None:
    async def steps(seat: Seat) -> None:
        subject = seat.app.screen.subject()
        assert (subject.place, subject.value, subject.what) == (
            Place("a6de3ec6d44c7d99", 1), "Error: no order A-1OO42", "result of find_order"
        )  # fmt: skip
        await seat.press(*["j"] * 8)
        subject = seat.app.screen.subject()
        assert subject.what == "arguments of find_order"
        assert subject.json == {"number": "A-1OO42"}
        assert subject.caller == "agents/cycle.py:66"

    at(steps, samples, turn=1, tab="calls", run="a6de3ec6d44c7d99")


def test_the_tab_is_remembered_for_the_next_turn_that_is_opened(samples: StoreSource) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("5", "q")
        seat.app.open_turn(Place("a6de3ec6d44c7d99", 2))
        await seat.settle()
        assert "▐5 usage▌" in seat.text

    at(steps, samples, turn=1, tab="calls", run="a6de3ec6d44c7d99")


def test_what_makes_a_turn_less_than_whole_is_said_at_its_head() -> None:
    given = edited()
    given[1].flags = ("truncated_at_source", "output_unreliable")
    given[1].model = "nobody-prices-this"

    async def steps(seat: Seat) -> None:
        assert "truncated at source · output tokens unreliable · unpriced" in seat.text

    at(steps, given, turn=2, tab="conversation")


def test_images_and_blobs_are_named_and_only_raw_shows_their_letters() -> None:
    data = "iVBORw0KGgo" + "Ab3" * 4000
    given = edited()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    shown = talk.result("t1", [talk.text("here it is"), picture])
    given[1].messages = [*given[1].messages[:2], shown]
    link = talk.user(f"look: data:image/gif;base64,{'R0lGOD' + 'Zz9' * 400} nice")
    given[1].messages.append(link)

    async def steps(seat: Seat) -> None:
        assert "[image image/png, 9.0 kB]" in seat.text
        assert "[image/gif, 904 B]" in seat.text
        assert "Ab3Ab3" not in seat.text
        assert "Zz9Zz9" not in seat.text
        await seat.press("R")
        assert "Ab3Ab3" in seat.text

    at(steps, given, turn=2, tab="conversation")
