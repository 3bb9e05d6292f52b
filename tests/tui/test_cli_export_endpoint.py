"""export --endpoint: what a collector gets, what it may answer, and that nothing is sent unless it is named."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import small_tape
from commandline import looptape
from looptape.tracer import otlp_send
from looptape.tracer.errors import UsageError
from looptape.tracer.store import open_store

SECRET = "canary-of-a-token"


class Collector:
    """A collector on loopback: what came, and the answers it gives (the last one again and again)."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        self.answers: list[tuple[int, bytes, dict[str, str]]] = [(200, b"{}", {})]
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.got.append(
                    (self.path, {k.title(): v for k, v in self.headers.items()}, json.loads(gzip.decompress(body)))
                )
                code, answer, headers = collector.answers[min(len(collector.got), len(collector.answers)) - 1]
                self.send_response(code)
                for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def spans(self) -> list[dict[str, Any]]:
        return [s for _, _, b in self.got for r in b["resourceSpans"] for c in r["scopeSpans"] for s in c["spans"]]


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two runs, made once; exporting changes nothing in it."""
    home = tmp_path_factory.mktemp("made")
    with open_store(home) as store:
        store.ingest(small_tape.records("a" * 16, name="first"))
        store.ingest(small_tape.records("b" * 16, name="second"))
    return home


@pytest.fixture(autouse=True)
def home(tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOOPTAPE_HOME", str(made))
    monkeypatch.chdir(tmp_path)
    for name in ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(otlp_send.time, "sleep", lambda _: None)


def export(*arguments: str) -> Any:
    return looptape("export", *arguments, "--to", "otlp")


def test_a_collector_gets_all_spans_gzipped_with_the_standard_headers(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{SECRET},x-team = blue")
    ran = export("first", "--endpoint", collector.url)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == f"sent 6 spans of 1 run to {collector.url}/v1/traces\n"
    ((path, headers, _),) = collector.got
    assert path == "/v1/traces"
    assert (headers["Content-Type"], headers["Content-Encoding"]) == ("application/json", "gzip")
    assert (headers["Authorization"], headers["X-Team"]) == (f"Bearer {SECRET}", "blue")
    assert len(collector.spans()) == 6


def test_all_runs_and_single_turns_too_at_the_path_that_was_named(collector: Collector) -> None:
    assert export("--all", "--endpoint", f"{collector.url}/otlp").code == 0
    assert len(collector.spans()) == 12
    assert {path for path, _, _ in collector.got} == {"/otlp"}
    collector.got.clear()
    assert export("first:2", "--endpoint", f"{collector.url}/otlp").code == 0
    assert len(collector.spans()) == 3


def test_a_long_run_comes_in_several_bodies(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_send, "BATCH_BYTES", 3000)
    assert export("--all", "--endpoint", collector.url).code == 0
    assert len(collector.got) > 2
    assert len(collector.spans()) == 12


def test_a_busy_collector_is_asked_again(collector: Collector) -> None:
    collector.answers = [(503, b"", {}), (429, b"", {"Retry-After": "1"}), (200, b"", {})]
    assert export("first", "--endpoint", collector.url).code == 0
    assert len(collector.got) == 3


@pytest.mark.parametrize(
    ("code", "answer", "part"),
    [
        (401, b"who are you?", "answered 401 Unauthorized: who are you? Set OTEL_EXPORTER_OTLP_HEADERS"),
        (404, b"", "Is the path right?"),
        (413, b"", "Export fewer turns"),
        (503, b"later", "answered 503"),
        (302, b"", "Name the address it points to"),
        (200, b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}', "refused 2 of 6 spans (too old)"),
        (500, b"\x1b[2J\xff", "answered 500"),
    ],
)
def test_a_refusal_is_one_line_and_exit_3(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, code: int, answer: bytes, part: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization={SECRET}")
    collector.answers = [(code, answer, {"Location": "/elsewhere"} if code == 302 else {})]
    ran = export("first", "--endpoint", collector.url)
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
    assert part in ran.err
    assert SECRET not in ran.err
    assert "\x1b" not in ran.err
    assert {path for path, _, _ in collector.got} == {"/v1/traces"}


def test_an_odd_answer_of_a_collector_that_took_it_is_no_trouble(collector: Collector) -> None:
    collector.answers = [(200, b"thanks", {})]
    assert export("first", "--endpoint", collector.url).code == 0


def test_nobody_there_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        ran = export("first", "--endpoint", url)  # the port is ours meanwhile, and nobody listens there
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert f"{url}/v1/traces cannot be reached (Connection refused). Does the collector run there?" in ran.err


@pytest.mark.parametrize(
    "endpoint",
    ["localhost:4318", "ftp://x/", "file:///etc/passwd", "http://", "http://u:p@x/", "http://x:nine/", "http://x/ y"],
)
def test_what_is_no_endpoint_is_a_usage_error(endpoint: str) -> None:
    ran = export("first", "--endpoint", endpoint)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "--endpoint" in ran.err
    assert "u:p" not in ran.err


@pytest.mark.parametrize("value", ["noequals", "=x", "a b=c", f"x={SECRET}%0d%0aevil: 1", f"a={SECRET}é"])
def test_headers_that_cannot_be_read_are_said_without_their_values(value: str) -> None:
    with pytest.raises(UsageError) as trouble:
        otlp_send.headers_of({"OTEL_EXPORTER_OTLP_HEADERS": value})
    assert SECRET not in str(trouble.value)


def test_nothing_is_sent_unless_an_endpoint_is_named(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard variable that points exporters at a collector moves nothing here."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    assert export("first").code == 0
    assert collector.got == []
