"""`looptape receive --forward URL`: everything goes on as it came, and trouble there is said and holds nobody up."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import otel_sender
from receiving import Receiver, chat, export, raw, receiver, user

SMALL = json.dumps(export(chat(1, [user("hi")], "yo"))).encode()


class Collector:
    """Another OTLP endpoint: answers with these statuses in turn, then 200, as soon as it is free; remembers what it has
    answered: (path, headers, octets)."""

    def __init__(self):
        self.got, self.statuses, self.free = [], [], threading.Event()
        self.free.set()
        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"of": self}))
        self.httpd.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def wait(self, count):
        end = time.monotonic() + 60
        while len(self.got) < count and time.monotonic() < end:
            time.sleep(0.02)
        return self.got


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    of = None

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.of.free.wait(60)
        self.send_response(self.of.statuses.pop(0) if self.of.statuses else 200)
        self.send_header("content-length", "0")
        self.end_headers()
        self.of.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.free.set()
    made.httpd.shutdown()
    made.httpd.server_close()


def test_requests_go_on_octet_for_octet_with_their_headers(tmp_path, collector):
    packed = gzip.compress(SMALL)
    with receiver(tmp_path, "--forward", collector.url) as receiving:
        receiving.post(SMALL, authorization="Bearer canary-of-the-vendor")
        receiving.post(packed, content_encoding="gzip", kind="application/json; charset=utf-8")
        receiving.post(b"\x0a\x00", path="/v1/metrics", kind="application/x-protobuf")
        got = sorted(collector.wait(3), key=lambda one: len(one[2]))
        text = "".join(p.read_text() for p in (tmp_path / "journal").iterdir())
        code, err = receiving.stop()
    assert [(path, body) for path, _, body in got] == [
        ("/v1/metrics", b"\x0a\x00"), ("/v1/traces", packed), ("/v1/traces", SMALL),
    ]  # fmt: skip
    assert [h.get("content-encoding") for _, h, _ in got] == [None, "gzip", None]
    assert got[1][1]["content-type"] == "application/json; charset=utf-8"
    assert got[2][1]["authorization"] == "Bearer canary-of-the-vendor"
    assert "canary" not in text
    assert "passed on: 3, failed: 0" in err
    assert code == 0


def test_what_came_over_grpc_goes_on_over_http(tmp_path, collector):
    with receiver(tmp_path, "--forward", collector.url) as receiving:
        command = [sys.executable, otel_sender.__file__, "grpc", f"http://127.0.0.1:{receiving.grpc}", "gzip"]
        subprocess.run(command, check=True, timeout=60)
        got = list(collector.wait(4))
    assert len(got) == 4
    with receiver(tmp_path / "second") as second:
        for path, headers, body in got:
            kept = {k: v for k, v in headers.items() if k == "content-encoding"}
            assert second.post(body, path=path, kind=headers["content-type"], **kept)[0] == 200
        assert len(raw(tmp_path / "second")) == 4


def test_refused_requests_are_not_passed_on(tmp_path, collector):
    with receiver(tmp_path, "--forward", collector.url) as receiving:
        assert receiving.post(SMALL, origin="http://evil.invalid")[0] == 403
        receiving.post(SMALL)
        collector.wait(1)
    assert len(collector.got) == 1


def test_nobody_waits_for_an_endpoint_that_is_gone_and_it_is_said_once(tmp_path):
    with socket.socket() as closed, contextlib.ExitStack() as stack:
        closed.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else, the receiver least of all, gets the port
        port = closed.getsockname()[1]
        receiving = stack.enter_context(receiver(tmp_path, "--forward", f"http://127.0.0.1:{port}"))
        for _ in range(5):
            assert receiving.post(SMALL)[0] == 200
        code, err = receiving.stop()
        assert len(raw(tmp_path)) == 1
    assert code == 0
    assert err.count("could not be passed on") == 1
    assert "passed on: 0, failed: 5" in err


def test_nobody_waits_for_a_slow_endpoint(tmp_path, collector):
    collector.free.clear()
    with receiver(tmp_path, "--forward", collector.url) as receiving:
        for _ in range(3):
            assert receiving.post(SMALL)[0] == 200
        assert collector.got == []
        assert len(raw(tmp_path)) == 1


def test_an_endpoint_that_is_busy_is_asked_again_one_that_refuses_is_not(tmp_path, collector):
    collector.statuses = [503, 429, 200, 400]
    with receiver(tmp_path, "--forward", collector.url) as receiving:
        receiving.post(SMALL)
        collector.wait(3)
        receiving.post(SMALL)
        collector.wait(4)
        err = receiving.stop()[1]
    assert len(collector.got) == 4
    assert "passed on: 1, failed: 1" in err
    assert "it answered 400" in err


@pytest.mark.parametrize(
    ("url", "word"), [("collector:4318", "no http address"), ("http://localhost:{port}/", "leads back here")]
)
def test_an_address_that_cannot_work_is_refused_at_once(tmp_path, url, word):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(RuntimeError, match=word):
        Receiver(tmp_path, "--no-grpc", "--http-port", str(port), "--forward", url.format(port=port))
