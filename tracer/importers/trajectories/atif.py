"""ATIF trajectories (Harbor and others): agent steps are turns, embedded trajectories are child runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ... import tape
from ...canonical import canonical, digest, stable_id
from ...errors import LooptapeError
from ...providers.answer import mapping, objects, text_of
from .. import reading
from ..context import Context, Source
from ..document import document
from ..report import Notes
from .atif_steps import Steps, known

FORMAT = "atif"
TITLE = "ATIF trajectory, version 1"

NEWEST = 8
MAX_DEPTH = 20

_VERSION = re.compile(r"ATIF-v(\d+)\.(\d+)")
_SIGN = re.compile(rb'"schema_version"\s*:\s*"ATIF-v\d')
_FIELDS = frozenset(
    {
        "schema_version", "session_id", "trajectory_id", "agent", "steps", "notes", "final_metrics",
        "continued_trajectory_ref", "extra", "subagent_trajectories",
    }
)  # fmt: skip
_TEXTS = ("name", "title", "agent", "project", "session", "task", "git_commit")


def recognise(head: bytes) -> bool:
    """True when the document names an ATIF version."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and _SIGN.search(head) is not None


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The runs of a document, or of several, one a line.

    Raises:
        LooptapeError: It is of a version that cannot be read (``newer-format``), or too large.
    """
    for line, value in _documents(source, notes):
        if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
            notes.skip(line, "no trajectory (an object with a list of steps)")
            continue
        _check(value, source, line, notes)
        notes.counts["objects"] += 1
        yield from _trajectory(value, notes, None, 0)


def _documents(source: Source, notes: Notes) -> Iterator[tuple[int, Any]]:
    first, _, rest = source.head().partition(b"\n")
    if first.rstrip().endswith(b"}") and rest.strip():
        for line, value in reading.objects(source.lines(), notes):
            notes.counts["objects"] -= 1  # counted again when it is a trajectory
            yield line, value
    elif (value := document(source, notes)) is not None:
        yield 1, value


def _check(value: dict[str, Any], source: Source, line: int, notes: Notes) -> None:
    said = text_of(value.get("schema_version")) or ""
    version = _VERSION.match(said)
    if version is None:
        notes.warn("a trajectory does not say its ATIF version; it is read as 1.8")
    elif version[1] != "1":
        raise LooptapeError(
            "newer-format",
            f"{source.label}: line {line}: {said[:40]} cannot be read, only ATIF-v1.0 to v1.{NEWEST}",
            "Nothing of it was imported; a newer looptape may know it",
        )
    elif int(version[2]) > NEWEST:
        notes.warn(f"{said[:40]} is newer than the newest known version (1.{NEWEST}): parts may be missing")


def _trajectory(
    value: dict[str, Any], notes: Notes, parent: dict[str, Any] | None, depth: int
) -> Iterator[tape.Record]:
    known(value, _FIELDS, "trajectory", notes)
    run = _identity(value, parent)
    notes.runs[run] = None
    ours = mapping(mapping(value.get("extra")).get("looptape"))
    steps = Steps(run, value, _facts(value, ours, parent), notes)
    yield from steps.run.drain()
    for number, step in enumerate(value["steps"], 1):
        steps.take(number, step)
        yield from steps.run.drain()
    _end(steps, value, ours)
    if parent is None:
        notes.turns += steps.run.turns
        notes.tool_calls += steps.run.calls
    else:
        notes.counts["sub_agent_turns"] += steps.run.turns
        notes.counts["sub_agent_calls"] += steps.run.calls
    yield from steps.run.drain()
    for child in objects(value.get("subagent_trajectories")):
        if depth >= MAX_DEPTH or not isinstance(child.get("steps"), list):
            notes.strange("embedded trajectory without steps" if depth < MAX_DEPTH else "trajectory nested too deeply")
            continue
        notes.counts["sub_agents"] += 1
        turn, call = steps.children.get(str(child.get("trajectory_id")), (None, None))
        above = {"run": run, "turn": turn, "call": call, "kind": "sub-agent"}
        yield from _trajectory(child, notes, {k: v for k, v in above.items() if v is not None}, depth + 1)


def _identity(value: dict[str, Any], parent: dict[str, Any] | None) -> str:
    """From the document's own id; that of a session is shared by its parts, which their first steps tell apart."""
    own, session = text_of(value.get("trajectory_id")), text_of(value.get("session_id"))
    if parent is not None:
        return stable_id(FORMAT, parent["run"], own or digest(canonical(value["steps"][:1])))
    if own:
        return stable_id(FORMAT, own)
    first = digest(canonical(value["steps"][:1] if session else value))
    return stable_id(FORMAT, session or "", first)


def _facts(value: dict[str, Any], ours: dict[str, Any], parent: dict[str, Any] | None) -> dict[str, Any]:
    agent = mapping(value.get("agent"))
    name, version = text_of(agent.get("name")), text_of(agent.get("version"))
    found: dict[str, Any] = {
        "name": name,
        "agent": name,
        "session": text_of(value.get("session_id")),
        "versions": {name: version} if name and version else None,
        "parent": parent,
    }
    if ours:  # our own export: what it does not say was not known
        found |= {"name": None, "agent": None}
    found |= {k: ours[k] for k in _TEXTS if isinstance(ours.get(k), str)}
    for key in ("tags", "versions"):
        texts = {k: v for k, v in mapping(ours.get(key)).items() if isinstance(v, str)}
        found[key] = texts or found.get(key)
    return found


def _end(steps: Steps, value: dict[str, Any], ours: dict[str, Any]) -> None:
    run = steps.run
    if isinstance(ours.get("outcome"), dict):
        run.update(outcome=ours["outcome"])
    if text_of(value.get("notes")):
        run.event("notes", text=value["notes"])
    foreign = {k: v for k, v in mapping(value.get("extra")).items() if k != "looptape"}
    if foreign:
        run.event("extra", extra=foreign)
    steps.totals(mapping(value.get("final_metrics")))
    going_on = text_of(value.get("continued_trajectory_ref"))
    status = ours.get("status")
    if isinstance(status, str) and status in _STATUSES:
        run.end(status, text_of(ours.get("reason")), reading.micros(ours.get("ended_at")))
    elif going_on:
        run.end("unknown", f"goes on in another file: {going_on[:200]}")
    else:
        run.end()


_STATUSES = ("completed", "limit", "halted", "failed", "interrupted", "unknown")
