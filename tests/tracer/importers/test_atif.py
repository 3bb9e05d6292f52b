"""ATIF trajectories: steps into turns, messages and events, embedded trajectories into child runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from damaged_json import damaged, read_whatever_it_is, store_whatever_it_is
from examples import examples
from imported import read
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import IMPORTERS
from looptape.tracer.importers.trajectories import atif
from looptape.tracer.store import memory_store

SECRET = "sk-ant-" + "a1B2c3D4" * 5


def _steps() -> list[dict[str, Any]]:
    metrics = {"prompt_tokens": 100, "cached_tokens": 60, "completion_tokens": 7, "cost_usd": 0.25}
    calls = [
        {"tool_call_id": "c1", "function_name": "bash", "arguments": {"cmd": "ls"}},
        {"tool_call_id": "c2", "function_name": "ask", "arguments": {}},
    ]
    results = [
        {"source_call_id": "c1", "content": f"key {SECRET}"},
        {"source_call_id": "c2", "subagent_trajectory_ref": [{"trajectory_id": "inner"}]},
    ]
    image = {"type": "image", "source": {"media_type": "image/png", "path": "../../etc/a.png"}}
    return [
        {"step_id": 1, "source": "system", "message": "be brief"},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "fix it"}, image]},
        {"step_id": 3, "source": "agent", "message": "old", "is_copied_context": True, "metrics": {"prompt_tokens": 9}},
        {
            "step_id": 4, "timestamp": "2026-05-12T20:00:01.5Z", "source": "agent", "message": "I look",
            "reasoning_content": "hm", "model_name": "anthropic/claude-x", "reasoning_effort": "high",
            "tool_calls": calls, "observation": {"results": results}, "metrics": metrics, "llm_call_count": 1,
        },
        {"step_id": 5, "source": "agent", "message": "cd /", "llm_call_count": 0},
        {"step_id": 6, "source": "agent", "message": "ok", "observation": {"results": [{"content": "$ "}]},
         "metrics": {"prompt_tokens": 50, "extra": {"reasoning_tokens": 3, "cache_creation_input_tokens": 20}}},
        {"step_id": 7, "source": "agent", "message": "done", "extra": {"mood": "good"}},
    ]  # fmt: skip


def _document(**more: Any) -> dict[str, Any]:
    inner = {
        "schema_version": "ATIF-v1.8",
        "trajectory_id": "inner",
        "agent": {"name": "helper", "version": "1"},
        "steps": [{"step_id": 1, "source": "user", "message": "x"}, {"step_id": 2, "source": "agent", "message": "y"}],
    }
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": "S1",
        "trajectory_id": "T1",
        "agent": {
            "name": "terminus",
            "version": "2.0",
            "model_name": "m-1",
            "tool_definitions": [{"type": "function"}],
        },
        "steps": _steps(),
        "final_metrics": {"total_prompt_tokens": 150, "total_cost_usd": 0.25, "total_steps": 7},
        "subagent_trajectories": [inner],
        **more,
    }


def _data(**more: Any) -> bytes:
    return json.dumps(_document(**more), indent=2).encode()


@pytest.mark.parametrize("version", ["ATIF-v1.7", "ATIF-v1.8", "ATIF-v1.0"])
def test_steps_become_turns_with_calls_results_and_disjoint_usage(version: str) -> None:
    data = _data(schema_version=version)
    assert atif.recognise(data[:65536])
    with memory_store() as store:
        got = read(atif, data)
        assert store.ingest(got.records).bad == []
        run, turns = store.run(got.main), store.turns(got.main)
        request = store.request(run.id, 2)

    assert (run.name, run.agent, run.session, run.versions) == ("terminus", "terminus", "S1", {"terminus": "2.0"})
    assert (run.status, run.turns, run.tool_calls, run.reported_cost_usd) == ("completed", 4, 2, 0.25)
    assert (run.started_at, run.ended_at) == (1778616001500000, None)
    assert [(t.text, t.inherited, t.model) for t in turns] == [
        ("old", True, "m-1"), ("I look", False, "anthropic/claude-x"), ("ok", False, "m-1"), ("done", False, "m-1"),
    ]  # fmt: skip
    second = turns[1]
    assert (second.thinking, second.provider, second.started_at, second.ended_at) == (
        "hm",
        "anthropic",
        1778616001500000,
        None,
    )
    assert (second.usage.input, second.usage.cache_read, second.usage.output) == (40, 60, 7)
    assert second.reported_cost_usd == 0.25
    assert (turns[2].usage.input, turns[2].usage.cache_write_5m, turns[2].usage.reasoning) == (30, 20, 3)
    assert (turns[3].usage.input, turns[3].usage.origin) == (None, "missing")
    assert [(c.name, c.arguments, c.result, c.state, c.is_error) for c in second.tool_calls] == [
        ("bash", {"cmd": "ls"}, "key [redacted:anthropic-key]", "done", None), ("ask", {}, None, "done", None),
    ]  # fmt: skip
    assert [m["role"] for m in request.messages] == ["system", "user", "assistant"]
    assert (request.params, request.tools) == ({"reasoning_effort": "high"}, [{"type": "function"}])


def test_steps_without_a_model_and_extras_are_events_and_feedback_is_a_message() -> None:
    got = read(atif, _data(notes="converted", extra={"job": 4}))
    assert [(e["event"], e["turn"]) for e in got.of("event")] == [
        ("deterministic_step", 2), ("step_extra", 4), ("notes", 4), ("extra", 4),
    ]  # fmt: skip
    last = got.request(4)
    assert [m["role"] for m in last] == [
        "system",
        "user",
        "assistant",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "assistant",
        "user",
    ]
    assert last[-1]["content"] == "$ "


def test_an_embedded_trajectory_is_a_child_run_of_the_call_that_names_it() -> None:
    with memory_store() as store:
        got = read(atif, _data())
        store.ingest(got.records)
        child = store.run([*got.notes.runs][1])
        assert (child.agent, child.turns, child.parent.turn, child.parent.call) == ("helper", 1, 2, "c2")
        assert store.turns(got.main)[1].tool_calls[1].child_run == child.id
    assert (got.notes.turns, got.notes.counts["sub_agent_turns"]) == (4, 1)


def test_a_trajectory_in_another_file_is_named_and_never_opened() -> None:
    ref = {"subagent_trajectory_ref": [{"trajectory_path": "../../etc/passwd"}], "source_call_id": "c1"}
    steps = _steps()
    steps[3]["observation"]["results"] = [ref]
    got = read(atif, _data(steps=steps, continued_trajectory_ref="part2.json"))

    assert got.of("event")[0]["detail"]["path"] == "../../etc/passwd"
    assert any("other files" in w for w in got.notes.warnings)
    assert got.end() == ("unknown", "goes on in another file: part2.json")


def test_a_longer_copy_is_the_same_run_and_parts_of_a_session_are_not() -> None:
    def run(**more: Any) -> str:
        return read(atif, _data(**more)).main

    assert run() == run(steps=_steps()[:4], session_id="S2")
    own = {"trajectory_id": None}
    assert run(**own) == run(**own, steps=_steps()[:4])
    assert run(**own) != run(**own, steps=[{**_steps()[0], "message": "summary"}, *_steps()[1:]])
    bare = {**own, "session_id": None}
    assert run(**bare) != run(**bare, steps=_steps()[:4])


def test_what_does_not_fit_is_said() -> None:
    steps = [
        *_steps(),
        {"step_id": 9, "source": "agent", "message": "x", "llm_call_count": 3, "mood": 1},
        5,
        {"source": "dog"},
    ]
    got = read(
        atif, _data(steps=steps, surprise=1, schema_version="ATIF-v1.9", final_metrics={"total_prompt_tokens": 7})
    )

    assert got.notes.unknown == {"trajectory field surprise": 1, "step field mood": 1}
    assert [s["line"] for s in got.notes.skipped] == [9, 10]
    said = " ".join(got.notes.warnings)
    for words in ("newer than", "several model calls", "step ids", "give 7 prompt tokens, the steps together 150"):
        assert words in said


def test_trajectories_one_a_line_are_all_read() -> None:
    lines = b"".join(json.dumps(_document(trajectory_id=f"T{n}")).encode() + b"\n" for n in range(3))
    got = read(atif, lines)
    assert (len(got.notes.runs), got.notes.turns, got.notes.counts["objects"]) == (6, 12, 3)


def test_another_major_version_is_refused() -> None:
    with pytest.raises(LooptapeError) as caught:
        read(atif, _data(schema_version="ATIF-v2.0"))
    assert caught.value.slug == "newer-format"


def test_nobody_else_takes_a_trajectory_for_theirs() -> None:
    assert [i.FORMAT for i in IMPORTERS if i.recognise(_data())] == ["atif"]
    assert not atif.recognise(b'{"steps": []}')


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(_document()))
def test_damaged_trajectories_never_raise_and_are_never_lost_without_a_word(data: bytes) -> None:
    read_whatever_it_is(atif, data)


@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(_document()))
def test_damaged_trajectories_are_stored_and_can_be_read_back(data: bytes) -> None:
    store_whatever_it_is(atif, data)
