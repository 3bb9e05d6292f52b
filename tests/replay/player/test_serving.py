"""From a recorded attempt to a reply: the form that is asked for, errors in the provider's words, headers that fit."""

import json
from types import SimpleNamespace

import pytest

from looptape.replay.player.recorded import RecordedAttempt
from looptape.replay.player.serving import reply
from looptape.tracer.providers import by_api
from looptape.tracer.streams import TOO_LONG, sse_events

MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
    "stop_sequence": None, "content": [{"type": "text", "text": "Far."}], "usage": {"input_tokens": 3, "output_tokens": 2},
}  # fmt: skip
GEMINI = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Far."}]}, "finishReason": "STOP"}]}
EVENTS = by_api("anthropic.messages").stream(MESSAGE)
CHUNKS = tuple((i, e.decode()) for i, e in enumerate(EVENTS))


def asked(api="anthropic.messages", *, stream=False, url="https://api.example/v1/messages", raw=b"{}"):
    return SimpleNamespace(provider=by_api(api), stream=stream, url=url, raw=raw)


def attempt(api="anthropic.messages", **more):
    return RecordedAttempt(1, api, **{"status": 200, **more})


def text(given):
    return b"".join(given.chunks).decode()


def header(given, name):
    return dict(given.headers).get(name)


def test_a_recorded_stream_comes_in_its_recorded_pieces():
    pieces = ((1, "event: mess"), (2, 'age_start\ndata: {"ü'), (9, '": 1}\n\n'))
    given = reply(attempt(stream=True, chunks=pieces, response=json.dumps(MESSAGE)), asked(stream=True))
    assert [c.decode() for c in given.chunks] == [t for _, t in pieces]
    assert header(given, "content-type") == "text/event-stream; charset=utf-8"
    assert given.error is None


@pytest.mark.parametrize("chunks", [(), ((1, 'data: {"type": "x"}\n\n'), (2, TOO_LONG))], ids=["none", "given up"])
def test_a_stream_whose_pieces_are_not_there_is_made_from_the_answer(chunks):
    given = reply(attempt(chunks=chunks, response=json.dumps(MESSAGE)), asked(stream=True))
    assert by_api("anthropic.messages").assemble(sse_events(text(given))) == (MESSAGE, True)
    assert len(given.chunks) == len(EVENTS)


@pytest.mark.parametrize("response", [json.dumps(MESSAGE), None], ids=["assembled", "only pieces"])
def test_a_recorded_stream_is_given_whole_where_none_is_asked_for(response):
    given = reply(attempt(stream=True, chunks=CHUNKS, response=response), asked())
    assert json.loads(text(given)) == MESSAGE
    assert header(given, "content-type") == "application/json"


def test_gemini_without_server_sent_events_gets_a_list():
    url = "https://g.example/v1beta/models/m:streamGenerateContent"
    given = reply(
        attempt("google.generate_content", response=json.dumps(GEMINI)),
        asked("google.generate_content", stream=True, url=url),
    )
    assert json.loads(text(given)) == [GEMINI]
    given = reply(
        attempt("google.generate_content", response=json.dumps(GEMINI)),
        asked("google.generate_content", stream=True, url=f"{url}?alt=sse"),
    )
    assert text(given) == f"data: {json.dumps(GEMINI)}\n\n"


def test_an_openai_stream_tells_its_usage_only_when_asked_for():
    body = {"id": "c", "object": "chat.completion", "choices": [], "usage": {"prompt_tokens": 1}}
    recorded = attempt("openai.chat", response=json.dumps(body))
    for options, told in (({}, False), ({"stream_options": {"include_usage": True}}, True)):
        given = reply(recorded, asked("openai.chat", stream=True, raw=json.dumps(options).encode()))
        assert ("prompt_tokens" in text(given)) is told


@pytest.mark.parametrize("stream", [False, True])
def test_a_failed_connection_is_no_answer(stream):
    given = reply(attempt(status=None, error="no route", error_type="ConnectError"), asked(stream=stream))
    assert (given.status, given.error.kind, given.error.message) == (None, "ConnectError", "no route")


def test_a_cut_stream_is_cut_again_and_half_an_answer_is_none():
    recorded = attempt(stream=True, chunks=CHUNKS[:2], error="gone", error_type="ReadError", partial=True)
    given = reply(recorded, asked(stream=True))
    assert (len(given.chunks), given.error.kind) == (2, "ReadError")
    given = reply(recorded, asked())
    assert (given.status, given.error.kind) == (None, "ReadError")


@pytest.mark.parametrize("kind", ["overloaded_error", "incomplete_stream", "UNAVAILABLE"])
def test_a_stream_that_ended_with_the_providers_own_error_raises_nothing_of_ours(kind):
    recorded = attempt(stream=True, chunks=CHUNKS[:2], error="busy", error_type=kind, partial=True)
    assert reply(recorded, asked(stream=True)).error is None


def test_reading_on_where_the_recorded_program_stopped_is_an_error_that_says_so():
    given = reply(attempt(stream=True, chunks=CHUNKS[:2], partial=True), asked(stream=True))
    assert "the recording ends here" in given.error.message


def test_a_refusal_says_what_it_said_and_asks_for_no_wait():
    headers = (("Retry-After", "20"), ("retry-after-ms", "900"), ("content-encoding", "gzip"), ("request-id", "r"))
    given = reply(attempt(status=429, headers=headers, body='{"error": 1}'), asked(stream=True))
    assert (given.status, text(given)) == (429, '{"error": 1}')
    assert dict(given.headers) == {"content-type": "application/json", "request-id": "r", "retry-after-ms": "1"}


@pytest.mark.parametrize("api", ["anthropic.messages", "openai.chat", "openai.responses", "google.generate_content"])
def test_a_refusal_whose_body_was_not_kept_is_said_as_the_provider_says_it(api):
    given = reply(attempt(api, status=529, error="busy", error_type="overloaded_error"), asked(api))
    found = by_api(api).answer(json.loads(text(given)))
    assert (found.error, found.error_type) == ("busy", "overloaded_error")


def test_a_refusal_that_was_no_json_stays_its_text():
    given = reply(attempt(status=502, error="<h1>Bad gateway</h1>", error_type="http_502"), asked())
    assert (text(given), header(given, "content-type")) == ("<h1>Bad gateway</h1>", "text/plain; charset=utf-8")


def test_a_redirect_leads_to_the_next_attempt():
    given = reply(attempt(status=307), asked(url="https://api.example/v1/messages?beta=true"))
    assert header(given, "location") == "/v1/messages"
