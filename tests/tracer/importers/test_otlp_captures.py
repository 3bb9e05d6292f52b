"""What really happened in 140 captures of real instrumentations, against what the importer says of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from looptape.tracer.importers import otlp
from looptape.tracer.importers.context import Context, Source
from looptape.tracer.importers.report import Notes
from otlp_measure import ASPECTS, Capture, captures, table
from testdata import REPOSITORY, require

# turns that never reached the file, because the old instrumentation did not export the call that failed
_LOST = {"anthropic-loop-openinference-anthropic/fatal-old": 1, "anthropic-loop-traceloop-anthropic/fatal-old": 1}
# an instrumentation of the framework alone: its tools stand under one turn whose model calls were not received
_NO_CALLS = "openai-agents-otel-genai-openai-agents/"
# one more token than there was for every streamed turn, or none at all: see the table in docs/formats.md
_CONTENT_OFF = ("basic-metadata", "basic-nocontent", "basic-noenv")


@pytest.fixture(scope="module")
def found() -> list[Capture]:
    return captures(require("otlp"))


def test_every_capture_gives_the_turns_that_there_were_and_never_one_twice(found):
    wrong = {}
    for capture in found:
        wanted = len(capture.truth["turns"]) - _LOST.get(capture.name, 0)
        wanted = 1 if capture.name.startswith(_NO_CALLS) else wanted
        if len(capture.turns) != wanted:
            wrong[capture.name] = (len(capture.turns), wanted)
    assert not wrong


def test_a_loop_is_one_run_though_it_is_a_trace_per_turn_unless_nothing_ties_its_turns(found):
    apart = {c.name for c in found if len([r for r in c.runs if r.turns]) != 1}
    assert {name.split("/")[1] for name in apart} == set(_CONTENT_OFF)


def test_no_run_counts_tokens_that_were_not_used(found):
    for capture in found:
        used = [t.get("usage") or {} for t in capture.truth["turns"]]
        there = sum(u.get("input", 0) + u.get("cache_read", 0) + u.get("cache_write", 0) for u in used)
        told = sum(t.usage.context or 0 for t in capture.turns)
        assert told <= there, capture.name
        assert sum(t.usage.output or 0 for t in capture.turns) <= sum(u.get("output", 0) for u in used), capture.name


def test_what_survives_of_each_producer_is_as_the_table_in_the_docs_says(found):
    """Renew with `python tests/support/otlp_measure.py`."""
    text = (REPOSITORY / "docs" / "formats.md").read_text()
    written = re.findall(r"<!-- what survives -->\n(.*?)\n<!-- end -->", text, re.S)[0].splitlines()
    assert written == table(found)


def test_nothing_is_called_a_failure_that_only_left_its_status_unset(found):
    for capture in found:
        fine = [t for w, t in zip(capture.truth["turns"], capture.turns, strict=False) if w.get("usage")]
        assert {t.status for t in fine} <= {"ok"}, capture.name


def test_a_capture_is_the_same_in_protobuf_as_in_json():
    pytest.importorskip("opentelemetry.proto")
    folder = require("otlp")
    checked = 0
    for part in sorted(folder.glob("*/*/traces-0.pb")):
        if (part.parent / "traces-1.pb").exists():
            continue
        lines = _told(part.with_name("traces.jsonl"))
        if len(part.with_name("traces.jsonl").read_bytes().splitlines()) == 1:
            assert _told(part) == lines, part
            checked += 1
    assert checked >= 5


def test_the_corpus_counts_hold():
    corpus = require("corpus")
    entries = json.loads((corpus / "MANIFEST.json").read_text())
    entries = entries if isinstance(entries, list) else entries["files"]
    mine = [e for e in entries if e["format"] == "otlp_json"]
    assert len(mine) == 2
    for entry in mine:
        counts = entry["counts"]
        notes = Notes()
        path = corpus / entry["file"]
        assert otlp.recognise(path.read_bytes()[:65536])
        records = list(otlp.records(Source(str(path), (path,)), notes, Context()))
        ends = [r for r in records if r["kind"] == "turn_end"]
        assert notes.counts["spans"] == counts["spans"]
        calls = counts["gen_ai_operations"].get("chat", 0) + counts["openinference_kinds"].get("LLM", 0)
        tools = counts["gen_ai_operations"].get("execute_tool", 0) + counts["openinference_kinds"].get("TOOL", 0)
        assert len(ends) == notes.turns == calls
        assert len([r for r in records if r["kind"] == "call_end"]) == tools
        context = sum((e["usage"][n] or 0) for e in ends for n in ("input", "cache_read", "cache_write_5m"))
        assert context == counts["llm_span_tokens"]["input"]
        assert sum(e["usage"]["output"] for e in ends) == counts["llm_span_tokens"]["output"]


def test_every_aspect_of_the_table_is_shown_by_some_capture(found):
    rows = [c.aspects() for c in found]
    for aspect in ASPECTS:
        assert {r[aspect] for r in rows} >= {True, False}, aspect


def _told(path: Path) -> list[dict]:
    records = otlp.records(Source(str(path), (path,)), Notes(), Context())
    return [r for r in records if r["kind"] != "otlp"]  # what JSON files leave for their other half
