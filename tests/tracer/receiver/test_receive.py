"""`looptape receive` and the programs that send to it: what they export is in the store while they run."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

import otel_sender
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, open_store
from receiving import Receiver, answered, called, chat, export, logs, raw, receiver, runs, span, user

KEY = "sk-" + "ant-" + "canary0123456789"
ASK = [user("weather?")]
SEEN = [*ASK, called("c1", "search", {"q": "x"}), answered("c1", "sunny")]
FIRST = chat(1, ASK, "", calls=[("c1", "search", {"q": "x"})])
SECOND = chat(2, SEEN, "it is sunny", at=2000, trace=2)


def send(receiving, protocol, compression="none"):
    """Runs a program with the real exporters of the OpenTelemetry SDK."""
    url = receiving.url if protocol == "http" else f"http://127.0.0.1:{receiving.grpc}"
    command = [sys.executable, otel_sender.__file__, protocol, url, compression]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_exporters_of_the_sdk_reach_the_store_over_both_protocols_packed_or_not(tmp_path):
    with receiver(tmp_path) as receiving:
        for protocol, compression in (("http", "none"), ("http", "gzip"), ("grpc", "none"), ("grpc", "gzip")):
            send(receiving, protocol, compression)
        found = runs(tmp_path)
        code, err = receiving.stop()
    assert [(r.agent, r.source, r.status, r.turns, r.tool_calls) for r in found] == [
        ("demo", "otlp", "completed", 2, 1)
    ] * 4
    assert code == 0
    assert "spans from demo-service (demo.genai)" in err
    assert "received 16 spans" in err


def test_a_run_shows_while_it_goes_on_and_grows(tmp_path):
    with receiver(tmp_path) as receiving:
        assert receiving.post(export(FIRST))[:2] == (200, b"{}")
        early = runs(tmp_path)
        receiving.post(gzip.compress(json.dumps(export(SECOND)).encode()), content_encoding="gzip")
        late = runs(tmp_path)
    assert [(r.status, r.turns) for r in early] == [("running", 1)]
    assert [(r.status, r.turns, r.tool_calls) for r in late] == [("completed", 2, 1)]


def test_the_same_spans_from_a_file_are_the_same_run(tmp_path):
    file = tmp_path / "traces.jsonl"
    file.write_text("".join(json.dumps(export(s)) + "\n" for s in (FIRST, SECOND)))
    with receiver(tmp_path / "home") as receiving:
        receiving.post(export(FIRST, SECOND))
        (live,) = runs(tmp_path / "home")
    with open_store(tmp_path / "home") as store:
        import_path(store, file)
        assert [r.id for r in store.runs(Filter())] == [live.id]
        assert store.run(live.id).usage == live.usage


def test_logs_are_kept_and_metrics_are_accepted_and_dropped(tmp_path):
    record = {"timeUnixNano": "1790000000000000000", "eventName": "some.event", "attributes": []}
    with receiver(tmp_path) as receiving:
        assert receiving.post(logs(record), path="/v1/logs")[0] == 200
        assert receiving.post({"resourceMetrics": [{"x": 1}]}, path="/v1/metrics")[0] == 200
        assert receiving.post(b"\x0a\x00", path="/v1/metrics", kind="application/x-protobuf")[:2] == (200, b"")
        assert [item["eventName"] for item in raw(tmp_path)] == ["some.event"]


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    with receiver(tmp_path) as receiving:
        for number in range(1, 30):
            assert receiving.post(export(span(number, trace=number)))[0] == 200
        receiving.kill()
    assert len(raw(tmp_path)) == 29


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_cleanly_and_releases_its_journal(tmp_path, number):
    with receiver(tmp_path) as receiving:
        receiving.post(export(FIRST))
        code, err = receiving.stop(number)
    assert code == 0
    assert "Traceback" not in err
    assert len(runs(tmp_path)) == 1
    assert not list((tmp_path / "journal").iterdir())


def test_secrets_never_reach_the_journal(tmp_path):
    with receiver(tmp_path) as receiving:
        receiving.post(export(chat(1, [user(f"my key is {KEY}")], "ok")))
        text = "".join(p.read_text() for p in (tmp_path / "journal").iterdir())
    assert KEY not in text
    assert "[redacted:anthropic-key]" in text


def test_without_content_only_facts_are_written(tmp_path):
    with receiver(tmp_path, LOOPTAPE_CONTENT="none") as receiving:
        receiving.post(export(chat(1, [user("a private question")], "a private answer")))
        text = "".join(p.read_text() for p in (tmp_path / "journal").iterdir())
        (run,) = runs(tmp_path)
    assert "private" not in text
    assert (run.turns, run.usage.output) == (1, 5)


def test_a_taken_port_names_who_holds_it(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RuntimeError) as caught:
            Receiver(tmp_path, "--http-port", str(port), "--no-grpc")
        said = str(caught.value)
    assert f"port {port} is taken by" in said
    assert f"(PID {os.getpid()})" in said
    assert "--http-port N" in said


def test_another_receiver_is_named_as_such_for_the_grpc_port_too(tmp_path):
    with receiver(tmp_path) as first, pytest.raises(RuntimeError) as caught:
        Receiver(tmp_path, "--http-port", "0", "--grpc-port", str(first.grpc))
    assert f"port {first.grpc} is taken by another looptape receive (PID {first.process.pid})" in str(caught.value)
    assert "--grpc-port N" in str(caught.value)


def test_the_lines_to_paste_name_the_ports_and_the_switches_of_content(tmp_path):
    with receiver(tmp_path) as receiving:
        text = "\n".join(receiving.said["environment"])
    assert f"OTEL_EXPORTER_OTLP_ENDPOINT={receiving.url}\n" in text
    for word in (
        "CAPTURE_MESSAGE_CONTENT",
        "TRACES_CONTENT_MODE=content",
        "CLAUDE_CODE_ENABLE_TELEMETRY",
        "log_user_prompt",
    ):
        assert word in text
    shell = subprocess.run(["sh", "-euc", text + "\nenv"], capture_output=True, text=True, timeout=60)
    assert "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in shell.stdout
    assert shell.stderr == ""


def test_http_alone_listens_on_one_port(tmp_path):
    with receiver(tmp_path, "--http-port", "0", "--no-grpc") as receiving:
        assert receiving.grpc is None
        assert receiving.post(export(FIRST))[0] == 200


def test_without_the_extra_one_line_says_what_to_install(tmp_path):
    program = "import sys; sys.modules['aiohttp'] = None; from looptape.tui.cli import main; main(['receive'])"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "pip install 'looptape[server]'" in done.stderr


def test_a_full_journal_asks_to_come_again_and_goes_on_when_there_is_room(tmp_path):
    folder = tmp_path / "journal"
    folder.mkdir()
    heavy = folder / "old.jsonl"
    heavy.write_bytes(b"\n" * (2 << 20))
    with receiver(tmp_path, LOOPTAPE_JOURNAL_CAP_MB="1") as receiving:
        status, body, headers = receiving.post(export(FIRST))
        assert (status, headers["Retry-After"]) == (503, "5")
        assert b"looptape" in body
        heavy.unlink()
        end = time.monotonic() + 60
        while receiving.post(export(FIRST))[0] != 200:
            assert time.monotonic() < end
            time.sleep(0.5)
    assert len(runs(tmp_path)) == 1


def test_spans_without_ids_are_counted_back_to_the_exporter(tmp_path):
    with receiver(tmp_path) as receiving:
        status, body, _ = receiving.post(export(FIRST, span(0), {"name": "no ids"}))
        assert status == 200
        assert json.loads(body)["partialSuccess"]["rejectedSpans"] == "2"
        assert len(raw(tmp_path)) == 1


def test_ids_in_base64_are_understood(tmp_path):
    import base64

    coded = {k: base64.b64encode(bytes.fromhex(FIRST[k])).decode() for k in ("traceId", "spanId")}
    with receiver(tmp_path) as receiving:
        receiving.post(export({**FIRST, **coded}))
        assert [(i["traceId"], i["spanId"]) for i in raw(tmp_path)] == [(FIRST["traceId"], FIRST["spanId"])]
