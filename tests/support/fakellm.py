"""A fake LLM server on loopback: Anthropic Messages, OpenAI Chat Completions and Responses, scripted.

One conversation per *scenario*; a client chooses it by its base URL, ``url(scenario)`` (+ "/v1" for OpenAI).
`FakeLLM.log` holds every exchange (request body, reply status, step index): the truth of what went over the wire.
Strict mode refuses what the real APIs refuse: calls without results, results without calls, no max_tokens.

    with FakeLLM({"revenue": Scenario([Step(calls=[Call("search", {"q": "revenue"})]), Step(text="7%")])}) as server:
        client = anthropic.Anthropic(base_url=server.url("revenue"), api_key="test")
"""

import gzip
import json
import re
import socket
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fakellm_anthropic
import fakellm_openai
import fakellm_responses
from fakellm_steps import Call, Ids, Scenario, Step

__all__ = ["ERRORS", "Call", "FakeLLM", "Scenario", "Step"]

ERRORS = {  # kind -> (status, anthropic type, openai type and code)
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded"),
    "overloaded": (529, "overloaded_error", "overloaded"),
    "bad_request": (400, "invalid_request_error", "invalid_request_error"),
    "server": (500, "api_error", "server_error"),
    "auth": (401, "authentication_error", "invalid_api_key"),
    "too_long": (400, "invalid_request_error", "context_length_exceeded"),
    "not_found": (404, "not_found_error", "not_found"),
}
_SECRET = ("authorization", "x-api-key", "api-key")
_VERTEX = re.compile(r"/publishers/anthropic/models/(.+):(rawPredict|streamRawPredict)$")
_DIALECTS = {"/messages": fakellm_anthropic, "/chat/completions": fakellm_openai, "/responses": fakellm_responses}


class FakeLLM:
    """The server; a context manager. ``chunk_delay``: seconds between events; ``ids``: "random" or "counter"."""

    def __init__(self, scenarios, strict=True, chunk_delay=0.0, ids="random"):
        self.scenarios = scenarios
        self.strict = strict
        self.chunk_delay = chunk_delay
        self.ids = Ids(ids)
        self.log = []
        self.threads = {}  # id of an answer -> the whole history up to and with it
        self.closing = threading.Event()
        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"server_of": self}))
        self.httpd.daemon_threads = True
        self.httpd.handle_error = lambda *_: None  # a client that went away is not news
        self.port = self.httpd.server_address[1]
        self.thread = threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.httpd.shutdown()
        self.httpd.server_close()

    def url(self, scenario):
        return f"http://127.0.0.1:{self.port}/s/{scenario}"


class _Gone(Exception):
    """The server hangs up on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of = None

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return super().date_time_string(self.server_of.ids.now() if timestamp is None else timestamp)

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self):
        model = {"id": "fake-model", "object": "model", "type": "model", "display_name": "Fake"}
        self._json(200, {"object": "list", "data": [model], "has_more": False})

    def do_POST(self):
        raw = self._body()
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            return self._json(400, {"error": {"message": "bad json"}})
        path = self.path.split("?")[0]
        found = re.match(r"^/s/([^/]+)(/.*)$", path)
        name, path = found.groups() if found else (next(iter(self.server_of.scenarios)), path)
        headers = {k.lower(): v for k, v in self.headers.items() if k.lower() not in _SECRET}
        entry = {"t": time.time(), "scenario": name, "path": path, "headers": headers, "body": body}
        self.server_of.log.append(entry)
        try:
            self._reply(name, path, body, entry)
        except _Gone:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        except (BrokenPipeError, ConnectionResetError):
            entry["client_gone"] = True
            self.close_connection = True
        return None

    def _body(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline().strip() or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        return gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw

    def _reply(self, name, path, body, entry):
        if path.endswith(("/count_tokens", ":countTokens")):
            entry["status"] = 200
            return self._json(200, {"input_tokens": 42, "totalTokens": 42})
        if vertex := _VERTEX.search(path):
            body = {"model": vertex[1], **body, "stream": vertex[2] == "streamRawPredict" or body.get("stream")}
        api = fakellm_anthropic if vertex else next((d for end, d in _DIALECTS.items() if path.endswith(end)), None)
        if api is None:
            return self._error(fakellm_anthropic, {"kind": "not_found", "message": path}, entry)
        body = self._whole_history(api, body, entry)
        if body is None:
            return self._error(api, {"kind": "not_found", "message": "the message continued is not known here"}, entry)
        if self.server_of.strict and (bad := api.check(body)):
            entry["strict"] = bad
            return self._error(api, {"kind": "bad_request", "message": bad}, entry)
        kind, item, entry["step"] = self.server_of.scenarios[name].next(bool(body.get("tools")))
        if kind == "error":
            return self._fault(api, item, self.server_of.scenarios[name].steps[entry["step"]], body, entry)
        entry["status"] = 200
        return self._answer(api, item, body)

    def _whole_history(self, api, body, entry):
        """The body with what the server holds of a continued conversation; None when it holds nothing."""
        key = "input" if api is fakellm_responses else "messages"
        messages = api.input_list(body) if api is fakellm_responses else list(body.get(key, []))
        thread = body.get("thread") or {}
        previous = body.get("previous_response_id") or thread.get("previous_message_id")
        if previous:
            if previous not in self.server_of.threads:
                return None
            messages = self.server_of.threads[previous] + messages
            entry["expanded_messages"] = len(messages)
        return {**body, key: messages}

    def _fault(self, api, item, step, body, entry):
        if item.get("hold"):
            self.server_of.closing.wait()
        if item.get("disconnect"):
            entry["status"] = "disconnect"
            raise _Gone
        if item.get("cut_stream") and body.get("stream"):
            entry["status"] = "cut_stream"
            return self._answer(api, step, body, cut=item["cut_stream"])
        if item.get("sse_error") and body.get("stream"):
            entry["status"] = "sse_error"
            error = api.error_body("overloaded_error", "Overloaded")
            return self._stream([_sse("error", error)], step)
        if "kind" in item:
            return self._error(api, item, entry)
        entry["status"] = 200
        return self._answer(api, step, body)

    def _answer(self, api, step, body, cut=None):
        if step.raw_sse is not None:
            blocks = re.split(r"(?<=\n\n)", step.raw_sse)
            return self._stream([b.encode("utf-8") for b in blocks if b], step, cut)
        whole = api.whole(step, body, self.server_of.ids)
        if cut is None and hasattr(api, "history") and body.get("store", True):
            key = "input" if api is fakellm_responses else "messages"
            self.server_of.threads[whole["id"]] = body[key] + api.history(whole)
        if body.get("stream"):
            return self._stream([_sse(*e) for e in api.events(whole, body)], step, cut)
        return self._json(200, whole, zipped=step.gzip)

    def _error(self, api, item, entry):
        status, anthropic_type, openai_type = ERRORS[item["kind"]]
        entry["status"] = status
        kind = anthropic_type if api is fakellm_anthropic else openai_type
        headers = dict(item.get("headers") or {})
        if status in (429, 529):
            headers.setdefault("retry-after-ms", "20")
        self._json(status, api.error_body(kind, item.get("message", f"fake {item['kind']}")), headers)

    def _json(self, status, value, headers=None, zipped=False):
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        if zipped:
            data = gzip.compress(data, mtime=0)
        told = {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}
        self._head(status, {**told, "content-encoding": "gzip"} if zipped else told)
        self.wfile.write(data)

    def _head(self, status, headers):
        self.send_response(status)
        for key, value in {"request-id": self.server_of.ids.new("req_"), **headers}.items():
            self.send_header(key, value)
        self.end_headers()

    def _stream(self, events, step, cut=None):
        """Events as chunks of one answer; after ``cut`` of them the connection is closed."""
        headers = {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}
        self._head(200, {**headers, "content-encoding": "gzip"} if step.gzip else headers)
        packer = zlib.compressobj(wbits=31) if step.gzip else None
        delay = self.server_of.chunk_delay if step.chunk_delay is None else step.chunk_delay
        for number, data in enumerate(events):
            if step.pause_after == number:
                self._pause(step)
            if cut is not None and number >= cut:
                raise _Gone
            self._chunk(packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH) if packer else data)
            if delay:
                time.sleep(delay)
        if packer:
            self._chunk(packer.flush())
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _pause(self, step):
        step.reached.set()
        closing = self.server_of.closing
        while not (step.gate or closing).wait(0.02) and not closing.is_set():
            pass


def _sse(event, data):
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    named = f"event: {event}\n" if event else ""
    return f"{named}data: {text}\n\n".encode("utf-8", "surrogatepass")
