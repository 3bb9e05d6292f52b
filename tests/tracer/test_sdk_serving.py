"""Recorded answers through the real SDKs: whatever way a program calls them, it gets again what it got."""

import asyncio
import inspect
import json
import time
import types

import anthropic
import openai
import pytest

import looptape
from fakellm import Call, FakeLLM, Scenario, Step
from looptape.tracer.errors import LooptapeStop
from recorded import recording
from standing_in import DEAD, Miss, StandIn, installed

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
KEY = "sk-ant-" + "test-0123456789"
USAGE = {"input": 100, "output": 20, "cache_read": 1000, "cache_write": 200, "reasoning": 7}
ASK = {"model": "acme-large-1", "max_tokens": 1024, "messages": [{"role": "user", "content": "Grüße?"}]}
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
CHAT = {"model": "acme-large-1", "messages": [{"role": "user", "content": "Grüße?"}]}
RESPONSES = {"model": "acme-large-1", "input": "Grüße?"}


def rich_step(**more):
    """Everything that a stream can carry: thinking, text beyond ASCII, two calls with nested arguments."""
    calls = [
        Call("search", {"q": "Umsatz – 2025", "deep": {"a": [1, 2.5, None]}}, "toolu_1"),
        Call("now", {}, "toolu_2"),
    ]
    return Step(thinking="Let me see.", text="Grüße! " * 30, calls=calls, usage=USAGE, **more)


class Clients:
    """Recorded clients of a server, made when they are used."""

    def __init__(self, url):
        self.url = url

    def _made(self, kind, path=""):
        return looptape.wrap(kind(api_key=KEY, base_url=self.url + path))

    @property
    def anthropic(self):
        return self._made(anthropic.Anthropic)

    @property
    def async_anthropic(self):
        return self._made(anthropic.AsyncAnthropic)

    @property
    def openai(self):
        return self._made(openai.OpenAI, "/v1")

    @property
    def async_openai(self):
        return self._made(openai.AsyncOpenAI, "/v1")


def twice(tmp_path, steps, program):
    """Runs a program against the server, then against its recording: both outcomes, the stand-in, the second home."""
    with FakeLLM({"x": Scenario(steps)}) as server, recording(tmp_path / "first") as home:
        told = program(Clients(server.url("x")))
        home.end()
        records = home.records()
    who = StandIn(records)
    with recording(tmp_path / "again") as home, installed(who):
        again = program(Clients(DEAD))
        home.end()
    return told, again, who, home


def events_of(stream):
    return [e.to_dict() if hasattr(e, "to_dict") else repr(e) for e in stream]


def message_of(message):
    """Without the keys that hold nothing: the streaming helper sets some of them itself."""
    return {k: v for k, v in message.to_dict().items() if v is not None}


async def collect(events):
    return [e.to_dict() async for e in events]


def sync_stream(clients):
    with clients.anthropic.messages.stream(**ASK, **THINKS) as events:
        text = list(events.text_stream)
        return text, message_of(events.get_final_message())


def sync_stream_true(clients):
    return events_of(clients.anthropic.messages.create(**ASK, **THINKS, stream=True))


def sync_raw(clients):
    raw = clients.anthropic.messages.with_raw_response.create(**ASK, **THINKS, stream=True)
    return raw.status_code, raw.headers["request-id"], events_of(raw.parse())


def sync_streaming(clients):
    with clients.anthropic.messages.with_streaming_response.create(**ASK, **THINKS, stream=True) as raw:
        return raw.headers["content-type"], list(raw.iter_lines())


def sync_plain(clients):
    raw = clients.anthropic.messages.with_raw_response.create(**ASK, **THINKS)
    return raw.headers["request-id"], message_of(raw.parse())


def async_stream(clients):
    async def go():
        async with clients.async_anthropic.messages.stream(**ASK, **THINKS) as events:
            text = [t async for t in events.text_stream]
            return text, message_of(await events.get_final_message())

    return asyncio.run(go())


def async_stream_true(clients):
    async def go():
        return await collect(await clients.async_anthropic.messages.create(**ASK, **THINKS, stream=True))

    return asyncio.run(go())


def async_raw(clients):
    async def go():
        raw = await clients.async_anthropic.messages.with_raw_response.create(**ASK, **THINKS, stream=True)
        parsed = raw.parse()
        return raw.headers["request-id"], await collect(await parsed if inspect.isawaitable(parsed) else parsed)

    return asyncio.run(go())


def async_streaming(clients):
    async def go():
        async with clients.async_anthropic.messages.with_streaming_response.create(**ASK, **THINKS, stream=True) as raw:
            return raw.headers["content-type"], [line async for line in raw.iter_lines()]

    return asyncio.run(go())


def async_plain(clients):
    async def go():
        return message_of(await clients.async_anthropic.messages.create(**ASK, **THINKS))

    return asyncio.run(go())


def chat_plain(clients):
    return clients.openai.chat.completions.create(**CHAT).to_dict()


def chat_stream(clients):
    return events_of(
        clients.openai.chat.completions.create(**CHAT, stream=True, stream_options={"include_usage": True})
    )


def chat_async_stream(clients):
    async def go():
        return await collect(await clients.async_openai.chat.completions.create(**CHAT, stream=True))

    return asyncio.run(go())


def responses_plain(clients):
    return clients.openai.responses.create(**RESPONSES).to_dict()


def responses_stream(clients):
    with clients.openai.responses.stream(**RESPONSES) as events:
        return [e.type for e in events], events.get_final_response().to_dict()


def responses_async(clients):
    async def go():
        return await collect(await clients.async_openai.responses.create(**RESPONSES, stream=True))

    return asyncio.run(go())


WAYS = [
    sync_stream, sync_stream_true, sync_raw, sync_streaming, async_stream, async_stream_true, async_raw,
    async_streaming, sync_plain, async_plain, chat_plain, chat_stream, chat_async_stream, responses_plain,
    responses_stream, responses_async,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda w: w.__name__)
def test_every_way_of_calling_gets_the_same_again(tmp_path, way):
    told, again, who, home = twice(tmp_path, [rich_step()], way)
    assert again == told
    assert len(who.asked) == 1
    (turn,) = home.run().turns
    assert (turn.status, turn.inherited, "replayed" in turn.flags) == ("ok", True, True)


@pytest.mark.parametrize(("recorded", "asked"), [(sync_plain, sync_stream), (sync_stream, sync_plain)])
def test_an_anthropic_answer_is_given_as_a_stream_or_whole_whatever_it_was(tmp_path, recorded, asked):
    """The final message is the same, and so are its texts."""
    other(tmp_path, recorded, asked, lambda told: told[1])


@pytest.mark.parametrize(
    ("recorded", "asked"), [(responses_plain, responses_stream), (responses_stream, responses_plain)]
)
def test_a_response_is_given_as_a_stream_or_whole_whatever_it_was(tmp_path, recorded, asked):
    other(tmp_path, recorded, asked, lambda told: unparsed(told[1] if isinstance(told, tuple) else told))


def unparsed(value):
    """Without what the streaming helper adds to a response."""
    if isinstance(value, dict):
        return {k: unparsed(v) for k, v in value.items() if k not in ("parsed", "parsed_arguments")}
    return [unparsed(v) for v in value] if isinstance(value, list) else value


def chat_helper(clients):
    client = clients.openai
    helper = getattr(client.chat.completions, "stream", None) or client.beta.chat.completions.stream
    with helper(**CHAT, stream_options={"include_usage": True}) as events:
        for _event in events:
            pass
        return events.get_final_completion().to_dict()


@pytest.mark.parametrize(("recorded", "asked"), [(chat_plain, chat_helper), (chat_helper, chat_plain)])
def test_a_completion_is_given_as_a_stream_or_whole_whatever_it_was(tmp_path, recorded, asked):
    def plain(told):
        """Without what the helper adds (what it parsed) and what only streams have (a call's index)."""
        return {
            **told,
            "choices": [{**c, "message": bare(c["message"]), "logprobs": None} for c in told["choices"]],
        }

    def bare(message):
        calls = [
            {
                **{k: v for k, v in call.items() if k != "index"},
                "function": {k: call["function"][k] for k in ("name", "arguments")},
            }
            for call in message.get("tool_calls") or []
        ]
        return {k: v for k, v in message.items() if k != "parsed" and v is not None} | {"tool_calls": calls}

    other(tmp_path, recorded, asked, plain)


def other(tmp_path, recorded, asked, answer):
    """One way records, another way is served."""
    with FakeLLM({"x": Scenario([rich_step()])}) as server, recording(tmp_path / "first") as home:
        told = recorded(Clients(server.url("x")))
        home.end()
        records = home.records()
    with recording(tmp_path / "again"), installed(StandIn(records)):
        again = asked(Clients(DEAD))
    assert answer(again) == answer(told)


@pytest.fixture
def waits(monkeypatch):
    """The seconds that the SDKs want to wait before a retry, one after the other; nobody really waits."""
    found = []

    async def sleep_async(seconds):
        found.append(seconds)

    for base in (anthropic._base_client, openai._base_client):  # their own names alone: others sleep as well
        monkeypatch.setattr(base, "time", types.SimpleNamespace(**{**vars(time), "sleep": found.append}))
        monkeypatch.setattr(base, "anyio", types.SimpleNamespace(**{**vars(base.anyio), "sleep": sleep_async}))
    return found


@pytest.mark.parametrize("way", [sync_plain, sync_stream, async_plain, async_stream, chat_plain, chat_stream])
def test_retries_are_replayed_with_their_errors_and_without_their_waits(tmp_path, waits, way):
    errors = [{"kind": "rate_limit", "headers": {"retry-after-ms": "1000"}}, {"kind": "overloaded"}]
    told, again, who, home = twice(tmp_path, [rich_step(errors=errors)], way)
    assert again == told
    assert [a.attempt for a in who.asked] == [1, 2, 3]
    (turn,) = home.run().turns
    assert [a.status for a in turn.attempts] == [429, 529, 200]
    assert all("message" in json.loads(a.body)["error"] for a in turn.attempts[:2])
    assert waits[:2] == [1.0, 0.02]
    assert (len(waits), sum(waits[2:]) <= 0.002) == (4, True)


@pytest.mark.parametrize("way", [sync_plain, async_plain, chat_plain, responses_plain])
def test_lost_connections_are_retried_at_once(tmp_path, waits, way):
    told, again, who, home = twice(tmp_path, [rich_step(errors=[{"disconnect": True}, {"disconnect": True}])], way)
    assert again == told
    assert len(who.asked) == 3
    (turn,) = home.run().turns
    recorded = [a.error_type for a in who.turns[0].attempts]
    assert [a.error_type for a in turn.attempts] == recorded
    assert recorded[0] is not None
    assert all(w > 0.3 for w in waits[:2])
    assert waits[2:] == [0.0, 0.0]


def failing(call, kinds):
    """What a program sees of a failure."""

    def way(clients):
        try:
            call(clients)
        except kinds as error:
            answer = getattr(error, "response", None)
            return type(error).__name__, str(error), getattr(error, "body", None), answer and answer.status_code
        raise AssertionError("it worked")

    return way


@pytest.mark.parametrize("way", [sync_plain, sync_stream, async_stream])
@pytest.mark.parametrize("kind", ["bad_request", "server"])
def test_a_refusal_is_raised_again_as_it_was(tmp_path, way, kind):
    told, again, *_ = twice(tmp_path, [Step(errors=[{"kind": kind}] * 9)], failing(way, anthropic.APIStatusError))
    assert again == told


@pytest.mark.parametrize("way", [chat_plain, responses_stream])
def test_a_refusal_of_openai_is_raised_again_as_it_was(tmp_path, way):
    told, again, *_ = twice(tmp_path, [Step(errors=[{"kind": "too_long"}])], failing(way, openai.APIStatusError))
    assert again == told


@pytest.mark.parametrize("way", [sync_stream, sync_stream_true, async_stream])
@pytest.mark.parametrize("error", [{"cut_stream": 3}, {"sse_error": True}], ids=lambda e: next(iter(e)))
def test_a_stream_that_broke_breaks_at_the_same_place_with_the_same_exception(tmp_path, way, error):
    told, again, who, home = twice(tmp_path, [rich_step(errors=[error])], failing(way, Exception))
    assert again == told
    (turn,) = home.run().turns
    assert (turn.status, turn.error_type) == ("error", who.turns[0].attempts[0].error_type)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_closing_early_ends_the_turn_as_it_did(tmp_path, kind):
    def early(clients):
        if kind == "sync":
            with clients.anthropic.messages.stream(**ASK) as events:
                return next(iter(events)).type

        async def go():
            async with clients.async_anthropic.messages.stream(**ASK) as events:
                return (await anext(aiter(events))).type

        return asyncio.run(go())

    told, again, _, home = twice(tmp_path, [rich_step()], early)
    assert again == told
    (turn,) = home.run().turns
    assert turn.inherited


@pytest.mark.parametrize("way", WAYS, ids=lambda w: w.__name__)
def test_a_stop_reaches_the_program_as_it_is_and_is_not_retried(tmp_path, way):
    class Stops(StandIn):
        def __init__(self):
            self.asked, self.runs = [], []

        def opened(self, run):
            pass

        def answer(self, asked):
            self.asked.append(asked)
            raise Miss("turn 1 differs")

    with recording(tmp_path) as home, installed(Stops()) as who:
        with pytest.raises(Miss, match=r"^turn 1 differs$") as raised:
            way(Clients(DEAD))
        run = home.run()
    assert isinstance(raised.value, LooptapeStop)
    assert not isinstance(raised.value, Exception)
    assert len(who.asked) == 1
    assert [(t.status, t.error_type) for t in run.turns] == [("cancelled", "Miss")]


def test_three_calls_at_once_are_given_in_the_order_that_their_holds_say(tmp_path):
    names = ["a", "b", "c"]

    def program(clients):
        aclient = clients.async_anthropic

        async def ask(name, order):
            message = await aclient.messages.create(**{**ASK, "messages": [{"role": "user", "content": name}]})
            order.append(name)
            return message.content[0].text

        async def go():
            order = []
            with looptape.run("three"):
                return await asyncio.gather(*(ask(n, order) for n in names)), order

        return asyncio.run(go())

    with FakeLLM({"x": Scenario([Step(text="same")])}) as server, recording(tmp_path / "first") as home:
        texts, _ = program(Clients(server.url("x")))
        home.end()
        records = home.records()
    who = Ordered(records, ["c", "a", "b"])
    with recording(tmp_path / "again"), installed(who):
        assert program(Clients(DEAD)) == (texts, ["c", "a", "b"])
    assert who.released == ["c", "a", "b"]


class Ordered(StandIn):
    """Gives answers by the question's text, in this order."""

    def __init__(self, records, order):
        super().__init__(records)
        self.order, self.released = list(order), []

    def turn_of(self, asked):
        return self.turns[0]

    def answer(self, asked):
        self.hold = lambda a: Place(self, json.loads(a.raw)["messages"][0]["content"])
        return super().answer(asked)


class Place:
    """A place in an order."""

    def __init__(self, who, name):
        self.who, self.name = who, name

    def wait(self):
        while self.who.order[len(self.who.released)] != self.name:
            time.sleep(0.001)

    async def wait_async(self):
        while self.who.order[len(self.who.released)] != self.name:
            await asyncio.sleep(0)

    def release(self):
        if self.name not in self.who.released:
            self.who.released.append(self.name)
