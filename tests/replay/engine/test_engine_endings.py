"""What ends a run of the built-in loop: the model, a limit, a failure, the goal, the guard, the user."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from engine_runs import Waits, call, calls, says, start
from looptape.replay.engine import Advice, Hooks, Policy
from looptape.replay.engine.goals import by_command
from looptape.tracer.errors import LooptapeStop


def search(q: str) -> str:
    """Looks something up."""
    return f"{q}: 1200"


def forever(body):
    """A model that never stops calling."""
    turn = len(body["messages"])
    return calls(call("search", f"c{turn}", q=f"q{turn}"), usage={"input_tokens": 100, "output_tokens": 10})


def ended(engine, outcome):
    """Reason, status and what the record says."""
    run = engine.run()
    return outcome.reason, run.status, run.reason


def test_the_models_own_stop_completes_the_run(engine):
    assert ended(engine, engine.play([says("84")])) == ("model", "completed", "end_turn")


def test_the_turn_limit_ends_it_and_the_last_calls_are_answered(engine):
    outcome = engine.play(forever, [search], Policy(max_turns=3))
    assert outcome.turns == 3
    assert ended(engine, outcome) == ("turns", "limit", "turns: 3 of 3")


def test_the_token_budget_ends_it(engine):
    assert ended(engine, engine.play(forever, [search], Policy(max_tokens=300))) == (
        "tokens",
        "limit",
        "tokens: 330 of 300",
    )


def test_an_answer_without_usage_ends_a_run_that_has_a_token_budget(engine):
    script = [{"calls": [call("search", q="a")]}, says("never asked")]
    outcome = engine.play(script, [search], Policy(max_tokens=300))
    assert outcome.reason == "tokens"
    assert "cannot be held" in outcome.detail


def test_the_cost_budget_ends_it(engine):
    outcome = engine.play(forever, [search], Policy(max_cost_usd=0.001))
    # claude-sonnet-4-5: $3 and $15 per million, so $0.00045 a turn
    assert outcome.turns == 3
    assert outcome.cost_usd == pytest.approx(0.00135)
    assert ended(engine, outcome)[:2] == ("cost", "limit")


def test_a_cost_budget_that_cannot_be_held_ends_it_and_says_why(engine):
    outcome = engine.play(forever, [search], Policy(max_cost_usd=1.0), begin=start(model="some-model-nobody-prices"))
    assert (outcome.reason, outcome.turns, outcome.cost_usd) == ("cost", 1, None)
    assert "some-model-nobody-prices" in outcome.detail


def test_the_time_limit_ends_it_between_turns(engine):
    waits = Waits()

    def slow(q: str) -> str:
        waits.now += 40
        return q

    outcome = engine.play(forever, {"search": slow}, Policy(max_seconds=100), hooks=waits.hooks())
    assert outcome.turns == 3
    assert ended(engine, outcome) == ("seconds", "limit", "seconds: 100 s are over")


def test_a_tool_never_runs_past_the_time_limit(engine):
    gate = threading.Event()

    def hang(q: str) -> str:
        gate.wait(600)
        return q

    outcome = engine.play(forever, {"search": hang}, Policy(max_seconds=0.3, call_timeout=600))
    gate.set()
    assert ended(engine, outcome)[:2] == ("seconds", "limit")


def test_errors_in_a_row_end_it_and_a_success_begins_anew(engine):
    outcomes = iter("eeoeee")

    def flaky(q: str) -> str:
        if next(outcomes) == "e":
            raise ValueError("no")
        return "yes"

    outcome = engine.play(forever, {"search": flaky}, Policy(max_errors=3))
    assert (outcome.reason, outcome.status, outcome.turns) == ("errors", "halted", 6)


def test_a_model_that_fails_for_good_fails_the_run(engine):
    outcome = engine.play([{"error": {"status": 400, "message": "tools.0: bad"}}])
    assert outcome.reason == "model-error"
    run = engine.run()
    assert (run.status, run.turns[0].status, run.turns[0].error) == ("failed", "error", "tools.0: bad")


def test_a_stop_for_calls_without_a_call_is_no_success(engine):
    outcome = engine.play([{"text": "I call it now", "stop": "tool_use"}])
    assert (outcome.reason, outcome.status) == ("bad-answer", "failed")


def test_an_answer_that_was_cut_ends_at_the_models_limit(engine):
    outcome = engine.play([{"text": "It is", "stop": "max_tokens"}])
    assert ended(engine, outcome)[:2] == ("model-limit", "limit")


def test_a_paused_turn_is_asked_to_go_on(engine):
    outcome = engine.play([{"text": "I search", "stop": "pause_turn"}, says("84")])
    assert (outcome.reason, outcome.turns) == ("model", 2)
    assert [m["role"] for m in engine.run().requests[1].messages] == ["user", "assistant"]


def test_a_script_that_is_over_is_a_miss_that_says_so(engine):
    outcome = engine.play([calls(call("search", q="a"))], [search])
    assert (outcome.reason, outcome.status) == ("miss", "halted")
    assert "1 answer, turn 2 asks for one more" in outcome.detail


def test_a_failed_goal_is_told_to_the_model_until_it_passes(engine):
    seen = []

    def goal(text, run):
        seen.append(text)
        return True if "84" in text else "the figure is missing"

    outcome = engine.play([says("done"), says("It is 84")], hooks=Hooks(goal=goal))
    assert (outcome.reason, outcome.verdict, seen) == ("model", "pass", ["done", "It is 84"])
    assert [e["verdict"] for e in engine.events("goal")] == ["fail", "pass"]
    run = engine.run()
    assert "the figure is missing" in run.requests[1].messages[-1]["content"]
    assert run.outcome["verdict"] == "pass"


def test_a_goal_that_fails_too_often_ends_it(engine):
    outcome = engine.play(
        [says("a"), says("b"), says("c")], policy=Policy(goal_tries=2), hooks=Hooks(goal=lambda *_: False)
    )
    assert ended(engine, outcome)[:2] == ("goal", "halted")
    assert (outcome.turns, outcome.verdict) == (2, "fail")


def test_a_failed_goal_ends_it_at_once_when_so_chosen(engine):
    policy = Policy(on_goal_failed="end")
    outcome = engine.play([says("a"), says("b")], policy=policy, hooks=Hooks(goal=lambda *_: "not yet"))
    assert (outcome.reason, outcome.turns) == ("goal", 1)


def test_a_goal_check_that_breaks_is_no_pass(engine):
    def goal(text, run):
        raise KeyError("x")

    outcome = engine.play([says("a")], policy=Policy(on_goal_failed="end"), hooks=Hooks(goal=goal))
    assert outcome.verdict == "fail"
    assert "the check itself failed" in outcome.detail


@pytest.mark.parametrize(("text", "verdict"), [("It is 84", "pass"), ("no idea", "fail")])
def test_a_goal_command_judges_the_last_text_by_its_exit_status(engine, text, verdict):
    command = f'{sys.executable} -c \'import sys,os; t=sys.stdin.read(); print(os.environ["LOOPTAPE_RUN"]); sys.exit("84" not in t)\''
    outcome = engine.play([says(text)], policy=Policy(goal=command, on_goal_failed="end"))
    assert outcome.verdict == verdict
    assert engine.events("goal")[0]["note"] == outcome.run


def test_a_goal_command_that_hangs_is_ended(engine):
    outcome = engine.play([says("a")], policy=Policy(goal="sleep 60", goal_timeout=0.2, on_goal_failed="end"))
    assert "no answer in 0.2 s" in outcome.detail


def test_a_goal_command_that_ends_in_the_moment_in_which_it_is_to_be_killed_is_no_trouble(monkeypatch):
    real = os.killpg

    def late(group, number):
        real(group, number)
        raise ProcessLookupError(3, "No such process")

    monkeypatch.setattr(os, "killpg", late)
    said = by_command("sleep 60", "text", "run", 0.1)
    assert (said.passed, said.note) == (False, "the check gave no answer in 0.1 s")


def test_the_guard_sees_every_turn_and_stops_the_run(engine):
    seen = []

    def guard(turn):
        seen.append(
            (turn.number, turn.calls[0].name, turn.calls[0].arguments, turn.calls[0].result.content, turn.tokens)
        )
        return Advice("stop", "search goes round in circles") if len(seen) == 2 else None

    outcome = engine.play(forever, [search], hooks=Hooks(observer=guard))
    assert seen == [(1, "search", {"q": "q1"}, "q1: 1200", 110), (2, "search", {"q": "q3"}, "q3: 1200", 110)]
    assert ended(engine, outcome) == ("cycle", "halted", "cycle: search goes round in circles")


def test_the_guard_may_leave_a_note_with_the_last_result(engine):
    def guard(turn):
        return Advice("note", "you asked this before") if turn.number == 1 else None

    engine.play([calls(call("search", q="a")), says("ok")], [search], hooks=Hooks(observer=guard))
    assert engine.events("guard") == [{"advice": "note", "text": "you asked this before"}]
    assert engine.run().requests[1].messages[-1]["content"][0]["content"] == "a: 1200\n\nyou asked this before"


def test_a_deliberate_stop_of_the_observer_ends_it_as_well(engine):
    class Enough(LooptapeStop):
        pass

    def guard(turn):
        raise Enough("three times the same")

    assert ended(engine, engine.play(forever, [search], hooks=Hooks(observer=guard)))[:2] == ("cycle", "halted")


def test_the_user_can_stop_it_from_another_thread(engine):
    hooks = Hooks()

    def stop_it(q: str) -> str:
        hooks.stop.set()
        return q

    outcome = engine.play(forever, {"search": stop_it}, hooks=hooks)
    assert ended(engine, outcome)[:2] == ("user", "halted")
    assert outcome.turns == 1


def test_an_interrupt_ends_it_with_the_running_call_cancelled(engine):
    gate = threading.Event()
    former = signal.signal(signal.SIGINT, signal.default_int_handler)

    def hang(q: str) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        gate.wait(60)
        return q

    try:
        outcome = engine.play(forever, {"search": hang})
    finally:
        signal.signal(signal.SIGINT, former)
        gate.set()
    assert ended(engine, outcome)[:2] == ("user", "halted")
    call_made = engine.run().turns[0].tool_calls[0]
    assert (call_made.state, call_made.error_class) == ("cancelled", "cancelled")


def test_a_call_that_waits_for_its_retry_is_not_made_again_when_the_turn_is_over(engine):
    made, failed = [], threading.Event()

    def flaky() -> str:
        made.append(1)
        failed.set()
        raise ConnectionError("reset")

    def interrupt() -> str:
        assert failed.wait(60)
        raise KeyboardInterrupt

    tools = [{"function": flaky, "side_effect": "read"}, interrupt]
    outcome = engine.play([calls(call("flaky"), call("interrupt"))], tools, Policy(backoff=20))
    assert outcome.reason == "user"
    assert len(made) == 1
    assert {c.state for c in engine.run().turns[0].tool_calls} == {"cancelled"}


def test_limits_are_recorded_with_the_run(engine):
    engine.play([says("a")], policy=Policy(max_turns=7, max_cost_usd=2.5))
    assert engine.run().limits == {"turns": 7, "seconds": 1800.0, "cost_usd": 2.5, "consecutive_errors": 5}


def test_an_exception_of_ours_leaves_a_run_that_says_so(engine):
    def guard(turn):
        raise ZeroDivisionError("observer")

    with pytest.raises(ZeroDivisionError):
        engine.play([says("a")], hooks=Hooks(observer=guard))
    run = engine.run()
    assert (run.status, run.reason) == ("failed", "failed: ZeroDivisionError: observer")
