"""Damaged session files: never a traceback, never a hang, never a lost file without a word."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claude_session import SessionLines, call
from examples import examples
from looptape.tracer import tape as tapes
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import IMPORTERS, recognise, tape
from looptape.tracer.importers.claude import claude_code
from looptape.tracer.importers.context import Context, Source
from looptape.tracer.importers.report import Notes
from looptape.tracer.store import Filter, memory_store


def _valid() -> list[bytes]:
    lines = SessionLines()
    lines.user("go")
    lines.answer("m1", {"type": "thinking", "thinking": "hm", "signature": "c2ln"}, call("t1", "Task", prompt="p"))
    inner = {"type": "assistant", "message": {"id": "c1", "content": [call("g1")], "usage": {"output_tokens": 3}}}
    lines.add("progress", data={"type": "agent_progress", "agentId": "a1", "message": inner}, parentToolUseID="t1")
    lines.result("t1", [{"type": "text", "text": "ok"}], toolUseResult={"agentId": "a1"})
    lines.user("side", isSidechain=True)
    lines.answer("s1", "aside", isSidechain=True)
    lines.add("system", subtype="compact_boundary", compactMetadata={"preTokens": 10})
    lines.user("summary", isCompactSummary=True)
    lines.add("system", subtype="api_error", error={"status": 529})
    lines.answer("x", "API Error", model="<synthetic>", isApiErrorMessage=True)
    lines.answer("m2", "done", stop="end_turn")
    lines.raw('{"type":"summary","summary":"t","leafUuid":"u000002"}')
    return [line.encode() + b"\n" for line in lines.lines]


def _tape() -> list[bytes]:
    notes, source = Notes(), Source("-", stream=io.BytesIO(b"".join(VALID)))
    records = list(claude_code.records(source, notes, Context()))
    return [tapes.line(r) for r in [tapes.header(writer="x"), *records]]


VALID = _valid()
TAPE = _tape()
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 10**30, 1.5, "", "\ud800", "x" * 300, [], [[]], {}, {"type": []}, [None], "2026-99-99T00:00:00Z"]
)


@st.composite
def _damaged(draw: st.DrawFn, valid: list[bytes]) -> bytes:
    lines = list(valid)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(lines) - 1))
        way = draw(st.sampled_from(["cut", "bytes", "value", "value", "value", "gone", "twice", "glue", "swap"]))
        line = lines[at]
        if way == "cut":
            lines[at] = line[: draw(st.integers(0, len(line)))]
        elif way == "bytes":
            place = draw(st.integers(0, len(line)))
            lines[at] = line[:place] + draw(st.binary(max_size=8)) + line[place:]
        elif way == "value":
            lines[at] = _changed(draw, line)
        elif way == "gone":
            lines[at] = b"\n"
        elif way == "twice":
            lines.insert(at, line)
        elif way == "glue":
            lines[at] = line.rstrip(b"\n")
        else:
            other = draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
    return b"".join(lines)


def _changed(draw: st.DrawFn, line: bytes) -> bytes:
    """The line with one value somewhere in it put to something odd."""
    try:
        value = json.loads(line)
    except ValueError:
        return line
    node = value
    while isinstance(node, (dict, list)) and node:
        keys = sorted(node) if isinstance(node, dict) else list(range(len(node)))
        key = draw(st.sampled_from(keys))
        child = node[key]
        if not isinstance(child, (dict, list)) or not child or draw(st.booleans()):
            node[key] = draw(ODD)
            break
        node = child
    return json.dumps(value).encode() + b"\n"


def _read(importer: Any, data: bytes) -> tuple[list[dict[str, Any]], Notes]:
    notes = Notes()
    return list(importer.records(Source("-", stream=io.BytesIO(data)), notes, Context())), notes


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_damaged(VALID))
def test_damaged_sessions_never_raise_and_give_records_that_a_tape_can_hold(data: bytes) -> None:
    records, notes = _read(claude_code, data)
    for record in records:
        assert record["kind"] in tapes.KINDS
        tapes.line(record)
    assert notes.counts["objects"] == 0 or notes.runs, "a file with objects is never lost without a word"
    known: set[str] = set()
    for record in records:
        known |= {record["hash"]} if record["kind"] == "blob" else set()
        assert set(record.get("append", ())) <= known, "a blob precedes its first reference"


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_damaged(VALID))
def test_damaged_sessions_are_stored_and_can_be_read_back(data: bytes) -> None:
    with memory_store() as store:
        kept = store.ingest(_read(claude_code, data)[0])
        assert kept.bad == []
        for run in store.runs(Filter(limit=0, include_empty=True)):
            for turn in store.turns(run.id):
                store.request(run.id, turn.number)
                assert all(c.ms is None or c.ms >= 0 for c in turn.tool_calls)


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_damaged(TAPE))
def test_damaged_tapes_never_raise_but_for_a_newer_version(data: bytes) -> None:
    try:
        records, notes = _read(tape, data)
    except LooptapeError:  # a changed header may ask for a version that we do not know
        return
    assert all(r["kind"] in tapes.KINDS for r in records)
    assert notes.runs or not records or all(r["kind"] == "blob" for r in records)


@settings(max_examples=examples(80), deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_recognised_or_refused(data: bytes) -> None:
    with contextlib.suppress(LooptapeError):
        assert recognise(data, "x") in IMPORTERS


def test_a_line_nested_too_deeply_is_skipped_and_the_rest_imported() -> None:
    deep = b'{"type":"user","message":{"content":' + b"[" * 100_000 + b"]" * 100_000 + b"}}\n"
    _, notes = _read(claude_code, VALID[0] + deep + b"".join(VALID[1:]))

    assert [(s["line"], s["reason"]) for s in notes.skipped] == [(2, "nested too deeply")]
    assert notes.turns == 2
