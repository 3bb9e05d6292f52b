"""Records of long loops with a growing history, a journal writer that can be killed, and checks of a whole store."""

from __future__ import annotations

import fcntl
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from looptape.tracer import paths, tape
from looptape.tracer.store import open_store

START = 1_764_424_923_000_000
SUPPORT = Path(__file__).parent
WORDS = [
    "def",
    "return",
    "self",
    "value",
    "index",
    "result",
    "config",
    "import",
    "None",
    "True",
    "error",
    "path",
    "buffer",
    "request",
    "stream",
    "assert",
    "lambda",
    "yield",
    "class",
    "state",
]


def source_text(seed: str, size: int) -> str:
    """Text like source code, different for each seed, that compresses about like code."""
    pick = random.Random(seed)
    lines, length = [], 0
    while length < size:
        words = (pick.choice(WORDS) + str(pick.randint(0, 999)) for _ in range(pick.randint(3, 9)))
        lines.append("    " * pick.randint(0, 3) + " ".join(words))
        length += len(lines[-1]) + 1
    return "\n".join(lines)[:size]


def records(run: str = "a" * 16, turns: int = 20, size: int = 200, *, ended: bool = True) -> Iterator[tape.Record]:
    """A loop that calls one tool per turn: its history grows by two messages a turn."""
    at = START
    yield {"kind": "run_start", "run": run, "at": at, "name": "long", "project": "/work", "source": "sdk"}
    for number in range(1, turns + 1):
        at += 1_000_000
        yield from one_turn(run, number, size, at)
    if ended:
        yield {"kind": "run_end", "run": run, "at": at + 900_000, "status": "completed", "reason": "end_turn"}


def one_turn(run: str, number: int, size: int, at: int) -> Iterator[tape.Record]:
    """All records of one turn: request, what the model saw of the last result, chunk, answer, the measured call."""
    call, place = f"t{number}", {"run": run, "turn": number}
    system, params = tape.blob('"You are an agent"'), tape.blob('{"max_tokens":100}')
    if number == 1:
        new = [tape.blob('{"role":"user","content":"go"}')]
    else:
        new = [tape.blob(json.dumps(m)) for m in (said(number - 1), seen(run, number - 1, size))]
    yield from (system, params, *new)
    yield {
        "kind": "turn_start", **place, "at": at, "keep": 2 * number - 3 if number > 1 else 0,
        "base": number - 1 if number > 1 else None, "append": [b["hash"] for b in new], "system": system["hash"],
        "tools": None, "params": params["hash"], "provider": "anthropic", "api": "anthropic.messages",
        "model": "claude-sonnet-4-5", "mode": "full",
    }  # fmt: skip
    if number > 1:
        yield {
            "kind": "call_seen", "run": run, "turn": number - 1, "call": f"t{number - 1}", "at": at,
            "message": new[-1]["hash"], "path": "$.content[0].content", "is_error": False,
        }  # fmt: skip
    yield {"kind": "chunk", **place, "attempt": 1, "seq": 0, "parts": [[5, "event: ping"]]}
    body = {
        "id": f"msg_{run}_{number}", "type": "message", "model": "claude-sonnet-4-5", "stop_reason": "tool_use",
        **said(number), "usage": {"input_tokens": 10, "output_tokens": 20},
    }  # fmt: skip
    response = tape.blob(json.dumps(body))
    yield response
    yield {
        "kind": "turn_end", **place, "at": at + 400_000, "status": "ok", "stop_reason": "tool_use",
        "model": "claude-sonnet-4-5", "response_id": body["id"], "response": response["hash"], "parse": "ok",
        "calls": [{"id": call, "name": "read_file", "arguments_raw": json.dumps({"path": call}), "valid": True}],
        "usage": {"input": 10, "output": 20, "origin": "recorded"}, "attempts": [{"status": 200, "wait_ms": 0}],
    }  # fmt: skip
    yield {"kind": "call_start", **place, "call": call, "name": "read_file", "at": at + 410_000, "side_effect": "read"}
    result = source_text(f"{run}{number}", size)
    yield {"kind": "call_end", **place, "call": call, "at": at + 450_000, "result": result, "is_error": False}


def said(number: int) -> dict:
    """The assistant's message of a turn."""
    block = {"type": "tool_use", "id": f"t{number}", "name": "read_file", "input": {"path": f"t{number}"}}
    return {"role": "assistant", "content": [{"type": "text", "text": f"step {number}"}, block]}


def seen(run: str, number: int, size: int) -> dict:
    """The message that carries the result of a turn's call."""
    text = source_text(f"{run}{number}", size)
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": text}]}


def journal(home: Path, name: str, lines: list[bytes], *, version: int = tape.VERSION) -> Path:
    """A finished journal whose writer is gone."""
    folder = paths.make_private(paths.journal_dir(home))
    head = {**tape.header(journal=name, pid=1, started_at=START), "version": version}
    file = folder / f"{name}.jsonl"
    file.write_bytes(tape.line(head) + b"".join(lines))
    return file


def write_forever(home: str, run: str, pause: float, torn: bool) -> None:
    """Program of a writer to be killed: prints a turn's number once all its records are written."""
    folder = paths.make_private(paths.journal_dir(Path(home)))
    name = f"{run}{os.getpid()}"
    fd = os.open(folder / f"{name}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.write(fd, tape.line(tape.header(journal=name, pid=os.getpid(), started_at=time.time_ns() // 1000)))
    for number in range(1, 100_000):
        for record in one_turn(run, number, 300, START + number * 1_000_000):
            line = tape.line(record)
            middle = len(line) // 2 if torn else 0
            if middle:
                os.write(fd, line[:middle])
                time.sleep(pause)
            os.write(fd, line[middle:])
            time.sleep(pause)
        print(number, flush=True)


def start_writer(home: Path, run: str, pause: float = 0.0005, *, torn: bool = False) -> subprocess.Popen[str]:
    """Starts `write_forever` as a process of its own."""
    code = f"import sys; sys.path.insert(0, {str(SUPPORT)!r}); import long_tape; long_tape.write_forever({str(home)!r}, {run!r}, {pause}, {torn})"
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Starts Python code as a process of its own; it finds this folder."""
    head = f"import sys; sys.path.insert(0, {str(SUPPORT)!r})\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def doubles(home: Path) -> list[tuple[str, int]]:
    """Tables that hold something twice, with how many; empty when the store is sound."""
    keys = {
        "runs": "id", "turns": "run, number", "calls": "run, turn, position", "attempts": "run, turn, number",
        "blobs": "hash", "spans": "run, position, first_turn", "chunks": "run, turn, attempt, seq", "journals": "name",
    }  # fmt: skip
    found = []
    with open_store(home, drain=False) as store:
        for table, key in keys.items():
            query = f"select count(*) - count(distinct ({key})) as n from base.{table}"
            count = store.rows(query)[0]["n"]
            if count:
                found.append((table, count))
    return found
