"""L09, L10, T01: the toolkit, malformed calls, and look-ups that could have gone out together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from looptape.replay.message_parts import MessagePart
from looptape.replay.recording import Incoming
from looptape.replay.rules import l09_toolkit, l10_malformed, t01_serial_calls
from looptape.replay.rules.facts import RunFacts, ToolSet
from looptape.tracer.model import ToolCall, Turn
from rule_runs import call, found, run_of, turn, unknown, work

DONE = turn(text="That is all.")


def toolkit(count: int, size: int = 4_000, *names: str) -> ToolSet:
    """So many tools: ``read_page`` first, then the named ones, then others."""
    others = [f"tool_{n}" for n in range(count - 1 - len(names))]
    return ToolSet(("read_page", *names, *others), size, count)


def with_tools(tools: ToolSet, turns: list[Turn], **more: Any) -> RunFacts:
    return run_of(*turns, more={"toolsets": dict.fromkeys(range(1, len(turns) + 1), tools)}, **more)


# -- L09 -----------------------------------------------------------------------------------------------------


def test_thirty_tools_of_which_one_is_used_are_too_many() -> None:
    (one,) = found(l09_toolkit, with_tools(toolkit(30), work(12)))
    assert (one.severity, one.last_turn) == ("warning", 12)
    assert "Every turn offers 30 tools (about 1,000 tokens" in one.message
    assert one.wasted.tokens == round(12 * 1_000 * 29 / 30)


def test_wrong_tool_names_make_it_an_error() -> None:
    wrong = turn(call("read_pages", {"page": 4}, "unknown tool read_pages", error=True))
    (one,) = found(l09_toolkit, with_tools(toolkit(30), [*work(11), wrong]))
    assert (one.severity, "1 call named a wrong tool" in one.message) == ("error", True)


def test_few_tools_with_heavy_schemas_count_too() -> None:
    (one,) = found(l09_toolkit, with_tools(toolkit(8, size=2_000), work(12)))
    assert "of the prompt or more" in one.message
    assert found(l09_toolkit, with_tools(toolkit(8, size=200), work(12))) == []


def test_a_toolkit_that_is_used_or_a_short_run_is_fine() -> None:
    used = [turn(call(f"tool_{n}", {"page": n}, f"page {n} is new")) for n in range(12)]
    assert found(l09_toolkit, with_tools(toolkit(30), used)) == []
    assert found(l09_toolkit, with_tools(toolkit(30), work(6))) == []


def test_without_the_tools_of_the_request_the_toolkit_is_unknown() -> None:
    assert [u.missing for u in unknown(l09_toolkit, run_of(*work(12)))] == [("request.tools",)]
    assert unknown(l09_toolkit, run_of(*work(3))) == []


def confused(name: str, other: str, value: str) -> list[Turn]:
    """A call that fails, and the same with another tool, which works."""
    wrong = call(name, {"id": value}, f"no user {value}: not found", error=True)
    return [turn(wrong), turn(call(other, {"id": value}, f"account {value}: open"))]


def test_two_tools_that_are_taken_for_one_another_are_named() -> None:
    turns = [*confused("get_user", "get_account", "A-1"), *work(1), *confused("get_user", "get_account", "A-2"), DONE]
    (one,) = found(l09_toolkit, run_of(*turns))
    assert one.message.startswith("get_user is taken for get_account: 2 times")
    assert (one.first_turn, one.last_turn, one.wasted.turns) == (1, 5, 2)


@pytest.mark.parametrize(
    "turns",
    [
        confused("get_user", "get_account", "A-1"),
        [*confused("get_user", "get_user", "A-1"), *confused("get_user", "get_user", "A-2")],
        [*confused("get_user", "get_account", "A-1"), *confused("get_user", "get_invoice", "A-2")],
        [turn(call("get_user", {"id": "A"}, "timed out", error=True)), turn(call("get_account", {"id": "A"}, "open"))] * 2,
        [turn(call("get_user", {"id": "A"}, "no user A: not found", error=True)), turn(call("send_mail", {"to": "b"}, "sent"))] * 2,
    ],
    ids=["once", "itself", "two others", "a passing failure", "other values"],
)  # fmt: skip
def test_a_slip_or_another_road_is_no_confusion(turns: list[Turn]) -> None:
    assert found(l09_toolkit, run_of(*turns, DONE)) == []


# -- L10 -----------------------------------------------------------------------------------------------------


def broken(result: Any = "arguments are not valid JSON", **more: Any) -> ToolCall:
    raw = {"arguments_raw": '{"path": "a', "arguments": None, "valid": False, "invalid_reason": "not valid JSON"}
    return replace(call("write_file", {}, result, error=result is not None), **{**raw, **more})


def test_a_malformed_call_that_ends_the_run_is_an_error() -> None:
    facts = run_of(*work(2), turn(broken(None)), status="failed", reason="JSONDecodeError: Expecting ',' delimiter")
    (one,) = found(l10_malformed, facts)
    assert (one.severity, one.first_turn, one.confidence) == ("error", 3, 0.9)
    assert "write_file" in one.message


def test_a_run_that_fails_right_after_with_words_of_json_is_told_too() -> None:
    facts = run_of(
        *work(2), turn(broken()), turn(text="?"), status="failed", reason="ValidationError: 1 validation error"
    )
    assert [f.severity for f in found(l10_malformed, facts)] == ["error"]


def test_arguments_that_were_repaired_in_silence_are_told() -> None:
    (one,) = found(l10_malformed, run_of(*work(1), turn(broken("written", is_error=False)), *work(1), DONE))
    assert (one.severity, one.first_turn) == ("warning", 2)
    assert "1 call whose arguments are no JSON object ran all the same" in one.message


def test_the_same_malformed_call_twice_says_that_the_error_did_not_help() -> None:
    (one,) = found(l10_malformed, run_of(turn(broken()), turn(broken()), DONE))
    assert (one.severity, one.wasted.turns) == ("warning", 1)
    assert "came 2 times" in one.message


@pytest.mark.parametrize(
    "made",
    [
        [turn(broken()), turn(call("write_file", {"path": "a"}, "written"))],
        [turn(broken()), turn(broken(arguments_raw='{"path": "b'))],
        [turn(call("run", {"x": 1}, "TypeError: x", error=True))] * 2,
    ],
    ids=["told and corrected", "another mistake", "an error of the tool"],
)
def test_a_loop_that_answers_bad_calls_is_fine(made: list[Turn]) -> None:
    assert found(l10_malformed, run_of(*made, DONE)) == []


@pytest.mark.parametrize("status", ["halted", "completed", "limit"])
def test_a_bad_call_near_an_end_that_has_other_reasons_is_fine(status: str) -> None:
    assert found(l10_malformed, run_of(turn(broken(None)), status=status)) == []


def test_a_tool_that_was_not_offered_counts_as_malformed() -> None:
    made = [turn(call("read_pge", {"page": 1}, "no such tool: read_pge", error=True))] * 2
    (one,) = found(l10_malformed, with_tools(toolkit(5), made))
    assert "read_pge came 2 times" in one.message


def test_a_file_without_calls_leaves_them_unknown() -> None:
    bare = [replace(turn(text="I looked."), response=None)] * 3
    assert [u.missing for u in unknown(l10_malformed, run_of(*bare, source="who-and-when"))] == [("tool_calls",)]


# -- T01 -----------------------------------------------------------------------------------------------------


def asked(text: str, *turns: Turn) -> RunFacts:
    """A run that a person's words began."""
    said = {1: (Incoming("user", 1, MessagePart("text", text)),)}
    return replace(run_of(*turns), incoming=said)


def looks(*values: Any, key: str = "city", name: str = "get_weather") -> list[Turn]:
    return [turn(call(name, {key: v, "unit": "C"}, f"{v}: 12 degrees, report {n}")) for n, v in enumerate(values)]


QUESTION = "What is the weather in Tokyo, Paris and New York?"


def test_three_cities_of_the_question_could_have_gone_out_together() -> None:
    (one,) = found(t01_serial_calls, asked(QUESTION, *looks("Tokyo", "Paris", "New York"), DONE))
    assert (one.severity, one.first_turn, one.last_turn, one.wasted.turns) == ("info", 1, 3, 2)
    assert "3 calls of get_weather took a turn each" in one.message


def test_many_of_them_are_a_warning_and_what_a_result_named_before_is_known() -> None:
    names = [f"parcel-{n}" for n in range(6)]
    first = turn(call("list_parcels", {}, "\n".join(names)))
    (one,) = found(
        t01_serial_calls, asked("Check my parcels.", first, *looks(*names, key="parcel", name="get_parcel"), DONE)
    )
    assert (one.severity, one.first_turn, one.wasted.turns) == ("warning", 2, 5)


def test_four_numbers_in_a_row_are_a_list_without_any_words() -> None:
    (one,) = found(t01_serial_calls, run_of(*looks(1, 2, 3, 4, key="month", name="read_returns"), DONE))
    assert one.last_turn == 4


@pytest.mark.parametrize(
    "facts",
    [
        asked("Find the culprit.", *looks("Tokyo", "Paris", "New York"), DONE),
        asked(QUESTION, *looks("Tokyo", "Paris"), DONE),
        asked(QUESTION, *looks("Tokyo", "Paris"), turn(text="And?"), *looks("New York"), DONE),
        asked(QUESTION, turn(*[c for t in looks("Tokyo", "Paris", "New York") for c in t.tool_calls]), DONE),
        asked(QUESTION, *looks("Tokyo", "Tokyo", "Tokyo"), DONE),
        asked("Read on: 1 2 3 4 5", *looks(1, 2, 3, 4, 5, key="page", name="read_book"), DONE),
        asked(QUESTION, *looks("Tokyo", "Paris", "New York", name="book_hotel"), DONE),
        asked(QUESTION, *looks("Tokyo", "Paris", "New York", key="command", name="bash"), DONE),
        run_of(*looks(1, 2, 3, 4, key="month", name="read_returns"), turn(text="Notes."), turn(text="On.", flags=("compaction",))),
        asked(QUESTION, *[replace(t, user_turn=True) for t in looks("Tokyo", "Paris", "New York")], DONE),
    ],
    ids=["not known before", "two", "with a word between", "together already", "the same again", "paging", "it changes things",
         "command lines", "the context was full", "a person asked for each"],
)  # fmt: skip
def test_calls_that_need_each_other_or_are_none_to_join_are_fine(facts: RunFacts) -> None:
    assert found(t01_serial_calls, facts) == []


def test_a_chain_in_which_each_result_names_the_next_is_serial_by_nature() -> None:
    chain = ["a1", "b2", "c3", "d4", "e5"]
    turns = [turn(call("get_node", {"id": v}, f"next: {w}")) for v, w in zip(chain, [*chain[1:], "end"], strict=True)]
    assert found(t01_serial_calls, asked("Begin at a1.", *turns, DONE)) == []


def test_without_the_messages_nobody_knows_what_was_known() -> None:
    facts = run_of(*looks("Tokyo", "Paris", "New York"), DONE)
    assert [u.missing for u in unknown(t01_serial_calls, facts)] == [("messages",)]
    assert unknown(t01_serial_calls, run_of(*looks("Tokyo", "Paris"), DONE)) == []
