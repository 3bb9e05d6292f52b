"""The fake server keeps its promises, since every recording test leans on it."""

import json
import threading
import urllib.request

import pytest

from fakellm import Call, FakeLLM, Scenario, Step
from wire import post

MESSAGES, CHAT, RESPONSES = "/v1/messages", "/v1/chat/completions", "/v1/responses"
ASK = {"model": "acme", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def serve(*steps, **options):
    return FakeLLM({"one": Scenario(list(steps))}, **options)


@pytest.mark.parametrize("path", [MESSAGES, CHAT, RESPONSES])
@pytest.mark.parametrize("stream", [False, True])
def test_counted_ids_make_two_recordings_equal_byte_for_byte(path, stream):
    def record():
        with serve(Step("a", calls=[Call("f", {"x": 1})]), ids="counter") as server:
            status, headers, text = post(server.url("one") + path, {**ASK, "stream": stream})
        return status, sorted(headers.items()), text

    assert record() == record()


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_is_zipped_when_asked(stream):
    with serve(Step("hello", gzip=True)) as server:
        _, headers, text = post(server.url("one") + MESSAGES, {**ASK, "stream": stream})
    assert headers["content-encoding"] == "gzip"
    assert "hello" in text


def test_a_stream_pauses_until_its_gate_opens():
    step = Step("hello", pause_after=2, gate=threading.Event())
    with serve(step) as server:
        request = urllib.request.Request(server.url("one") + MESSAGES, json.dumps({**ASK, "stream": True}).encode())
        with urllib.request.urlopen(request, timeout=60) as reply:
            assert step.reached.wait(60)
            early = reply.read1()
            assert b"message_start" in early
            assert b"hello" not in early
            step.gate.set()
            assert b"message_stop" in reply.read()


def test_a_raw_stream_is_sent_as_it_is():
    raw = ': comment\n\nevent: error\ndata: {"type": "error"}\n\nevent: torn\ndata: {"ty'
    with serve(Step(raw_sse=raw)) as server:
        _, _, text = post(server.url("one") + MESSAGES, {**ASK, "stream": True})
    assert text == raw


def test_errors_come_first_and_cost_no_step():
    with serve(Step("ok", errors=[{"kind": "overloaded"}])) as server:
        seen = [post(server.url("one") + MESSAGES, ASK)[0] for _ in range(2)]
        assert [(e["status"], e["step"]) for e in server.log] == [(529, 0), (200, 0)]
    assert seen == [529, 200]


def test_a_response_continues_what_the_server_holds():
    with serve(Step(calls=[Call("f", {}, "call_1")]), Step("done")) as server:
        url = server.url("one") + RESPONSES
        first = json.loads(post(url, {"model": "acme", "input": "hi"})[2])
        output = {"type": "function_call_output", "call_id": "call_1", "output": "7"}
        more = {"model": "acme", "input": [output], "previous_response_id": first["id"]}
        assert post(url, more)[0] == 200
        assert server.log[-1]["expanded_messages"] == 3
        assert post(url, {**more, "previous_response_id": "resp_unknown"})[0] == 404
        assert post(url, {"model": "acme", "input": [output]})[0] == 400


@pytest.mark.parametrize("stop", ["pause_turn", "refusal", "model_context_window_exceeded", "stop_sequence"])
def test_any_stop_reason_can_be_asked_for(stop):
    with serve(Step("x", stop=stop)) as server:
        assert json.loads(post(server.url("one") + MESSAGES, ASK)[2])["stop_reason"] == stop


def test_calls_without_results_are_refused_as_the_real_api_does():
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    messages = [{"role": "assistant", "content": [call]}, {"role": "user", "content": "well?"}]
    with serve(Step("x")) as server:
        status, _, text = post(server.url("one") + MESSAGES, {**ASK, "messages": messages})
    assert status == 400
    assert "toolu_1" in text
