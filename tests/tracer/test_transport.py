"""The recording transport between an SDK and the network: it waits for nothing that the SDK does not wait for."""

from __future__ import annotations

import asyncio
import copy
import socket
import threading
from contextlib import contextmanager, suppress

import anthropic
import httpx2
import pytest

import looptape
from looptape.tracer import transport
from looptape.tracer.providers import by_path
from looptape.tracer.transport import AsyncRecordingTransport, RecordingTransport
from recorded import recording

EVENTS = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
    b'"model":"c","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)
OVERLOADED = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
ASK = {"model": "c", "max_tokens": 3, "messages": [{"role": "user", "content": "x"}]}
HELD = 120.0
"""Seconds that a refusal takes to come whole: who waits for it is found out, who does not never feels them."""


def head(status, *lines):
    return "\r\n".join([f"HTTP/1.1 {status} x", *lines, "", ""]).encode()


@contextmanager
def server(*refusal):
    """Answers every first request with these pieces (a number is a pause), every second one with a whole stream.

    Gives its address, and an event that is set once a refusal has come to its end.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    over, whole = threading.Event(), threading.Event()
    count = iter(range(1000))

    def answer(connection):
        with connection:
            while not over.is_set():
                asked = b""
                while b"\r\n\r\n" not in asked:
                    part = connection.recv(65536)
                    if not part:
                        return
                    asked += part
                if next(count) % 2 == 0:
                    for piece in refusal:
                        if isinstance(piece, bytes):
                            connection.sendall(piece)
                        else:
                            over.wait(piece)
                    whole.set()
                    return
                length = f"content-length: {len(EVENTS)}"
                connection.sendall(head(200, "content-type: text/event-stream", length) + EVENTS)

    def accept():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=quiet_answer, args=(connection,), daemon=True).start()

    def quiet_answer(connection):
        try:
            answer(connection)
        except OSError:
            pass  # the client hung up

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", whole
    finally:
        over.set()
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)  # closed alone it would leave its thread waiting for ever
        listening.close()


def stream(url, kind):
    """One streaming call that is retried."""
    key = "sk-" + "ant-0123456789abcdef"
    if kind == "sync":
        client = looptape.wrap(anthropic.Anthropic(api_key=key, base_url=url))
        with client.messages.stream(**ASK) as events:
            events.get_final_message()
    else:

        async def asynchronous():
            client = looptape.wrap(anthropic.AsyncAnthropic(api_key=key, base_url=url))
            async with client.messages.stream(**ASK) as events:
                await events.get_final_message()

        asyncio.run(asynchronous())


JSON = ("content-type: application/json", "retry-after-ms: 10")
SLOW = {
    "hangs": (head(529, *JSON, "content-length: 1000"), b"{", HELD),
    "never begins": (head(529, *JSON, "content-length: 1000"), HELD),
    "trickles": (head(529, *JSON, "content-length: 9000"), *[b"{", 0.03] * int(HELD / 0.03)),
    "is very long": (head(529, *JSON, "content-length: 90000000"), b" " * 900_000, HELD),
}


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("body", list(SLOW))
def test_a_refusal_whose_body_does_not_come_is_retried_at_once_and_its_status_is_kept(tmp_path, body, kind):
    with server(*SLOW[body]) as (url, whole), recording(tmp_path) as home:
        stream(url, kind)
        assert not whole.is_set()
        assert transport.REST_SECONDS <= 0.1  # what is looked at all the same costs no more than this
        (turn,) = home.run().turns
    assert [(a.status, a.error_type) for a in turn.attempts] == [(529, "http_529"), (200, None)]
    assert turn.status == "ok"


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("apart", [False, True])
def test_a_refusal_that_came_whole_tells_what_it_was_although_the_sdk_never_reads_it(
    tmp_path, monkeypatch, kind, apart
):
    monkeypatch.setattr(transport, "REST_SECONDS", HELD)  # what comes a moment later is waited for, on any machine
    begin = head(529, *JSON, f"content-length: {len(OVERLOADED)}")
    refusal = (begin, 0.01, OVERLOADED) if apart else (begin + OVERLOADED,)
    with server(*refusal) as (url, _), recording(tmp_path) as home:
        stream(url, kind)
        (turn,) = home.run().turns
    assert [(a.status, a.error_type) for a in turn.attempts] == [(529, "overloaded_error"), (200, None)]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_refusal_that_the_sdk_reads_itself_may_take_its_time(tmp_path, kind):
    length = f"content-length: {len(OVERLOADED)}"
    slow = (head(400, "content-type: application/json", length), OVERLOADED[:9], 0.4, OVERLOADED[9:])
    with server(*slow) as (url, _), recording(tmp_path) as home:
        with pytest.raises(anthropic.BadRequestError, match="Overloaded"):
            stream(url, kind)
        (turn,) = home.run().turns
    assert (turn.error_type, turn.error) == ("overloaded_error", "Overloaded")


def test_a_stream_that_one_thread_closes_while_another_reads_its_end_has_one_end(tmp_path, monkeypatch):
    reading, closed = threading.Event(), threading.Event()

    def assembled(events):
        reading.set()
        assert closed.wait(60)
        return assemble(events)

    assemble = by_path("/v1/messages").assemble
    reply = httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=httpx2.ByteStream(EVENTS))
    with recording(tmp_path) as home:
        client = looptape.wrap(httpx2.Client(transport=httpx2.MockTransport(lambda request: reply)))
        with client.stream("POST", "http://localhost/v1/messages", json={**ASK, "stream": True}) as response:
            monkeypatch.setattr(by_path("/v1/messages"), "assemble", assembled)
            reader = threading.Thread(target=lambda: list(response.iter_raw()))
            reader.start()
            assert reading.wait(60)
            monkeypatch.undo()
            response.close()
        closed.set()
        reader.join()
        ends = [r for r in home.records() if r["kind"] == "turn_end"]
    assert [e["status"] for e in ends] == ["ok"]


@pytest.mark.parametrize("kind", [RecordingTransport, AsyncRecordingTransport])
def test_a_wrapped_transport_can_be_copied(kind):
    class Inner:
        flavour = "mild"

    transport = kind(Inner())
    assert copy.copy(transport).inner is transport.inner
    deep = copy.deepcopy(transport)
    assert isinstance(deep.inner, Inner)
    assert deep.inner is not transport.inner
    assert deep.flavour == "mild"
    with pytest.raises(AttributeError):
        _ = transport.bitter
