"""Async loops, threads, parallel calls and sub-agents under one guard: each agent has its own history, limits are shared."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import looptape
from guarded import Counted, Model, acts, answer_of, circling, drive
from held_elsewhere import held_elsewhere
from recorded import recording
from scripted import anthropic_client

MARK = "[looptape guard]"


@pytest.fixture
def home(tmp_path):
    with recording(tmp_path) as home:
        yield home


def async_client(model):
    import anthropic
    import httpx2

    def respond(request):
        return httpx2.Response(200, json=model(json.loads(request.content)))

    http = anthropic.DefaultAsyncHttpxClient(transport=httpx2.MockTransport(respond))
    return looptape.wrap(anthropic.AsyncAnthropic(api_key="sk-ant-" + "0" * 20, http_client=http))


async def drive_async(client, tool, prompt="Find the revenue."):
    """The plain loop, its calls of a turn at the same time."""
    messages = [{"role": "user", "content": prompt}]
    while True:
        answer = await client.messages.create(model="claude-test-1", max_tokens=100, messages=messages)
        messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]})
        calls = [b for b in answer.content if b.type == "tool_use"]
        if not calls:
            return
        results = await asyncio.gather(*(tool(**c.input) for c in calls))
        blocks = [
            {"type": "tool_result", "tool_use_id": c.id, "content": r} for c, r in zip(calls, results, strict=True)
        ]
        messages.append({"role": "user", "content": blocks})


def test_an_async_loop_is_told_blocked_and_stopped(home):
    model, ran = circling(), []

    @looptape.tool(name="search")
    async def search(query):
        await asyncio.sleep(0)
        ran.append(query)
        return "Nothing about that here."

    async def main():
        with looptape.run("x", guard=looptape.Guard(cycles="stop")):
            await drive_async(async_client(model), search)

    with pytest.raises(looptape.LoopStopped):
        asyncio.run(main())

    assert (len(ran), len(model.requests)) == (5, 7)
    assert [d["rung"] for d in acts(home) if d["rung"] != "note"] == ["notice", "block", "block", "stop"]
    assert home.run().status == "halted"


def test_a_fan_out_that_repeats_is_told_once_with_its_last_result(home):
    calls = [("search", {"query": q}) for q in ("a", "b", "c")]
    model = Model(lambda turn, body: calls if turn <= 4 else "Done.")

    @looptape.tool(name="search")
    async def search(query):
        await asyncio.sleep({"a": 0.03, "b": 0.0, "c": 0.01}[query])
        return f"nothing about {query}"

    async def main():
        with looptape.run("x", guard=looptape.Guard(cycles="notice")):
            await drive_async(async_client(model), search)

    asyncio.run(main())

    told = [r for r in model.results() if MARK in r]
    assert len(told) == 1
    assert told[0].startswith("nothing about a\n\n[looptape guard] Turns 1 to 3: the loop ran the same set of 3 calls")


def test_calls_in_a_thread_pool_that_loses_the_context_are_watched(home):
    calls = [("search", {"query": q}) for q in ("a", "b")]
    model = Model(lambda turn, body: calls if turn <= 12 else "Done.")
    tool = Counted(lambda n, given: f"nothing about {given['query']}")
    client, messages = model.client(), [{"role": "user", "content": "go"}]

    def loop(pool):
        while True:
            answer = client.messages.create(model="claude-test-1", max_tokens=100, messages=messages)
            messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]})
            made = [b for b in answer.content if b.type == "tool_use"]
            given = pool.map(lambda c: (c.id, tool.tool(**c.input)), made)
            blocks = [{"type": "tool_result", "tool_use_id": i, "content": r} for i, r in given]
            messages.append({"role": "user", "content": blocks})

    with (
        pytest.raises(looptape.LoopStopped),
        looptape.run("x", guard=looptape.Guard(cycles="stop")),
        ThreadPoolExecutor(2) as pool,
    ):
        loop(pool)

    assert tool.ran == 10
    assert len(model.requests) == 7


def test_two_runs_in_two_threads_share_a_guard_and_nothing_else(home):
    guard = looptape.Guard(cycles="stop", turns=20)
    told = {}

    def loop(name, model):
        with looptape.run(name, guard=guard):
            try:
                drive(model.client(), {"search": Counted(lambda n, given: f"{name} {given['query']}").tool})
            except looptape.LoopStopped as stopped:
                told[name] = stopped.reason

    healthy = Model(lambda turn, body: [("search", {"query": f"part {turn * 31}"})] if turn < 15 else "Done.")
    threads = [threading.Thread(target=loop, args=a) for a in (("round", circling()), ("straight", healthy))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert told == {"round": "cycle"}
    assert {r.name: r.status for r in home.runs()} == {"round": "halted", "straight": "completed"}


def nested(inner_model, outer_turns=3):
    """An agent whose tool runs a sub-agent with a loop of its own; gives the outer model and the tools."""
    outer = Model(lambda turn, body: [("research", {"topic": f"t{turn}"})] if turn <= outer_turns else "Done.")
    inner_client = looptape.wrap(anthropic_client(inner_model))
    search = Counted("Nothing about that here.")

    @looptape.tool
    def research(topic):
        return drive(inner_client, {"search": search.tool}, prompt=f"Research {topic}")

    return outer, {"research": research}, search


def test_a_sub_agent_has_a_history_of_its_own(home):
    """Two turns of each sub-agent are alike; together they would be a cycle."""

    def plan(turn, body):
        asked = sum(m["role"] == "assistant" for m in body["messages"])
        return [("search", {"query": "revenue"})] if asked < 2 else f"{body['messages'][0]['content']}: nothing"

    outer, tools, search = nested(Model(plan))
    with looptape.run("outer", guard=looptape.Guard(cycles="stop")):
        drive(outer.client(), tools, offered=("research",))

    assert search.ran == 6
    assert acts(home, "stop") == []


def test_a_sub_agent_that_circles_is_stopped_and_the_run_with_it(home):
    outer, tools, search = nested(circling())
    with pytest.raises(looptape.LoopStopped) as stopped, looptape.run("outer", guard=looptape.Guard(cycles="stop")):
        drive(outer.client(), tools, offered=("research",))

    child, parent = sorted(home.runs(), key=lambda r: r.parent is None)
    assert search.ran == 5
    assert stopped.value.run == child.id
    assert (parent.status, child.status) == ("halted", "halted")
    assert parent.reason.startswith("cycle: ")


def test_the_budget_holds_for_sub_agents_too(home):
    outer, tools, _ = nested(circling(turns=4))
    with (
        pytest.raises(looptape.LoopStopped) as stopped,
        looptape.run("outer", guard=looptape.Guard(tokens=500)),
    ):
        drive(outer.client(), tools, offered=("research",))

    assert str(stopped.value) == "tokens: 550 of 500"
    assert len(outer.requests) == 1


def test_a_named_sub_run_with_a_guard_of_its_own_keeps_to_both(home):
    inner_model = circling(turns=40)
    search = Counted(lambda n, given: f"line {n}: {n * 7919}")
    outer = Model(lambda turn, body: [("research", {"topic": "a"})] if turn == 1 else "Done.")

    @looptape.tool
    def research(topic):
        with looptape.run("inner", guard=looptape.Guard(turns=5)):
            return drive(inner_model.client(), {"search": search.tool})

    with (
        pytest.raises(looptape.LoopStopped) as stopped,
        looptape.run("outer", guard=looptape.Guard(tokens=400, turns=30)),
    ):
        drive(outer.client(), {"research": research}, offered=("research",))

    assert stopped.value.reason == "tokens"
    assert len(inner_model.requests) == 3


def test_streams_are_watched_as_whole_answers_are(home):
    import anthropic
    import httpx2

    from looptape.tracer.providers import anthropic as wire

    asked = []

    def respond(request):
        body = json.loads(request.content)
        asked.append(body)
        whole = answer_of(body, [("search", {"query": "revenue"})])
        data = b"".join(wire.stream(whole))
        return httpx2.Response(200, content=data, headers={"content-type": "text/event-stream"})

    http = anthropic.DefaultHttpxClient(transport=httpx2.MockTransport(respond))
    client = looptape.wrap(anthropic.Anthropic(api_key="sk-ant-" + "0" * 20, http_client=http))
    tool = Counted()
    messages = [{"role": "user", "content": "go"}]

    def loop():
        while True:
            with client.messages.stream(model="claude-test-1", max_tokens=100, messages=messages) as stream:
                answer = stream.get_final_message()
            messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]})
            call = answer.content[-1]
            result = {"type": "tool_result", "tool_use_id": call.id, "content": tool.tool(**call.input)}
            messages.append({"role": "user", "content": [result]})

    with pytest.raises(looptape.LoopStopped), looptape.run("x", guard=looptape.Guard(cycles="stop")):
        loop()

    assert (len(asked), tool.ran) == (7, 5)


def test_a_forked_child_is_watched_with_a_lock_of_its_own(home):
    guard = looptape.Guard(turns=3)
    with looptape.run("x", guard=guard) as run:
        with run.turn() as turn:
            turn.request("one", model="local")
            turn.response("go on", stop_reason=None)
        with held_elsewhere(run._open.observers[0]._lock):
            child = os.fork()
            if child == 0:
                signal.alarm(60)  # a child that waits is ended
                try:
                    with run.turn() as turn:
                        turn.request("two", model="local")
                        turn.response("in the child")
                finally:
                    os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
