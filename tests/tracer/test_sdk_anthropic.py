"""The real Anthropic SDK against the fake server: whatever way a loop calls it, every turn is recorded whole."""

import asyncio
import inspect
import json
import sys
import threading

import anthropic
import pytest

import looptape
from fakellm import Call, FakeLLM, Scenario, Step
from recorded import recording

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
QUESTION = "What is 7% of last year's revenue?"
TOOLS = [
    {
        "name": "search",
        "description": "Web search",
        "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    },
    {
        "name": "calculator",
        "description": "Multiply two numbers",
        "input_schema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
    },
]
CONTINUES = "thread" in inspect.signature(anthropic.resources.beta.Messages.tool_runner).parameters


def revenue_steps():
    usage = {"input": 100, "output": 20, "cache_read": 1000, "cache_write": 200}
    return [
        Step(text="I will look it up.", calls=[Call("search", {"q": "annual revenue 2025"}, "toolu_1")], usage=usage),
        Step(calls=[Call("calculator", {"a": 412000000, "b": "seven"}, "toolu_2")], usage=usage),
        Step(text="About $28.84M.", usage=usage),
    ]


def run_tool(name, args):
    if name == "search":
        return "Revenue 2025: $412.0M"
    if name == "calculator":
        if any(not isinstance(args[k], (int, float)) for k in ("a", "b")):
            raise ValueError("calculator requires two numbers")
        return str(args["a"] * args["b"])
    raise ValueError(f"unknown tool: {name}")


def request(messages, **more):
    return {"model": "acme-large-1", "max_tokens": 1024, "tools": TOOLS, "messages": messages, **more}


def answer_calls(answer, run_tool):
    results = []
    for block in answer.content:
        if block.type == "tool_use":
            try:
                output, failed = run_tool(block.name, block.input), False
            except ValueError as error:
                output, failed = str(error), True
            results.append({"type": "tool_result", "tool_use_id": block.id, "content": output, "is_error": failed})
    return results


def agent(call, run_tool=run_tool, messages=None, max_turns=8):
    """The plain tutorial loop. ``call(messages)`` gives a Message."""
    messages = messages if messages is not None else [{"role": "user", "content": QUESTION}]
    for _ in range(max_turns):
        answer = call(messages)
        messages.append({"role": "assistant", "content": answer.content})
        if answer.stop_reason != "tool_use":
            return "".join(b.text for b in answer.content if b.type == "text")
        messages.append({"role": "user", "content": answer_calls(answer, run_tool)})
    return "[stopped]"


@pytest.fixture
def server():
    with FakeLLM({"revenue": Scenario(revenue_steps())}) as fake:
        yield fake


def client_of(server, scenario="revenue", **options):
    return looptape.wrap(
        anthropic.Anthropic(api_key="sk-ant-" + "test-0123456789", base_url=server.url(scenario), **options)
    )


def async_client_of(server, scenario="revenue", **options):
    return looptape.wrap(
        anthropic.AsyncAnthropic(api_key="sk-ant-" + "test-0123456789", base_url=server.url(scenario), **options)
    )


def http_error_of(client):
    """The base error of the HTTP library below this SDK version."""
    library = next(c.__module__.partition(".")[0] for c in type(client._client).__mro__ if c.__name__ == "Client")
    return sys.modules[library].HTTPError


def serve(steps, **options):
    return FakeLLM({"revenue": Scenario(steps)}, **options)


def check_revenue(run, timing="inferred"):
    """What a reader of the store must see of the revenue run, however it was called."""
    assert (run.status, run.reason) == ("completed", "end_turn")
    assert [t.stop_reason for t in run.turns] == ["tool_use", "tool_use", "end_turn"]
    assert [t.status for t in run.turns] == ["ok", "ok", "ok"]
    assert [t.text for t in run.turns] == ["I will look it up.", None, "About $28.84M."]
    search, calculator = run.turns[0].tool_calls[0], run.turns[1].tool_calls[0]
    assert (search.name, search.arguments, search.result) == (
        "search",
        {"q": "annual revenue 2025"},
        "Revenue 2025: $412.0M",
    )
    assert (search.is_error, search.state, search.timing) == (False, "done", timing)
    assert (calculator.arguments, calculator.is_error) == ({"a": 412000000, "b": "seven"}, True)
    assert calculator.result == "calculator requires two numbers"
    for turn in run.turns:
        usage = turn.usage
        assert (usage.input, usage.cache_read, usage.cache_write_5m, usage.output) == (100, 1000, 200, 20)
        assert usage.origin == "recorded"
    assert (run.usage.input, run.usage.output, run.tool_calls) == (300, 60, 2)
    assert [len(r.messages) for r in run.requests] == [1, 3, 5]
    assert run.requests[0].messages[0] == {"role": "user", "content": QUESTION}
    assert [t["name"] for t in run.requests[2].tools] == ["search", "calculator"]
    assert run.requests[2].params["max_tokens"] == 1024
    assert all(t.caller and t.caller.split(":")[0].endswith("test_sdk_anthropic.py") for t in run.turns)
    assert [t.user_turn for t in run.turns] == [True, False, False]


@pytest.mark.smoke
def test_one_line_records_the_tutorial_loop_completely(server, tmp_path):
    with recording(tmp_path) as home:
        client = client_of(server)
        assert agent(lambda m: client.messages.create(**request(m))) == "About $28.84M."
    check_revenue(home.run())


def test_a_second_line_gives_exact_tool_times(server, tmp_path):
    with recording(tmp_path) as home:
        client = client_of(server)
        agent(lambda m: client.messages.create(**request(m)), run_tool=looptape.tools(run_tool))
    run = home.run()
    check_revenue(run, timing="measured")
    failed = run.turns[1].tool_calls[0]
    assert failed.error_class == "permanent"
    assert failed.started_at <= failed.ended_at <= run.turns[2].started_at


def test_a_named_run_carries_what_its_author_said(server, tmp_path):
    with recording(tmp_path) as home:
        client = client_of(server)
        limits = looptape.Limits(turns=8)
        with looptape.run(
            "revenue", session="s-1", task="revenue-task", tags={"customer": "4711"}, limits=limits
        ) as run:
            agent(lambda m: client.messages.create(**request(m)))
        run.outcome("pass", "the figure is right", score=1.0)
    seen = home.run()
    check_revenue(seen)
    assert (seen.id, seen.name, seen.session, seen.task) == (run.id, "revenue", "s-1", "revenue-task")
    assert seen.tags == {"customer": "4711"}
    assert seen.limits == {"turns": 8}
    assert seen.outcome == {"verdict": "pass", "note": "the figure is right", "score": 1.0}


def through_create_stream(client):
    def call(messages):
        with client.messages.create(**request(messages), stream=True) as stream:
            return assembled(stream)

    return call


def assembled(events):
    """A Message put together by hand from raw events, as loops without the helper do."""
    message, raws = None, {}
    for event in events:
        if event.type == "message_start":
            message = event.message
        elif event.type == "content_block_start":
            message.content.append(event.content_block)
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            message.content[event.index].text += event.delta.text
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            raws[event.index] = raws.get(event.index, "") + event.delta.partial_json
        elif event.type == "message_delta":
            message.stop_reason = event.delta.stop_reason
    for index, raw in raws.items():
        message.content[index].input = json.loads(raw or "{}")
    return message


def through_stream_helper(client):
    def call(messages):
        with client.messages.stream(**request(messages)) as stream:
            return stream.get_final_message()

    return call


def through_text_stream(client):
    def call(messages):
        with client.messages.stream(**request(messages)) as stream:
            "".join(stream.text_stream)
            return stream.get_final_message()

    return call


WAYS = {
    "create": lambda client: lambda m: client.messages.create(**request(m)),
    "create stream": through_create_stream,
    "stream helper": through_stream_helper,
    "text stream": through_text_stream,
    "beta": lambda client: lambda m: client.beta.messages.create(**request(m)),
    "raw response": lambda client: lambda m: client.messages.with_raw_response.create(**request(m)).parse(),
    "options clone": lambda client: lambda m: client.with_options(timeout=60).messages.create(**request(m)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_calling_gives_the_same_record(server, tmp_path, way):
    with recording(tmp_path) as home:
        assert agent(WAYS[way](client_of(server))) == "About $28.84M."
    check_revenue(home.run())


def test_a_streaming_response_wrapper_is_recorded(server, tmp_path):
    def call(messages):
        with client.messages.with_streaming_response.create(**request(messages)) as response:
            return response.parse()

    with recording(tmp_path) as home:
        client = client_of(server)
        agent(call)
    check_revenue(home.run())


def async_agent(client, way):
    async def call(messages):
        if way == "create":
            return await client.messages.create(**request(messages))
        if way == "stream helper":
            async with client.messages.stream(**request(messages)) as stream:
                return await stream.get_final_message()
        stream = await client.messages.create(**request(messages), stream=True)
        return assembled([event async for event in stream])

    async def loop():
        messages = [{"role": "user", "content": QUESTION}]
        while True:
            answer = await call(messages)
            messages.append({"role": "assistant", "content": answer.content})
            if answer.stop_reason != "tool_use":
                return answer.content[0].text
            messages.append({"role": "user", "content": answer_calls(answer, run_tool)})

    return asyncio.run(loop())


@pytest.mark.parametrize("way", ["create", "stream helper", "create stream"])
def test_async_clients_are_recorded_the_same(server, tmp_path, way):
    with recording(tmp_path) as home:
        assert async_agent(async_client_of(server), way) == "About $28.84M."
    check_revenue(home.run())


def test_streams_keep_their_chunks_with_boundaries_and_times(server, tmp_path):
    with recording(tmp_path) as home:
        agent(through_stream_helper(client_of(server)))
    run = home.run()
    check_revenue(run)
    from looptape.tracer.store import open_store

    with open_store(home.path) as store:
        wire = store.wire(run.id, 1)
    assert "".join(text for _, text in wire.chunks).count("event: ") > 10
    offsets = [offset for offset, _ in wire.chunks]
    assert offsets == sorted(offsets)
    assert run.turns[0].first_chunk_at is not None


@pytest.mark.parametrize("gzip", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_encoded_answers_are_read(tmp_path, gzip, stream):
    steps = [Step(text="packed", gzip=gzip)]
    with recording(tmp_path) as home, serve(steps) as server:
        client = client_of(server)
        call = through_stream_helper(client) if stream else WAYS["create"](client)
        assert agent(call) == "packed"
    assert home.run().turns[0].text == "packed"


def test_every_attempt_of_a_retried_call_is_kept(tmp_path):
    trouble = [{"kind": "rate_limit"}, {"kind": "overloaded"}, {"kind": "server"}]
    steps = [Step(text="at last", errors=trouble)]
    with recording(tmp_path) as home, serve(steps) as server:
        client = client_of(server, max_retries=4)
        assert agent(WAYS["create"](client)) == "at last"
    run = home.run()
    assert run.status == "completed"
    (turn,) = run.turns
    assert [a.status for a in turn.attempts] == [429, 529, 500, 200]
    assert [a.error_type for a in turn.attempts] == ["rate_limit_error", "overloaded_error", "api_error", None]
    assert turn.attempts[0].wait_ms == 0
    assert all(a.wait_ms > 0 for a in turn.attempts[1:])
    assert turn.usage.output == 5
    assert (turn.status, turn.error) == ("ok", None)


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_fails_for_good_is_a_failed_turn(tmp_path, stream):
    steps = [Step(errors=[{"kind": "bad_request", "message": "max_tokens: too large"}])]
    with recording(tmp_path) as home, serve(steps) as server:
        client = client_of(server)
        with pytest.raises(anthropic.BadRequestError):
            agent((through_stream_helper if stream else WAYS["create"])(client))
    run = home.run()
    assert (run.status, run.reason) == ("failed", "max_tokens: too large")
    (turn,) = run.turns
    assert (turn.status, turn.error_type, turn.error) == ("error", "invalid_request_error", "max_tokens: too large")
    assert run.errors == 1
    assert turn.usage.output is None


def test_a_time_out_is_kept_as_an_attempt_and_a_failed_turn(tmp_path):
    steps = [Step(text="late", errors=[{"hold": True}, {"hold": True}])]
    with recording(tmp_path) as home, serve(steps) as server:
        client = client_of(server, timeout=0.2, max_retries=1)
        with pytest.raises(anthropic.APITimeoutError):
            agent(WAYS["create"](client))
    (turn,) = home.run().turns
    assert [a.error_type for a in turn.attempts] == ["ReadTimeout", "ReadTimeout"]
    assert turn.status == "error"


def test_a_connection_that_breaks_before_the_answer_is_retried_in_the_same_turn(tmp_path):
    steps = [Step(text="here", errors=[{"disconnect": True}])]
    with recording(tmp_path) as home, serve(steps) as server:
        assert agent(WAYS["create"](client_of(server))) == "here"
    (turn,) = home.run().turns
    assert [a.status for a in turn.attempts] == [None, 200]
    assert turn.attempts[0].error_type


def test_a_stream_cut_in_the_middle_keeps_what_came(tmp_path):
    steps = [Step(text="The answer is forty-two, as everybody knows.", errors=[{"cut_stream": 5}])]
    with recording(tmp_path) as home, serve(steps) as server:
        client = client_of(server, max_retries=0)
        with pytest.raises((anthropic.APIError, http_error_of(client))):
            agent(through_stream_helper(client))
    run = home.run()
    (turn,) = run.turns
    assert (run.status, turn.status) == ("failed", "error")
    assert turn.text
    assert "The answer is forty-two".startswith(turn.text)
    assert turn.usage.partial
    assert turn.stop_reason is None


def test_a_stream_that_its_caller_leaves_is_abandoned_not_failed(tmp_path):
    steps = [Step(text="one two three four five six seven eight nine ten", chunk_delay=0.02)]
    with recording(tmp_path) as home, serve(steps) as server:
        client = client_of(server)
        with client.messages.stream(**request([{"role": "user", "content": "count"}])) as stream:
            for _ in stream.text_stream:
                break
    (turn,) = home.run().turns
    assert turn.status == "abandoned"
    assert turn.text
    assert turn.usage.partial
    assert turn.ended_at is not None


def test_thinking_keeps_its_signature(tmp_path):
    steps = [Step(thinking="Let me see.", text="Done.", usage={"output": 30, "reasoning": 0})]
    thinking = {"type": "enabled", "budget_tokens": 1024}
    for way in ("create", "stream helper"):
        with recording(tmp_path / way) as home, serve(steps) as server:
            client = client_of(server)
            ask = {**request([{"role": "user", "content": "think"}]), "thinking": thinking, "max_tokens": 2048}
            if way == "create":
                client.messages.create(**ask)
            else:
                with client.messages.stream(**ask) as stream:
                    stream.get_final_message()
        (turn,) = home.run().turns
        assert (turn.thinking, turn.text) == ("Let me see.", "Done.")
        assert turn.response["content"][0]["signature"].endswith("c2ln")


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        ("end_turn", "completed"),
        ("stop_sequence", "completed"),
        ("refusal", "completed"),
        ("max_tokens", "limit"),
        ("model_context_window_exceeded", "limit"),
        ("pause_turn", "limit"),
    ],
)
def test_every_stop_reason_is_kept_raw_and_told_apart(tmp_path, stop, status):
    steps = [Step(text="so far", stop=stop)]
    with recording(tmp_path) as home, serve(steps) as server, looptape.run("stop"):
        agent(WAYS["create"](client_of(server)))
    run = home.run()
    assert run.turns[0].stop_reason == stop
    assert run.status == status
    assert stop in run.reason


def test_a_cap_of_the_loop_is_a_limit(tmp_path):
    steps = [Step(calls=[Call("search", {"q": str(i)}, f"toolu_{i}")]) for i in range(5)]
    for limits, words in ((looptape.Limits(turns=3), "3 of 3"), (None, "a cap of its own")):
        with (
            recording(tmp_path / str(bool(limits))) as home,
            serve(steps) as server,
            looptape.run("capped", limits=limits),
        ):
            assert agent(WAYS["create"](client_of(server)), max_turns=3) == "[stopped]"
        run = home.run()
        assert run.status == "limit"
        assert words in run.reason
        assert len(run.turns) == 3


def test_an_exception_of_the_loop_ends_the_run_as_failed(server, tmp_path):
    def broken(name, args):
        raise RuntimeError("the database is gone")

    with recording(tmp_path) as home:
        client = client_of(server)
        with pytest.raises(RuntimeError), looptape.run("broken"):
            agent(WAYS["create"](client), run_tool=looptape.tools(broken))
    run = home.run()
    assert (run.status, run.reason) == ("failed", "RuntimeError: the database is gone")
    (call,) = run.turns[0].tool_calls
    assert (call.state, call.is_error, call.timing) == ("done", True, "measured")
    assert "the database is gone" in call.result


def test_steps_that_the_provider_runs_itself_are_the_providers(tmp_path):
    blocks = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "url": "https://x.invalid", "title": "t", "encrypted_content": "e", "page_age": None}]},
    ]  # fmt: skip
    steps = [Step(text="It is sunny.", extra_blocks=blocks)]
    with recording(tmp_path) as home, serve(steps) as server:
        agent(WAYS["create"](client_of(server)))
    run = home.run()
    (call,) = run.turns[0].tool_calls
    assert (call.name, call.origin, call.state) == ("web_search", "provider", "done")
    assert call.result[0]["title"] == "t"
    assert run.status == "completed"


def test_parallel_calls_pair_by_id_whatever_the_order_of_their_ends(tmp_path):
    calls = [Call("search", {"q": city}, f"toolu_{i}") for i, city in enumerate(("Tokyo", "Paris", "Tokyo"))]
    steps = [Step(calls=calls), Step(text="done")]

    async def loop(client):
        paris_is_over = asyncio.Event()

        @looptape.tool
        async def search(q):
            if q == "Paris":
                raise TimeoutError("no answer")
            await paris_is_over.wait()
            return f"{q}: 21 degrees"

        async def paris_first(q):
            try:
                return await search(q=q)
            finally:
                if q == "Paris":
                    paris_is_over.set()

        messages = [{"role": "user", "content": "weather?"}]
        answer = await client.messages.create(**request(messages))
        messages.append({"role": "assistant", "content": answer.content})
        outcomes = await asyncio.gather(*(paris_first(**b.input) for b in answer.content), return_exceptions=True)
        results = [
            {"type": "tool_result", "tool_use_id": b.id, "content": str(o), "is_error": isinstance(o, Exception)}
            for b, o in zip(answer.content, outcomes, strict=True)
        ]
        messages.append({"role": "user", "content": results})
        await client.messages.create(**request(messages))

    with recording(tmp_path) as home, serve(steps) as server:
        asyncio.run(loop(async_client_of(server)))
    run = home.run()
    seen = run.turns[0].tool_calls
    assert [(c.id, c.result, c.is_error) for c in seen] == [
        ("toolu_0", "Tokyo: 21 degrees", False),
        ("toolu_1", "no answer", True),
        ("toolu_2", "Tokyo: 21 degrees", False),
    ]
    assert {c.timing for c in seen} == {"measured"}
    assert seen[1].error_class == "transient"
    assert seen[1].ended_at < seen[0].ended_at


def test_tools_in_a_thread_pool_are_bound_to_their_calls(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    calls = [Call("search", {"q": str(i)}, f"toolu_{i}") for i in range(4)]
    steps = [Step(calls=calls), Step(text="done")]
    run_wrapped = looptape.tools(lambda name, arguments: f"{name} {arguments['q']}")

    def call_all(answer):
        with ThreadPoolExecutor(4) as pool:
            outputs = list(pool.map(lambda b: run_wrapped(b.name, b.input), answer.content))
        return [
            {"type": "tool_result", "tool_use_id": b.id, "content": o}
            for b, o in zip(answer.content, outputs, strict=True)
        ]

    with recording(tmp_path) as home, serve(steps) as server, looptape.run("pool"):
        client = client_of(server)
        messages = [{"role": "user", "content": "go"}]
        answer = client.messages.create(**request(messages))
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": call_all(answer)}]
        client.messages.create(**request(messages))
    run = home.run()
    assert [(c.id, c.result, c.timing) for c in run.turns[0].tool_calls] == [
        (f"toolu_{i}", f"search {i}", "measured") for i in range(4)
    ]


def test_malformed_arguments_are_kept_as_they_came(tmp_path):
    steps = [Step(calls=[Call("search", '{"q": "rev', "toolu_1")]), Step(text="sorry")]
    with recording(tmp_path) as home, serve(steps, strict=False) as server:
        client = client_of(server)
        with client.messages.create(**request([{"role": "user", "content": "x"}]), stream=True) as stream:
            assert list(stream)
    (turn,) = home.run().turns
    (call,) = turn.tool_calls
    assert (call.valid, call.arguments_raw) == (False, '{"q": "rev')
    assert turn.parse_status == "invalid_arguments"


@pytest.mark.parametrize("threads", [True, False], ids=["server-held threads", "whole history"])
def test_the_sdk_tool_runner_is_one_run(tmp_path, threads):
    from anthropic import beta_tool

    if threads and not CONTINUES:
        pytest.skip(f"anthropic {anthropic.__version__} has no server-held threads")

    @beta_tool
    @looptape.tool
    def search(q: str) -> str:
        """Web search."""
        return f"found {q}"

    options = {} if threads or not CONTINUES else {"thread": False}
    steps = [
        Step(text="looking", calls=[Call("search", {"q": "a"}, "toolu_1"), Call("search", {"q": "b"}, "toolu_2")]),
        Step(calls=[Call("search", {"q": "c"}, "toolu_3")]),
        Step(text="all found"),
    ]
    with recording(tmp_path) as home, serve(steps) as server:
        runner = client_of(server).beta.messages.tool_runner(
            model="acme-large-1",
            max_tokens=1024,
            tools=[search],
            messages=[{"role": "user", "content": "find"}],
            **options,
        )
        assert runner.until_done().content[0].text == "all found"
        continued = any("previous_message_id" in json.dumps(e["body"].get("thread") or {}) for e in server.log)
    assert continued is threads
    run = home.run()
    assert run.status == "completed"
    assert [
        [c.result if isinstance(c.result, str) else c.result[0]["text"] for c in t.tool_calls] for t in run.turns
    ] == [
        ["found a", "found b"],
        ["found c"],
        [],
    ]
    assert {c.timing for t in run.turns for c in t.tool_calls} == {"measured"}
    assert [len(r.messages) for r in run.requests] == [1, 3, 5]
    last = run.requests[2].messages
    assert [m["role"] for m in last] == ["user", "assistant", "user", "assistant", "user"]
    assert last[1]["content"][1]["id"] == "toolu_1"


def test_counting_tokens_is_no_turn(server, tmp_path):
    with recording(tmp_path) as home:
        client = client_of(server)
        client.messages.count_tokens(model="acme-large-1", messages=[{"role": "user", "content": "x"}])
        agent(WAYS["create"](client))
    check_revenue(home.run())


def test_wrapping_twice_records_once(server, tmp_path):
    with recording(tmp_path) as home:
        client = looptape.wrap(client_of(server))
        agent(WAYS["create"](client))
    check_revenue(home.run())


def test_wrap_refuses_what_it_cannot_record_in_one_line():
    with pytest.raises(
        TypeError, match=r"looptape\.wrap\(\) records anthropic, openai and httpx clients, not builtins\.dict"
    ):
        looptape.wrap({})


def test_the_callers_growing_list_is_not_kept(server, tmp_path):
    with recording(tmp_path) as home:
        client = client_of(server)
        messages = [{"role": "user", "content": QUESTION}]
        client.messages.create(**request(messages))
        messages[0]["content"] = "changed afterwards"
    assert home.run().requests[0].messages[0]["content"] == QUESTION


def test_two_runs_in_two_threads_do_not_mix(tmp_path):
    scenarios = {name: Scenario(revenue_steps()) for name in ("one", "two")}
    with recording(tmp_path) as home, FakeLLM(scenarios) as server:
        threads = [
            threading.Thread(target=lambda n=name: agent(WAYS["create"](client_of(server, n)))) for name in scenarios
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    runs = home.runs()
    assert len(runs) == 2
    for run in runs:
        check_revenue(run)
