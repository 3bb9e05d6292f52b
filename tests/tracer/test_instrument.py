"""`looptape.instrument()` and `wrap()` beside it: every client of the process, each call once, nothing else touched."""

import importlib
import importlib.util
import json
import subprocess
import sys

import pytest

import looptape
from fakellm import FakeLLM, Scenario, Step
from launched import Launcher
from looptape.tracer import hook, quiet
from recorded import recording

BODY = {"model": "m-1", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
LIBRARIES = [n for n in ("httpx2", "httpx") if importlib.util.find_spec(n) is not None]
PATH = "/v1/messages"


@pytest.fixture
def server():
    with FakeLLM({"a": Scenario([Step(text="hello")])}) as running:
        yield running


@pytest.fixture(params=LIBRARIES)
def library(request):
    """One of the libraries; what `instrument` changed in them is put back afterwards."""
    modules = [importlib.import_module(name) for name in LIBRARIES]
    kinds = [kind for module in modules for kind in (module.HTTPTransport, module.AsyncHTTPTransport)]
    before, finders = [dict(vars(kind)) for kind in kinds], sys.meta_path[:]
    yield importlib.import_module(request.param)
    sys.meta_path[:] = finders
    for kind, attributes in zip(kinds, before, strict=True):
        for name, value in vars(kind).copy().items():
            if name not in attributes:
                delattr(kind, name)
            elif attributes[name] is not value:
                setattr(kind, name, attributes[name])


@pytest.fixture
def home(tmp_path):
    with recording(tmp_path) as running:
        yield running


def test_clients_made_before_and_after_are_recorded(library, home, server):
    before = library.Client()
    looptape.instrument()
    before.post(server.url("a") + PATH, json=BODY)
    library.Client().post(server.url("a") + PATH, json={**BODY, "model": "m-2"})
    library.post(server.url("a") + PATH, json={**BODY, "model": "m-3"})
    assert [(r.run.status, r.models, len(r.turns)) for r in home.runs()] == [
        ("completed", ("m-1",), 1), ("completed", ("m-2",), 1), ("completed", ("m-3",), 1)
    ]  # fmt: skip


def test_async_clients_are_recorded(library, home, server):
    import asyncio

    async def ask():
        async with library.AsyncClient() as client:
            return (await client.post(server.url("a") + PATH, json={**BODY, "stream": True})).text

    looptape.instrument()
    assert "message_stop" in asyncio.run(ask())
    assert home.run().turns[0].text == "hello"


def test_again_and_together_with_wrap_each_call_is_recorded_once(library, home, server):
    looptape.instrument()
    looptape.instrument()
    client = looptape.wrap(looptape.wrap(library.Client()))
    looptape.instrument()
    client.post(server.url("a") + PATH, json=BODY)
    run = home.run()
    assert [len(t.attempts) for t in run.turns] == [1]


def test_one_request_object_sent_twice_is_two_attempts_or_turns_but_never_lost(library, home, server):
    client = looptape.wrap(library.Client())
    request = client.build_request("POST", server.url("a") + PATH, json=BODY)
    assert [client.send(request).status_code for _ in range(2)] == [200, 200]
    assert sum(len(r.turns) for r in home.runs()) == 2


def test_a_derived_transport_of_a_framework_is_recorded(library, home, server):
    class Own(library.HTTPTransport):
        def handle_request(self, request):
            request.headers["x-own"] = "1"
            return super().handle_request(request)

    looptape.instrument()
    library.Client(transport=Own()).post(server.url("a") + PATH, json=BODY)
    assert server.log[0]["headers"]["x-own"] == "1"
    assert len(home.run().turns) == 1


def test_mounted_transports_are_recorded_by_wrap(library, home, server):
    client = looptape.wrap(library.Client(mounts={"http://": library.HTTPTransport(), "all://none.example": None}))
    client.post(server.url("a") + PATH, json=BODY)
    assert len(home.run().turns) == 1


def test_requests_that_are_no_model_calls_pass_untouched(library, home, server):
    looptape.instrument()
    client = looptape.wrap(library.Client())
    kinds = (client.get(server.url("a") + "/v1/models"), client.head(server.url("a") + PATH))
    assert [type(reply.stream).__module__.partition(".")[0] for reply in kinds] == [library.__name__] * 2
    assert client.post(server.url("a") + PATH + "/count_tokens", json=BODY).json()["input_tokens"] == 42
    assert client.get(server.url("a") + PATH).status_code == 200
    assert home.runs() == []


def test_a_body_that_is_streamed_up_is_not_read_by_us(library, home, server):
    sent = []

    def pieces():
        for piece in json.dumps(BODY).partition(":"):
            sent.append(piece)
            yield piece.encode()

    looptape.instrument()
    reply = looptape.wrap(library.Client()).post(server.url("a") + PATH, content=pieces())
    assert reply.json()["content"][0]["text"] == "hello"
    assert len(sent) == 3
    assert home.runs() == []


def test_a_redirected_call_is_one_turn_with_two_attempts(library, home, server):
    def answer(request):
        if request.url.path == "/old/v1/messages":
            return library.Response(307, headers={"location": "/new/v1/messages"})
        return library.Response(200, json={"type": "message", "content": [], "stop_reason": "end_turn"})

    client = looptape.wrap(library.Client(transport=library.MockTransport(answer), follow_redirects=True))
    assert client.post("http://model.test/old/v1/messages", json=BODY).status_code == 200
    assert [a.status for a in home.run().turns[0].attempts] == [307, 200]


def test_an_error_body_that_is_cut_is_cut_for_the_client_too(library, home):
    class Cut(library.SyncByteStream):
        def __iter__(self):
            yield b'{"error": '
            raise library.ReadError("the connection is gone")

    transport = library.MockTransport(lambda request: library.Response(500, stream=Cut()))
    client = looptape.wrap(library.Client(transport=transport))
    with client.stream("POST", "http://model.test/v1/messages", json=BODY) as reply:
        assert reply.status_code == 500
        with pytest.raises(library.ReadError, match="the connection is gone"):
            reply.read()
    turn = home.run().turns[0]
    assert (turn.status, turn.attempts[0].status, turn.attempts[0].error_type) == ("error", 500, "ReadError")


def test_responses_of_a_derived_class_are_recorded(library, home):
    class Own(library.Response):
        pass

    answer = {"type": "message", "content": [{"type": "text", "text": "mine"}], "stop_reason": "end_turn"}
    transport = library.MockTransport(lambda request: Own(200, json=answer))
    reply = looptape.wrap(library.Client(transport=transport)).post("http://model.test/v1/messages", json=BODY)
    assert reply.json() == answer
    assert home.run().turns[0].text == "mine"


def test_trouble_of_ours_does_not_reach_the_client(library, home, server, monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("ours")

    quiet.forget()
    monkeypatch.setattr("looptape.tracer.transport._sync_stream", broken)
    client = looptape.wrap(library.Client())
    assert client.post(server.url("a") + PATH, json=BODY).json()["content"][0]["text"] == "hello"
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_no_client_is_refused_and_off_changes_nothing(library, home, monkeypatch):
    with pytest.raises(TypeError, match=r"not builtins\.dict\. For other loops use `with looptape\.run"):
        looptape.wrap({})
    monkeypatch.setenv("LOOPTAPE", "off")
    client = library.Client()
    transport = client._transport
    assert looptape.wrap(client)._transport is transport
    assert looptape.wrap({}) == {}
    looptape.instrument()
    assert not hasattr(library.HTTPTransport, hook.PATCHED)


@pytest.mark.parametrize("name", LIBRARIES)
def test_before_the_import_of_the_library_it_waits_and_the_module_is_as_ever(name, tmp_path, server):
    here = Launcher(tmp_path, tmp_path / "home", server.url("a"))
    here.write(
        "agent.py",
        "import importlib, importlib.util, inspect, os, sys\n"
        "from looptape.tracer.hook import instrument\ninstrument()\n"
        "assert not {'looptape.tracer.recorder', 'opentelemetry', 'json', 'asyncio'} & set(sys.modules)\n"
        f"assert {name!r} not in sys.modules\nassert importlib.util.find_spec({name!r}).name == {name!r}\n"
        f"import {name} as library\n"
        "assert type(library.__loader__).__name__ == type(library.__spec__.loader).__name__ == 'SourceFileLoader'\n"
        "assert inspect.getsource(library)\n"
        f"library.post(os.environ['ANTHROPIC_BASE_URL'] + {PATH!r}, json={BODY!r})\n",
    )
    subprocess.run([sys.executable, "agent.py"], cwd=tmp_path, env=here.environment(), check=True)
    assert here.recorded() == [("agent", "sdk", "completed", 1)]
