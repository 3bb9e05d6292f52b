"""What happened in a replay, as append-only JSON lines: verdicts of several processes add up and survive a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...tracer.fork_lock import ForkLock

Event = dict[str, Any]

KINDS = (
    "opened",        # run, parent: a new run was opened
    "served_model",  # run, turn, attempt, last, digest, by: a recorded answer was given
    "served_tool",   # run, turn, call, name, digest: a recorded result was given
    "live_model",    # turn, model: a request was sent for real
    "live_cost",     # usd, model: what such a request has cost, where --max-cost is given
    "live_tool",     # name, turn, stub: a tool ran for real, or a stub stood in
    "bypassed",      # run, turn, call, name: a tool that is not wrapped ran by itself
    "network",       # address, blocked: a connection off this machine
    "normalised",    # run, turn, path, rule
    "drift",         # run, turn, path, recorded, got: what `dialogue` lets pass
    "miss",          # run, turn, path, recorded, got, nearest, cure, text, action
    "unwrapped",     # names
    "stopped",       # reason
    "note",          # text
)  # fmt: skip


class Events:
    """The events of one process: in memory, and in a file where one is given (made with its first event)."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = Path(path) if path is not None else None
        self._pid = os.getpid()
        self._read: dict[str, int] = {}
        self._all: list[Event] = []
        self._lock = ForkLock()

    def add(self, event: str, **fields: Any) -> None:
        """Tells an event of one of `KINDS`."""
        told = {"event": event, **fields}
        with self._lock:
            self._all.append(told)
            path = self._own()
            if path is None:
                return
            line = json.dumps(told, ensure_ascii=True, default=str).encode("ascii") + b"\n"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(handle, line)  # one write: lines of several processes never mix
            finally:
                os.close(handle)

    def of_others(self) -> list[Event]:
        """What other processes of the same folder have told since this was asked last."""
        with self._lock:
            own = self._own()
            if own is None or not own.parent.is_dir():
                return []
            found: list[Event] = []
            for file in os.scandir(own.parent):
                start = self._read.get(file.name, 0)
                if file.name == own.name or not file.name.endswith(".jsonl") or file.stat().st_size <= start:
                    continue
                with open(file.path, "rb") as lines:
                    lines.seek(start)
                    whole = lines.read().rpartition(b"\n")[0] + b"\n"
                self._read[file.name] = start + (len(whole) if len(whole) > 1 else 0)
                found += _lines(whole.splitlines())
            return found

    def _own(self) -> Path | None:
        """The file of this process; a forked child has one of its own, so that its parent sees what it was given."""
        if self._path is not None and self._pid != os.getpid():
            self._pid = os.getpid()
            self._path = self._path.with_name(f"{self._pid}-{self._path.name}")
        return self._path

    def all(self) -> list[Event]:
        """Every event of this process so far."""
        with self._lock:
            return list(self._all)


def read(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a file, or of every file of a folder. A line that a kill cut is left out."""
    place = Path(path)
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    found: list[Event] = []
    for file in files:
        if file.exists():
            found += _lines(file.read_bytes().splitlines())
    return found


def of_kind(events: Iterable[Mapping[str, Any]], *kinds: str) -> list[Mapping[str, Any]]:
    """The events of some kinds, in order."""
    return [e for e in events if e.get("event") in kinds]


def _lines(lines: Iterable[bytes]) -> list[Event]:
    found = []
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found
