"""Damaged rollouts, chats and stores: never a traceback, never a hang, never a lost file without a word."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codex_rollout import Rollout
from damaged_json import damaged, read_whatever_it_is, store_whatever_it_is
from examples import examples
from looptape.tracer.importers.codex import codex
from looptape.tracer.importers.trajectories import gemini_cli, opencode

MODES = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


def _rollout() -> list[Any]:
    made = Rollout(forked_from_id="s0", base_instructions={"text": "sys"}, git={"branch": "b"}, source={"subagent": {}})
    made.meta("s0", step=0)
    made.add("turn_context", {"model": "m", "effort": "low"})
    made.event("task_started", turn_id="019a0000-0000-7000-8000-00000000aaaa", started_at=1793610000)
    made.user("go")
    made.event("user_message", message="go")
    made.item("reasoning", summary=[{"type": "summary_text", "text": "hm"}])
    made.call("c1", tool="spawn_agent")
    made.counted((100, 10, 10, 5))
    made.shown(
        "CommandExecution", id="c1", exit_code=1, duration={"secs": 1, "nanos": 5}, at={"started_at_ms": 1793610001000}
    )
    made.output("c1", '{"agent_id":"x","metadata":{"exit_code":1}}')
    made.shown("AgentMessage", id="a", content=[{"type": "Text", "text": "done"}])
    made.says("done")
    made.record((10, 5, 5), (110, 15, 15), response_id="r", thread_id="s0")
    made.add(
        "compacted", {"message": "so far", "replacement_history": [{"type": "message", "role": "user", "content": []}]}
    )
    made.event("thread_rolled_back", num_turns=1)
    made.event("turn_aborted", reason="interrupted")
    made.item("unknown_item", x=1)
    return [json.loads(line) for line in made.lines]


def _chat() -> dict[str, Any]:
    result = [{"functionResponse": {"id": "c1", "response": {"output": "x"}}}]
    call = {
        "id": "c1",
        "name": "t",
        "args": {"a": 1},
        "result": result,
        "status": "success",
        "timestamp": "2026-11-02T09:00:05Z",
    }
    tokens = {"input": 10, "output": 1, "cached": 2, "thoughts": 3, "tool": 0, "total": 14}
    answer = {
        "id": "m2",
        "type": "gemini",
        "content": "hi",
        "thoughts": [{"subject": "a"}],
        "tokens": tokens,
        "model": "m",
    }
    return {
        "sessionId": "s",
        "projectHash": "p",
        "startTime": "2026-11-02T09:00:00Z",
        "messages": [
            {"id": "m1", "type": "user", "content": [{"text": "go"}], "timestamp": "2026-11-02T09:00:01Z"},
            {**answer, "toolCalls": [call], "timestamp": "2026-11-02T09:00:03Z"},
            {"id": "m3", "type": "info", "content": "i"},
        ],
    }


def _store() -> list[Any]:
    state = {
        "status": "completed",
        "input": {"a": 1},
        "content": [{"type": "text", "text": "x"}],
        "metadata": {"exit": 0},
    }
    tool = {
        "type": "tool",
        "id": "c1",
        "name": "t",
        "state": state,
        "time": {"ran": 1793610003000, "completed": 1793610004000},
    }
    data = {
        "content": [{"type": "reasoning", "text": "r"}, {"type": "text", "text": "t"}, tool],
        "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}},
        "model": {"id": "m", "providerID": "p"},
        "time": {"created": 1793610001000, "completed": 1793610002000},
        "cost": 0.5,
    }
    one = {
        "id": "s1",
        "parent_id": "s2",
        "title": "t",
        "model": '{"id":"m"}',
        "cost": 0.5,
        "time_created": 1793610000000,
    }
    rows: list[tuple[str, dict[str, Any]]] = [
        ("session_v2", one),
        ("session_v2", {"id": "s2", "parent_id": None, "idle_outcome": "succeeded"}),
        (
            "session_message",
            {"id": "m1", "session_id": "s1", "seq": 1, "type": "user", "data": {"text": "go", "files": ["f"]}},
        ),
        ("session_message", {"id": "m2", "session_id": "s1", "seq": 2, "type": "assistant", "data": data}),
        ("session_message", {"id": "m3", "session_id": "s1", "seq": 3, "type": "compaction", "data": {"summary": "s"}}),
    ]
    return [{"table": table, "row": row} for table, row in rows]


@st.composite
def lines(draw: st.DrawFn, valid: list[Any]) -> bytes:
    """A file of one object a line, damaged in its values, its order or its bytes."""
    data = draw(damaged(valid))
    try:
        value = json.loads(data)
    except ValueError:
        return data.replace(b"}, {", b"}\n{").strip(b"[]")
    rows = value if isinstance(value, list) else [value]
    if draw(st.booleans()):
        rows = draw(st.permutations(rows))
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@settings(max_examples=examples(120), **MODES)  # type: ignore[arg-type]
@given(lines(_rollout()))
def test_damaged_rollouts_never_raise(data: bytes) -> None:
    read_whatever_it_is(codex, data)


@settings(max_examples=examples(120), **MODES)  # type: ignore[arg-type]
@given(damaged(_chat()))
def test_damaged_chats_never_raise(data: bytes) -> None:
    read_whatever_it_is(gemini_cli, data)


@settings(max_examples=examples(120), **MODES)  # type: ignore[arg-type]
@given(lines(_store()))
def test_damaged_stores_never_raise(data: bytes) -> None:
    read_whatever_it_is(opencode, data)


@settings(max_examples=examples(12), **MODES)  # type: ignore[arg-type]
@given(lines(_rollout()), damaged(_chat()), lines(_store()))
def test_what_is_left_of_them_is_stored_and_read_back(rollout: bytes, chat: bytes, store: bytes) -> None:
    store_whatever_it_is(codex, rollout)
    store_whatever_it_is(gemini_cli, chat)
    store_whatever_it_is(opencode, store)
