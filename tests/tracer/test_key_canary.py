"""The API key is in no file below the store, whichever header carried it and whoever repeated it."""

from __future__ import annotations

import json

import httpx2
import pytest

import looptape
import scripted
from acknowledged import every_byte
from fakellm import Call, FakeLLM, Scenario, Step
from looptape.tracer.store import open_store, sync
from recorded import recording

PLAIN = "opaque" + "-canary/key+0123456789"
KEYS = {"as it looks": "sk-" + "ant-" + "canary-0123456789", "without a known look": PLAIN}
HEADERS = ["x-api-key", "authorization", "api-key", "x-goog-api-key", "cf-aig-authorization", "query"]
HELLO = [{"role": "user", "content": "hi"}]


def nowhere(home, key):
    """No file holds the key: not as bytes, not in what a reader puts together."""
    needles = {key, json.dumps(key)[1:-1], key.replace("/", "\\/")}
    journals = every_byte(home.path)
    home.end()
    sync(home.path)
    everything = journals + every_byte(home.path)
    assert b"header" in journals
    assert [n for n in needles if n.encode() in everything] == []
    with open_store(home.path) as store:
        tables = [
            r["table_name"]
            for r in store.rows("select table_name from information_schema.tables where table_schema = 'base'")
        ]
        assert len(tables) > 10
        for table in tables:
            assert not [
                n for n in needles if n in json.dumps(store.rows(f"select * from base.{table}"), default=str)
            ], table
        return [(r.id, [store.wire(r.id, t.number) for t in store.turns(r.id)]) for r in store.runs()]


@pytest.mark.parametrize("key", list(KEYS))
@pytest.mark.parametrize("header", HEADERS)
def test_a_key_in_any_header_or_in_the_query_is_nowhere_even_when_it_is_echoed(tmp_path, header, key):
    secret = KEYS[key]
    headers, url = {}, "http://localhost/v1/messages"
    if header == "query":
        url = str(httpx2.URL(url, params={"beta": "true", "key": secret}))
    else:
        headers[header] = f"Bearer {secret}" if header.endswith("authorization") else secret

    def answer(request):
        content = [
            {"type": "text", "text": f"your key is {secret}"},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"k": secret}},
        ]
        body = {
            "id": f"msg_{secret}",
            "role": "assistant",
            "model": f"m-{secret}",
            "content": content,
            "stop_reason": "tool_use",
        }
        return httpx2.Response(200, json=body, headers={"request-id": f"req-{secret}", "anthropic-ratelimit-x": secret})

    with recording(tmp_path) as home:
        http = looptape.wrap(httpx2.Client(transport=httpx2.MockTransport(answer)))
        body = {"model": f"m-{secret}", "system": secret, "messages": [{"role": "user", "content": f"{secret}!"}]}
        http.post(url, json=body, headers=headers)
        nowhere(home, secret)


@pytest.mark.parametrize("key", list(KEYS))
def test_a_key_that_model_server_tools_and_people_repeat_is_nowhere(tmp_path, key):
    import anthropic

    secret = KEYS[key]
    steps = [
        Step(text=f"streamed {secret} in pieces of nine", calls=[Call("leak", {"path": secret})]),
        Step(text=f"plain {secret}", thinking=f"I think {secret}"),
        Step(errors=[{"kind": "bad_request", "message": f"invalid x-api-key: {secret}"}]),
    ]

    @looptape.tool(name="leak")
    def leak(path):
        raise ValueError(f"cannot open {path}")

    def everybody_repeats_it(client):
        with looptape.run(f"run with {secret}", task=secret, session=secret, tags={"before": secret}) as run:
            with client.messages.stream(model="m", max_tokens=9, messages=HELLO) as stream:
                assert secret in "".join(stream.text_stream)
            with pytest.raises(ValueError, match="cannot open"):
                leak(secret)
            run.tag(key=secret)
            run.outcome(f"pass {secret}", note=f"it used {secret}")
            call = {"id": secret, "name": secret, "arguments": {secret: secret}}
            with run.turn(agent=secret) as turn:
                turn.request([{"role": "user", "content": secret}], model=secret, system=secret, odd=secret)
                turn.response(secret, usage={"output": 1}, tool_calls=[call])
                with turn.tool(call) as tool:
                    tool.result({secret: [secret]})
            client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": f"say {secret}"}])
            client.messages.create(model="m", max_tokens=9, messages=HELLO, metadata={"user_id": secret})

    with FakeLLM({"loop": Scenario(steps)}, strict=False) as server, recording(tmp_path) as home:
        client = looptape.wrap(anthropic.Anthropic(base_url=server.url("loop"), api_key=secret, max_retries=0))
        with pytest.raises(anthropic.BadRequestError):
            everybody_repeats_it(client)
        runs = nowhere(home, secret)
    wires = [w for _, wires in runs for w in wires if w.chunks]
    assert len(wires) == 1
    written = "".join(t for _, t in wires[0].chunks)
    deltas = [json.loads(line[6:]).get("delta", {}) for line in written.splitlines() if line.startswith("data: ")]
    assert "".join(d.get("text", "") for d in deltas).count("[redacted:") == 1
    assert secret not in "".join(d.get("text", "") + d.get("partial_json", "") for d in deltas)


@pytest.mark.parametrize("key", list(KEYS))
def test_the_key_of_an_openai_client_is_nowhere(tmp_path, key):
    import openai

    secret = KEYS[key]
    step = Step(
        text=f"streamed {secret} in pieces", calls=[Call("a", {"x": secret}), Call("b", {"y": f"two {secret}"})]
    )
    with FakeLLM({"chat": Scenario([step])}) as server, recording(tmp_path) as home:
        client = looptape.wrap(openai.OpenAI(base_url=server.url("chat"), api_key=secret, max_retries=0))
        for _ in client.chat.completions.create(model="m", stream=True, messages=HELLO):
            pass
        with client.responses.stream(model="m", input="hi") as stream:
            for _ in stream:
                pass
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": secret}])
        nowhere(home, secret)


def test_a_key_that_is_cut_off_with_its_stream_or_its_connection_is_nowhere(tmp_path):
    import anthropic

    secret = KEYS["without a known look"]
    errors = [{"cut_stream": 6}, {"disconnect": True}]
    with (
        FakeLLM({"loop": Scenario([Step(text=f"{secret} again", errors=errors)])}) as server,
        recording(tmp_path) as home,
    ):
        client = looptape.wrap(anthropic.Anthropic(base_url=server.url("loop"), api_key=secret, max_retries=0))
        for _ in range(2):
            with pytest.raises(Exception):  # noqa: B017, PT011, SIM117
                with client.messages.stream(model="m", max_tokens=9, messages=HELLO) as stream:
                    list(stream)
        nowhere(home, secret)


def test_a_key_given_to_a_client_is_known_before_its_first_request(tmp_path):
    with recording(tmp_path) as home:
        looptape.wrap(scripted.anthropic_client(scripted.loop_answer(0)))
        with looptape.run("early", tags={"key": "sk-" + "ant-" + "scripted-0123456789"}):
            pass
        assert b"scripted-0123456789" not in every_byte(home.path)
