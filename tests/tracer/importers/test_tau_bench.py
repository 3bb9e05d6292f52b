"""tau-bench results: one run for each task and trial, its reward as the outcome."""

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
from looptape.tracer.importers.trajectories import tau_bench
from looptape.tracer.store import memory_store
from testdata import require


def _run(task: int, trial: int, reward: float, last: str = "thanks ###STOP###") -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"flight":"HAT1"}'}}
    think = {"id": "c2", "type": "function", "function": {"name": "think", "arguments": '{"thought":"hm"}'}}
    messages = [
        {"role": "system", "content": "policy"},
        {"role": "user", "content": "book it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "book", "content": "Error: payment does not add up"},
        {"role": "assistant", "content": None, "tool_calls": [think]},
        {"role": "tool", "tool_call_id": "c2", "name": "think", "content": ""},
        {"role": "assistant", "content": f"no luck with task {task} in trial {trial}"},
        {"role": "user", "content": last},
    ]
    info = {
        "task": {"user_id": "u1", "instruction": "Book the flight", "actions": []},
        "source": "book",
        "user_cost": 0.5,
    }
    return {"task_id": task, "reward": reward, "info": info, "traj": messages, "trial": trial}


RUNS = [_run(13, 0, 0.0), _run(13, 2, 1.0), _run(9, 0, 0.0, last="go on")]


def test_every_trial_is_a_run_with_its_reward_as_outcome(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(RUNS))
    (tmp_path / "one.json").write_text(json.dumps(RUNS[:1]))
    with memory_store() as store:
        (report,) = import_path(store, tmp_path / "results.json")
        import_path(store, tmp_path / "results.json")
        import_path(store, tmp_path / "one.json")  # the same run in another file is the same run
        runs = sorted(store.runs(), key=lambda r: r.name or "")
        turns = store.turns(runs[0].id)

    assert (report.format, len(report.runs), report.turns, report.tool_calls) == ("tau-bench", 3, 9, 6)
    assert report.counts["error_results"] == 3
    assert [(r.name, r.task, r.outcome) for r in runs] == [
        ("task 13 trial 0", "tau-bench 13", {"verdict": "fail", "score": 0.0}),
        ("task 13 trial 2", "tau-bench 13", {"verdict": "pass", "score": 1.0}),
        ("task 9 trial 0", "tau-bench 9", {"verdict": "fail", "score": 0.0}),
    ]
    assert [r.status for r in runs] == ["completed", "completed", "unknown"]
    assert runs[0].tags == {"trial": "0", "source": "book", "user_cost_usd": "0.5"}
    assert runs[0].reported_cost_usd is None, "the simulator's cost is not the agent's"
    (call,) = turns[0].tool_calls
    assert (call.name, call.arguments, call.result) == ("book", {"flight": "HAT1"}, "Error: payment does not add up")
    assert (call.is_error, call.error_class) == (None, "unknown"), "the format has no error mark"
    (think,) = turns[1].tool_calls
    assert (think.result, think.state, think.error_class) == ("", "done", None)
    assert [t.user_turn for t in turns] == [True, False, False]
    assert {(t.model, t.provider, t.started_at, t.usage.origin) for t in turns} == {(None, None, None, "missing")}


def test_the_same_task_and_trial_of_another_model_is_another_run() -> None:
    other = json.loads(json.dumps(RUNS[0]))
    other["traj"][6]["content"] = "another model's words"
    got = read(tau_bench, json.dumps([RUNS[0], other, RUNS[0]]))

    assert len(got.notes.runs) == 2


def test_elements_that_are_no_runs_are_skipped_and_named() -> None:
    got = read(tau_bench, json.dumps([7, {"task_id": 1}, RUNS[0]]))

    assert [s["reason"] for s in got.notes.skipped] == [
        "element 1 is no run (task_id and traj)",
        "element 2 is no run (task_id and traj)",
    ]
    assert got.notes.turns == 3


def test_a_cut_file_gives_nothing_but_its_line_and_reason() -> None:
    data = json.dumps(RUNS, indent=1).encode()[:-200]
    got = read(tau_bench, data)

    assert tau_bench.recognise(data)
    assert (got.records, len(got.notes.skipped)) == ([], 1)
    assert got.notes.skipped[0]["line"] > 100
    assert "not JSON" in got.notes.skipped[0]["reason"]


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(RUNS))
def test_damaged_results_never_raise_and_are_never_lost_without_a_word(data: bytes) -> None:
    read_whatever_it_is(tau_bench, data)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(RUNS))
def test_damaged_results_are_stored_and_can_be_read_back(data: bytes) -> None:
    store_whatever_it_is(tau_bench, data)


@pytest.mark.parametrize("entry", entries("tau_bench"), ids=lambda entry: Path(entry["file"]).stem)
def test_counts_are_those_of_the_manifest(entry: dict[str, Any]) -> None:
    got = read(tau_bench, require("corpus") / entry["file"])
    wanted = entry["counts"]

    found = {
        "runs": len(got.notes.runs),
        "turns": got.notes.turns,
        "tool_calls": got.notes.tool_calls,
        "error_results": got.notes.counts["error_results"],
    }
    assert found == {name: wanted[name] for name in found}
    for run, expected in zip(got.notes.runs, wanted["per_run"], strict=True):
        turns = got.turns(run)
        outcome = next(u["outcome"] for u in got.of("run_update", run) if "outcome" in u)
        seen = got.of("call_seen", run)
        assert got.of("run_start", run)[0]["name"] == f"task {expected['task_id']} trial {expected['trial']}"
        assert (outcome["score"], outcome["verdict"]) == (expected["reward"], "pass" if expected["reward"] else "fail")
        assert len(turns) == expected["turns"]
        assert sum(len(t["calls"]) for t in turns.values()) == expected["tool_calls"]
        assert len(seen) == expected["tool_results"]
        assert sum(s.get("error_class") == "unknown" for s in seen) == expected["error_results"]
