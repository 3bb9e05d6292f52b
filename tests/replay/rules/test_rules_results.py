"""L02, L03, L06, L07: errors as they come to the model, the context, parallel calls, and the record itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from looptape.replay.rules import l02_raw_errors, l03_context, l06_parallel, l07_record
from looptape.replay.rules.facts import RunFacts, facts_of
from looptape.tracer.model import ToolCall, Turn, Usage
from rule_runs import call, found, recording_of, run_of, turn, unknown, work

DONE = turn(text="That is all.")


# -- L02 -----------------------------------------------------------------------------------------------------

TRACE = (
    "Traceback (most recent call last):\n" + '  File "/app/tools.py", line 3, in run\n    go()\n' * 30 + "KeyError: 'x'"
)


def fails(text: str, name: str = "fetch", arguments: Any = None, **more: Any) -> ToolCall:
    return call(name, arguments or {"url": "https://example.com/a"}, text, error=True, **more)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!DOCTYPE html><html><body><h1>Bad gateway</h1></body></html>", "an HTML page"),
        ("\x1b[31mno such table: orders\x1b[0m", "terminal control codes"),
        (TRACE, "a stack trace of more than 25 frames"),
        ("orders: " + "column a is odd; " * 200, "more than 2,000 characters"),
        ("An error occurred while running the tool. Please try again.", "nothing of the cause"),
        ("Error", "nothing of the cause"),
        ("fetch failed", "nothing of the cause"),
    ],
)
def test_each_kind_of_raw_error_is_told(text: str, said: str) -> None:
    (one,) = found(l02_raw_errors, run_of(*work(1), turn(fails(text)), DONE))
    assert (one.severity, one.first_turn) == ("warning", 2)
    assert said in one.message


def test_it_is_an_error_when_the_model_could_only_make_the_same_call_again() -> None:
    (one,) = found(l02_raw_errors, run_of(turn(fails("Error")), turn(fails("Error")), *work(2), DONE))
    assert (one.severity, one.wasted.turns) == ("error", 1)


def test_another_argument_after_a_raw_error_is_no_repetition() -> None:
    turns = [turn(fails("Error")), turn(fails("Error", arguments={"url": "https://example.com/b"})), DONE]
    assert [f.severity for f in found(l02_raw_errors, run_of(*turns))] == ["warning"]


@pytest.mark.parametrize(
    "made",
    [
        fails("url: the host example.com does not answer (404); did you mean example.org?"),
        fails("timed out after 30 s"),
        fails("order A-17 not found"),
        call("bash", {"command": "pytest -q"}, TRACE, error=True),
        call("bash", {"command": "ls"}, "\x1b[31mred\x1b[0m", error=True),
        call("fetch", {"url": "a"}, "<html><body>the page that was asked for</body></html>"),
        fails("The user doesn't want to proceed with this tool use.", error_class="denied"),
    ],
    ids=["tells what to do", "short but clear", "names the thing", "output of tests", "output of a shell", "no error", "a no"],
)  # fmt: skip
def test_an_error_that_helps_and_output_that_was_asked_for_are_no_findings(made: ToolCall) -> None:
    assert found(l02_raw_errors, run_of(turn(made), *work(2), DONE)) == []


def test_without_the_results_raw_errors_are_unknown() -> None:
    made = call("fetch", {}, None, is_error=True, state="done", result_digest="d")
    (one,) = unknown(l02_raw_errors, run_of(turn(made), DONE))
    assert one.missing == ("tool_calls.result",)


# -- L03 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "severity"), [(6_000, "warning"), (9_000, "error")])
def test_a_context_that_only_grows_is_told_from_half_of_the_window(step: int, severity: str) -> None:
    (one,) = found(l03_context, run_of(*work(20, lambda n: 2_000 + step * n), DONE_AT(2_000 + step * 21)))
    assert one.severity == severity
    assert "of the window" in one.message


def DONE_AT(tokens: int) -> Turn:
    return turn(text="That is all.", tokens=tokens)


@pytest.mark.parametrize(
    "turns",
    [
        [*work(20, lambda n: 2_000 + 3_000 * n), DONE_AT(62_000)],
        [*work(8, lambda n: 2_000 + 18_000 * n), DONE_AT(164_000)],
        [*work(20, lambda n: 20_000 + 12_000 * (n % 6)), DONE_AT(30_000)],
        [
            replace(t, flags=("compaction",)) if n == 12 else t
            for n, t in enumerate([*work(20, lambda n: 2_000 + 7_000 * n), DONE_AT(150_000)])
        ],
    ],
    ids=["less than half", "a short run", "goes up and down", "shortened once"],
)
def test_a_context_with_a_bound_is_no_finding(turns: list[Turn]) -> None:
    assert found(l03_context, run_of(*turns)) == []


def test_each_agent_has_its_own_context() -> None:
    mine = [replace(t, agent="a") for t in work(12, lambda n: 2_000 + 9_000 * n)]
    other = [replace(t, agent="b") for t in work(12, lambda n: 2_000)]
    turns = [t for pair in zip(mine, other, strict=True) for t in pair]
    assert len(found(l03_context, run_of(*turns, DONE))) == 1


def test_an_overflow_is_an_error_however_short_the_run() -> None:
    refused = turn(status="error", error="prompt is too long: 214221 tokens > 200000 maximum", stop_reason=None)
    (one,) = found(l03_context, run_of(*work(2), refused, status="failed"))
    assert (one.severity, one.first_turn) == ("error", 3)


def test_one_result_that_fills_a_quarter_of_the_window_is_an_error() -> None:
    (one,) = found(l03_context, run_of(turn(call("read", {"f": "big.log"}, "line of it\n" * 25_000)), DONE))
    assert (one.severity, one.first_turn) == ("error", 1)
    assert "big.log" in one.message


def test_results_given_twice_that_fill_the_prompt_are_told() -> None:
    text = "\n".join(f"row {n} of the table" for n in range(900))
    turns = [turn(call("read", {"f": f"{n}.csv"}, text), tokens=4_000 * n) for n in range(1, 5)]
    (one,) = found(l03_context, run_of(*turns, DONE_AT(20_000)))
    assert (one.severity, one.first_turn) == ("warning", 2)


def test_an_unknown_window_and_a_missing_usage_are_unknown() -> None:
    strange = [replace(t, model="house-model-9") for t in work(20, lambda n: 2_000 + 9_000 * n)]
    bare = [replace(t, usage=Usage()) for t in work(20)]
    assert [u.missing for u in unknown(l03_context, run_of(*strange))] == [("context window of house-model-9",)]
    assert [u.missing for u in unknown(l03_context, run_of(*bare))] == [("turns.usage",)]


def test_a_client_that_shortens_by_itself_is_told_late_only() -> None:
    turns = work(20, lambda n: 2_000 + 6_000 * n)
    assert found(l03_context, run_of(*turns, source="claude-code")) == []
    assert len(found(l03_context, run_of(*turns, source="swe-agent"))) == 1


# -- L06 -----------------------------------------------------------------------------------------------------

ROME, OSLO = call("weather", {"city": "Rome"}, "21 C"), call("weather", {"city": "Oslo"}, "4 C")
LOST = call("weather", {"city": "Bonn"}, None)
SLOW = call("weather", {"city": "Bonn"}, "timed out after 10 s", error=True)
PAID = call("send_invoice", {"to": "vale"}, "sent as 71")


def test_a_parallel_call_without_a_result_is_an_error() -> None:
    (one,) = found(l06_parallel, run_of(turn(ROME, LOST, OSLO), DONE))
    assert (one.severity, one.first_turn) == ("error", 1)
    assert "1 of 3" in one.message


def test_calls_failed_for_anothers_sake_are_an_error() -> None:
    blamed = call("weather", {"city": "Oslo"}, "Sibling tool call errored", error=True)
    copied = call("weather", {"city": "Rome"}, "station Bonn-2 is offline: Bonn has no data", error=True)
    owner = call("weather", {"city": "Bonn"}, "station Bonn-2 is offline: Bonn has no data", error=True)
    assert [f.severity for f in found(l06_parallel, run_of(turn(SLOW, blamed), DONE))] == ["error"]
    assert [f.severity for f in found(l06_parallel, run_of(turn(owner, copied), DONE))] == ["error"]
    unasked = replace(blamed, error_class="cancelled")
    (one,) = found(l06_parallel, run_of(turn(SLOW, unasked), *work(2), turn(SLOW, unasked, unasked), DONE))
    assert one.message == "3 parallel calls failed because another one of the turn did (turns 1 and 4)"


def test_siblings_that_worked_and_are_made_again_are_told() -> None:
    (read,) = found(l06_parallel, run_of(turn(ROME, SLOW), turn(ROME, SLOW), DONE))
    (changed,) = found(l06_parallel, run_of(turn(PAID, SLOW), turn(PAID), DONE))
    assert read.severity == "warning"
    assert (changed.severity, changed.wasted.turns) == ("error", 1)


@pytest.mark.parametrize(
    ("turns", "run"),
    [
        ([turn(ROME, OSLO), turn(ROME), DONE], {}),
        ([turn(ROME, SLOW), turn(SLOW), DONE], {}),
        ([turn(ROME, SLOW), turn(call("set_station", {"id": 4})), turn(ROME), DONE], {}),
        ([*work(2), turn(ROME, LOST)], {"status": "interrupted"}),
        ([*work(2), turn(LOST, call("weather", {"city": "Rome"}, None))], {"status": "limit"}),
        ([turn(ROME, call("weather", {"city": "X"}, "Request interrupted by user", error=True, error_class="cancelled")), DONE], {}),
        ([turn(call("a", {}, "timed out", error=True), call("b", {}, "timed out", error=True)), DONE], {}),
    ],
    ids=["none failed", "only the failed one again", "something changed between", "killed", "cap", "a person cancelled", "both failed"],
)  # fmt: skip
def test_a_sound_policy_for_parallel_calls_is_no_finding(turns: list[Turn], run: dict[str, Any]) -> None:
    assert found(l06_parallel, run_of(*turns, **run)) == []


# -- L07 -----------------------------------------------------------------------------------------------------


def without(turns: list[Turn], count: int, **fields: Any) -> list[Turn]:
    return [replace(t, **fields) if n < count else t for n, t in enumerate(turns)]


@pytest.mark.parametrize(
    ("count", "severity"), [(2, "warning"), (6, "error")], ids=["a tenth of the turns", "a third of the turns"]
)
def test_turns_that_lack_fields_are_told_with_the_fields(count: int, severity: str) -> None:
    (one,) = found(l07_record, run_of(*without(work(20), count, usage=Usage(), stop_reason=None)))
    assert one.severity == severity
    assert "usage" in one.message
    assert "stop_reason" in one.message


def test_one_odd_turn_in_thirty_is_no_finding() -> None:
    assert found(l07_record, run_of(*without(work(30), 1, usage=Usage()), DONE)) == []


def test_missing_turn_numbers_are_an_error() -> None:
    recording = recording_of(*work(6), DONE)
    holed = replace(recording, turns=tuple(t for t in recording.turns if t.number not in (3, 4)))
    (one,) = found(l07_record, facts_of(holed))
    assert (one.severity, one.first_turn, one.last_turn) == ("error", 2, 5)
    assert "2 turns are missing" in one.message


def test_a_run_killed_while_a_tool_ran_is_one_finding() -> None:
    (one,) = found(
        l07_record, run_of(*work(2), turn(call("bash", {"command": "sleep 999"}, None)), status="interrupted")
    )
    assert (one.severity, one.first_turn) == ("warning", 3)
    assert "sleep 999" in one.message


def test_a_call_without_a_result_in_the_middle_is_an_error() -> None:
    (one,) = found(l07_record, run_of(*work(2), turn(call("get", {}, None)), *work(3), DONE))
    assert (one.severity, one.first_turn) == ("error", 3)


@pytest.mark.parametrize(
    "facts",
    [
        run_of(*work(5), DONE),
        run_of(*work(2), turn(call("get", {}, None)), status="limit"),
        run_of(*work(2), turn(call("get", {}, None)), status="running"),
        run_of(*work(2), turn(status="error", usage=Usage(), stop_reason=None, error="500"), status="failed"),
    ],
    ids=["whole", "the cap was reached", "still running", "a turn that failed"],
)
def test_a_whole_record_is_no_finding(facts: RunFacts) -> None:
    assert found(l07_record, facts) == []


def test_what_a_foreign_format_does_not_hold_is_unknown() -> None:
    facts = run_of(*without(work(5), 5, usage=Usage(), stop_reason=None), source="swe-agent")
    assert found(l07_record, facts) == []
    assert [u.missing for u in unknown(l07_record, facts)] == [("stop_reason", "usage")]


def test_the_end_of_a_list_of_requests_tells_nothing() -> None:
    facts = run_of(*work(1), turn(call("get", {}, None)), status="interrupted", source="vcr")
    assert found(l07_record, facts) == []
    assert [u.missing for u in unknown(l07_record, facts)] == [("run.end",)]
