"""mini-swe-agent trajectories: calls, results, tokens and the recorded cost to its last digit."""

from __future__ import annotations

import functools
import json
import operator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from corpus_counts import entries
from damaged_json import damaged, read_whatever_it_is, store_whatever_it_is
from examples import examples
from imported import read
from looptape.tracer.importers import import_path
from looptape.tracer.importers.trajectories import mini_swe_agent
from looptape.tracer.store import memory_store
from looptape.tracer.store.export import records_of
from looptape.tui.told import json_shape
from testdata import require

SECRET = "sk-ant-" + "a1B2c3D4" * 5


def _answer(number: int, cost: float, *commands: str, seconds: float) -> dict[str, Any]:
    calls = [
        {
            "id": f"c{number}{i}",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": c})},
        }
        for i, c in enumerate(commands)
    ]
    message = {"role": "assistant", "content": f"step {number}", "tool_calls": calls}
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    response = {"id": f"r{number}", "model": "deepseek-chat", "choices": [choice], "usage": usage}
    return {**message, "extra": {"response": response, "cost": cost, "timestamp": seconds, "actions": []}}


def _result(call: str, output: str, code: int, seconds: float, **extra: Any) -> dict[str, Any]:
    content = f"<returncode>{code}</returncode>\n<output>\n{output}</output>"
    about = {"raw_output": output, "returncode": code, "timestamp": seconds, "exception_info": "", **extra}
    return {"role": "tool", "tool_call_id": call, "content": content, "extra": about}


def _document() -> dict[str, Any]:
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "fix it"},
        _answer(1, 0.1, "ls", "false", seconds=1775815864.25),
        _result("c10", "a.py", 0, 1775815865.0),
        _result("c11", f"key {SECRET}", 1, 1775815866.0),
        {"role": "user", "content": "no call", "extra": {"interrupt_type": "FormatError"}},
        _answer(2, 0.2, "boom", seconds=1775815868.0),
        _result("c20", "", -1, 1775815869.0, exception_info="TimeoutExpired"),
        _answer(3, 0.3, "echo done", seconds=1775815870.0),
        {"role": "exit", "content": "patch", "extra": {"exit_status": "Submitted", "submission": "patch"}},
    ]
    config = {
        "agent": {"step_limit": 250, "cost_limit": 3.0},
        "agent_type": "DefaultAgent",
        "model": {"model_name": "deepseek/deepseek-chat", "model_kwargs": {"temperature": 0.0}},
    }
    info = {
        "model_stats": {"instance_cost": 0.1 + 0.2 + 0.3, "api_calls": 4},
        "config": config,
        "mini_version": "2.2.7",
        "exit_status": "Submitted",
    }
    named = {"trajectory_format": "mini-swe-agent-1.1", "instance_id": "thing__thing-1"}
    return {"info": info, "messages": messages, **named}


BARE = [
    {"role": "system", "content": "one command in a fence"},
    {"role": "user", "content": "Please solve this issue"},
    {"role": "assistant", "content": "look\n\n```mswea_bash_command\nls\n```"},
    {"role": "user", "content": "<returncode>2</returncode>\n<output>\nno\n</output>"},
    {"role": "assistant", "content": "give up"},
]


def test_a_trajectory_becomes_turns_with_calls_results_tokens_times_and_cost(tmp_path: Path) -> None:
    path = tmp_path / "thing.traj.json"
    path.write_text(json.dumps(_document()))
    with memory_store() as store:
        (report,) = import_path(store, path)
        (run,) = store.runs()
        turns = store.turns(run.id)
        request = store.request(run.id, 2)
        events = store.events(run.id)

    assert (report.format, report.turns, report.tool_calls) == ("mini-swe-agent", 3, 4)
    assert report.counts["nonzero_returncodes"] == 2
    assert report.counts["parallel_turns"] == 1
    assert (run.task, run.status, run.reason, run.versions) == (
        "thing__thing-1", "completed", "Submitted", {"mini-swe-agent": "2.2.7"},
    )  # fmt: skip
    assert run.limits == {"turns": 250, "cost_usd": 3.0}
    assert run.reported_cost_usd == 0.1 + 0.2 + 0.3
    assert [t.reported_cost_usd for t in turns] == [0.1, 0.2, 0.3]
    first = turns[0]
    assert (first.usage.input, first.usage.cache_read, first.usage.output) == (40, 60, 7)
    assert (first.provider, first.model, first.response_id, first.user_turn) == (
        "deepseek",
        "deepseek-chat",
        "r1",
        True,
    )
    assert (first.started_at, first.ended_at) == (None, 1775815864_250000), "when the first request began is not told"
    assert turns[1].started_at == 1775815866_000000
    ok, bad = first.tool_calls
    assert (ok.arguments, ok.is_error, ok.error_class) == ({"command": "ls"}, None, None)
    assert (bad.is_error, bad.error_class) == (None, "unknown"), "an exit code is no error mark"
    assert SECRET not in str(bad.result)
    assert "[redacted:anthropic-key]" in str(bad.result)
    (crashed,) = turns[1].tool_calls
    assert (crashed.is_error, crashed.error_class) == (True, "unknown")
    assert turns[2].tool_calls[0].state == "no_result"
    assert [m["role"] for m in request.messages] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert all("extra" not in m for m in request.messages)
    assert {e.kind for e in events} == {"format_error", "submission"}
    assert any("4 model calls" in w and "3 answers" in w for w in report.warnings)


def test_the_return_code_is_kept_as_what_the_tool_returned() -> None:
    seen = read(mini_swe_agent, json.dumps(_document())).of("call_seen")

    assert [s["returned"] for s in seen] == [
        {"returncode": 0},
        {"returncode": 1},
        {"returncode": -1, "exception_info": "TimeoutExpired"},
    ]


def test_the_reported_cost_goes_through_export_views_and_json_to_its_last_digit() -> None:
    got = read(mini_swe_agent, json.dumps(_document()))
    with memory_store() as store, memory_store() as other:
        store.ingest(got.records)
        other.ingest(list(records_of(store, got.main)))
        run, turns = other.run(got.main), other.turns(got.main)
        views = [other.sql(f"select reported_cost_usd from {v}")[2] for v in ("runs", "turns order by number")]
        assert (run, turns) == (store.run(got.main), store.turns(got.main))

    assert views == [[(0.1 + 0.2 + 0.3,)], [(0.1,), (0.2,), (0.3,)]]
    assert json_shape.run(run)["reported_cost_usd"] == 0.1 + 0.2 + 0.3
    assert [json_shape.turn(t)["reported_cost_usd"] for t in turns] == [0.1, 0.2, 0.3]


def test_importing_again_or_a_longer_copy_changes_nothing_twice(tmp_path: Path) -> None:
    whole = _document()
    short = {**whole, "messages": whole["messages"][:5]}
    with memory_store() as store:
        for name, value in (("a", short), ("b", whole), ("c", whole)):
            (tmp_path / f"{name}.json").write_text(json.dumps(value))
            import_path(store, tmp_path / f"{name}.json")
        (run,) = store.runs()
        assert (run.turns, run.tool_calls, run.usage.output) == (3, 4, 21)


def test_a_bare_list_has_turns_without_calls_times_or_cost() -> None:
    got = read(mini_swe_agent, json.dumps(BARE))

    assert mini_swe_agent.recognise(json.dumps(BARE).encode())
    assert (got.notes.turns, got.notes.tool_calls, got.notes.counts["nonzero_returncodes"]) == (2, 0, 1)
    assert got.end()[0] == "unknown"
    assert all(t["usage"]["origin"] == "missing" and "at" not in t for t in got.turns().values())
    assert any("bare list" in w for w in got.notes.warnings)


def test_a_run_that_died_before_any_answer_says_so() -> None:
    document = _document()
    lost = {"exit_status": "Timeout", "exception_str": "litellm.Timeout", "traceback": "Traceback ..."}
    document["messages"] = [*document["messages"][:2], {"role": "exit", "content": "Timeout", "extra": lost}]
    document["info"] |= {"exit_status": "Timeout", "model_stats": {"instance_cost": 0.0, "api_calls": 1}}
    got = read(mini_swe_agent, json.dumps(document))

    assert (got.notes.turns, got.end()) == (0, ("failed", "Timeout"))
    assert [e["event"] for e in got.of("event")] == ["api_error"]


def test_plain_message_lists_are_not_taken_for_a_trajectory() -> None:
    plain = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "```bash\nls\n```"}]
    assert not mini_swe_agent.recognise(json.dumps(plain).encode())
    assert not mini_swe_agent.recognise(json.dumps({"messages": plain}).encode())


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(_document()))
def test_damaged_trajectories_never_raise_and_are_never_lost_without_a_word(data: bytes) -> None:
    read_whatever_it_is(mini_swe_agent, data)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(_document()))
def test_damaged_trajectories_are_stored_and_can_be_read_back(data: bytes) -> None:
    store_whatever_it_is(mini_swe_agent, data)


@pytest.mark.parametrize("entry", entries("mini_swe_agent"), ids=lambda entry: Path(entry["file"]).stem)
def test_counts_and_cost_are_those_of_the_manifest(entry: dict[str, Any]) -> None:
    got = read(mini_swe_agent, require("corpus") / entry["file"])
    turns, counts, wanted = got.turns().values(), got.notes.counts, entry["counts"]

    def total(*names: str) -> int:
        return sum(turn["usage"].get(name) or 0 for turn in turns for name in names)

    assert len(turns) == got.notes.turns == wanted["turns"]
    assert got.notes.tool_calls == wanted["tool_calls"]
    assert counts["tool_results"] == wanted["roles"].get("tool", 0)
    assert counts["parallel_turns"] == wanted["turns_with_parallel_calls"]
    assert counts["nonzero_returncodes"] == wanted["nonzero_returncodes"]
    assert total("input", "cache_read", "cache_write_5m") == wanted["tokens"]["prompt_tokens"]
    assert total("output") == wanted["tokens"]["completion_tokens"]
    with memory_store() as store:
        assert not store.ingest(got.records).bad
        run = store.run(got.main)
        costs = [t.reported_cost_usd for t in store.turns(run.id)]
        assert run.reported_cost_usd == wanted["cost"]
        if wanted["cost"] is not None:
            # added one by one, as the program did: since Python 3.12 `sum` is more exact than that
            assert functools.reduce(operator.add, (c for c in costs if c is not None), 0.0) == wanted["cost"]
        else:
            assert set(costs) <= {None}
        if wanted["exit_status"]:
            assert run.reason == wanted["exit_status"]
