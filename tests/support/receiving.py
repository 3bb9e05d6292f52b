"""A receiver in its own process, on free loopback ports, and what the store has of what it took."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

from looptape.tracer.store import Filter, open_store

CLI = [sys.executable, "-P", "-m", "looptape.tui.cli", "receive", "--json"]


class Receiver:
    """The running process, where it listens, and the store directory it writes to."""

    def __init__(self, home, *options, **environment):
        self.home = home
        self.process = subprocess.Popen(
            [*CLI, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "LOOPTAPE_HOME": str(home), **environment},
        )
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate(timeout=60)[1])
        self.said = json.loads(line)
        self.port = self.said["http_port"]
        self.grpc = self.said["grpc_port"]
        self.url = f"http://127.0.0.1:{self.port}"

    def post(self, body, path="/v1/traces", kind="application/json", method="POST", **headers):
        """Status, body and headers of the answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"content-type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}}
        request = urllib.request.Request(self.url + path, data, named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read(), refused.headers

    def stop(self, number=signal.SIGTERM):
        """Exit code and what it said on stderr."""
        self.process.send_signal(number)
        err = self.process.communicate(timeout=60)[1]
        return self.process.returncode, err

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=60)

    def rows(self):
        """(signal, span name or log's event) of what was stored."""
        return raw(self.home)


@contextmanager
def receiver(home, *options, **environment):
    """A receiver on free ports; killed at the end when it still runs."""
    ports = [] if "--http-port" in options else ["--http-port", "0", "--grpc-port", "0"]
    made = Receiver(home, *ports, *options, **environment)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.kill()


def raw(home):
    """Raw items in the store, drained first."""
    with open_store(home) as store:
        return [
            json.loads(r["item_json"]) for r in store.rows("select item_json from base.otlp_spans order by started_at")
        ]


def runs(home):
    """Runs of the store, oldest first."""
    with open_store(home) as store:
        return sorted(store.runs(Filter(limit=0, include_empty=True)), key=lambda r: r.started_at or 0)


def attributes(**named):
    """OTLP/JSON attributes; `_` stands for a dot, `__` for an underscore."""

    def value(v):
        if isinstance(v, bool):
            return {"boolValue": v}
        return (
            {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v if isinstance(v, str) else json.dumps(v)}
        )

    return [{"key": k, "value": value(v)} for k, v in named.items()]


def span(number, *, trace=1, parent=None, name="chat m-1", at=1_000, ended=500, **named):
    """A span; `at` ms after a fixed time, `ended` ms later (None: still open)."""
    start = 1_790_000_000_000_000_000 + at * 1_000_000
    item = {
        "traceId": f"{trace:032x}", "spanId": f"{number:016x}", "name": name, "kind": 3,
        "startTimeUnixNano": str(start), "attributes": attributes(**named),
    }  # fmt: skip
    if ended is not None:
        item["endTimeUnixNano"] = str(start + ended * 1_000_000)
    return {**item, "parentSpanId": f"{parent:016x}"} if parent else item


def chat(number, asked, answer, *, calls=(), results=None, response="", **more):
    """A GenAI chat span: messages as (role, text) pairs, tool calls as (id, name, arguments)."""
    said = ([{"type": "text", "content": answer}] if answer else []) + [
        {"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a in calls
    ]
    return span(number, **more, **{
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.response.model": "claude-sonnet-4-5",
        "gen_ai.response.id": response or f"msg_{number}",
        "gen_ai.usage.input_tokens": 10 * number,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.input.messages": asked,
        "gen_ai.output.messages": [{"role": "assistant", "parts": said}],
    })  # fmt: skip


def user(text):
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def called(i, name, arguments):
    return {"role": "assistant", "parts": [{"type": "tool_call", "id": i, "name": name, "arguments": arguments}]}


def answered(i, result):
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": i, "response": result}]}


def export(*spans, service="agent", scope="my.genai.instrumentation"):
    """An export request."""
    resource = {"attributes": attributes(**{"service.name": service})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}


def logs(*records, service="agent"):
    resource = {"attributes": attributes(**{"service.name": service})}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": list(records)}]}]}
