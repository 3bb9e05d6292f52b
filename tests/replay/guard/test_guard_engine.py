"""The guard in the built-in loop: limits, notices, blocks, stop, goal; its state comes back on resume."""

from __future__ import annotations

import pytest

import looptape
from engine_runs import Bench, call, calls, says
from looptape.replay.engine import Hooks, Policy
from looptape.replay.engine.models.scripted import Scripted
from looptape.replay.engine.resume import resume
from looptape.replay.engine.tools.registry import Registry
from looptape.tracer.store import open_store
from recorded import recording

MARK = "[looptape guard]"


@pytest.fixture
def bench(tmp_path):
    with recording(tmp_path) as home:
        yield Bench(home)


RAN = []


@looptape.tool
def search(query: str) -> str:
    """Searches."""
    RAN.append(query)
    return "Nothing about that here."


@pytest.fixture(autouse=True)
def fresh():
    RAN.clear()


def circle(turns=12):
    return [calls(call("search", query="revenue")) for _ in range(turns)] + [says("I give up.")]


def play(bench, guard, script=None, **more):
    return bench.play(script or circle(), [search], hooks=Hooks(guard=guard), **more)


def results(bench, number=-1):
    last = bench.runs()[-1].requests[number]
    return [
        b["content"]
        for m in last.messages
        if isinstance(m["content"], list)
        for b in m["content"]
        if b["type"] == "tool_result"
    ]


def test_a_circle_is_told_blocked_and_stopped(bench):
    outcome = play(bench, looptape.Guard(cycles="stop"))

    assert (outcome.reason, outcome.status, outcome.turns) == ("cycle", "halted", 7)
    assert len(RAN) == 5
    seen = results(bench)
    assert seen[2].startswith("Nothing about that here.\n\n[looptape guard] Turns 1 to 3")
    assert seen[5].startswith("[looptape guard] search was not run")
    run = bench.runs()[-1]
    blocked = run.turns[5].tool_calls[0]
    assert (run.status, blocked.is_error, blocked.error_class, blocked.origin) == ("halted", True, "denied", "stub")


def test_by_default_it_only_notes(bench):
    outcome = play(bench, looptape.Guard())

    assert outcome.reason == "model"
    assert all(MARK not in r for r in results(bench))


def test_its_limits_end_the_run_as_the_loops_own_do(bench):
    outcome = play(bench, looptape.Guard(turns=4))

    assert (outcome.reason, outcome.status, outcome.turns) == ("turns", "limit", 4)


def test_its_goal_has_the_last_word(bench):
    guard = looptape.Guard(goal=lambda text: "the sum is missing" if "sum" not in text else None)
    outcome = play(bench, guard, [says("done"), says("the sum is 4")])

    assert (outcome.verdict, outcome.turns) == ("pass", 2)


def test_a_goal_that_is_a_coroutine_is_awaited(bench):
    async def goal(text):
        return False

    outcome = play(bench, looptape.Guard(goal=goal), [says("done")] * 3, policy=Policy(goal_tries=2))

    assert (outcome.verdict, outcome.reason) == ("fail", "goal")


def test_a_resumed_run_is_still_a_loop(bench):
    play(bench, looptape.Guard(cycles="stop"), policy=Policy(max_turns=4))
    bench.home.end()
    from looptape.tracer import process
    from looptape.tracer.journal import Journal
    from looptape.tracer.recorder import Recorder

    process.replace(Recorder(Journal(bench.home.path)))
    with open_store(bench.home.path) as store:
        (run,) = store.runs()
        outcome = resume(
            store, run.id, model=Scripted(circle()), tools=Registry([search]), policy=Policy(),
            hooks=Hooks(guard=looptape.Guard(cycles="stop")),
        )  # fmt: skip

    assert (outcome.reason, outcome.turns) == ("cycle", 7)
    assert len(RAN) == 5
