"""LangSmith runs: LangChain's messages in every serialised form, tools by call id, cached tokens taken out of the input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from damaged_json import damaged, read_whatever_it_is, store_whatever_it_is
from examples import examples
from imported import read
from looptape.tracer.importers import import_path
from looptape.tracer.importers.platforms import langsmith
from looptape.tracer.store import memory_store

CALL = {"name": "look_up", "args": {"q": "x"}, "id": "c1", "type": "tool_call"}
USAGE = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107, "input_token_details": {"cache_read": 60}}


def _lc(kind: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


PROMPT = [_lc("SystemMessage", content="S"), _lc("HumanMessage", content="how much?")]
ANSWER = _lc(
    "AIMessage", content="", tool_calls=[CALL], usage_metadata=USAGE, response_metadata={"model_name": "gpt-4o-1"}
)
RESULT = _lc("ToolMessage", content="42", tool_call_id="c1", name="look_up", status="success")
META = {"ls_provider": "openai", "ls_model_name": "gpt-4o", "thread_id": "th1"}


def _run(
    number: int, kind: str, name: str, parent: str | None, inputs: Any, outputs: Any, **more: Any
) -> dict[str, Any]:
    times = {"start_time": f"2026-03-01T09:00:0{number}.000", "end_time": f"2026-03-01T09:00:0{number}.900"}
    about = {"id": f"u{number}", "trace_id": "u1", "parent_run_id": parent, "extra": {"metadata": META}, "error": None}
    return {**about, "name": name, "run_type": kind, "inputs": inputs, "outputs": outputs, **times, **more}


def _generation(message: Any) -> dict[str, Any]:
    return {"generations": [[{"message": message, "generation_info": {"finish_reason": "tool_calls"}}]]}


RUNS = [
    _run(1, "chain", "LangGraph", None, {"messages": PROMPT[1:]}, {}),
    _run(2, "chain", "agent", "u1", {}, {}),
    _run(3, "llm", "ChatOpenAI", "u2", {"messages": [PROMPT]}, _generation(ANSWER), total_cost="0.0015"),
    _run(4, "tool", "look_up", "u1", {"input": "{'q': 'x'}"}, {"output": RESULT}),
    _run(
        5, "llm", "ChatOpenAI", "u1", {"messages": [[*PROMPT, ANSWER, RESULT]]},
        {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "42 it is"}]}], "usage_metadata": USAGE},
    ),
]  # fmt: skip


def _nested() -> dict[str, Any]:
    below = [{**r, "trace_id": None, "parent_run_id": None} for r in RUNS]
    return {**below[0], "child_runs": [{**below[1], "child_runs": [below[2]]}, below[3], below[4]]}


@pytest.mark.parametrize("shape", ["lines", "list", "page", "nested"])
def test_every_documented_shape_gives_the_same_run(shape: str, tmp_path: Path) -> None:
    document = {
        "lines": "".join(json.dumps(r) + "\n" for r in reversed(RUNS)),
        "list": json.dumps(RUNS, indent=1),
        "page": json.dumps({"runs": RUNS, "cursors": {}}),
        "nested": json.dumps(_nested(), indent=1),
    }[shape]
    (tmp_path / "runs.json").write_text(document)
    with memory_store() as store:
        (report,) = import_path(store, tmp_path / "runs.json")
        import_path(store, tmp_path / "runs.json")
        (run,) = store.runs()
        first, second = store.turns(run.id)
        request = store.request(run.id, 2)

    assert (report.format, report.turns, report.tool_calls) == ("langsmith", 2, 1)
    assert (run.name, run.session, run.status) == ("LangGraph", "th1", "completed")
    for usage in (first.usage, second.usage):
        assert (usage.input, usage.cache_read, usage.output, usage.origin) == (40, 60, 7, "recorded")
    assert (first.model, first.request_model, first.provider, first.stop_reason) == (
        "gpt-4o-1",
        "gpt-4o",
        "openai",
        "tool_calls",
    )
    assert (first.step, first.reported_cost_usd, first.generate_ms) == ("agent", 0.0015, 900.0)
    (call,) = first.tool_calls
    assert (call.id, call.name, call.arguments, call.result) == ("c1", "look_up", {"q": "x"}, "42")
    assert (call.is_error, call.timing) == (False, "measured")
    assert [m["role"] for m in request.messages] == ["system", "user", "assistant", "tool"]
    assert request.messages[3] == {"role": "tool", "content": "42", "name": "look_up", "tool_call_id": "c1"}
    assert second.text == "42 it is"


@pytest.mark.parametrize(
    "outputs",
    [
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}}]},
        {"message": {"role": "assistant", "content": "yes"}},
        {"role": "assistant", "content": "yes"},
        {"output": ["assistant", "yes"]},
        {"generations": [[{"text": "yes"}]]},
        {"output": {"type": "ai", "data": {"content": "yes"}}},
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "yes"}]},
    ],
)
def test_answers_are_read_in_every_shape_that_the_integrations_write(outputs: Any) -> None:
    one = _run(3, "llm", "model", None, {"messages": [{"role": "user", "content": "?"}]}, outputs)
    with memory_store() as store:
        got = read(langsmith, json.dumps([one]))
        store.ingest(got.records)
        assert store.turns(got.main)[0].text == "yes"


def test_a_failed_model_call_is_a_failed_turn_and_nobody_counted_is_no_zero() -> None:
    one = _run(3, "llm", "model", None, {"messages": []}, None, error="RateLimit", prompt_tokens=0, completion_tokens=0)
    got = read(langsmith, json.dumps([one]))

    turn = got.turns()[1]
    assert (turn["status"], turn["error"], turn["usage"]["origin"]) == ("error", "RateLimit", "missing")
    assert got.end() == ("failed", "RateLimit")


def test_javascript_times_are_milliseconds() -> None:
    one = _run(3, "llm", "m", None, {"messages": []}, {"role": "assistant", "content": "y"}) | {
        "start_time": 1775815864250,
        "end_time": 1775815865250,
    }
    assert read(langsmith, json.dumps(one)).of("turn_start")[0]["at"] == 1775815864250000


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(RUNS))
def test_damaged_exports_never_raise_and_are_never_lost_without_a_word(data: bytes) -> None:
    read_whatever_it_is(langsmith, data)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(RUNS))
def test_damaged_exports_are_stored_and_can_be_read_back(data: bytes) -> None:
    store_whatever_it_is(langsmith, data)
