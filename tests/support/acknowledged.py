"""Agents as processes of their own that note what their journal acknowledged, and the proof that a store holds it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from looptape.tracer import paths, tape
from looptape.tracer.journal import Journal
from looptape.tracer.store import open_store

SUPPORT = Path(__file__).parent
PRELUDE = """
import json, os, signal, sys
sys.path.insert(0, SUPPORT)
import looptape
from looptape.tracer import journal, process, streams, tape

_side = os.open(os.environ["ACKNOWLEDGED"] + f"-{os.getpid()}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
_write = journal.Journal.write
def _acknowledge(self, records):
    done = _write(self, records)
    if done:
        os.write(_side, b"".join(map(tape.line, records)))
    return done
journal.Journal.write = _acknowledge
def say(text):
    os.write(1, (text + "\\n").encode())
"""


def start(home: Path, code: str, *, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.Popen[str]:
    """Starts an agent that records into ``home``; ``say(text)`` prints."""
    told = {"LOOPTAPE_HOME": str(home), "ACKNOWLEDGED": str(side_file(home)), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE.replace("SUPPORT", repr(str(SUPPORT))) + code],
        env={**os.environ, **told, **environment}, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@contextmanager
def noting(home: Path) -> Iterator[None]:
    """The same in this process: what any journal acknowledges inside the block is noted."""
    real = Journal.write

    def write(self: Journal, records: Sequence[tape.Record]) -> bool:
        done = real(self, records)
        if done:
            with open(f"{side_file(home)}-{os.getpid()}", "ab") as file:
                file.write(b"".join(map(tape.line, records)))
        return done

    with patch.object(Journal, "write", write):
        yield


def side_file(home: Path) -> Path:
    """Where agents note what was acknowledged (with their process id behind it): beside the store, not in it."""
    return home.with_name(f"{home.name}-acknowledged")


def acknowledged(home: Path) -> list[tape.Record]:
    """The records whose writing was reported as done (the note itself may be torn by a kill)."""
    found = []
    for file in sorted(home.parent.glob(f"{side_file(home).name}-*")):
        with open(file, "rb") as lines:
            found += [r for _, r in tape.read_lines(lines) if isinstance(r, dict)]
    return found


def missing(home: Path) -> list[tape.Record]:
    """Acknowledged records that the store does not hold after a drain."""
    with open_store(home) as store:
        held = {
            "blob": {(str(r["hash"]).replace("-", ""),) for r in store.rows("select hash from base.blobs")},
            "turn_start": {(r["run"], r["number"]) for r in store.rows("select run, number from base.turns where started_at is not null")},
            "turn_end": {(r["run"], r["number"]) for r in store.rows("select run, number from base.turns where ended_at is not null and status not in ('open', 'interrupted')")},
            "chunk": {tuple(r.values()) for r in store.rows("select run, turn, attempt, seq from base.chunks")},
            "call_start": {tuple(r.values()) for r in store.rows("select run, turn, id from base.calls where measured_start is not null")},
            "call_end": {tuple(r.values()) for r in store.rows("select run, turn, id from base.calls where measured_end is not null")},
            "call_seen": {tuple(r.values()) for r in store.rows("select run, turn, id from base.calls where seen_at is not null")},
            "run_start": {(r["id"],) for r in store.rows("select id from base.runs")},
        }  # fmt: skip
    keys = {
        "blob": ("hash",), "turn_start": ("run", "turn"), "turn_end": ("run", "turn"), "run_start": ("run",),
        "chunk": ("run", "turn", "attempt", "seq"),
        **dict.fromkeys(("call_start", "call_end", "call_seen"), ("run", "turn", "call")),
    }  # fmt: skip
    found = []
    for record in acknowledged(home):
        key = tuple(record[k] for k in keys.get(record["kind"], ()))
        if record["kind"] in held and key not in held[record["kind"]]:
            found.append(record)
    return found


def journal_lines(home: Path) -> list[tape.Record]:
    """Every record in the journals as they lie there."""
    found = []
    for file in sorted(paths.journal_dir(home).glob("*.jsonl")):
        with open(file, "rb") as lines:
            found += [r for _, r in tape.read_lines(lines) if isinstance(r, dict)]
    return found


def every_byte(home: Path) -> bytes:
    """The content of every file below a store directory."""
    return b"\n".join(p.read_bytes() for p in sorted(home.rglob("*")) if p.is_file())
