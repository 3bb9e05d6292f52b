"""Completion order is imposed on what runs side by side, and never a deadlock where it does not."""

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from looptape.replay.player import order
from looptape.tracer.substitute import ToolAsked
from played import Program, Turn, records, request, results, said, then, user

CALLS = (("t1", "a", {"x": 1}), ("t2", "b", {"x": 1}), ("t3", "a", {"x": 2}))
VALUES = {"t1": "ra", "t2": "rb", "t3": "ra2"}
ENDED = ["t2", "t1", "t3"]


def parallel() -> list[Turn]:
    """One turn with three calls at once, that ended in another order than they were asked for."""
    body, answer = request(user("go")), said("", *CALLS)
    ran = {call: (VALUES[call], 12, 13 + ENDED.index(call)) for call in VALUES}
    return [Turn(body, answer, ran), Turn(then(body, answer, results(*VALUES.items())), said("end"))]


def served(program: Program, call: tuple) -> object:
    return program.player.tool(ToolAsked(call[1], call[2], program.run(), 1, call[0]))


@pytest.fixture
def patient(monkeypatch):
    """No pause of a busy machine is taken for a call that never comes."""
    monkeypatch.setattr(order, "PATIENCE", 60.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("repeat", range(20))
def test_threads_that_ask_in_any_order_get_their_own_results_in_the_recorded_order(repeat):  # rpl-03
    turns, program, done, got = parallel(), None, [], {}
    program = Program(records(turns))
    program.ask(turns[0].body)
    pick = random.Random(repeat)
    pauses = {c[0]: pick.random() / 100 for c in CALLS}
    lock = threading.Lock()

    def work(call):
        time.sleep(pauses[call[0]])
        reply = served(program, call)
        reply.hold.wait()
        with lock:
            done.append(call[0])
            got[call[0]] = reply.value
        reply.hold.release()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, CALLS))
    assert done == ENDED
    assert got == VALUES
    assert program.ask(turns[1].body)["content"][0]["text"] == "end"
    verdict = program.verdict()
    assert verdict.ok
    assert not verdict.notes
    assert verdict.digest == whole_digest()


def whole_digest() -> str:
    """The digest of the same replay, one call after another in the recorded order."""
    program = Program(records(parallel()))
    program.ask(parallel()[0].body)
    for call in sorted(CALLS, key=lambda c: ENDED.index(c[0])):
        program.tool(call[1], call[2], call[0], turn=1)
    program.ask(parallel()[1].body)
    return program.verdict().digest


@pytest.mark.usefixtures("patient")
def test_gathered_coroutines_end_in_the_recorded_order():
    program, done = Program(records(parallel())), []
    program.ask(parallel()[0].body)

    async def work(call):
        reply = served(program, call)
        await reply.hold.wait_async()
        done.append(call[0])
        reply.hold.release()

    async def main():
        await asyncio.gather(*map(work, CALLS))

    asyncio.run(main())
    assert done == ENDED


def test_a_program_that_runs_one_after_another_what_was_parallel_waits_once_and_goes_on(monkeypatch):
    monkeypatch.setattr(order, "PATIENCE", 0.05)
    program = Program(records(parallel()))
    program.ask(parallel()[0].body)
    assert [program.tool(c[1], c[2], c[0], turn=1) for c in (CALLS[2], CALLS[1], CALLS[0])] == ["ra2", "rb", "ra"]
    program.ask(parallel()[1].body)
    verdict = program.verdict()
    assert verdict.ok
    assert [n for n in verdict.notes if "completion order" in n] == list(verdict.notes)
    assert len(verdict.notes) == 1


def test_two_streams_that_one_thread_reads_by_turns_do_not_wait_for_each_other(monkeypatch):
    body_a, body_b = request(user("a")), request(user("b"))
    first = records([Turn(body_a, said("A"), at=(10, 12))])
    second = records([Turn(body_b, said("B"), at=(10, 13))], run="b" * 16)
    program = Program([*first, *second])
    one = program.player.answer(program.asked(body_a, run="x"))
    two = program.player.answer(program.asked(body_b, run="y"))
    waited = []
    monkeypatch.setattr(program.player._order.changed, "wait_for", lambda *given: waited.append(given))
    one.hold.wait()
    two.hold.wait()
    assert waited == []
    one.hold.release()
    two.hold.release()


def test_a_call_that_runs_while_its_answer_still_streams_holds_nothing_back():
    body, answer = request(user("go")), said("", ("t1", "a", {}))
    program = Program(records([Turn(body, answer, {"t1": ("r", 11, 12)}, at=(10, 15))]))
    reply = program.player.answer(program.asked(body))
    assert reply.hold is None


@pytest.mark.usefixtures("patient")
def test_two_sub_agents_with_the_same_prompt_are_each_answered_as_one_of_the_recorded_two():
    body = request(user("same"))
    agents = {}
    tape = []
    for run, tool in (("b" * 16, "u1"), ("c" * 16, "u2")):
        answer = said("", (tool, "look", {}), message=f"msg_{tool}")
        following = then(body, answer, results((tool, f"saw {tool}")))
        agents[tool] = following
        tape += records(
            [Turn(body, answer, {tool: (f"saw {tool}", 12, 13)}), Turn(following, said(f"end {tool}"))], run=run
        )
    program, ends = Program(tape), []
    lock = threading.Lock()

    def agent(name):
        got = program.ask(body, run=name)
        call = got["content"][1]["id"]
        value = program.tool("look", {}, call, run=name)
        last = program.ask(then(body, got, results((call, value))), run=name)
        with lock:
            ends.append(last["content"][0]["text"])

    threads = [threading.Thread(target=agent, args=(n,)) for n in "xy"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["end u1", "end u2"]
    assert program.verdict().ok
