"""Who&When: speakers as agents, the marked mistake as outcome, no invented calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from corpus_counts import entries
from damaged_json import damaged, read_whatever_it_is, store_whatever_it_is
from examples import examples
from imported import read
from looptape.tracer.importers import import_path
from looptape.tracer.importers.trajectories import who_and_when
from looptape.tracer.store import memory_store
from testdata import require

LEDGER = (
    'Updated Ledger:\n{"is_in_loop": {"reason": "again", "answer": true},'
    ' "is_progress_being_made": {"reason": "no", "answer": false}}'
)
CRAFTED: dict[str, Any] = {
    "history": [
        {"content": "How likely?", "role": "human"},
        {"content": LEDGER, "role": "Orchestrator (thought)"},
        {"content": "Please click", "role": "Orchestrator (-> WebSurfer)"},
        {"content": "I clicked", "role": "WebSurfer"},
    ],
    "question": "How likely?",
    "ground_truth": "31.67",
    "is_corrected": False,
    "question_ID": "9baaa267",
    "mistake_agent": "WebSurfer",
    "mistake_step": "3",
    "mistake_reason": "It did not click.",
}
GENERATED: dict[str, Any] = {
    "is_correct": True,
    "question": "Which colour?",
    "question_ID": "65afbc8a",
    "mistake_agent": "Expert",
    "mistake_step": "0",
    "mistake_reason": "",
    "history": [
        {"content": "use pandas", "role": "assistant", "name": "Expert"},
        {"content": "exitcode: 1", "role": "user", "name": "Computer_terminal"},
    ],
    "system_prompt": {"Expert": "You know colours"},
}


def test_every_element_is_a_turn_of_its_speaker_and_the_mistake_is_the_outcome(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(json.dumps(CRAFTED))
    with memory_store() as store:
        (report,) = import_path(store, tmp_path)
        import_path(store, tmp_path)
        (run,) = store.runs()
        turns = store.turns(run.id)
        request = store.request(run.id, 4)
        events = store.events(run.id)

    assert (report.format, report.turns, report.tool_calls) == ("who-and-when", 4, 0)
    assert [t.agent for t in turns] == ["human", "Orchestrator (thought)", "Orchestrator (-> WebSurfer)", "WebSurfer"]
    assert turns[3].text == "I clicked"
    assert [m["content"] for m in request.messages] == ["How likely?", LEDGER, "Please click"]
    assert run.outcome == {"verdict": "fail", "note": "mistake of WebSurfer at turn 4: It did not click."}
    assert (run.tags["mistake_agent"], run.tags["mistake_step"]) == ("WebSurfer", "3")
    assert (run.status, run.started_at, run.usage.origin) == ("unknown", None, "missing")
    assert [(e.turn, e.detail) for e in events] == [(2, {"is_in_loop": True, "is_progress_being_made": False})]


def test_generated_conversations_name_their_speakers_apart_from_the_role() -> None:
    got = read(who_and_when, json.dumps(GENERATED))

    assert [t.get("agent") for t in got.of("turn_start")] == ["Expert", "Computer_terminal"]
    assert got.of("run_update")[0]["outcome"] == {"verdict": "pass", "note": "mistake of Expert at turn 1"}
    assert got.of("event")[0]["detail"] == {"prompts": {"Expert": "You know colours"}}


def test_a_long_history_is_recognised_before_its_marks_come() -> None:
    head = json.dumps({"history": CRAFTED["history"] * 500}).encode()[:65536]

    assert b"mistake" not in head
    assert who_and_when.recognise(head)
    assert who_and_when.recognise(json.dumps(GENERATED).encode())
    other = {"history": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}
    assert not who_and_when.recognise(json.dumps(other).encode())


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged([CRAFTED, GENERATED]))
def test_damaged_conversations_never_raise_and_are_never_lost_without_a_word(data: bytes) -> None:
    try:
        both = json.loads(data)
    except (ValueError, RecursionError):
        both = []
    for value in [data, *(json.dumps(v).encode() for v in (both if isinstance(both, list) else []))]:
        read_whatever_it_is(who_and_when, value)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(CRAFTED))
def test_damaged_conversations_are_stored_and_can_be_read_back(data: bytes) -> None:
    store_whatever_it_is(who_and_when, data)


@pytest.mark.parametrize("entry", entries("who_and_when"), ids=lambda entry: Path(entry["file"]).stem)
def test_counts_are_those_of_the_manifest(entry: dict[str, Any]) -> None:
    got = read(who_and_when, require("corpus") / entry["file"])
    starts, wanted = got.of("turn_start"), entry["counts"]
    tags = got.of("run_start")[0]["tags"]
    speakers: dict[str, int] = {}
    for start in starts:
        speakers[start["agent"]] = speakers.get(start["agent"], 0) + 1

    assert len(starts) == got.notes.turns == wanted["turns"]
    assert speakers == wanted["speakers"]
    assert (tags["mistake_agent"], tags["mistake_step"]) == (wanted["mistake_agent"], wanted["mistake_step"])
    assert got.notes.counts["ledger_in_loop_true"] == wanted["ledger_in_loop_true"]
    assert got.notes.counts["ledger_in_loop_false"] == wanted["ledger_in_loop_false"]
    assert got.notes.tool_calls == 0
