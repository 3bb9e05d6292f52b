"""OpenHands SDK events: parallel actions are one turn, a condensation rewrites the request, results keep their marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

from damaged_json import damaged, read_whatever_it_is, store_whatever_it_is
from examples import examples
from imported import read
from looptape.tracer.importers import import_path
from looptape.tracer.importers.trajectories import openhands
from looptape.tracer.store import memory_store


def _text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def _event(number: int, kind: str, source: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "id": f"e{number}", "timestamp": f"2026-02-03T10:00:{number:02d}.5", "source": source, **more}


def _action(number: int, call: str, response: str, tool: str = "terminal", **arguments: Any) -> dict[str, Any]:
    tool_call = {"id": call, "name": tool, "arguments": json.dumps(arguments), "origin": "completion"}
    names = {"tool_name": tool, "tool_call_id": call, "tool_call": tool_call, "llm_response_id": response}
    return _event(number, "ActionEvent", "agent", thought=[_text("so")], action={"kind": "X", **arguments}, **names)


def _observation(number: int, call: str, said: str, *, failed: bool = False) -> dict[str, Any]:
    seen = {"kind": "TerminalObservation", "content": [_text(said)], "is_error": failed, "exit_code": int(failed)}
    names = {"tool_name": "terminal", "tool_call_id": call, "action_id": "x"}
    return _event(number, "ObservationEvent", "environment", observation=seen, **names)


USAGE = {
    "model": "gpt-5",
    "prompt_tokens": 100,
    "cache_read_tokens": 60,
    "cache_write_tokens": 0,
    "completion_tokens": 7,
}
TOOLS = [{"type": "function", "function": {"name": "terminal"}}]
STATS = {"usage_to_metrics": {"agent": {"token_usages": [{**USAGE, "reasoning_tokens": 3, "response_id": "r1"}]}}}
EVENTS = [
    _event(1, "SystemPromptEvent", "agent", system_prompt=_text("be good"), tools=TOOLS),
    _event(2, "MessageEvent", "user", llm_message={"role": "user", "content": [_text("fix it")], "cache_enabled": True}),
    _action(3, "c1", "r1", command="ls"),
    _action(4, "c2", "r1", command="false"),
    _observation(5, "c1", "a.py"),
    _observation(6, "c2", "", failed=True),
    _action(7, "c3", "r2", command="rm"),
    _event(8, "UserRejectObservation", "environment", tool_name="terminal", tool_call_id="c3", rejection_reason="no", action_id="e7"),
    _event(9, "Condensation", "environment", forgotten_event_ids=["e3", "e4", "e5", "e6"], summary="did ls", summary_offset=2, llm_response_id="rc"),
    _action(10, "c4", "r3", tool="finish", message="done"),
    _event(11, "AgentErrorEvent", "agent", tool_name="finish", tool_call_id="c4", error="bad arguments"),
    _event(12, "ConversationStateUpdateEvent", "environment", key="stats", value=STATS),
    _event(13, "ConversationStateUpdateEvent", "environment", key="execution_status", value="finished"),
    _event(14, "HologramEvent", "environment"),
]  # fmt: skip


def test_actions_of_one_response_are_the_parallel_calls_of_one_turn(tmp_path: Path) -> None:
    (tmp_path / "events.json").write_text(json.dumps(EVENTS, indent=2))
    with memory_store() as store:
        (report,) = import_path(store, tmp_path / "events.json")
        (run,) = store.runs()
        turns = store.turns(run.id)
        requests = [[m["role"] for m in store.request(run.id, n).messages] for n in (1, 2, 3)]
        third = store.request(run.id, 3)
        events = {e.kind: e.detail for e in store.events(run.id)}

    assert (report.format, report.turns, report.tool_calls, report.unknown) == ("openhands", 3, 4, {"HologramEvent": 1})
    assert report.counts["parallel_turns"] == 1
    assert report.counts["compactions"] == 1
    ok, bad = turns[0].tool_calls
    assert (ok.name, ok.arguments, ok.result, ok.is_error) == ("terminal", {"command": "ls"}, [_text("a.py")], False)
    assert (bad.is_error, bad.error_class) == (True, None)
    assert (turns[1].tool_calls[0].is_error, turns[1].tool_calls[0].error_class) == (True, "denied")
    assert turns[2].tool_calls[0].is_error is True
    assert turns[0].text == "so"
    assert turns[0].response_id == "r1"
    assert turns[0].user_turn
    usage = turns[0].usage
    assert (usage.input, usage.cache_read, usage.output, usage.reasoning, turns[0].model) == (40, 60, 7, 3, "gpt-5")
    assert turns[1].usage.origin == "missing"
    assert requests[:2] == [["system", "user"], ["system", "user", "assistant", "tool", "tool"]]
    assert [m["role"] for m in third.messages] == ["system", "user", "user", "assistant", "tool"]
    assert third.messages[2]["content"] == [_text("did ls")]
    assert third.tools == TOOLS
    assert "compaction" in turns[2].flags
    assert events["compaction"]["forgotten"] == 4
    assert (run.status, run.reason) == ("completed", "the agent finished")
    assert any("UTC" in w for w in report.warnings)


def test_a_list_lines_and_a_folder_of_event_files_are_the_same_run(tmp_path: Path) -> None:
    lines = tmp_path / "events.jsonl"
    lines.write_text("\n".join(map(json.dumps, EVENTS)))
    folder = tmp_path / "conversation" / "events"
    folder.mkdir(parents=True)
    for number, event in enumerate(EVENTS):
        (folder / f"event-{number:05d}-{event['id']}.json").write_text(json.dumps(event))
    with memory_store() as store:
        reports = import_path(store, tmp_path)
        (run,) = store.runs()

    assert [(r.format, r.turns) for r in reports] == [("openhands", 3), ("openhands", 3)]
    assert (run.turns, run.tool_calls) == (3, 4)


def test_an_answer_without_actions_is_a_turn_and_open_calls_are_an_interruption() -> None:
    said = {"role": "assistant", "content": [_text("hello")]}
    talk = [EVENTS[1], _event(3, "MessageEvent", "agent", llm_message=said, llm_response_id="r9")]
    cut = EVENTS[:5]

    assert read(openhands, json.dumps(talk)).end()[0] == "completed"
    assert read(openhands, json.dumps(cut)).end() == ("interrupted", "the last calls have no result")
    assert read(openhands, json.dumps(EVENTS[0])).notes.turns == 0


def test_other_lists_with_a_kind_are_not_taken_for_events() -> None:
    assert not openhands.recognise(b'[{"kind": "header", "id": "1", "timestamp": "x"}]')
    assert not openhands.recognise(b'{"kind": "ActionEvent"}')


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(EVENTS))
def test_damaged_events_never_raise_and_are_never_lost_without_a_word(data: bytes) -> None:
    read_whatever_it_is(openhands, data)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(EVENTS))
def test_damaged_events_are_stored_and_can_be_read_back(data: bytes) -> None:
    store_whatever_it_is(openhands, data)
