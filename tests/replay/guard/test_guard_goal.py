"""The goal check: asked when the model says that it is done, its verdict recorded, fed back or the end of the run."""

from __future__ import annotations

import asyncio

import pytest

import looptape
from guarded import Model
from looptape.tracer.store import open_store
from recorded import recording


@pytest.fixture
def home(tmp_path):
    with recording(tmp_path) as home:
        yield home


def converse(run, client, text="Compute it."):
    """A loop of one's own that asks `run.done`."""
    messages = [{"role": "user", "content": text}]
    while True:
        answer = client.messages.create(model="claude-test-1", max_tokens=100, messages=messages)
        said = answer.content[0].text
        messages.append({"role": "assistant", "content": said})
        more = run.done(said)
        if more is None:
            return said
        messages.append({"role": "user", "content": more})


def counting():
    """A model whose answer grows: 1, 2, 3, ..."""
    return Model(lambda turn, body: f"The answer is {turn}.")


def wants(number):
    return lambda text: True if str(number) in text else f"it must be {number}"


def test_a_failed_check_is_fed_back_and_the_model_goes_on(home):
    model = counting()
    with looptape.run("goal", guard=looptape.Guard(goal=wants(3))) as run:
        assert converse(run, model.client()) == "The answer is 3."

    fed = [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "user"][1:]
    assert fed == ["[looptape guard] The goal is not reached: it must be 3. Go on."] * 2
    found = home.run()
    assert (found.status, found.outcome) == ("completed", {"verdict": "pass"})
    with open_store(home.path) as store:
        verdicts = [(e.turn, e.detail["verdict"]) for e in store.events(found.id) if e.kind == "goal"]
    assert verdicts == [(1, "fail"), (2, "fail"), (3, "pass")]


def test_it_gives_up_after_its_tries(home):
    model = counting()
    guard = looptape.Guard(goal=wants(9), goal_tries=2)
    with pytest.raises(looptape.LoopStopped) as stopped, looptape.run("goal", guard=guard) as run:
        converse(run, model.client())

    assert stopped.value.reason == "goal"
    assert len(model.requests) == 2
    found = home.run()
    assert (found.status, found.reason) == ("halted", "goal: the goal check failed: it must be 9")
    assert found.outcome == {"verdict": "fail", "note": "it must be 9"}


def test_a_failed_check_may_end_the_run(home):
    guard = looptape.Guard(goal=lambda text, run_id: False, on_goal_failed="end")
    with pytest.raises(looptape.LoopStopped), looptape.run("goal", guard=guard) as run:
        converse(run, counting().client())

    assert home.run().status == "halted"


def test_a_check_that_breaks_has_not_passed(home):
    guard = looptape.Guard(goal=lambda text: 1 / 0)
    with looptape.run("goal", guard=guard) as run:
        assert "the check itself failed: ZeroDivisionError" in run.done("x")


def test_a_check_may_be_a_coroutine(home):
    async def check(text):
        await asyncio.sleep(0)
        return "not yet" if text == "first" else None

    async def main():
        with looptape.run("goal", guard=looptape.Guard(goal=check)) as run:
            return [await run.done_async("first"), await run.done_async("second")]

    assert asyncio.run(main()) == ["[looptape guard] The goal is not reached: not yet. Go on.", None]


def test_a_coroutine_that_nobody_awaits_is_no_pass(home):
    async def check(text):
        return True

    with looptape.run("goal", guard=looptape.Guard(goal=check)) as run, pytest.raises(looptape.LooptapeError) as wrong:
        run.done("first")

    assert "await run.done_async(text)" in str(wrong.value)


def test_without_a_guard_done_is_done(home):
    with looptape.run("goal") as run:
        assert run.done("x") is None
        assert asyncio.run(run.done_async("x")) is None


def test_our_feedback_is_no_word_of_a_person(home):
    """Fed back again and again it must not begin the history of the loop anew."""
    model = Model(lambda turn, body: "The answer is forty-two, as I have said before.")
    guard = looptape.Guard(goal=lambda text: False, goal_tries=50, cycles="stop")
    with pytest.raises(looptape.LoopStopped) as stopped, looptape.run("goal", guard=guard) as run:
        converse(run, model.client())

    assert stopped.value.reason == "cycle"
    assert len(model.requests) <= 8
