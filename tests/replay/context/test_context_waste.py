"""Stale results and verbatim repeats of a window: what counts as used, and what does not."""

from __future__ import annotations

import conversation_tape as talk
from looptape.replay.context import Context, context
from looptape.tracer.store import memory_store

RUN = "c" * 16


def ask(turns: list[talk.Said], number: int) -> Context:
    store = memory_store()
    store.ingest(talk.records(turns))
    return context(store, RUN, number)


def steps(*pairs: tuple[str, dict, str]) -> list[talk.Said]:
    """Turns that each call a tool (words, arguments, result), then a last word."""
    listed = [
        ([talk.text(words), talk.call("look", f"t{n}", **arguments)], [talk.result(f"t{n}", found)])
        for n, (words, arguments, found) in enumerate(pairs, 1)
    ]
    return talk.grown([*listed, ([talk.text("the end")], [])])


def test_a_result_that_no_answer_refers_to_is_stale() -> None:
    turns = steps(("first", {"q": "a"}, "order_4711 is late"), ("then", {"q": "b"}, "the weather is fine"))
    stale = {s.call: s for s in ask(turns, 3).stale}
    assert stale["t1"].last_used is None
    assert stale["t1"].turn == 1
    assert stale["t1"].carried == 2


def test_a_name_from_a_result_in_later_arguments_is_use() -> None:
    turns = steps(
        ("first", {"q": "a"}, "order_4711 is late"),
        ("then", {"q": "b"}, "nothing new here"),
        ("now", {"q": "order_4711"}, "refunded"),
    )
    assert "t1" not in {s.call for s in ask(turns, 2).stale}
    assert "t1" not in {s.call for s in ask(turns, 3).stale}
    late = {s.call: s for s in ask(turns, 4).stale}
    assert late["t1"].last_used == 3


def test_a_word_of_the_prompt_is_no_reference() -> None:
    turns = steps(("first", {"q": "a"}, "file main.py has 3 lines"), ("I see main.py again", {"q": "b"}, "fine"))
    for turn in turns:
        turn.system = "You work on main.py"
    assert "t1" in {s.call for s in ask(turns, 3).stale}


def test_one_plain_word_in_common_is_no_reference_and_three_are() -> None:
    found = "Several customers complained about broken ceramics yesterday"
    one = steps(("first", {"q": "a"}, found), ("b", {"q": "b"}, "x"), ("customers", {"q": "c"}, "y"))
    three = steps(("first", {"q": "a"}, found), ("b", {"q": "b"}, "x"), ("broken ceramics, customers", {"q": "c"}, "y"))
    assert "t1" in {s.call for s in ask(one, 3).stale}
    assert "t1" not in {s.call for s in ask(three, 3).stale}


def test_the_same_call_made_again_supersedes_the_earlier_result() -> None:
    turns = steps(
        ("first", {"q": "state", "n": 1}, "job_17 pending"),
        ("again", {"n": 1, "q": "state"}, "job_17 finished"),
        ("job_17 it is", {"q": "x"}, "ok"),
    )
    stale = {s.call: s for s in ask(turns, 3).stale}
    assert stale["t1"].superseded_by == 2
    assert "t2" not in stale


def test_the_result_that_just_came_in_is_never_stale() -> None:
    turns = steps(("first", {"q": "a"}, "order_4711 is late"))
    assert ask(turns, 2).stale == ()


def test_a_text_that_stands_twice_is_told_once_with_its_messages() -> None:
    page = "the same page, word for word " * 10
    turns = steps(("one", {"q": "a"}, page), ("two", {"q": "b"}, page), ("three", {"q": "c"}, "short"))
    (repeat,) = ask(turns, 4).repeats
    assert (repeat.origin, repeat.tool, repeat.times, repeat.messages) == ("result", "look", 2, (3, 5))
    assert repeat.text == page
    assert abs(repeat.tokens - len(page) / 4) <= 1
