"""Which run a call belongs to: contexts, conversations, threads, sub-agents, sessions, compaction."""

import asyncio
import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import anthropic
import httpx2
import pytest

import looptape
from looptape.tracer import process
from recorded import recording

TOOLS = [{"name": "look", "description": "look", "input_schema": {"type": "object"}}]


class Model:
    """A scripted model: ``script(body)`` gives a text, or ``(name, arguments)`` of one tool call, or a list of them."""

    def __init__(self, script):
        self.script = script
        self.numbers = itertools.count(1)  # `next` of it gives no two threads the same

    def respond(self, request):
        body = json.loads(request.content)
        number = next(self.numbers)
        said = self.script(body)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, httpx2.Response):
            return said
        calls = [said] if isinstance(said, tuple) else said if isinstance(said, list) else []
        content = [
            {"type": "tool_use", "id": f"toolu_{number}_{i}", "name": n, "input": a} for i, (n, a) in enumerate(calls)
        ] or [{"type": "text", "text": said}]
        return httpx2.Response(
            200,
            json={
                "id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"],
                "content": content, "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": 10, "output_tokens": 5},
            },
        )  # fmt: skip

    def client(self):
        http = httpx2.Client(transport=httpx2.MockTransport(self.respond))
        return looptape.wrap(anthropic.Anthropic(api_key="test-key-0123456789", http_client=http, max_retries=0))

    def async_client(self):
        async def respond(request):
            await asyncio.sleep(0.005)
            return self.respond(request)

        http = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
        return looptape.wrap(anthropic.AsyncAnthropic(api_key="test-key-0123456789", http_client=http, max_retries=0))


def ask(client, messages, tools=TOOLS, **more):
    return client.messages.create(model="acme-large-1", max_tokens=100, tools=tools, messages=messages, **more)


def turns_in(body):
    return sum(1 for m in body["messages"] if m["role"] == "assistant")


def dumped(answer):
    return {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]}


def results_for(answer, text="seen"):
    blocks = [
        {"type": "tool_result", "tool_use_id": b.id, "content": text} for b in answer.content if b.type == "tool_use"
    ]
    return {"role": "user", "content": blocks}


def loop(client, prompt, look=None, **more):
    messages = [{"role": "user", "content": prompt}]
    while True:
        answer = ask(client, messages, **more)
        messages.append(dumped(answer))
        if answer.stop_reason != "tool_use":
            return answer.content[0].text
        texts = [look(b.input) if look else "seen" for b in answer.content]
        blocks = [
            {"type": "tool_result", "tool_use_id": b.id, "content": t}
            for b, t in zip(answer.content, texts, strict=True)
        ]
        messages.append({"role": "user", "content": blocks})


def three_turns(body):
    return ("look", {"n": turns_in(body)}) if turns_in(body) < 2 else "done"


@pytest.fixture
def home(tmp_path):
    with recording(tmp_path) as home:
        yield home


def test_equal_prompts_in_parallel_threads_are_runs_of_their_own(home):
    client = Model(three_turns).client()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: loop(client, "the same question"), range(8))) == ["done"] * 8
    runs = home.runs()
    assert [len(r.turns) for r in runs] == [3] * 8
    assert all(r.status == "completed" for r in runs)


def test_gathered_loops_in_their_own_blocks_do_not_mix(home):
    client = Model(three_turns).async_client()

    async def one(name):
        with looptape.run(name):
            messages = [{"role": "user", "content": "the same question"}]
            while True:
                answer = await ask(client, messages)
                messages.append(dumped(answer))
                if answer.stop_reason != "tool_use":
                    return
                messages.append(results_for(answer))

    async def both():
        await asyncio.gather(one("a"), one("b"), one("c"))

    asyncio.run(both())
    runs = home.runs()
    assert sorted((r.name, len(r.turns)) for r in runs) == [("a", 3), ("b", 3), ("c", 3)]
    assert all(r.parent is None for r in runs)


def test_a_run_goes_on_in_a_thread_that_lost_its_context(home):
    client = Model(three_turns).client()
    with looptape.run("threads"):
        messages = [{"role": "user", "content": "q"}]
        answer = ask(client, messages)
        messages += [dumped(answer), results_for(answer)]
        with ThreadPoolExecutor(1) as pool:
            pool.submit(ask, client, messages).result()
    run = home.run()
    assert [t.number for t in run.turns] == [1, 2]


def test_a_tool_with_a_loop_of_its_own_is_a_child_run_of_that_call(home):
    def script(body):
        if body["messages"][0]["content"] == "sub":
            return ("look", {"deep": turns_in(body)}) if turns_in(body) < 1 else "sub done"
        return ("agent", {"task": "sub"}) if turns_in(body) < 1 else "all done"

    model = Model(script)
    client = model.client()

    @looptape.tool
    def agent(task):
        return loop(client, task)

    with looptape.run("parent"):
        loop(client, "main", look=lambda arguments: agent(**arguments))
    parent, child = home.runs()
    assert (parent.name, child.name) == ("parent", "agent")
    assert (child.parent.run, child.parent.turn, child.parent.kind) == (parent.id, 1, "sub-agent")
    (call,) = parent.turns[0].tool_calls
    assert (child.parent.call, call.child_run, call.result) == (call.id, child.id, "sub done")
    assert [len(parent.turns), len(child.turns)] == [2, 2]
    assert parent.usage.output == 10
    assert parent.run.inclusive_usage.output == 20


def test_concurrent_sub_agents_are_children_of_their_own_calls(home):
    def script(body):
        first = body["messages"][0]["content"]
        if first.startswith("sub"):
            return ("look", {"of": first, "n": turns_in(body)}) if turns_in(body) < 3 else f"{first} done"
        return [("agent", {"task": "sub 1"}), ("agent", {"task": "sub 2"})] if turns_in(body) < 1 else "all done"

    client = Model(script).async_client()

    async def aloop(prompt):
        messages = [{"role": "user", "content": prompt}]
        while True:
            answer = await ask(client, messages)
            messages.append(dumped(answer))
            if answer.stop_reason != "tool_use":
                return answer.content[0].text
            outputs = await asyncio.gather(
                *(agent(**b.input) if b.name == "agent" else asyncio.sleep(0, "seen") for b in answer.content)
            )
            blocks = [
                {"type": "tool_result", "tool_use_id": b.id, "content": o}
                for b, o in zip(answer.content, outputs, strict=True)
            ]
            messages.append({"role": "user", "content": blocks})

    @looptape.tool
    async def agent(task):
        return await aloop(task)

    asyncio.run(aloop("main"))
    parent, *children = home.runs()
    assert len(parent.turns) == 2
    assert [len(c.turns) for c in children] == [4, 4]
    assert {c.id for c in children} == {call.child_run for call in parent.turns[0].tool_calls}
    by_id = {c.id: c for c in children}
    for call in parent.turns[0].tool_calls:
        assert by_id[call.child_run].requests[0].messages[0]["content"] == call.arguments["task"]


def test_an_unwrapped_sub_agent_inside_a_block_is_a_child_of_the_open_call(home):
    def script(body):
        if body["messages"][0]["content"] == "sub":
            return "sub done"
        return ("agent", {"task": "sub"}) if turns_in(body) < 1 else "all done"

    client = Model(script).client()
    with looptape.run("parent"):
        loop(client, "main", look=lambda arguments: loop(client, arguments["task"]))
    parent, child = home.runs()
    assert len(parent.turns) == 2
    assert parent.turns[0].tool_calls[0].child_run == child.id
    assert parent.turns[1].flags == ()


def test_a_block_inside_a_tool_names_the_child_run(home):
    client = Model(
        lambda body: ("agent", {}) if body["messages"][0]["content"] == "main" and turns_in(body) < 1 else "ok"
    ).client()

    @looptape.tool
    def agent():
        with looptape.run("researcher", agent="research"):
            return loop(client, "sub")

    with looptape.run("parent"):
        loop(client, "main", look=lambda arguments: agent(**arguments))
    parent, child = home.runs()
    assert (child.name, child.agent) == ("researcher", "research")
    assert child.parent.call == parent.turns[0].tool_calls[0].id


def test_a_new_prompt_after_the_end_is_a_new_run_of_the_same_session(home):
    client = Model(lambda body: "answer").client()
    messages = [{"role": "user", "content": "first"}]
    messages += [dumped(ask(client, messages)), {"role": "user", "content": "second"}]
    messages += [dumped(ask(client, messages)), {"role": "user", "content": "third"}]
    ask(client, messages)
    first, second, third = home.runs()
    assert {r.session for r in (first, second, third)} == {first.id}
    assert (second.parent.run, second.parent.kind, third.parent.run) == (first.id, "resume", second.id)
    assert [len(r.turns) for r in (first, second, third)] == [1, 1, 1]
    assert [m["content"] for m in third.requests[0].messages if m["role"] == "user"] == ["first", "second", "third"]
    assert (first.title, third.title) == ("first", "third")


def test_a_chat_inside_one_block_is_one_run_with_user_turns(home):
    client = Model(lambda body: "answer").client()
    with looptape.run("chat"):
        messages = [{"role": "user", "content": "first"}]
        messages += [dumped(ask(client, messages)), {"role": "user", "content": "second"}]
        ask(client, messages)
    run = home.run()
    assert [t.user_turn for t in run.turns] == [True, True]
    assert run.status == "completed"


def test_a_shortened_history_inside_a_block_is_a_compaction(home):
    client = Model(three_turns).client()
    with looptape.run("long"):
        messages = [{"role": "user", "content": "q"}]
        for _ in range(2):
            answer = ask(client, messages)
            messages += [dumped(answer), results_for(answer)]
        ask(client, messages)
        ask(client, [{"role": "user", "content": "Summary of before: looked twice. Go on."}])
    run = home.run()
    assert [t.flags for t in run.turns] == [(), (), (), ("compaction",)]
    assert [len(r.messages) for r in run.requests] == [1, 3, 5, 1]


def test_dropping_old_results_is_seen_as_an_edit_and_stays_in_the_run(home):
    client = Model(lambda body: ("look", {"n": turns_in(body)}) if turns_in(body) < 3 else "done").client()
    messages = [{"role": "user", "content": "q"}]
    for turn in range(3):
        answer = ask(client, messages)
        messages += [dumped(answer), results_for(answer, "x" * 500)]
        if turn == 2:
            messages[2]["content"][0]["content"] = "[cleared]"
    ask(client, messages)
    run = home.run()
    assert [t.flags for t in run.turns] == [(), (), (), ("edited",)]
    assert run.requests[3].messages[2]["content"][0]["content"] == "[cleared]"
    assert run.requests[2].messages[2]["content"][0]["content"] == "x" * 500


def test_a_cache_mark_that_moves_is_no_edit(home):
    client = Model(lambda body: ("look", {"n": turns_in(body)}) if turns_in(body) < 3 else "done").client()
    messages = [{"role": "user", "content": [{"type": "text", "text": "q"}]}]
    while True:
        for message in messages:
            for block in message["content"]:
                block.pop("cache_control", None)
        messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        answer = ask(client, messages)
        if answer.stop_reason != "tool_use":
            break
        messages += [dumped(answer), results_for(answer)]
    run = home.run()
    assert [t.flags for t in run.turns] == [(), (), (), ()]
    marks = [[i for i, m in enumerate(r.messages) if "cache_control" in json.dumps(m)] for r in run.requests]
    assert marks == [[0], [2], [4], [6]]


def test_a_request_with_other_tools_inside_a_block_is_a_child_run(home):
    client = Model(lambda body: "ok").client()
    with looptape.run("main"):
        ask(client, [{"role": "user", "content": "q"}])
        ask(client, [{"role": "user", "content": "give this chat a title"}], tools=[])
    main, title = home.runs()
    assert (title.parent.run, title.parent.kind) == (main.id, "sub-agent")


def test_a_failed_call_that_the_loop_repeats_is_another_attempt(home):
    outcomes = iter([httpx2.ConnectError("refused"), httpx2.ConnectError("refused"), "fine"])
    client = Model(lambda body: next(outcomes)).client()
    messages = [{"role": "user", "content": "q"}]
    for _ in range(2):
        with pytest.raises(anthropic.APIConnectionError):
            ask(client, messages)
    ask(client, messages)
    run = home.run()
    (turn,) = run.turns
    assert [a.error_type for a in turn.attempts] == ["ConnectError", "ConnectError", None]
    assert (turn.status, run.status) == ("ok", "completed")


def test_asking_the_same_again_after_an_answer_is_a_new_turn_or_run(home):
    client = Model(lambda body: "ok").client()
    with looptape.run("again"):
        for _ in range(3):
            ask(client, [{"role": "user", "content": "q"}])
    for _ in range(2):
        ask(client, [{"role": "user", "content": "q"}])
    assert sorted(len(r.turns) for r in home.runs()) == [1, 1, 3]


def test_the_agent_never_waits_for_a_recorder_that_is_off(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPTAPE", "off")
    model = Model(three_turns)
    former = process.replace(None)
    try:
        client = model.client()
        assert not hasattr(client._client._transport, "inner")
        with looptape.run("off") as run:
            assert loop(client, "q") == "done"
            run.outcome("pass")
            with run.turn() as turn:
                turn.request([{"role": "user", "content": "x"}])
                turn.response("y")
    finally:
        process.replace(former)


def overloaded():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    return httpx2.Response(529, json=error, headers={"retry-after-ms": "1"})


def script_of(*items):
    """A script that says these one after the other; a response object is sent as it is."""
    left = iter(items)
    return lambda body: next(left)


def retrying(model):
    http = httpx2.Client(transport=httpx2.MockTransport(model.respond))
    return looptape.wrap(anthropic.Anthropic(api_key="test-key-0123456789", http_client=http, max_retries=3))


def test_a_retry_that_succeeds_leaves_no_failed_run(home):
    client = retrying(Model(script_of(overloaded(), ("look", {}), overloaded(), ("look", {}))))
    messages = [{"role": "user", "content": "q"}]
    answer = ask(client, messages)
    messages += [dumped(answer), results_for(answer)]
    ask(client, messages)
    run = home.run()
    assert (run.status, len(run.turns)) == ("limit", 2)
    assert [[a.status for a in t.attempts] for t in run.turns] == [[529, 200], [529, 200]]


def test_a_retried_call_that_is_killed_later_is_interrupted_not_failed(home):
    client = retrying(Model(script_of(overloaded(), ("look", {}))))
    ask(client, [{"role": "user", "content": "q"}])
    home.recorder.journal.close()
    from looptape.tracer.store import Filter, open_store

    with open_store(home.path) as store:
        (run,) = store.runs(Filter())
    assert run.status == "interrupted"


def test_threads_that_send_the_same_keep_their_own_attempts(home):
    barrier, mine = threading.Barrier(12), threading.local()

    def script(body):
        if turns_in(body):
            return "done"
        mine.refusals -= 1
        return overloaded() if mine.refusals >= 0 else ("look", {"n": mine.number})

    client = retrying(Model(script))

    def one(number):
        mine.number, mine.refusals = number, number % 4
        barrier.wait(60)
        return loop(client, "the same question")

    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(one, range(12))) == ["done"] * 12
    runs = home.runs()
    assert [len(r.turns) for r in runs] == [2] * 12
    attempts = {r.turns[0].tool_calls[0].arguments["n"]: len(r.turns[0].attempts) for r in runs}
    assert attempts == {number: 1 + number % 4 for number in range(12)}
    assert {r.status for r in runs} == {"completed"}


def test_asking_again_after_a_refusal_is_a_new_call_and_the_failure_stays(home):
    bad = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    client = Model(script_of(httpx2.Response(400, json=bad), "fine")).client()
    messages = [{"role": "user", "content": "q"}]
    with looptape.run("again"):
        with pytest.raises(anthropic.BadRequestError):
            ask(client, messages)
        ask(client, messages)
    run = home.run()
    assert [(t.status, t.error) for t in run.turns] == [("error", "no"), ("ok", None)]
    assert (run.errors, run.status) == (1, "completed")


def test_conversations_that_were_forgotten_keep_no_body(home):
    client = Model(lambda body: "ok").client()
    for number in range(300):
        ask(client, [{"role": "user", "content": f"{number} " + "x" * 2000}])
    chains = home.recorder._chains
    kept = {id(c) for c in chains._open.values()}
    assert len(kept) == 256
    assert all(c.body is None for c in chains._by_response.values() if id(c) not in kept)
