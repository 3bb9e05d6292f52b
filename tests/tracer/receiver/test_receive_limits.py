"""sec-06 and its kin: the receiver is for this machine, takes what is bounded, says no clearly, and lives on."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import socket
import stat
import struct
import zlib
from pathlib import Path

import pytest

from looptape.tracer.receiver import refusal
from receiving import chat, export, raw, receiver, runs, span, user

SMALL = export(chat(1, [user("hi")], "yo"))
BOMB = 70 << 20
PROC = Path("/proc")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One receiver for everything that is refused: it must survive all of it."""
    with receiver(tmp_path_factory.mktemp("home")) as receiving:
        yield receiving
        assert receiving.post(SMALL)[0] == 200
        assert len(runs(receiving.home)) == 1


@pytest.mark.parametrize(
    "host", ["evil.invalid", "evil.invalid:4318", "192.168.1.7:4318", "localhost.evil.invalid", "[::2]:1", "["]
)
def test_a_foreign_host_is_refused(shared, host):
    status, body, _ = shared.post(SMALL, host=host)
    assert status == 403
    assert "loopback" in json.loads(body)["message"]


@pytest.mark.parametrize("host", ["localhost:4318", "127.0.0.1", "[::1]:4318", "LOCALHOST"])
def test_the_names_of_loopback_are_let_in(shared, host):
    assert shared.post({"resourceSpans": []}, host=host)[0] == 200


def test_a_name_that_was_allowed_is_let_in(tmp_path):
    with receiver(tmp_path, "--allow-host", "Host.Docker.internal") as receiving:
        assert receiving.post({}, host="host.docker.internal:4318")[0] == 200
        assert receiving.post({}, host="other.internal:4318")[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.invalid", "null", "https://localhost.evil.invalid", "file://"])
def test_a_page_of_another_origin_is_refused(shared, origin):
    status, body, headers = shared.post(SMALL, origin=origin)
    assert (status, headers["Access-Control-Allow-Origin"]) == (403, None)
    assert "origin" in json.loads(body)["message"]


def test_a_page_of_this_machine_may_send(shared):
    assert shared.post({}, origin="http://localhost:3000")[0] == 200


def test_it_listens_on_loopback_alone(shared):
    own = []
    with contextlib.suppress(socket.gaierror):  # a machine whose name nobody knows
        own = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    outside = {info[4][0] for info in own if not str(info[4][0]).startswith("127.")}
    for address in outside:
        for port in (shared.port, shared.grpc):
            with pytest.raises(OSError):  # noqa: PT011 - refused or unreachable, as the machine has it
                socket.create_connection((address, port), timeout=2).close()
    if not PROC.is_dir():
        return
    listening = {f"{shared.port:04X}", f"{shared.grpc:04X}"}
    rows = [line.split() for line in (PROC / "net/tcp").read_text().splitlines()[1:]]
    found = {tuple(r[1].split(":")) for r in rows if r[3] == "0A" and r[1].split(":")[1] in listening}
    assert found == {("0100007F", port) for port in listening}


def test_folder_and_files_are_for_their_owner_alone(tmp_path):
    home = tmp_path / "home"
    with receiver(home) as receiving:
        receiving.post(SMALL)
        runs(home)
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [home, *home.rglob("*")]}
        kinds = {p.name: p.is_dir() for p in [home, *home.rglob("*")]}
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}
    assert all(mode == (0o700 if kinds[name] else 0o600) for name, mode in modes.items())


def test_a_body_of_a_gigabyte_is_refused_before_it_is_read(shared):
    with socket.create_connection(("127.0.0.1", shared.port), timeout=60) as raw_socket:
        head = f"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {1 << 30}\r\n\r\n"
        raw_socket.sendall(head.encode() + b"{")
        answer = b""
        while b"64 MB" not in answer and (part := raw_socket.recv(65536)):  # its head may come before the rest
            answer += part
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"64 MB" in answer


def test_a_gigabyte_that_does_not_say_its_length_is_refused_when_the_limit_is_reached(shared):
    sent = 0
    with socket.create_connection(("127.0.0.1", shared.port), timeout=60) as raw_socket:
        head = "POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        raw_socket.sendall(head.encode())
        piece = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
        try:
            while sent < 1 << 30:
                raw_socket.sendall(piece)
                sent += 1 << 20
        except OSError:
            pass  # the receiver hung up
        try:
            answer = raw_socket.recv(65536)
        except OSError:
            answer = b""  # a connection closed on unread data may lose the answer
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413 ")
    if PROC.is_dir():
        status = (PROC / f"{shared.process.pid}/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0])
        assert peak < 700_000  # kB: it was not gathered


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_bomb_is_refused_after_the_limit_and_not_unpacked_whole(shared, encoding):
    pack = gzip.compress if encoding == "gzip" else zlib.compress
    status, body, _ = shared.post(pack(b" " * BOMB), content_encoding=encoding)
    assert status == 413
    assert "64 MB" in json.loads(body)["message"]


def test_a_bomb_of_many_members_is_refused_too(shared):
    part = gzip.compress(b" " * (1 << 20))
    assert shared.post(part * 70, content_encoding="gzip")[0] == 413


def test_more_spans_than_anybody_exports_at_once_are_refused(shared):
    one = struct.pack("BB", 0x12, 0)  # an empty span
    spans = one * (refusal.MAX_ITEMS + 1)
    scope = b"\x12" + refusal.varint(len(spans)) + spans
    body = b"\x0a" + refusal.varint(len(scope)) + scope
    status, said, _ = shared.post(body, kind="application/x-protobuf")
    assert status == 413
    assert b"smaller batches" in said


def test_many_spans_below_the_limit_are_taken(tmp_path):
    count = 5_000
    with receiver(tmp_path) as receiving:
        spans = [span(n, trace=n % 7 + 1, name="GET /") for n in range(1, count + 1)]
        assert receiving.post(export(*spans, scope="http.server"))[0] == 200
        assert len(raw(tmp_path)) == count


@pytest.mark.parametrize(
    ("body", "options", "status", "word"),
    [
        (b"{", {}, 400, "JSON"),
        (b"[1]", {}, 400, "object"),
        (b'{"resourceSpans": 7}', {}, 400, "resourceSpans"),
        (b"[" * 100_000, {}, 400, "JSON"),
        (b"\xff\xfe", {}, 400, "JSON"),
        (b"\x0a\xff", {"kind": "application/x-protobuf"}, 400, "ExportTraceServiceRequest"),
        (b"not gzip", {"content_encoding": "gzip"}, 400, "gzip"),
        (gzip.compress(b"{}" * 999, mtime=0)[:-9], {"content_encoding": "gzip"}, 400, "cut off"),
        (b"{}", {"content_encoding": "br"}, 415, "gzip"),
        (b"{}", {"kind": "text/plain"}, 415, "application/x-protobuf"),
        (b"{}", {"path": "/v2/traces"}, 404, "/v1/traces"),
        (b"{}", {"path": "/"}, 404, "/v1/traces"),
        (b"{}", {"path": "/v1/traces/../../etc"}, 404, "/v1/traces"),
        (b"{}", {"method": "PUT"}, 405, "POST"),
    ],
)
def test_what_is_no_export_gets_a_clear_no(shared, body, options, status, word):
    got, said, _ = shared.post(body, **options)
    assert got == status
    assert word.encode() in said


@pytest.mark.parametrize(
    "body",
    [
        b'{"resourceSpans": null}',
        b'{"resourceSpans": [null, 7, {"scopeSpans": {"a": 1}}]}',
        b'{"resourceSpans": [{"resource": 7, "scopeSpans": [{"scope": [], "spans": [7, null, []]}]}]}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": 7, "spanId": {}, "attributes": {"a": 1}}]}]}]}',
    ],
)
def test_odd_shapes_are_taken_for_what_they_are_worth(shared, body):
    assert shared.post(body)[0] == 200


def test_two_servers_speak_the_wrong_protocol_without_harm(shared):
    for port, words in (
        (shared.grpc, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        (shared.port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as raw_socket:
            raw_socket.sendall(words)
            while raw_socket.recv(65536):
                pass


def test_the_wrong_port_is_a_line_for_people_said_once(tmp_path):
    with receiver(tmp_path) as made:
        for port, words in (
            (made.grpc, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            (made.port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            (made.port, b"POST /v1/traces HTTP/1.1\r\n\r\n"),
            (made.port, b"\x16\x03\x01\x02\x00\x01\x00"),
        ) * 2:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as raw_socket:
                raw_socket.sendall(words)
                while raw_socket.recv(65536):
                    pass
        said = made.stop()[1].splitlines()
    assert [line for line in said if "port is no" in line] == [
        "what came to the gRPC port is no gRPC (HTTP, which has a port of its own?)",
        "what came to the HTTP port is no HTTP (gRPC, which has a port of its own? TLS, which there is not?)",
    ]
    assert "8 requests refused" in said[-1]
    assert len(said) == 5


def test_clients_that_vanish_in_the_middle_do_no_harm(shared):
    for port in (shared.port, shared.grpc):
        for cut in (
            b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
            os.urandom(200),
            b"",
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as raw_socket:
                raw_socket.sendall(cut)
