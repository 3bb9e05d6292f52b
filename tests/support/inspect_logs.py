"""Small Inspect logs for tests: a sample with a tool, a failing tool and a score, as .json and as .eval."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from typing import Any

SECRET = "sk-ant-" + "a1B2c3D4" * 5
_START = "2026-05-12T20:27:38.{:06d}+00:00"


def at(step: int) -> str:
    """A time, ``step`` milliseconds into the sample."""
    return _START.format(step * 1000)


def call(number: int, **arguments: Any) -> dict[str, Any]:
    """A tool call of an assistant message."""
    return {"id": f"c{number}", "function": "bash", "arguments": arguments, "type": "function"}


def said(text: str, *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An assistant message."""
    return {
        "role": "assistant",
        "content": text,
        "source": "generate",
        **({"tool_calls": [*calls]} if calls else {}),
        **more,
    }


def output(message: dict[str, Any], stop: str, *, read: int = 0, input: int = 100) -> dict[str, Any]:
    """A model's output; its input includes what was read from a cache, as with OpenAI."""
    usage = {"input_tokens": input, "output_tokens": 7, "total_tokens": input + 7, "input_tokens_cache_read": read}
    return {"model": "gpt-5-mini", "choices": [{"message": message, "stop_reason": stop}], "usage": usage}


def model(step: int, given: list[Any], answer: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A model event."""
    event = {"event": "model", "timestamp": at(step), "completed": at(step + 5), "model": "openai/gpt-5-mini"}
    tools = [{"name": "bash", "description": "attachment://" + "b" * 32, "parameters": {"type": "object"}}]
    return {
        **event,
        "input": given,
        "tools": tools,
        "tool_choice": "auto",
        "config": {"max_tokens": 9},
        "output": answer,
        **more,
    }


def tool(step: int, number: int, result: Any, **more: Any) -> dict[str, Any]:
    """A tool event."""
    event = {"event": "tool", "timestamp": at(step), "completed": at(step + 3), "id": f"c{number}", "function": "bash"}
    return {**event, "arguments": {}, "result": result, **more}


def sample(**more: Any) -> dict[str, Any]:
    """Three turns: two parallel calls of which one fails, one call after that, the last word."""
    prompt = {"role": "user", "content": "attachment://" + "a" * 32, "source": "input", "id": "m1"}
    first = said("I look", call(1, cmd="ls"), call(2, cmd="false"), id="m2")
    good = {"role": "tool", "content": f"a.txt {SECRET}", "tool_call_id": "c1", "function": "bash"}
    bad = {"role": "tool", "content": "", "tool_call_id": "c2", "error": {"type": "timeout", "message": "too slow"}}
    second = said("again", call(3, cmd="cat a.txt"), id="m3")
    late = {"role": "tool", "content": "42", "tool_call_id": "c3"}
    last = said("It is 42", id="m4")
    error = {"error": {"type": "timeout", "message": "too slow"}}
    events = [
        {"event": "sample_init", "timestamp": at(0), "sample": {}, "state": {}},
        {"event": "span_begin", "timestamp": at(0), "id": "s1", "type": "solver", "name": "react"},
        model(10, [prompt], output(first, "tool_calls"), span_id="s1"),
        tool(20, 1, f"a.txt {SECRET}", span_id="s1"),
        tool(21, 2, "", span_id="s1", **error),
        model(30, [prompt, first, good, bad], output(second, "tool_calls", read=60), span_id="s1"),
        tool(40, 3, "42", span_id="s1"),
        model(50, [prompt, first, good, bad, second, late], output(last, "stop"), span_id="s1"),
        {"event": "span_end", "timestamp": at(60), "id": "s1"},
        {"event": "score", "timestamp": at(61), "score": {"value": "C"}},
    ]
    return {
        "id": 7,
        "epoch": 2,
        "uuid": "U7",
        "input": "attachment://" + "a" * 32,
        "messages": [prompt, first, good, bad, second, late, last],
        "scores": {"match": {"value": "C", "answer": "42", "explanation": "equal"}, "judge": {"value": 0.5}},
        "events": events,
        "model_usage": {"openai/gpt-5-mini": {"total_tokens": 321}},
        "attachments": {"a" * 32: "What is the answer?", "b" * 32: "runs a command"},
        **more,
    }


def header(**more: Any) -> dict[str, Any]:
    """The head of a log."""
    spec = {
        "eval_id": "E1", "run_id": "R1", "task_id": "T1", "created": at(0), "task": "arith", "model": "openai/gpt-5-mini",
        "packages": {"inspect_ai": "0.3.200"}, "revision": {"commit": "abc"}, "config": {"token_limit": 5000},
        "scorers": [{"name": "match"}, {"name": "judge"}],
    }  # fmt: skip
    return {"version": 2, "status": "success", "eval": spec, "results": {}, **more}


def document(*samples: Any, **more: Any) -> bytes:
    """A .json log."""
    return json.dumps({**header(**more), "samples": [*samples]}, indent=1).encode()


def packed(*samples: Any, head: bool = True, zstd: Any = None, members: dict[str, bytes] | None = None) -> bytes:
    """An .eval log; ``zstd`` compresses (a function), else entries are deflated."""
    files = {"_journal/start.json": json.dumps({k: header()[k] for k in ("version", "eval")}).encode()}
    for number, one in enumerate(samples, 1):
        data = one if isinstance(one, bytes) else json.dumps(one).encode()
        files[f"samples/{number}_epoch_1.json"] = data
    if head:
        files["header.json"] = json.dumps(header()).encode()
    files |= members or {}
    return zipped(files, zstd) if zstd else _deflated(files)


def zipped(files: dict[str, bytes], compress: Any, method: int = 93) -> bytes:
    """A zip whose entries are compressed by a function (Python before 3.14 cannot write zstd entries)."""
    body, table = b"", b""
    for name, data in files.items():
        stored, title = compress(data), name.encode()
        sizes = struct.pack("<III", zlib.crc32(data), len(stored), len(data))
        table += b"PK\x01\x02" + struct.pack("<HHHHHH", 63, 63, 0, method, 0, 0) + sizes
        table += struct.pack("<HHHHHII", len(title), 0, 0, 0, 0, 0, len(body)) + title
        body += b"PK\x03\x04" + struct.pack("<HHHHH", 63, 0, method, 0, 0) + sizes
        body += struct.pack("<HH", len(title), 0) + title + stored
    end = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), len(table), len(body), 0)
    return body + table + b"PK\x05\x06" + end


def _deflated(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()
