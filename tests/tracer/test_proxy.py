"""The recording proxy: what the program sends and gets is what it would be without it, and it is recorded."""

import gzip
import http.client
import json
import os
import pty
import shutil
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fakellm import Call, FakeLLM, Scenario, Step
from launched import Launcher
from looptape.tracer import facts
from looptape.tracer.exchange import Exchange
from looptape.tracer.proxy import pointed_at
from looptape.tracer.proxy import server as server_of_proxy
from looptape.tracer.proxy.server import ProxyServer
from recorded import recording

KEY = "canary-" + "0123456789abcdef"
BODY = {"model": "m-1", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
HEADERS = {"content-type": "application/json", "x-api-key": KEY}


class Upstream:
    """A server that answers what a test tells it, byte for byte, and keeps what it was asked."""

    def __init__(self, answer):
        self.asked = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(inner):
                length = int(inner.headers.get("content-length") or 0)
                inner.data = inner.rfile.read(length)
                self.asked.append(inner)
                answer(inner)

            do_POST = do_HEAD = do_PUT = do_DELETE = do_GET

        kind = type("Server", (ThreadingHTTPServer,), {"request_queue_size": 128})  # five at once are the default
        self.httpd = kind(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        self.httpd.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.httpd.shutdown()
        self.httpd.server_close()


@pytest.fixture
def home(tmp_path):
    facts.describe(name="agent", source="proxy")
    with recording(tmp_path) as running:
        yield running
    facts.describe(name=None, source=None)


def connection(proxy):
    return http.client.HTTPConnection("127.0.0.1", int(proxy.url.rsplit(":", 1)[1]), timeout=60)


def post(proxy, body=BODY, path="/anthropic/v1/messages", headers=HEADERS, over=None):
    """Status, headers and raw body of one request."""
    line = over or connection(proxy)
    line.request("POST", path, json.dumps(body), headers)
    reply = line.getresponse()
    return reply.status, reply.headers, reply.read()


def plain(data, status=200, **headers):
    def answer(asked):
        asked.send_response(status)
        for key, value in {"content-type": "application/json", "content-length": str(len(data)), **headers}.items():
            asked.send_header(key, value)
        asked.end_headers()
        asked.wfile.write(data)

    return answer


def test_a_whole_loop_goes_through_and_is_one_run_of_the_program(home):
    steps = [Step(calls=[Call("search", {"q": "x"}, "toolu_1")]), Step(text="done", usage={"input": 7, "output": 3})]
    with FakeLLM({"a": Scenario(steps)}) as server, ProxyServer({"anthropic": server.url("a")}) as proxy:
        _, _, first = post(proxy)
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
        more = [
            {"role": "assistant", "content": json.loads(first)["content"]},
            {"role": "user", "content": [result]},
        ]
        _, _, second = post(proxy, {**BODY, "messages": BODY["messages"] + more})
        assert json.loads(second)["content"][0]["text"] == "done"
    run = home.run()
    assert (run.name, run.source, run.status, run.run.turns) == ("agent", "proxy", "completed", 2)
    assert run.turns[0].tool_calls[0].result == "found"
    assert (run.turns[1].usage.input, run.turns[1].usage.output, run.turns[1].caller) == (7, 3, None)


def test_a_stream_passes_chunk_by_chunk_and_byte_for_byte(home):
    go = threading.Event()
    step = Step(text="a longer text in several pieces", pause_after=4, gate=go)
    with FakeLLM({"a": Scenario([step])}) as server, ProxyServer({"anthropic": server.url("a")}) as proxy:
        line = connection(proxy)
        line.request("POST", "/anthropic/v1/messages", json.dumps({**BODY, "stream": True}), HEADERS)
        reply = line.getresponse()
        got = b""
        while got.count(b"\n\n") < 4:  # the model has stopped here: what it said must be here already
            got += reply.read1(65536)
        assert not go.is_set()
        assert b"message_stop" not in got
        go.set()
        got += reply.read()
    assert got.startswith(b"event: message_start\n")
    assert got.endswith(b"\n\n")
    assert got.count(b"event: message_stop\n") == 1
    turn = home.run().turns[0]
    assert (turn.text, turn.stream, turn.status) == ("a longer text in several pieces", True, "ok")


@pytest.mark.parametrize("stream", [False, True])
def test_a_gzip_body_passes_as_it_is_and_is_recorded_as_text(home, stream):
    with FakeLLM({"a": Scenario([Step(text="zipped", gzip=True)])}) as server:
        with ProxyServer({"anthropic": server.url("a")}) as proxy:
            headers = {**HEADERS, "accept-encoding": "gzip, br"}
            _, told, raw = post(proxy, {**BODY, "stream": stream}, headers=headers)
        assert server.log[0]["headers"]["accept-encoding"] == "gzip"
    assert told["content-encoding"] == "gzip"
    assert b"zipped" in gzip.decompress(raw)
    assert home.run().turns[0].text == "zipped"


def test_what_the_program_does_not_ask_for_is_not_added(home):
    odd = b'{"odd":  "spacing", "n": 1.0}'
    with (
        Upstream(plain(odd, **{"X-Custom": "a", "set-cookie": "k=v; Path=/"})) as server,
        ProxyServer({"anthropic": server.url}) as proxy,
    ):
        line, headers = connection(proxy), {**HEADERS, "accept-encoding": "br, zstd;q=0.5"}
        for _ in range(2):
            status, told, raw = post(proxy, path="/anthropic/v1/messages?beta=true", headers=headers, over=line)
    assert (status, raw, told["x-custom"], told["set-cookie"]) == (200, odd, "a", "k=v; Path=/")
    assert len(told.get_all("date")) == len(told.get_all("server")) == 1
    asked = server.asked[1]
    assert asked.path == "/v1/messages?beta=true"
    assert asked.data == json.dumps(BODY).encode()
    assert {k.lower() for k in asked.headers} == {
        "host", "content-length", "content-type", "x-api-key", "accept-encoding", *(["connection"] if "connection" in asked.headers else [])
    }  # fmt: skip
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["host"] == server.url.removeprefix("http://")


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422, 500, 503, 529])
def test_an_error_passes_with_its_status_and_body_and_is_recorded(home, status):
    told = json.dumps({"type": "error", "error": {"type": "some_error", "message": "no"}}).encode()
    with (
        Upstream(plain(told, status, **{"request-id": "req_1"})) as server,
        ProxyServer({"anthropic": server.url}) as proxy,
    ):
        assert post(proxy)[0::2] == (status, told)
    turn = home.run().turns[0]
    assert (turn.status, turn.error_type, turn.attempts[0].status) == ("error", "some_error", status)


def test_retries_are_attempts_of_one_turn(home):
    errors = [{"kind": "rate_limit"}, {"kind": "server"}]
    with (
        FakeLLM({"a": Scenario([Step(text="at last", errors=errors)])}) as server,
        ProxyServer({"anthropic": server.url("a")}) as proxy,
    ):
        assert [post(proxy)[0] for _ in range(3)] == [429, 500, 200]
    run = home.run()
    assert (len(run.turns), run.status) == (1, "completed")
    assert [a.status for a in run.turns[0].attempts] == [429, 500, 200]


@pytest.mark.parametrize("errors", [[{"kind": "rate_limit"}], [{"kind": "overloaded"}]])
def test_a_program_that_asks_again_at_once_is_still_the_same_turn(home, monkeypatch, errors):
    finished = Exchange.finished
    monkeypatch.setattr(Exchange, "finished", lambda exchange: (time.sleep(0.2), finished(exchange)))
    step = Step(text="at last", errors=errors)
    with FakeLLM({"a": Scenario([step])}) as server, ProxyServer({"anthropic": server.url("a")}) as proxy:
        posted = [post(proxy)[0] for _ in range(2)]
    assert [[a.status for a in turn.attempts] for turn in home.run().turns] == [posted]


def test_a_dead_upstream_is_a_502_that_says_where(home):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with ProxyServer({"anthropic": f"http://127.0.0.1:{unused.getsockname()[1]}"}) as proxy:
            status, _, raw = post(proxy)
    assert status == 502
    error = json.loads(raw)["error"]
    assert error["message"].startswith("looptape's proxy got no answer from http://127.0.0.1: ConnectError")
    assert home.run().turns[0].error_type == "ConnectError"


def test_a_stream_that_is_cut_is_cut_for_the_program_too(home):
    step = Step(text="a longer text in several pieces", errors=[{"cut_stream": 5}])
    with FakeLLM({"a": Scenario([step])}) as server, ProxyServer({"anthropic": server.url("a")}) as proxy:
        with pytest.raises(http.client.IncompleteRead) as cut:
            post(proxy, {**BODY, "stream": True})
        assert cut.value.partial.count(b"\n\n") == 5
    assert home.run().turns[0].status == "error"


def test_a_program_that_hangs_up_leaves_an_abandoned_turn(home):
    step = Step(text="word " * 200, chunk_delay=0.02)
    with FakeLLM({"a": Scenario([step])}) as server, ProxyServer({"anthropic": server.url("a")}) as proxy:
        line = connection(proxy)
        line.request("POST", "/anthropic/v1/messages", json.dumps({**BODY, "stream": True}), HEADERS)
        line.getresponse().read1(100)
        line.close()
        until = time.monotonic() + 60
        while '"turn_end"' not in json.dumps(home.records()) and time.monotonic() < until:
            time.sleep(0.02)
    assert home.run().turns[0].status == "abandoned"


def test_the_end_waits_for_what_is_still_to_be_recorded(home, monkeypatch):
    ending = threading.Event()

    def answer(asked):
        asked.send_response(200)
        asked.send_header("content-type", "application/json")
        asked.end_headers()  # no length: the body ends when the connection does
        asked.wfile.write(b'{"type": "message", "content": [], "stop_reason": "end_turn"}')
        asked.wfile.flush()
        assert ending.wait(60)
        asked.close_connection = True

    monkeypatch.setattr(server_of_proxy, "_PATIENCE", 60)
    with Upstream(answer) as server, ProxyServer({"anthropic": server.url}) as proxy:
        shutdown = proxy._server.shutdown
        proxy._server.shutdown = lambda: (shutdown(), ending.set())  # the answer ends when the end has begun
        line = connection(proxy)
        line.request("POST", "/anthropic/v1/messages", json.dumps(BODY), HEADERS)
        assert b"end_turn" in line.getresponse().read1(1000)
    assert home.run().status == "completed"


def test_a_connection_is_kept_for_many_requests(home):
    answers = {"GET": b'{"data":[]}', "HEAD": b"", "DELETE": b"gone", "POST": b"{}"}

    def answer(asked):
        plain(answers[asked.command])(asked)

    with Upstream(answer) as server, ProxyServer({"openai": f"{server.url}/v1/"}) as proxy:
        line = connection(proxy)
        line.connect()
        port = line.sock.getsockname()
        for method in ("GET", "HEAD", "DELETE", "POST", "GET"):
            line.request(method, "/openai/models?limit=2")
            reply = line.getresponse()
            assert (reply.status, reply.read()) == (200, answers[method])
            assert line.sock.getsockname() == port
        assert {asked.path for asked in server.asked} == {"/v1/models?limit=2"}
    assert home.runs() == []


def test_answers_without_a_body_stay_so(home):
    def answer(asked):
        asked.send_response(204 if asked.command == "POST" else 200)
        if asked.command == "HEAD":
            asked.send_header("content-length", "1234")
        asked.end_headers()

    with Upstream(answer) as server, ProxyServer({"anthropic": server.url}) as proxy:
        line = connection(proxy)
        for method in ("POST", "HEAD", "POST"):
            line.request(method, "/anthropic/files/1", b"")
            reply = line.getresponse()
            assert (reply.status, reply.headers["content-length"], reply.read()) == (
                (204, None, b"") if method == "POST" else (200, "1234", b"")
            )


def test_big_bodies_pass_in_both_directions(home):
    big = b'{"content": "' + b"x" * (12 << 20) + b'"}'
    with Upstream(plain(big)) as server, ProxyServer({"anthropic": server.url}) as proxy:
        line = connection(proxy)
        line.request("POST", "/anthropic/v1/files", big, HEADERS)
        assert line.getresponse().read() == big
        line.request("POST", "/anthropic/v1/files", iter([big[:100], big[100:]]), HEADERS, encode_chunked=True)
        assert line.getresponse().read() == big
    assert [asked.data == big for asked in server.asked] == [True, True]


def test_requests_that_make_no_sense_get_an_answer_and_nothing_is_sent_on(home):
    with Upstream(plain(b"{}")) as server, ProxyServer({"anthropic": server.url}) as proxy:
        status, _, raw = post(proxy, path="/elsewhere/v1/messages")
        assert (status, "no target 'elsewhere'" in raw.decode()) == (404, True)
        for length in ("many", str(300 << 20)):
            line = connection(proxy)
            line.putrequest("POST", "/anthropic/v1/messages")
            line.putheader("content-length", length)
            line.endheaders()
            assert line.getresponse().status == (400 if length == "many" else 413)
        half = connection(proxy)
        half.putrequest("POST", "/anthropic/v1/messages")
        half.putheader("content-length", "100")
        half.endheaders(b"{")
        half.sock.shutdown(socket.SHUT_WR)
        assert half.sock.recv(1) == b""  # the proxy has given it up
        half.close()
    assert server.asked == []


def test_it_listens_on_loopback_only_and_keeps_no_key(home):
    with (
        FakeLLM({"a": Scenario([Step(text=f"your key is {KEY}")])}) as server,
        ProxyServer({"anthropic": server.url("a")}) as proxy,
    ):
        assert proxy._server.server_address[0] == "127.0.0.1"
        post(proxy, {**BODY, "messages": [{"role": "user", "content": f"my key {KEY}"}]})
        post(proxy, headers={"authorization": f"Bearer {KEY}"}, path=f"/anthropic/v1/messages?key={KEY}")
    assert home.runs()
    files = [f for f in home.path.rglob("*") if f.is_file()]
    assert files
    assert [f for f in files if KEY.encode() in f.read_bytes()] == []


def test_the_way_to_the_proxy_does_not_lead_through_another_proxy():
    given = pointed_at("http://127.0.0.1:9", {"HTTPS_PROXY": "http://corporate:1", "NO_PROXY": "example.org"})
    assert given["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9/anthropic"
    assert given["OPENAI_BASE_URL"] == "http://127.0.0.1:9/openai"
    assert given["NO_PROXY"] == "example.org,127.0.0.1"
    assert pointed_at("http://127.0.0.1:9", given)["NO_PROXY"] == "example.org,127.0.0.1"


def test_calls_at_once_are_as_many_as_without_it(home):
    together = threading.Barrier(120)

    def answer(asked):
        together.wait(60)
        plain(b"{}")(asked)

    with (
        Upstream(answer) as server,
        ProxyServer({"anthropic": server.url}) as proxy,
        ThreadPoolExecutor(120) as pool,
    ):
        statuses = [reply[0] for reply in pool.map(lambda _: post(proxy), range(120))]
    assert statuses == [200] * 120


def test_the_programs_end_is_seen_where_its_signal_is_blocked(tmp_path):
    (tmp_path / "work").mkdir()
    here = Launcher(tmp_path / "work", tmp_path / "home", "http://127.0.0.1:1")
    blocked = (
        "import signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})\n"
        "from looptape.tracer.inject import launch; sys.exit(launch(sys.argv[1:]))"
    )
    process = here.start("/bin/sh", "-c", "sleep 0.5; exit 3", by=[sys.executable, "-P", "-c", blocked])
    _, err = process.communicate("", timeout=60)
    assert process.returncode == 3, err


def test_ctrl_c_in_a_terminal_reaches_the_program_once(tmp_path):
    (tmp_path / "agent.py").write_text(
        "import os, signal, sys, time\n"
        "def stop(n, f): time.sleep(0.3); sys.exit(5)\n"
        "os.set_blocking(1, False)\nsignal.set_wakeup_fd(1)  # tells every single one\n"
        "signal.signal(signal.SIGINT, stop)\nos.write(1, b'<ready>')\nfor _ in range(600): time.sleep(0.1)\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ["LOOPTAPE_HOME"] = str(tmp_path / "home")
        code = "import sys; from looptape.tracer.inject import launch; sys.exit(launch(sys.argv[1:]))"
        os.execv(sys.executable, [sys.executable, "-P", "-c", code, sys.executable, "-I", "agent.py"])
    said = b""
    while b"<ready>" not in said:
        said += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    try:
        while data := os.read(terminal, 1000):
            said += data
    except OSError:
        pass  # the terminal's end
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    assert said.partition(b"<ready>")[2].replace(b"^C", b"").count(bytes([signal.SIGINT])) == 1


def test_node_programs_are_recorded(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("node is not here")
    with FakeLLM({"a": Scenario([Step(text="hello")])}) as server:
        here = Launcher(tmp_path, tmp_path / "home", server.url("a"))
        here.write(
            "agent.mjs",
            "const r = await fetch(process.env.ANTHROPIC_BASE_URL + '/v1/messages', {method: 'POST', "
            f"headers: {json.dumps(HEADERS)}, body: JSON.stringify({json.dumps(BODY)})}});\n"
            "console.log((await r.json()).content[0].text);\n",
        )
        code, out, err = here.run("node", "agent.mjs")
        assert (code, out, err.count("\n")) == (0, "hello\n", 1), err
    assert here.recorded() == [("agent", "proxy", "completed", 1)]
