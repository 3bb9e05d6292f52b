"""Two requests: every kind of change named at its place, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

import conversation_tape as talk
from looptape.replay.diff.requests import requests
from looptape.tracer.model import Request

TOOLS = [{"name": n, "description": f"does {n}", "input_schema": {"type": "object"}} for n in ("read", "write", "run")]
LONG = " ".join(f"word{n}" for n in range(300))
BASE = [talk.user("go"), talk.assistant(talk.call("read", "t1", path="a")), talk.result("t1", LONG),
        talk.assistant(talk.call("run", "t2", cmd="x")), talk.result("t2", "fine")]  # fmt: skip


def changes(a: list[Any], b: list[Any], **parts: Any) -> list[tuple[str, str]]:
    one = Request(tuple(a), "system", TOOLS, {"max_tokens": 1})
    two = Request(tuple(b), **{"system": "system", "tools": TOOLS, "params": {"max_tokens": 1}, **parts})
    return [(c.kind, c.path) for c in requests(one, two)]


def test_a_request_differs_in_nothing_from_itself() -> None:
    assert changes(BASE, BASE) == []


def test_messages_at_the_end_are_appended() -> None:
    assert changes(BASE[:3], BASE) == [("appended", "messages[4]"), ("appended", "messages[5]")]


def test_a_message_in_the_middle_is_inserted_and_moves_nothing_else() -> None:
    assert changes(BASE, [*BASE[:3], talk.user("note"), *BASE[3:]]) == [("inserted", "messages[4]")]


def test_messages_that_are_gone_are_dropped_by_their_old_number() -> None:
    assert changes(BASE, [BASE[0], *BASE[3:]]) == [("dropped", "messages[2]"), ("dropped", "messages[3]")]


def test_an_edited_text_is_named_by_its_path() -> None:
    edited = talk.assistant(talk.call("read", "t1", path="b"))
    assert changes(BASE, [BASE[0], edited, *BASE[2:]]) == [("edited", "messages[2].content[1].input.path")]


def test_a_cut_result_is_truncated() -> None:
    cut = talk.result("t1", LONG[:400] + "… [cut]")
    assert changes(BASE, [*BASE[:2], cut, *BASE[3:]]) == [("truncated", "messages[3].content[1].content")]


def test_messages_in_another_order_are_reordered() -> None:
    moved = [talk.user(w) for w in ("one", "two", "three", "four")]
    assert changes(moved, [moved[3], *moved[:3]]) == [("reordered", "messages[1]")]


def test_a_message_that_moved_and_was_edited_names_both_places() -> None:
    one = Request((talk.user("a"), talk.user("b"), talk.user("long words here")))
    two = Request((talk.user("b"), talk.user("long words there")))
    found = [(c.kind, c.path, c.was) for c in requests(one, two)]
    assert found == [("dropped", "messages[1]", None), ("edited", "messages[2].content", "messages[3]")]


def test_ids_signatures_and_cache_marks_are_not_compared() -> None:
    one = [talk.assistant({"type": "thinking", "thinking": "hm", "signature": "s1"}, *BASE[1]["content"]), BASE[2]]
    marked = {**talk.result("t9", LONG)["content"][0], "cache_control": {"type": "ephemeral"}}
    two = [talk.assistant({"type": "thinking", "thinking": "hm", "signature": "s2"}, talk.call("read", "t9", path="a")),
           {"role": "user", "content": [marked]}]  # fmt: skip
    assert changes(one, two) == []


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"system": "another system"}, [("edited", "system")]),
        ({"system": None}, [("dropped", "system")]),
        ({"params": {"max_tokens": 2, "temperature": 0}}, [("edited", "max_tokens"), ("inserted", "temperature")]),
        ({"tools": TOOLS[:2]}, [("dropped", "tools[3]")]),
        ({"tools": [*TOOLS, {"name": "new"}]}, [("inserted", "tools[4]")]),
        ({"tools": [TOOLS[1], TOOLS[0], TOOLS[2]]}, [("reordered", "tools")]),
        ({"tools": [{**TOOLS[0], "description": "reads"}, *TOOLS[1:]]}, [("edited", "tools[1].description")]),
    ],
    ids=["system", "no-system", "params", "tool-gone", "tool-new", "tools-moved", "tool-words"],
)
def test_the_other_parts_are_compared_too(parts: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert changes(BASE, BASE, **parts) == expected


def test_messages_known_to_be_the_same_are_not_looked_at_and_numbers_stay_those_of_the_whole() -> None:
    shared = [{"role": "user", "content": f"word {n}"} for n in range(5)]
    a = Request((*shared, {"role": "user", "content": "old"}, {"role": "assistant", "content": "gone"}))
    b = Request((*shared, {"role": "user", "content": "new"}))
    assert requests(a, b, 5) == requests(a, b)
    assert [c.path for c in requests(a, b, 5)] == ["messages[6].content", "messages[7]"]
