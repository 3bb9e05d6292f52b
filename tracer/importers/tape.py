"""Native tapes, and journals that were copied from elsewhere (a pod, a CI artifact).

Nobody writes a copied file any more: a run that is still open in it was cut off and becomes interrupted
(its open turns and calls follow from that).
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .. import ci_tape, tape
from ..canonical import digest
from ..errors import LooptapeError
from .context import Context, Source
from .reading import first_objects, objects
from .report import Notes

FORMAT = "tape"
TITLE = "looptape tape or journal"

_HASHES = ("hash", "system", "tools", "params", "response", "message")


@dataclass(slots=True)
class _Run:
    """What a tape has said of a run so far."""

    parent: str | None = None
    last_at: int | None = None
    ended: bool = False
    turns: set[int] = field(default_factory=set)
    calls: set[tuple[int, str]] = field(default_factory=set)


def recognise(head: bytes) -> bool:
    """True for the header of a tape, or for its records when the header is missing."""
    for value in first_objects(head):
        if value.get("kind") == "header" and value.get("format") == tape.FORMAT:
            return True
        if value.get("kind") in tape.KINDS and (isinstance(value.get("run"), str) or "hash" in value):
            return True
    return False


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The records as they stand, secrets removed, followed by the ends of what was cut off."""
    runs: dict[str, _Run] = {}
    renamed: dict[str, str] = {}
    written = any(map(_is_written, source.files))  # asked first: what a writer adds and then goes is read the next time
    for number, record in ci_tape.restored(objects(source.lines(), notes), ids=True):
        kind = record.get("kind")
        notes.line = number
        if kind == "header":
            _refuse_newer(record, source.label, number)
            continue
        if kind not in tape.KINDS:
            notes.strange(f"record {str(kind)[:60]}")
            continue
        if kind == "otlp":
            notes.counts["otlp_records"] += 1  # runs are put together from them when the store is read
            yield record
            continue
        if kind == "blob":
            _rename(record, renamed)
        elif renamed:
            _refer(record, renamed)
        problem = _problem(record)
        if problem:
            notes.skip(number, problem)
            continue
        if kind != "blob":
            _follow(runs.setdefault(record["run"], _Run()), record)
        yield record
    notes.line = 0
    if not written:
        yield from _ends(runs, notes)
    _count(runs, notes)


def _refuse_newer(record: tape.Record, label: str, number: int) -> None:
    version = record.get("version")
    if isinstance(version, int) and version > tape.VERSION:
        raise LooptapeError(
            "tape-newer",
            f"{label}: line {number}: tape version {version} was written by a newer looptape; "
            f"this one reads up to {tape.VERSION}",
            "Upgrade with: pip install --upgrade looptape",
        )


def _problem(record: tape.Record) -> str | None:
    kind = record["kind"]
    if kind == "blob":
        whole = isinstance(record.get("hash"), str) and isinstance(record.get("text", ""), str)
        return None if whole else "a blob record without hash or text"
    if not isinstance(record.get("run"), str) or not record["run"]:
        return f"a {kind} record without a run"
    turn = record.get("turn")
    if kind.startswith(("turn_", "call_", "chunk")) and not (isinstance(turn, int) and turn >= 1):
        return f"a {kind} record without a turn"
    if kind.startswith("call_") and not isinstance(record.get("call"), str):
        return f"a {kind} record without a call"
    return None


def _rename(record: tape.Record, renamed: dict[str, str]) -> None:
    # a secret that was removed here changes the text, and with it the name that others call it by
    text, given = record.get("text"), record.get("hash")
    if isinstance(text, str) and isinstance(given, str):
        name = digest(text)
        if name != given:
            renamed[given] = record["hash"] = name


def _refer(record: tape.Record, renamed: dict[str, str]) -> None:
    for name in _HASHES:
        value = record.get(name)
        if isinstance(value, str) and value in renamed:
            record[name] = renamed[value]
    appended = record.get("append")
    if isinstance(appended, list):
        record["append"] = [renamed.get(h, h) if isinstance(h, str) else h for h in appended]


def _follow(run: _Run, record: tape.Record) -> None:
    kind, at = record["kind"], record.get("at")
    if isinstance(at, int):
        run.last_at = at if run.last_at is None else max(at, run.last_at)
    if kind == "run_start":
        parent = record.get("parent")
        if isinstance(parent, dict) and parent.get("kind") == "sub-agent":
            run.parent = str(parent.get("run"))
    elif kind == "run_end":
        run.ended = True
    elif kind == "turn_start":
        run.turns.add(record["turn"])
        run.ended = False
    elif kind == "turn_end":
        calls = record.get("calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                run.calls.add((record["turn"], call["id"]))
    elif kind.startswith("call_"):
        run.calls.add((record["turn"], record["call"]))


def _is_written(path: Path) -> bool:
    """True for a journal whose writer lives and holds its lock: then nothing in it was cut off."""
    with path.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _ends(runs: dict[str, _Run], notes: Notes) -> Iterator[tape.Record]:
    for name, run in runs.items():
        if run.ended:
            continue
        notes.counts["runs_cut_off"] += 1
        where = f" at turn {max(run.turns)}" if run.turns else ""
        reason = f"the process ended without a word (killed?){where}"
        yield {"kind": "run_end", "run": name, "at": run.last_at, "status": "interrupted", "reason": reason}


def _count(runs: dict[str, _Run], notes: Notes) -> None:
    for name, run in runs.items():
        notes.runs[name] = None
        if run.parent in runs:
            notes.counts["sub_agents"] += 1
            notes.counts["sub_agent_turns"] += len(run.turns)
            notes.counts["sub_agent_calls"] += len(run.calls)
        else:
            notes.turns += len(run.turns)
            notes.tool_calls += len(run.calls)
