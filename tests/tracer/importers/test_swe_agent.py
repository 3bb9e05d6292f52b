"""SWE-agent trajectories of both generations: steps as turns, actions or tool calls as calls, nothing invented."""

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
from looptape.tracer.importers.trajectories import swe_agent
from looptape.tracer.store import memory_store
from testdata import require


def _old() -> dict[str, Any]:
    """0.x: an action is a text, the observation the user message after it; the last one is shown to nobody."""
    state = '{"open_file": "n/a", "working_dir": "/repo"}'
    step = {"state": state, "thought": "t"}
    steps = [
        {**step, "action": "ls -F\n", "observation": "a.py", "response": "look\n```\nls -F\n```"},
        {**step, "action": "submit\n", "observation": "diff --git", "response": "done\n```\nsubmit\n```"},
    ]
    history = [
        {"role": "system", "content": "SETTING", "agent": "primary"},
        {"role": "user", "content": "a demonstration", "agent": "primary", "is_demo": True},
        {"role": "user", "content": "ISSUE", "agent": "primary"},
        {"role": "assistant", "content": steps[0]["response"], "thought": "t", "action": "ls -F\n", "agent": "primary"},
        {"role": "user", "content": "a.py\n(Open file: n/a)", "agent": "primary"},
        {
            "role": "assistant",
            "content": steps[1]["response"],
            "thought": "t",
            "action": "submit\n",
            "agent": "primary",
        },
    ]
    stats = {"total_cost": 1.25, "instance_cost": 1.25, "tokens_sent": 1000, "tokens_received": 50, "api_calls": 2}
    info = {"exit_status": "submitted", "submission": "diff --git", "model_stats": stats}
    return {"environment": "swe_main", "trajectory": steps, "history": history, "info": info}


def _new() -> dict[str, Any]:
    """1.x: function calling, a replay configuration as JSON text, the time a step took."""
    call = {"type": "function", "id": "call_a", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
    said = {"role": "assistant", "content": "look", "agent": "main", "message_type": "action", "tool_calls": [call]}
    observation = {"role": "tool", "content": "a.py", "agent": "main", "message_type": "observation"}
    history = [
        {"role": "system", "content": "S", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": "ISSUE", "agent": "main", "message_type": "observation"},
        said,
        {**observation, "tool_call_ids": ["call_a"]},
        {**said, "tool_calls": [call]},
        {**observation, "tool_call_ids": ["call_other"]},
    ]
    step = {
        "action": "ls",
        "observation": "a.py",
        "response": "look",
        "execution_time": 0.5,
        "state": {"open_file": "n/a"},
    }
    config = {"agent": {"name": "x__y-1", "model": {"name": "openai/gpt-4o", "per_instance_cost_limit": 2.0}}}
    info = {
        "exit_status": "submitted (exit_cost)",
        "model_stats": {"instance_cost": 0, "tokens_sent": 0, "api_calls": 2},
    }
    return {"trajectory": [step, step], "history": history, "info": info, "replay_config": json.dumps(config)}


def test_actions_of_the_old_versions_are_calls_named_by_their_first_word(tmp_path: Path) -> None:
    (tmp_path / "x.traj").write_text(json.dumps(_old(), indent=1))
    with memory_store() as store:
        (report,) = import_path(store, tmp_path / "x.traj")
        (run,) = store.runs()
        turns = store.turns(run.id)
        request = store.request(run.id, 2)
        events = {e.kind: e.detail for e in store.events(run.id)}

    calls = [c for t in turns for c in t.tool_calls]
    assert (report.format, report.turns, report.tool_calls) == ("swe-agent", 2, 2)
    assert report.counts.get("history_tool_calls", 0) == 0
    assert [(c.name, c.arguments, c.result) for c in calls] == [
        ("ls", {"action": "ls -F\n"}, "a.py\n(Open file: n/a)"),
        ("submit", {"action": "submit\n"}, "diff --git"),
    ]
    assert {(c.started_at, c.ended_at, c.is_error) for c in calls} == {(None, None, None)}
    assert [m["role"] for m in request.messages] == ["system", "user", "user", "assistant", "user"]
    assert not any({"agent", "action", "is_demo"} & m.keys() for m in request.messages)
    assert [t.user_turn for t in turns] == [True, False]
    assert {t.usage.origin for t in turns} == {"missing"}, "a sum over the run is not spread over its turns"
    assert events["model_stats"]["tokens_sent"] == 1000
    assert events["submission"] == {"submission": "diff --git"}
    assert (run.status, run.reason, run.reported_cost_usd) == ("completed", "submitted", 1.25)
    assert (run.started_at, run.ended_at) == (None, None)


def test_function_calls_of_the_new_versions_keep_their_ids_and_a_mismatch_is_left_unpaired() -> None:
    got = read(swe_agent, json.dumps(_new()))
    start, (first, second) = got.of("run_start")[0], got.turns().values()

    assert (start["name"], start["limits"], start.get("versions")) == ("x__y-1", {"cost_usd": 2.0}, None)
    assert [c["id"] for c in first["calls"] + second["calls"]] == ["call_a", "call_a"]
    (seen,) = got.of("call_seen")
    assert (seen["turn"], seen["call"]) == (1, "call_a")
    assert seen["returned"] == {"execution_time_s": 0.5, "state": {"open_file": "n/a"}}
    assert got.end() == ("limit", "submitted (exit_cost)")
    assert got.turns()[1]["model"] == "openai/gpt-4o"
    assert any("left unpaired" in w for w in got.notes.warnings)
    assert any("cost of 0" in w for w in got.notes.warnings)
    assert not [u for u in got.of("run_update") if "reported_cost_usd" in u]


def test_a_file_with_only_a_history_gives_a_turn_for_every_answer() -> None:
    got = read(swe_agent, json.dumps({"history": _new()["history"]}))

    assert swe_agent.recognise(json.dumps({"history": _new()["history"]}).encode())
    assert (got.notes.turns, got.notes.counts["steps"], got.notes.counts["history_tool_calls"]) == (2, 0, 2)
    assert got.end()[0] == "unknown"


def test_steps_without_their_history_are_rebuilt_and_that_is_said() -> None:
    document = _old()
    document["history"] = document["history"][:3]
    got = read(swe_agent, json.dumps(document))

    assert got.notes.turns == 2
    assert [m["content"] for m in got.request(2)][-2:] == ["look\n```\nls -F\n```", "a.py"]
    assert any("rebuilt from the steps" in w for w in got.notes.warnings)


def test_histories_of_other_formats_are_not_taken_for_a_trajectory() -> None:
    other = {"history": [{"content": "hi", "role": "human"}, {"content": "yes", "role": "WebSurfer"}]}
    assert not swe_agent.recognise(json.dumps(other).encode())
    assert not swe_agent.recognise(b'{"history": [')


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged([_old(), _new()]))
def test_damaged_trajectories_never_raise_and_are_never_lost_without_a_word(data: bytes) -> None:
    try:
        both = json.loads(data)
    except (ValueError, RecursionError):
        both = []
    for value in [data, *(json.dumps(v).encode() for v in (both if isinstance(both, list) else []))]:
        read_whatever_it_is(swe_agent, value)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(_old()))
def test_damaged_trajectories_are_stored_and_can_be_read_back(data: bytes) -> None:
    store_whatever_it_is(swe_agent, data)


@pytest.mark.parametrize("entry", entries("swe_agent"), ids=lambda entry: Path(entry["file"]).stem)
def test_counts_are_those_of_the_manifest(entry: dict[str, Any]) -> None:
    got = read(swe_agent, require("corpus") / entry["file"])
    counts, wanted = got.notes.counts, entry["counts"]

    assert counts["steps"] == wanted["turns"]
    assert counts["history"] == wanted["history"]
    assert counts["empty_observations"] == wanted["empty_observations"]
    assert counts["history_tool_calls"] == wanted["history_tool_calls"]
    assert got.end()[1] == (wanted["exit_status"] or "the file does not tell how it ended")
    stats = [e["detail"] for e in got.of("event") if e["event"] == "model_stats"]
    assert stats == ([wanted["model_stats"]] if wanted["model_stats"] else [])
    if "trajectory" in wanted["keys"]:
        assert got.notes.turns == wanted["turns"]
    else:  # a history without steps: its answers are the turns, here one for each call
        assert got.notes.turns == wanted["history_tool_calls"]
    assert got.notes.tool_calls == got.notes.turns, "every answer in these files acts"
