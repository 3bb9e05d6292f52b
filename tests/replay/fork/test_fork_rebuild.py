"""Rebuilding a turn's request: exactly what the model saw, also where only the server had it, in every wire format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import talking
from looptape.replay.fork.rebuild import rebuild
from looptape.replay.fork.start import OpenCall
from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, memory_store

SAMPLES = sorted((Path(__file__).resolve().parents[3] / "sample_traces").glob("*.jsonl"))


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_request_of_a_turn_is_the_one_that_was_sent(tmp_path: Path, number: int) -> None:
    talk = talking.loop()
    run = talking.record(tmp_path, talking.ANTHROPIC, talk)
    with talking.stored(tmp_path) as store:
        start = rebuild(store, run, number)
    assert start.body == talk[number - 1][0]
    assert (start.api, start.stage, start.inherited, start.lacks, start.notes) == (
        talking.ANTHROPIC,
        "generate",
        number - 1,
        (),
        (),
    )


def test_one_past_the_end_goes_on_after_the_last_calls(tmp_path: Path) -> None:
    run = talking.record(tmp_path, talking.ANTHROPIC, talking.loop()[:2])
    with talking.stored(tmp_path) as store:
        start = rebuild(store, run, 3)
    assert (start.stage, start.inherited) == ("resume", 2)
    assert start.body["messages"][-1]["content"][0]["tool_use_id"] == "c2"
    assert start.body["messages"][-1]["content"][0]["is_error"] is True
    assert start.body["messages"][-2]["role"] == "assistant"


def test_a_run_that_was_over_has_nothing_past_its_end(tmp_path: Path) -> None:
    run = talking.record(tmp_path, talking.ANTHROPIC, talking.loop())
    with talking.stored(tmp_path) as store, pytest.raises(UsageError, match=f"over with turn 4.*{run}:4"):
        rebuild(store, run, 5)


@pytest.mark.parametrize("number", [0, 9])
def test_a_turn_that_is_not_there_is_said_with_those_that_are(tmp_path: Path, number: int) -> None:
    run = talking.record(tmp_path, talking.ANTHROPIC, talking.loop())
    with talking.stored(tmp_path) as store, pytest.raises(UsageError, match="It has turns 1 to 4"):
        rebuild(store, run, number)


def test_a_thread_of_anthropic_is_put_together(tmp_path: Path) -> None:
    (first, said), (second, _), *_ = talking.loop()
    news = {**second, "messages": second["messages"][2:], "previous_message_id": said["id"]}
    run = talking.record(tmp_path, talking.ANTHROPIC, [(first, said), (news, talking.answer([], "end_turn", 9))])
    with talking.stored(tmp_path) as store:
        start = rebuild(store, run, 2)
    assert start.body == second
    assert "previous_message_id" in start.notes[0]


def test_a_chain_of_responses_is_put_together(tmp_path: Path) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "search", "arguments": '{"q":"x"}'}
    told = {"type": "function_call_output", "call_id": "call_1", "output": "1200"}
    ask = {"role": "user", "content": "How much?"}
    first = {"model": "gpt-5", "instructions": "Be brief.", "input": [ask]}
    second = {"model": "gpt-5", "instructions": "Be brief.", "previous_response_id": "resp_1", "input": [told]}
    last = {"id": "resp_2", "status": "completed", "output": []}
    talk: list[Any] = [(first, {"id": "resp_1", "status": "completed", "output": [call]}), (second, last)]
    run = talking.record(tmp_path, talking.RESPONSES, talk)
    with talking.stored(tmp_path) as store:
        start = rebuild(store, run, 2)
    assert start.body == {"model": "gpt-5", "instructions": "Be brief.", "input": [ask, call, told]}
    assert "previous_response_id" in start.notes[0]


def test_a_request_in_the_chat_format_is_kept(tmp_path: Path) -> None:
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How much?"}]
    call = {"id": "k1", "type": "function", "function": {"name": "search", "arguments": '{"q":"x"}'}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    one = {"model": "gpt-5", "messages": messages}
    two = {"model": "gpt-5", "messages": [*messages, said, {"role": "tool", "tool_call_id": "k1", "content": "1200"}]}
    done = {"id": "b", "choices": [{"message": {"role": "assistant", "content": "84"}, "finish_reason": "stop"}]}
    asked = {"id": "a", "choices": [{"message": said, "finish_reason": "tool_calls"}]}
    run = talking.record(tmp_path, talking.CHAT, [(one, asked), (two, done)])
    with talking.stored(tmp_path) as store:
        start = rebuild(store, run, 2)
    assert start.body == two
    assert any("no tool definitions" in line and "(search)" in line for line in start.lacks)


def test_without_content_there_is_nothing_to_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPTAPE_CONTENT", "none")
    run = talking.record(tmp_path, talking.ANTHROPIC, talking.loop())
    with talking.stored(tmp_path) as store, pytest.raises(LooptapeError, match="not recorded") as trouble:
        rebuild(store, run, 2)
    assert trouble.value.exit_code == 3


@pytest.mark.parametrize("tape", SAMPLES, ids=lambda p: p.stem)
def test_every_turn_of_every_sample_can_be_rebuilt(tape: Path) -> None:
    store = memory_store()
    import_path(store, tape)
    for run in store.runs(Filter(limit=0)):
        for number in range(1, run.turns + 1):
            start = rebuild(store, run.id, number)
            said = store.request(run.id, number)
            assert start.body["model"]
            assert start.body["messages"]
            assert len(start.body["messages"]) == len(said.messages)
            assert start.lacks == () or "no result" in start.lacks[0]


def test_a_missing_result_between_turns_is_put_in_where_it_belongs() -> None:
    store = memory_store()
    import_path(store, next(p for p in SAMPLES if p.stem == "missing_result"))
    run = store.runs(Filter(limit=0))[0]
    start = rebuild(store, run.id, 2)
    assert start.unanswered == (OpenCall("toolu_01NYkm7zUcwDgCGCnCazkZb8", "stock", start.unanswered[0].arguments_raw),)
    calls = [b["id"] for b in start.body["messages"][1]["content"] if b["type"] == "tool_use"]
    told = [b["tool_use_id"] for b in start.body["messages"][2]["content"] if b["type"] == "tool_result"]
    assert sorted(calls) == sorted(told)
    assert "turn[1].calls[2].result" in start.lacks[0]
