"""The real OpenAI SDK against the fake server, Chat Completions and Responses: every turn is recorded whole."""

import asyncio
import json

import openai
import pytest

import looptape
from fakellm import Call, FakeLLM, Scenario, Step
from recorded import recording

QUESTION = "What is 7% of last year's revenue?"
SYSTEM = "You are a careful analyst."
PROPERTIES = {"search": {"q": {"type": "string"}}, "calculator": {"a": {"type": "number"}, "b": {"type": "number"}}}
FUNCTIONS = [
    {"name": name, "description": name, "parameters": {"type": "object", "properties": properties}}
    for name, properties in PROPERTIES.items()
]
CHAT_TOOLS = [{"type": "function", "function": f} for f in FUNCTIONS]
RESPONSES_TOOLS = [{"type": "function", "strict": False, **f} for f in FUNCTIONS]
KEY = "sk-" + "canary0123456789abcdefghij"


def run_tool(name, arguments):
    args = json.loads(arguments)
    return "Revenue 2025: $412.0M" if name == "search" else str(round(args["a"] * args["b"], 2))


def revenue_steps(**more):
    usage = {"input": 100, "output": 20, "cache_read": 1000, "reasoning": 8}
    return [
        Step(
            text="I will look it up.", calls=[Call("search", {"q": "revenue"}, "call_1")], usage=usage, **more
        ),
        Step(calls=[Call("calculator", {"a": 412, "b": 0.07}, "call_2")], usage=usage, **more),
        Step(text="About $28.84M.", usage=usage, **more),
    ]  # fmt: skip


@pytest.fixture
def home(tmp_path):
    with recording(tmp_path) as running:
        yield running


def client_of(server, scenario="a", kind=None, **options):
    options = {"max_retries": 2, **options}
    return looptape.wrap((kind or openai.OpenAI)(base_url=server.url(scenario) + "/v1", api_key=KEY, **options))


class Chat:
    """The plain loop over Chat Completions."""

    api, stops = "openai.chat", ["tool_calls", "tool_calls", "stop"]

    @staticmethod
    def create(client, messages, **more):
        return client.chat.completions.create(
            model="acme-1", messages=[{"role": "system", "content": SYSTEM}, *messages], tools=CHAT_TOOLS, **more
        )

    @staticmethod
    def next(reply):
        """What the loop appends, and whether it goes on."""
        message = reply.choices[0].message
        calls = message.tool_calls or []
        results = [
            {"role": "tool", "tool_call_id": c.id, "content": run_tool(c.function.name, c.function.arguments)}
            for c in calls
        ]
        return [message.model_dump(exclude_none=True), *results], bool(calls)

    @staticmethod
    def streamed(chunks):
        """The completion that the chunks of a stream build, as a loop of the user would."""
        message, calls = {"role": "assistant", "content": ""}, {}
        for chunk in chunks:
            for choice in chunk.choices:
                message["content"] += choice.delta.content or ""
                for part in choice.delta.tool_calls or []:
                    call = calls.setdefault(part.index, {"id": part.id, "type": "function", "function": {"name": part.function.name, "arguments": ""}})  # fmt: skip
                    call["function"]["arguments"] += part.function.arguments or ""
        if calls:
            message["tool_calls"] = list(calls.values())
        return openai.types.chat.ChatCompletion.model_validate(
            {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        )  # fmt: skip

    options = {"stream": True, "stream_options": {"include_usage": True}}


class Responses:
    """The plain loop over Responses, the whole history sent every time."""

    api, stops = "openai.responses", ["completed", "completed", "completed"]

    @staticmethod
    def create(client, messages, **more):
        return client.responses.create(
            model="acme-1", instructions=SYSTEM, input=messages, tools=RESPONSES_TOOLS, **more
        )

    @staticmethod
    def next(reply):
        calls = [item for item in reply.output if item.type == "function_call"]
        results = [
            {"type": "function_call_output", "call_id": c.call_id, "output": run_tool(c.name, c.arguments)}
            for c in calls
        ]
        return [*(item.model_dump(exclude_none=True) for item in reply.output), *results], bool(calls)

    @staticmethod
    def streamed(events):
        return [event for event in events if event.type == "response.completed"][-1].response

    options = {"stream": True}


APIS = pytest.mark.parametrize("api", [Chat, Responses], ids=lambda a: a.__name__)


def loop(api, client, stream=False):
    messages, more = [{"role": "user", "content": QUESTION}], True
    while more:
        reply = api.create(client, messages, **(api.options if stream else {}))
        fresh, more = api.next(api.streamed(reply) if stream else reply)
        messages += fresh
    return messages


async def loop_async(api, client, stream=False):
    messages, more = [{"role": "user", "content": QUESTION}], True
    while more:
        reply = await api.create(client, messages, **(api.options if stream else {}))
        fresh, more = api.next(api.streamed([e async for e in reply]) if stream else reply)
        messages += fresh
    return messages


def check_revenue(run, api, messages, stream, server):
    assert (run.status, run.run.turns, run.run.tool_calls, run.run.errors) == ("completed", 3, 2, 0)
    assert [t.stop_reason for t in run.turns] == api.stops
    assert {(t.api, t.provider, t.request_model, t.model, t.stream, t.status) for t in run.turns} == {
        (api.api, "openai", "acme-1", "acme-1-2026-01-01", stream, "ok")
    }
    calls = [c for t in run.turns for c in t.tool_calls]
    assert [(c.id, c.name, c.arguments, c.result, c.state, c.timing) for c in calls] == [
        ("call_1", "search", {"q": "revenue"}, "Revenue 2025: $412.0M", "done", "inferred"),
        ("call_2", "calculator", {"a": 412, "b": 0.07}, "28.84", "done", "inferred"),
    ]
    assert [t.text for t in run.turns] == ["I will look it up.", None, "About $28.84M."]
    usage = run.turns[0].usage
    assert (usage.input, usage.cache_read, usage.output, usage.reasoning, usage.origin, usage.partial) == (
        100, 1000, 20, 8, "recorded", False
    )  # fmt: skip
    sent = [entry["body"] for entry in server.log]
    key = "messages" if api is Chat else "input"
    assert [list(r.messages) for r in run.requests] == [body[key] for body in sent]
    assert [r.tools for r in run.requests] == [body["tools"] for body in sent]
    assert [r.system for r in run.requests] == [body.get("instructions") for body in sent]
    assert all(t.caller.partition(":")[0].endswith("test_sdk_openai.py") for t in run.turns)
    assert run.requests[-1].messages[-1] == messages[-2]


@APIS
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_tool_loop_is_recorded_whole(home, api, stream, kind):
    with FakeLLM({"a": Scenario(revenue_steps())}) as server:
        if kind == "sync":
            messages = loop(api, client_of(server), stream)
        else:
            messages = asyncio.run(loop_async(api, client_of(server, kind=openai.AsyncOpenAI), stream))
        check_revenue(home.run(), api, messages, stream, server)


@APIS
def test_zipped_answers_and_streams_are_recorded_as_text(home, api):
    with FakeLLM({"a": Scenario(revenue_steps(gzip=True)), "b": Scenario(revenue_steps(gzip=True))}) as server:
        loop(api, client_of(server))
        loop(api, client_of(server, "b"), stream=True)
    for run in home.runs():
        assert [t.text for t in run.turns] == ["I will look it up.", None, "About $28.84M."]


@APIS
def test_parallel_calls_keep_their_own_results(home, api):
    calls = [Call("search", {"q": "a"}, "call_a"), Call("calculator", {"a": 2, "b": 3}, "call_b")]
    with FakeLLM({"a": Scenario([Step(calls=calls), Step(text="done")])}) as server:
        loop(api, client_of(server), stream=True)
    run = home.run()
    assert [(c.id, c.result) for c in run.turns[0].tool_calls] == [("call_a", "Revenue 2025: $412.0M"), ("call_b", "6")]
    assert run.run.turns == 2


@APIS
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_retries_are_attempts_of_one_turn(home, api, stream):
    errors = [{"kind": "rate_limit"}, {"kind": "server", "headers": {"retry-after-ms": "20"}}]
    with FakeLLM({"a": Scenario([Step(text="at last", errors=errors)])}) as server:
        loop(api, client_of(server), stream)
    (turn,) = home.run().turns
    assert [(a.status, a.error_type) for a in turn.attempts] == [
        (429, "rate_limit_exceeded"), (500, "server_error"), (200, None)
    ]  # fmt: skip
    assert turn.attempts[1].wait_ms >= 15
    assert (turn.status, turn.text, turn.error) == ("ok", "at last", None)


@APIS
@pytest.mark.parametrize(
    ("kind", "raised"), [("bad_request", openai.BadRequestError), ("auth", openai.AuthenticationError)]
)
def test_a_call_that_fails_for_good_is_a_turn_with_an_error(home, api, kind, raised):
    with (
        FakeLLM({"a": Scenario([Step(errors=[{"kind": kind, "message": "no such thing"}])])}) as server,
        pytest.raises(raised),
    ):
        loop(api, client_of(server))
    run = home.run()
    assert (run.status, run.turns[0].status, run.turns[0].error) == ("failed", "error", "no such thing")


@APIS
def test_a_server_that_cannot_be_reached_is_recorded_with_its_attempts(home, api):
    with (
        FakeLLM({"a": Scenario([Step(text="x", errors=[{"disconnect": True}])])}) as server,
        pytest.raises(openai.APIConnectionError),
    ):
        loop(api, client_of(server, max_retries=0))
    turn = home.run().turns[0]
    assert (turn.status, [a.error_type for a in turn.attempts]) == ("error", ["RemoteProtocolError"])


@APIS
def test_a_time_out_is_recorded(home, api):
    with (
        FakeLLM({"a": Scenario([Step(text="x", errors=[{"hold": True}])])}) as server,
        pytest.raises(openai.APITimeoutError),
    ):
        loop(api, client_of(server, max_retries=0, timeout=0.2))
    turn = home.run().turns[0]
    assert (turn.status, turn.error_type) == ("error", "ReadTimeout")


@APIS
def test_a_stream_that_is_cut_keeps_what_came_and_says_so(home, api):
    step = Step(text="a longer text in several pieces", errors=[{"cut_stream": 5}])
    with FakeLLM({"a": Scenario([step])}) as server:
        client = client_of(server)
        with pytest.raises(Exception, match=r"incomplete|peer closed|Connection error"):
            for _ in api.create(client, [{"role": "user", "content": QUESTION}], **api.options):
                pass
    turn = home.run().turns[0]
    assert (turn.status, turn.error_type) == ("error", "RemoteProtocolError")
    if api is Chat:
        assert turn.text
        assert "a longer text in several pieces".startswith(turn.text)


@APIS
def test_a_stream_that_is_left_is_abandoned(home, api):
    with FakeLLM({"a": Scenario([Step(text="word " * 100, chunk_delay=0.005)])}) as server:
        stream = api.create(client_of(server), [{"role": "user", "content": QUESTION}], **api.options)
        for _ in zip(range(5), stream, strict=False):
            pass
        stream.close()
    turn = home.run().turns[0]
    assert (turn.status, turn.usage.partial) == ("abandoned", True)


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_a_chain_of_previous_response_ids_gives_the_whole_history_back(home, stream):
    with FakeLLM({"a": Scenario(revenue_steps())}) as server:
        client, fresh, previous, more = client_of(server), [{"role": "user", "content": QUESTION}], None, True
        whole = list(fresh)
        while more:
            options = {"previous_response_id": previous} if previous else {}
            reply = Responses.create(client, fresh, **options, **(Responses.options if stream else {}))
            reply = Responses.streamed(reply) if stream else reply
            items, more = Responses.next(reply)
            fresh, previous = [i for i in items if i.get("type") == "function_call_output"], reply.id
            whole += items
    run = home.run()
    assert (run.status, run.run.turns) == ("completed", 3)
    assert [t.mode for t in run.turns] == ["full", "previous_response", "previous_response"]
    assert [entry.get("expanded_messages") for entry in server.log] == [None, 4, 6]
    assert [len(r.messages) for r in run.requests] == [1, 4, 6]
    outputs = [m["output"] for m in run.requests[-1].messages if m.get("type") == "function_call_output"]
    assert outputs == ["Revenue 2025: $412.0M", "28.84"]
    assert [c.result for t in run.turns for c in t.tool_calls] == outputs


def test_a_plain_string_as_input_and_a_failed_response_are_recorded(home):
    with FakeLLM({"a": Scenario([Step(text="fine")]), "b": Scenario([Step(stop="failed")])}) as server:
        client_of(server).responses.create(model="acme-1", input="just a question")
        client_of(server, "b").responses.create(model="acme-1", input="another one")
    good, bad = home.runs()
    assert good.requests[0].messages == ({"role": "user", "content": "just a question"},)
    assert good.run.title == "just a question"
    assert (good.status, bad.status, bad.turns[0].error) == ("completed", "failed", "fake failure")


@pytest.mark.parametrize(
    ("api", "stop", "status", "reason"),
    [
        (Chat, "length", "limit", "length"),
        (Chat, "content_filter", "completed", "content_filter"),
        (Responses, "max_output_tokens", "limit", "incomplete:max_output_tokens"),
        (Responses, "content_filter", "completed", "incomplete:content_filter"),
    ],
    ids=str,
)
def test_stop_reasons_are_kept_raw_and_told_apart(home, api, stop, status, reason):
    with FakeLLM({"a": Scenario([Step(text="half of i", stop=stop)])}) as server:
        api.create(client_of(server), [{"role": "user", "content": QUESTION}])
    run = home.run()
    assert (run.status, run.reason, run.turns[0].stop_reason) == (status, reason, reason)


@APIS
def test_the_helpers_of_the_sdk_are_recorded_too(home, api):
    with FakeLLM({"a": Scenario([Step(text="one")]), "b": Scenario([Step(text="two")])}) as server:
        messages = [{"role": "user", "content": QUESTION}]
        client = client_of(server).with_options(timeout=60)
        resource = client.chat.completions if api is Chat else client.responses
        key = "messages" if api is Chat else "input"
        raw = resource.with_raw_response.create(model="acme-1", **{key: messages})
        assert raw.parse().id
        client = client_of(server, "b")
        resource = client.chat.completions if api is Chat else client.responses
        if not hasattr(resource, "stream"):
            resource = client.beta.chat.completions
        with resource.stream(model="acme-1", **{key: messages}) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion() if api is Chat else stream.get_final_response()
        assert final.id
    assert [(r.turns[0].text, r.turns[0].status, len(r.turns)) for r in home.runs()] == [
        ("one", "ok", 1), ("two", "ok", 1)
    ]  # fmt: skip


@APIS
def test_a_streaming_response_is_recorded(home, api):
    with FakeLLM({"a": Scenario([Step(text="one")])}) as server:
        client = client_of(server)
        resource = client.chat.completions if api is Chat else client.responses
        key = "messages" if api is Chat else "input"
        messages = [{"role": "user", "content": QUESTION}]
        with resource.with_streaming_response.create(model="acme-1", **{key: messages}) as reply:
            assert b"".join(reply.iter_bytes())
    assert home.run().turns[0].text == "one"


def test_reasoning_is_kept_and_items_come_back_as_they_were(home):
    steps = [Step(thinking="a thought", calls=[Call("search", {"q": "x"}, "call_1")]), Step(text="done")]
    with FakeLLM({"a": Scenario(steps)}) as server:
        client, messages, more = client_of(server), [{"role": "user", "content": QUESTION}], True
        while more:
            reply = Responses.create(client, messages, reasoning={"effort": "low"}, store=False)
            fresh, more = Responses.next(reply)
            messages += fresh
    run = home.run()
    assert run.turns[0].thinking == "a thought"
    assert run.requests[1].messages[1]["encrypted_content"] == "ZW5j"
    assert run.requests[1].params["reasoning"] == {"effort": "low"}


def test_two_async_loops_at_once_are_two_runs(home):
    with FakeLLM({n: Scenario(revenue_steps(chunk_delay=0.002)) for n in "ab"}) as server:

        async def both():
            clients = [client_of(server, n, kind=openai.AsyncOpenAI) for n in "ab"]

            async def one(client, name):
                with looptape.run(name):
                    await loop_async(Chat, client, stream=True)

            await asyncio.gather(*(one(c, n) for c, n in zip(clients, "ab", strict=True)))

        asyncio.run(both())
    assert sorted((r.name, r.status, r.run.turns, r.run.tool_calls) for r in home.runs()) == [
        ("a", "completed", 3, 2), ("b", "completed", 3, 2)
    ]  # fmt: skip


@APIS
def test_no_file_holds_the_key(home, api):
    with FakeLLM({"a": Scenario([Step(text=f"your key is {KEY}")])}) as server:
        api.create(client_of(server), [{"role": "user", "content": f"my key is {KEY}"}], **api.options)
    home.runs()
    files = [f for f in home.path.rglob("*") if f.is_file()]
    assert files
    assert [f.name for f in files if KEY.encode() in f.read_bytes()] == []


def test_azure_clients_are_recorded(home):
    with FakeLLM({"a": Scenario([Step(text="hello from azure")])}) as server:
        client = looptape.wrap(
            openai.AzureOpenAI(
                api_key=KEY, api_version="2024-10-21", azure_endpoint=server.url("a"), azure_deployment="acme"
            )
        )
        client.chat.completions.create(model="acme-1", messages=[{"role": "user", "content": QUESTION}])
    assert home.run().turns[0].text == "hello from azure"


def test_a_client_of_the_users_own_http_library_is_recorded(home):
    """openai takes the client of either library where its version does."""
    import httpx

    with FakeLLM({"a": Scenario([Step(text="own client")])}) as server:
        try:
            client = client_of(server, http_client=httpx.Client())
        except TypeError as refused:
            pytest.skip(f"openai {openai.__version__} refuses an httpx.Client: {refused}")
        Chat.create(client, [{"role": "user", "content": QUESTION}])
    assert home.run().turns[0].text == "own client"
