"""L01, L04, L05: how a loop ends, what it takes for its own trouble, and circles that nothing noticed."""

from __future__ import annotations

from typing import Any

import pytest

from looptape.replay.rules import l01_self_report, l04_lifecycle, l05_late_cycle
from looptape.replay.rules.group import Group, RunLight
from looptape.tracer.model import Event, Run, Turn
from rule_runs import call, found, run_of, turn, unknown, work

DONE = turn(text="All of it is summed up.")
CLAIM = turn(text="I corrected the rounding and all tests pass now.")
RED = call("bash", {"command": "pytest -q"}, "FAILED tests/test_sum.py\n1 failed, 3 passed", error=True)
GREEN = call("bash", {"command": "pytest -q"}, "4 passed")


def group_of_turns(*counts: int) -> Group:
    return Group(tuple(RunLight(Run(id=f"run{n}", name="job", turns=n)) for n in counts))


# -- L01 -----------------------------------------------------------------------------------------------------


def test_a_run_without_any_limit_that_the_model_ended_has_no_backstop() -> None:
    (one,) = found(l01_self_report, run_of(*work(4), DONE, limits={}))
    assert (one.severity, one.first_turn, one.last_turn) == ("warning", 1, 5)
    assert "No backstop recorded" in one.message


def test_it_is_an_error_when_the_run_took_more_than_three_times_the_usual() -> None:
    facts = run_of(*work(12), DONE, limits={}, more={"group": group_of_turns(4, 4, 5)})
    (one,) = found(l01_self_report, facts)
    assert one.severity == "error"
    assert one.wasted.turns == 9
    assert "3 other runs of it took 4" in one.message


@pytest.mark.parametrize("others", [(4,), (4, 5)], ids=["one", "two"])
def test_too_few_other_runs_have_no_usual(others: tuple[int, ...]) -> None:
    facts = run_of(*work(12), DONE, limits={}, more={"group": group_of_turns(*others)})
    assert [f.severity for f in found(l01_self_report, facts)] == ["warning"]


@pytest.mark.parametrize(
    "facts",
    [
        run_of(*work(6), DONE, limits={"turns": 20}),
        run_of(*work(6), DONE, limits={"seconds": 60.0}),
        run_of(*work(2), DONE, limits={}),
        run_of(*work(6), limits={}, status="failed", reason="TimeoutError"),
        run_of(*work(6), limits={}, status="limit", reason="a cap of its own"),
        run_of(*work(6), limits={}, status="interrupted"),
    ],
    ids=["turn limit", "time limit", "three turns", "failed", "capped", "interrupted"],
)
def test_a_backstop_or_another_end_is_no_finding(facts: Any) -> None:
    assert found(l01_self_report, facts) == []


def test_a_claim_that_the_last_check_denies_is_told_with_both() -> None:
    (one,) = found(l01_self_report, run_of(turn(GREEN), turn(call("edit", {"f": "a"})), turn(RED), CLAIM, limits={}))
    assert (one.severity, one.first_turn, one.last_turn) == ("error", 3, 4)
    assert "all tests pass" in one.evidence[0]
    assert "1 failed" in one.evidence[1]


def test_with_a_limit_the_denied_claim_is_a_warning() -> None:
    (one,) = found(l01_self_report, run_of(*work(2), turn(RED), CLAIM))
    assert one.severity == "warning"


@pytest.mark.parametrize(
    "turns",
    [
        [turn(RED), turn(call("edit", {"f": "a"})), turn(GREEN), CLAIM],
        [*work(2), turn(RED), turn(text="One test still fails, the rest is done.")],
        [*work(2), turn(call("bash", {"command": "python try.py"}, "Error: boom", error=True)), CLAIM],
        [*work(2), turn(call("bash", {"command": "npm install"}, "npm error: 1 error", error=True)), CLAIM],
    ],
    ids=["green in the end", "the claim admits it", "a script of its own", "an installation"],
)
def test_a_claim_that_holds_is_no_finding(turns: list[Turn]) -> None:
    assert found(l01_self_report, run_of(*turns)) == []


def test_an_outcome_or_a_goal_check_stands_in_for_the_models_word() -> None:
    turns = [*work(2), turn(RED), CLAIM]
    assert found(l01_self_report, run_of(*turns, outcome={"verdict": "pass"})) == []
    assert found(l01_self_report, run_of(*turns, events=[Event("goal", turn=4)])) == []


def test_limits_of_an_imported_run_are_unknown() -> None:
    facts = run_of(*work(6), DONE, limits={}, source="codex")
    assert found(l01_self_report, facts) == []
    assert [u.missing for u in unknown(l01_self_report, facts)] == [("run.limits",)]


# -- L04 -----------------------------------------------------------------------------------------------------

FULL = "OSError: [Errno 28] No space left on device: '/data/out.csv'"


def disk(number: int) -> Turn:
    return turn(call("write_rows", {"part": number}, FULL, error=True))


def test_a_full_disk_given_to_the_model_again_and_again_is_told() -> None:
    (two,) = found(l04_lifecycle, run_of(*work(2), disk(1), disk(2), disk(3), DONE))
    (many,) = found(l04_lifecycle, run_of(*work(2), *map(disk, range(5)), DONE))
    assert (two.severity, two.first_turn, two.last_turn, two.wasted.turns) == ("warning", 3, 5, 2)
    assert (many.severity, many.wasted.turns) == ("error", 4)
    assert "the disk is full" in two.message


@pytest.mark.parametrize(
    "text",
    [
        "bash: line 1: 4121 Killed\nexit code: 137",
        "ping: api.example.com: Temporary failure in name resolution",
        "Error response from daemon: No such container: box7",
        "MCP server files is not connected",
        "ExpiredTokenException: the security token included in the request is expired",
        "Target page, context or browser has been closed",
        "ENOENT: no such file or directory, posix_spawn '/opt/tools/rg'",
    ],
)
def test_each_fault_of_the_runtime_is_known(text: str) -> None:
    turns = [turn(call("tool", {"n": n}, f"Error: {text}", error=True)) for n in range(3)]
    assert len(found(l04_lifecycle, run_of(*work(1), *turns, DONE))) == 1


@pytest.mark.parametrize(
    "turns",
    [
        [disk(1), disk(2), DONE],
        [disk(1), turn(call("delete_old", {}, "4 files gone")), disk(2), turn(call("delete_old", {"d": 2}, "3 gone")), disk(3), DONE],
        [disk(1), turn(*disk(2).tool_calls, user_turn=True), disk(3), DONE],
        [turn(call("read_log", {"n": n}, f"12:0{n} worker: No space left on device")) for n in range(4)],
        [turn(call("get", {"id": n}, "Error: no such order", error=True)) for n in range(4)],
    ],
    ids=["one more look", "something done between", "a person between", "a log that tells of it", "an error of the task"],
)  # fmt: skip
def test_what_the_loop_can_do_something_about_is_no_finding(turns: list[Turn]) -> None:
    assert found(l04_lifecycle, run_of(*turns)) == []


# -- L05 -----------------------------------------------------------------------------------------------------


def again(count: int) -> list[Turn]:
    return [turn(call("find_order", {"number": "A-1OO42"}, "Error: no such order", error=True)) for _ in range(count)]


def test_a_circle_that_the_cap_ended_is_an_error_with_its_waste() -> None:
    (one,) = found(l05_late_cycle, run_of(*work(2), *again(6), status="limit", reason="turns: 8 of 8"))
    assert (one.severity, one.first_turn, one.last_turn, one.wasted.turns) == ("error", 3, 8, 5)
    assert "turns: 8 of 8" in one.message
    assert "could be known at turn 5" in one.message
    assert "no such order" in " ".join(one.evidence)


def test_a_circle_that_ended_by_itself_unnoticed_is_a_warning() -> None:
    (one,) = found(l05_late_cycle, run_of(*work(2), *again(4), *work(9), DONE))
    assert one.severity == "warning"


def test_a_circle_at_which_a_guard_spoke_up_is_no_finding() -> None:
    spoke = [Event("guard", turn=5, detail={"rung": "notice"})]
    noted = [Event("guard", turn=5, detail={"rung": "note"})]
    turns = [*work(2), *again(4), *work(9), DONE]
    assert found(l05_late_cycle, run_of(*turns, events=spoke)) == []
    assert len(found(l05_late_cycle, run_of(*turns, events=noted))) == 1


def test_a_cap_long_after_the_circle_is_not_its_notice() -> None:
    (one,) = found(l05_late_cycle, run_of(*again(4), *work(30), status="limit"))
    assert one.severity == "warning"


def test_work_that_goes_on_is_no_circle() -> None:
    assert found(l05_late_cycle, run_of(*work(40), status="limit")) == []
