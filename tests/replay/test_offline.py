"""The network guard: what would leave this machine is refused and told, everything else is as without it."""

import asyncio
import http.client
import os
import socket
import threading

import pytest

from fakellm import FakeLLM, Scenario, Step
from looptape.replay import offline
from looptape.replay.offline import NetworkClosed

FAR = "203.0.113.7"  # TEST-NET-3: nobody answers there


@pytest.fixture
def told():
    found = []
    with offline.closed(found.append):
        yield found


def dial(address, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as one:
        one.settimeout(0.2)
        one.connect(address)


def test_a_connection_off_this_machine_is_refused_before_it_is_made(told):
    with pytest.raises(NetworkClosed, match=r"203\.0\.113\.7:443 was refused.*--network open"):
        dial((FAR, 443))
    with pytest.raises(NetworkClosed):
        dial((FAR, 53), socket.SOCK_DGRAM)
    assert told == [f"{FAR}:443", f"{FAR}:53"]


def test_a_name_is_not_even_looked_up(told):
    with pytest.raises(NetworkClosed):
        socket.getaddrinfo("api.example.invalid", 443)
    with pytest.raises(NetworkClosed):
        socket.create_connection(("api.example.invalid", 443), timeout=0.2)
    with pytest.raises(NetworkClosed):
        http.client.HTTPSConnection("api.example.invalid", timeout=0.2).request("GET", "/")
    assert set(told) == {"api.example.invalid:443"}


def test_it_holds_in_threads_and_in_coroutines(told):
    caught = []

    def work():
        try:
            dial((FAR, 80))
        except NetworkClosed as error:
            caught.append(error)

    async def ask():
        await asyncio.open_connection("api.example.invalid", 443)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(caught) == 1
    with pytest.raises(NetworkClosed):
        asyncio.run(ask())


def test_an_http_library_passes_it_on_as_the_connection_error_it_knows(told):
    library = pytest.importorskip("httpx2")
    with pytest.raises(library.ConnectError, match="closed to the network"):
        library.get(f"http://{FAR}/", trust_env=False)


def test_loopback_and_unix_sockets_pass(told, tmp_path):
    with FakeLLM({"a": Scenario([Step(text="hello")])}) as server:
        for host in ("127.0.0.1", "localhost"):
            line = http.client.HTTPConnection(host, server.port, timeout=60)
            line.request("GET", "/v1/models")
            assert line.getresponse().status == 200
            line.close()
    here = os.getcwd()
    os.chdir(tmp_path)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
            one.bind("s")
            one.listen(1)
            other.connect("s")
    finally:
        os.chdir(here)
    assert told == []


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True), ("localhost", True),
        ("api.localhost", True), ("0.0.0.0", True), ("", True), ("10.0.0.1", False), ("::ffff:10.0.0.1", False),
        ("api.anthropic.com", False), ("localhost.example.com", False),
    ],
)  # fmt: skip
def test_what_counts_as_this_machine(host, here):
    assert offline.is_here(host) is here


def test_after_the_block_nothing_is_refused_any_more():
    with offline.closed(lambda _: None):
        pass
    try:
        dial((FAR, 9), socket.SOCK_DGRAM)  # sends nothing
    except OSError as error:
        assert not isinstance(error, NetworkClosed)  # noqa: PT017 - a machine without any network says so itself
