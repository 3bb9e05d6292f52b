"""Who stands in for model and tools: what is asked of them, what they give, and what never happens behind their back."""

import asyncio
import gc
import json
import threading
import time
import types
from concurrent.futures import Future, ThreadPoolExecutor

import anthropic
import httpx2
import pytest

import looptape
from fakellm import Call, FakeLLM, Scenario, Step
from looptape.replay.player import tape_runs
from looptape.tracer import substitute
from looptape.tracer.errors import LooptapeStop
from looptape.tracer.served import NotServed
from looptape.tracer.store import open_store
from looptape.tracer.store.export import records_of
from looptape.tracer.substitute import Reply, ReplyError, ToolReply
from recorded import recording
from standing_in import DEAD, Miss, StandIn, installed

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
ASK = {"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": [{"role": "user", "content": "How far?"}]}
ANSWER = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "Far."}], "usage": {"input_tokens": 3, "output_tokens": 2},
}  # fmt: skip
WHOLE = (json.dumps(ANSWER).encode(),)
HEADERS = (("content-type", "application/json"), ("content-encoding", "gzip"), ("request-id", "req_1"))

WHOLE_REPLY = Reply(200, HEADERS, WHOLE)


class Giving:
    """Gives one reply to every model call and one to every tool call."""

    def __init__(self, reply=WHOLE_REPLY, tool=None):
        self.reply, self.given = reply, tool
        self.asked, self.tools = [], []

    def prepare(self, provider, raw):
        return raw

    def opened(self, run):
        pass

    def answer(self, asked):
        self.asked.append(asked)
        if isinstance(self.reply, BaseException):
            raise self.reply
        return self.reply

    def tool(self, asked):
        self.tools.append(asked)
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given


class Counting:
    """A hold that counts."""

    def __init__(self):
        self.waits = self.releases = 0

    def wait(self):
        self.waits += 1

    async def wait_async(self):
        self.waits += 1

    def release(self):
        self.releases += 1


def client(url=DEAD, **more):
    return looptape.wrap(anthropic.Anthropic(api_key="sk-ant-" + "test-0123456789", base_url=url, **more))


# -- what is asked --------------------------------------------------------------------------------


def test_a_request_is_asked_with_all_its_hashes_and_only_its_new_texts(tmp_path):
    secret = "sk-ant-" + "api03-" + "a" * 40
    messages = [{"role": "user", "content": f"key {secret}"}]
    with recording(tmp_path) as home, installed(Giving()) as who:
        for _ in range(2):
            client().messages.create(**{**ASK, "messages": messages, "system": f"Be brief. {secret}"})
            messages += [{"role": "assistant", "content": "Far."}, {"role": "user", "content": "And back?"}]
        starts = [r for r in home.records() if r["kind"] == "turn_start"]
        blobs = {r["hash"]: r["text"] for r in home.records() if r["kind"] == "blob"}
    first, second = who.asked
    assert [len(first.hashes), len(second.hashes)] == [1, 3]
    assert second.hashes[:1] == first.hashes
    assert [len(first.fresh), len(second.fresh)] == [1, 2]
    assert list(first.hashes) == starts[0]["append"]
    assert {**first.fresh, **second.fresh}.items() <= blobs.items()
    assert "Be brief. [redacted:" in first.parts[0]
    assert second.parts == first.parts
    assert second.part_hashes == (starts[1]["system"], None, starts[1]["params"])
    assert secret not in repr((first.fresh, first.parts))
    assert (first.model, first.stream, first.mode, first.attempt) == ("claude-sonnet-4-5", False, "full", 1)
    assert json.loads(first.raw)["messages"][0]["content"] == f"key {secret}"


def test_without_anybody_standing_in_nothing_is_kept_for_one(tmp_path):
    with FakeLLM({"x": Scenario([Step(text="Hi")])}) as server, recording(tmp_path) as home:
        client(server.url("x")).messages.create(**ASK)
        run = next(iter(home.recorder._runs.values()))
        assert (run.last.wording, run.last.served) == (None, None)
        (end,) = [r for r in home.records() if r["kind"] == "turn_end"]
    assert "inherited" not in end


def test_a_request_is_recorded_and_sent_as_it_was_prepared(tmp_path):
    class Other(Giving):
        def prepare(self, provider, raw):
            return raw.replace(b"claude-sonnet-4-5", b"claude-haiku-4-5-longer-name")

        def answer(self, asked):
            return None

    with FakeLLM({"x": Scenario([Step(text="Hi")])}) as server, recording(tmp_path) as home, installed(Other()):
        answer = client(server.url("x")).messages.create(**ASK)
        (sent,) = server.log
        (turn,) = home.run().turns
    assert answer.content[0].text == "Hi"
    assert sent["body"] == {**ASK, "model": "claude-haiku-4-5-longer-name"}
    assert (turn.request_model, turn.inherited, turn.flags) == ("claude-haiku-4-5-longer-name", False, ())


def test_other_requests_pass(tmp_path):
    with FakeLLM({"x": Scenario([])}) as server, recording(tmp_path), installed(Giving()) as who:
        assert client(server.url("x")).messages.count_tokens(messages=ASK["messages"], model="c").input_tokens == 42
    assert who.asked == []


def test_a_model_call_that_cannot_be_read_is_not_sent(tmp_path):
    def streamed():
        yield b"{}"

    with FakeLLM({"x": Scenario([Step(text="Hi")])}) as server, recording(tmp_path), installed(Giving()):
        http = looptape.wrap(httpx2.Client())
        for content in (b"no json", streamed()):
            with pytest.raises(NotServed, match="Nothing was sent"):
                http.post(f"{server.url('x')}/v1/messages", content=content)
        assert server.log == []


def test_with_recording_off_a_model_call_is_not_sent_either(tmp_path, monkeypatch):
    with FakeLLM({"x": Scenario([Step(text="Hi")])}) as server, recording(tmp_path), installed(Giving()):
        llm = client(server.url("x"))
        monkeypatch.setenv("LOOPTAPE", "off")
        with pytest.raises(NotServed, match="recording is off"):
            llm.messages.create(**ASK)
        assert server.log == []


# -- what is given --------------------------------------------------------------------------------


def test_an_answer_comes_with_its_headers_as_a_response_of_the_clients_own_library(tmp_path):
    with recording(tmp_path), installed(Giving()):
        raw = client().messages.with_raw_response.create(**ASK)
    assert raw.headers["request-id"] == "req_1"
    assert "content-encoding" not in raw.headers
    assert type(raw.http_response).__module__.startswith("httpx")
    assert raw.http_response.request.url.path == "/v1/messages"
    assert raw.parse().content[0].text == "Far."


def test_a_replayed_run_is_listed_with_its_turns_and_costs_nothing_again(tmp_path):
    with FakeLLM({"x": Scenario([Step(text="Hi", usage={"input": 9})])}) as server, recording(tmp_path) as home:
        client(server.url("x")).messages.create(**ASK)
        records = home.records()
        first = home.run()
    with recording(tmp_path / "again") as home, installed(StandIn(records)):
        client().messages.create(**ASK)
        again = home.run()
    assert first.cost_usd > 0
    assert (again.run.turns, again.cost_usd, again.usage.input) == (1, None, None)
    assert (again.source, again.parent.run, again.parent.kind, again.status) == (
        "replay",
        first.id,
        "fork",
        "completed",
    )
    (turn,) = again.turns
    assert (turn.inherited, turn.usage.input, turn.text) == (True, 9, "Hi")
    assert "replayed" in turn.flags


@pytest.mark.parametrize(
    ("kind", "raised"),
    [("ReadTimeout", anthropic.APITimeoutError), ("ConnectError", anthropic.APIConnectionError),
     ("SomethingOdd", anthropic.APIConnectionError), ("ConnectionResetError", anthropic.APIConnectionError)],
)  # fmt: skip
def test_a_failed_connection_fails_again_by_the_name_of_its_exception(tmp_path, kind, raised):
    with recording(tmp_path) as home, installed(Giving(Reply(None, error=ReplyError(kind, "it broke")))) as who:
        with pytest.raises(raised) as seen:
            client(max_retries=1).messages.create(**ASK)
        (turn,) = home.run().turns
    cause = seen.value.__cause__
    known = kind if kind != "SomethingOdd" else "TransportError"
    assert (type(cause).__name__, str(cause)) == (known, "it broke" if known == kind else "SomethingOdd: it broke")
    assert len(who.asked) == len(turn.attempts) == 2


def test_the_sdk_waits_as_always_after_a_failure_that_was_not_served(tmp_path, monkeypatch):
    import anthropic._base_client as base

    waits = []
    # the SDK's own name alone: other threads of this process sleep as well
    monkeypatch.setattr(base, "time", types.SimpleNamespace(**{**vars(time), "sleep": waits.append}))
    served = Giving(Reply(None, error=ReplyError("ReadTimeout", "late")))
    with recording(tmp_path), installed(served):
        with pytest.raises(anthropic.APITimeoutError):
            client(max_retries=2).messages.create(**ASK)
        assert waits == [0.0, 0.0]
        served.reply = None
        with pytest.raises(anthropic.APIConnectionError):
            client(max_retries=2).messages.create(**{**ASK, "max_tokens": 65})
    assert all(w > 0.2 for w in waits[2:])
    assert len(waits) == 4


@pytest.mark.parametrize("end", ["read", "closed", "dropped", "refused", "failed", "cut"])
def test_a_hold_is_waited_for_once_and_let_go_at_the_end(tmp_path, end):
    hold = Counting()
    replies = {
        "refused": Reply(400, HEADERS, (b'{"type":"error","error":{"type":"x","message":"no"}}',), hold=hold),
        "failed": Reply(None, error=ReplyError("ReadError", "gone"), hold=hold),
        "cut": Reply(200, HEADERS, (b"{",), ReplyError("ReadError", "gone"), hold),
    }
    reply = replies.get(end, Reply(200, HEADERS, WHOLE, hold=hold))
    with recording(tmp_path), installed(Giving(reply)):
        http = looptape.wrap(httpx2.Client())
        request = http.build_request("POST", f"{DEAD}/v1/messages", json=ASK)
        try:
            response = http.send(request, stream=True)
            if end not in ("failed", "refused"):
                assert hold.releases == 0
            if end == "closed":
                response.close()
            elif end == "dropped":
                del response
                gc.collect()
            else:
                response.read()
        except httpx2.ReadError:
            assert end in ("failed", "cut")
    assert hold.waits == 1
    assert hold.releases >= 1


def test_a_cancelled_wait_lets_the_next_answer_go(tmp_path):
    class Endless(Counting):
        async def wait_async(self):
            self.waits += 1
            waiting.set()
            await asyncio.Event().wait()

    hold, waiting = Endless(), asyncio.Event()

    async def go():
        llm = looptape.wrap(anthropic.AsyncAnthropic(api_key="k", base_url=DEAD, max_retries=0))
        task = asyncio.create_task(llm.messages.create(**ASK))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with recording(tmp_path), installed(Giving(Reply(200, HEADERS, WHOLE, hold=hold))):
        asyncio.run(go())
    assert (hold.waits, hold.releases) == (1, 1)


# -- what stops -----------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", [ValueError("bad player"), OSError("no file")])
def test_a_substitute_that_breaks_stops_the_program_at_its_first_call(tmp_path, trouble):
    with recording(tmp_path), installed(Giving(trouble)) as who, pytest.raises(LooptapeStop, match=str(trouble)):
        client().messages.create(**ASK)
    assert len(who.asked) == 1


def test_a_stop_comes_out_of_threads_and_of_gather(tmp_path):
    async def together():
        llm = looptape.wrap(anthropic.AsyncAnthropic(api_key="k", base_url=DEAD))
        await asyncio.gather(*(llm.messages.create(**ASK) for _ in range(3)))

    with recording(tmp_path), installed(Giving(Miss("differs"))), ThreadPoolExecutor(3) as pool:
        llm = client()
        for future in [pool.submit(llm.messages.create, **ASK) for _ in range(3)]:
            with pytest.raises(Miss):
                future.result()
        with pytest.raises(Miss):
            asyncio.run(together())


def test_a_run_that_was_stopped_says_so(tmp_path):
    with recording(tmp_path) as home, installed(Giving(Miss("turn 1 differs"))):
        with pytest.raises(Miss), looptape.run("agent"):
            client().messages.create(**ASK)
        run = home.run()
    assert (run.status, run.reason) == ("halted", "Miss: turn 1 differs")


# -- tools ----------------------------------------------------------------------------------------


def ran(*_, **__):
    raise AssertionError("the tool ran")


def plain_tool():
    @looptape.tool
    def search(q):
        ran()

    return lambda: search(q="x")


def coroutine_tool():
    @looptape.tool
    async def search(q):
        ran()

    return lambda: asyncio.run(search(q="x"))


def generator_tool():
    @looptape.tool
    def search(q):
        yield ran()

    return lambda: "".join(search(q="x"))


def async_generator_tool():
    @looptape.tool
    async def search(q):
        yield ran()

    async def all_of():
        return "".join([item async for item in search(q="x")])

    return lambda: asyncio.run(all_of())


def dispatcher():
    @looptape.tools
    def run_tool(name, arguments):
        ran()

    return lambda: run_tool("search", {"q": "x"})


def method():
    class Box:
        @looptape.tool
        def search(self, q):
            ran()

    return lambda: Box().search("x")


TOOLS = [plain_tool, coroutine_tool, generator_tool, async_generator_tool, dispatcher, method]
CALLS = Reply(
    200,
    HEADERS,
    (
        json.dumps(
            {
                **ANSWER,
                "stop_reason": "tool_use",
                "content": [{"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "x"}}],
            }
        ).encode(),
    ),
)


@pytest.mark.parametrize("make", TOOLS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("where", ["context", "thread"])
def test_a_wrapped_tool_is_answered_and_does_not_run(tmp_path, make, where):
    hold = Counting()
    with recording(tmp_path) as home, installed(Giving(CALLS, ToolReply("Revenue: 412", hold=hold))) as who:
        call = make()
        with looptape.run("agent"):
            client().messages.create(**ASK)
            if where == "thread":
                with ThreadPoolExecutor(1) as pool:
                    assert pool.submit(call).result() == "Revenue: 412"
            else:
                assert call() == "Revenue: 412"
        (turn,) = home.run().turns
    (asked,) = who.tools
    assert (asked.name, asked.arguments, asked.turn, asked.call) == ("search", {"q": "x"}, 1, "t1")
    (seen,) = turn.tool_calls
    assert (seen.result, seen.origin, seen.state, seen.timing) == ("Revenue: 412", "recorded", "done", "measured")
    assert (hold.waits, hold.releases) == (1, 1)


@pytest.mark.parametrize("make", TOOLS, ids=lambda m: m.__name__)
def test_a_tool_that_raised_raises_again(tmp_path, make):
    given = ToolReply(error=PermissionError("not yours"), origin="stub")
    with recording(tmp_path) as home, installed(Giving(CALLS, given)):
        call = make()
        with looptape.run("agent"):
            client().messages.create(**ASK)
            with pytest.raises(PermissionError, match="not yours"):
                call()
        (turn,) = home.run().turns
    (seen,) = turn.tool_calls
    assert (seen.is_error, seen.origin, seen.error_type) == (True, "stub", "builtins.PermissionError")
    assert seen.result == "PermissionError: not yours"


@pytest.mark.parametrize("make", TOOLS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("trouble", [Miss("no such call"), ValueError("bad player")], ids=["miss", "broken"])
def test_a_tool_that_cannot_be_answered_stops_the_program_and_does_not_run(tmp_path, make, trouble):
    with recording(tmp_path), installed(Giving(CALLS, trouble)), pytest.raises(LooptapeStop, match=str(trouble)):
        make()()


def test_a_tool_that_is_to_run_runs(tmp_path):
    @looptape.tool
    def search(q):
        return f"live {q}"

    with recording(tmp_path) as home, installed(Giving(CALLS, None)):
        with looptape.run("agent"):
            client().messages.create(**ASK)
            assert search(q="x") == "live x"
        (turn,) = home.run().turns
    assert [(c.origin, c.result) for c in turn.tool_calls] == [("live", "live x")]


def give_coroutine():
    async def later():
        return "late"

    return later()


def give_future():
    future = Future()
    future.set_result("late")
    return future


def give_generator():
    return (part for part in ("la", "te"))


KINDS = {
    "coroutine": (give_coroutine, asyncio.run),
    "future": (give_future, lambda f: f.result(60)),
    "generator": (give_generator, "".join),
}


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("held", [False, True])
def test_a_plain_function_that_gave_its_result_later_gives_it_later_again(tmp_path, kind, held):
    make, resolve = KINDS[kind]
    hold = Counting() if held else None
    served = [False]

    @looptape.tools
    def run_tool(name, arguments):
        if served[0]:
            ran()
        return make()

    with recording(tmp_path / "first") as home, installed(Giving(CALLS, None)), looptape.run("agent"):
        client().messages.create(**ASK)
        assert resolve(run_tool("search", {"q": "x"})) == "late"
        (end,) = [r for r in home.records() if r["kind"] == "call_end"]
    assert end["gave"] == kind
    served[0] = True
    given = ToolReply(end["result"], gave=end["gave"], hold=hold)
    with recording(tmp_path / "again") as home, installed(Giving(CALLS, given)), looptape.run("agent"):
        client().messages.create(**ASK)
        assert resolve(run_tool("search", {"q": "x"})) == "late"
        ends = [r for r in home.records() if r["kind"] == "call_end"]
    assert [(e["result"], e["gave"]) for e in ends] == [("late", kind)]
    assert hold is None or (hold.waits, hold.releases) == (1, 1)


def test_a_future_that_the_program_cancels_while_its_turn_has_not_come_stays_cancelled(tmp_path, monkeypatch):
    go, released, troubles = threading.Event(), threading.Event(), []

    class Later(Counting):
        def wait(self):
            assert go.wait(60)

        def release(self):
            released.set()

    monkeypatch.setattr(threading, "excepthook", troubles.append)
    given = ToolReply("late", gave="future", hold=Later())
    run_tool = looptape.tools(lambda name, arguments: ran())
    with recording(tmp_path) as home, installed(Giving(CALLS, given)), looptape.run("agent"):
        client().messages.create(**ASK)
        before = set(threading.enumerate())
        future = run_tool("search", {"q": "x"})
        waiting = set(threading.enumerate()) - before
        assert future.cancel()
        go.set()
        for thread in waiting:
            thread.join()
        assert [r["result"] for r in home.records() if r["kind"] == "call_end"] == ["late"]
    assert future.cancelled()
    assert released.is_set()
    assert troubles == []


def test_wrapped_tools_are_known_by_name_and_dispatchers_by_number():
    before, _ = substitute.registered()

    @looptape.tool(name="a-tool-of-this-test")
    def search(q):
        return q

    looptape.tools(lambda name, arguments: None)
    names, dispatched = substitute.registered()
    assert names - before == {"a-tool-of-this-test"}
    assert dispatched


# -- what is kept ---------------------------------------------------------------------------------


def test_what_a_replay_needs_survives_the_store_and_a_tape(tmp_path):
    @looptape.tool
    def search(q):
        raise LookupError("nothing there")

    steps = [Step(calls=[Call("search", {"q": "x"}, "t1")], errors=[{"kind": "overloaded", "message": "busy"}])]
    steps.append(Step(text="Nothing."))
    with FakeLLM({"x": Scenario(steps)}) as server, recording(tmp_path) as home, looptape.run("agent"):
        client(server.url("x")).messages.create(**ASK)
        with pytest.raises(LookupError) as raised:
            search(q="x")
        told = {"type": "tool_result", "tool_use_id": "t1", "content": f"LookupError: {raised.value}"}
        asked = {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "x"}}],
        }
        client(server.url("x")).messages.create(
            **{**ASK, "messages": [*ASK["messages"], asked, {"role": "user", "content": [told]}]}
        )
    first = home.run()
    with open_store(home.path) as store:
        records = list(records_of(store, first.id))
    ends = {r["kind"]: r for r in reversed(records) if r["kind"] in ("turn_end", "call_end")}
    assert json.loads(ends["turn_end"]["attempts"][0]["body"])["error"]["message"] == "busy"
    assert "body" not in ends["turn_end"]["attempts"][1]
    assert ends["call_end"]["error_type"] == "builtins.LookupError"
    (call,) = tape_runs.read(records).calls()
    assert (call.error_type, call.error) == ("builtins.LookupError", "nothing there")
    turn = first.turns[0]
    assert (turn.attempts[0].status, "busy" in turn.attempts[0].body) == (529, True)
    assert turn.tool_calls[0].error_type == "builtins.LookupError"


def test_a_secret_in_a_refusal_is_not_kept(tmp_path):
    secret = "sk-ant-" + "api03-" + "b" * 40
    steps = [Step(errors=[{"kind": "bad_request", "message": f"your key {secret} is wrong"}])]
    with FakeLLM({"x": Scenario(steps)}) as server, recording(tmp_path) as home:
        with pytest.raises(anthropic.BadRequestError):
            client(server.url("x")).messages.create(**ASK)
        assert secret not in repr(home.records())
        (end,) = [r for r in home.records() if r["kind"] == "turn_end"]
    assert "[redacted:" in end["attempts"][0]["body"]
