"""Sub-agents of Claude Code sessions, in the three layouts: runs of their own, never turns of the session."""

from __future__ import annotations

import json
from pathlib import Path

from claude_session import SessionLines, call
from imported import Imported, read
from looptape.tracer.importers.claude import claude_code
from looptape.tracer.importers.context import Context


def test_progress_lines_become_a_child_run_of_the_call_that_started_it() -> None:
    lines = SessionLines()
    lines.user("search")
    lines.answer("m1", call("t1", "Task", prompt="look", description="Look around", subagent_type="Explore"))
    for message in (
        {"type": "user", "message": {"role": "user", "content": "look"}},
        {"type": "assistant", "message": _answer("c1", call("g1", "Glob")), "requestId": "r"},
        {"type": "user", "message": {"role": "user", "content": [_result("g1")]}},
        {"type": "assistant", "message": _answer("c2", call("g2", "Read"))},
        {"type": "user", "message": {"role": "user", "content": [_result("g2")]}},
    ):
        inner = {**message, "timestamp": "2026-11-02T09:00:05.000Z", "uuid": "i"}
        lines.add("progress", data={"type": "agent_progress", "agentId": "a37", "message": inner}, parentToolUseID="t1")
    lines.add("progress", data={"type": "bash_progress", "output": "x"})
    lines.result("t1", "found it", toolUseResult={"agentId": "a37", "status": "completed"})
    lines.answer("m2", "there")

    got = read(claude_code, lines.text())

    assert got.notes.turns == 2
    child = _child(got)
    start = got.of("run_start", child)[0]
    assert start["parent"] == {"run": got.main, "turn": 1, "call": "t1", "kind": "sub-agent"}
    assert start["agent"] == "Explore"
    assert len(got.turns(child)) == 2
    assert [m["role"] for m in got.request(2, child)] == ["user", "assistant", "user"]
    assert got.of("run_update", child)[-1]["title"] == "Look around"
    assert got.end(child) == ("completed", "the call that started it has its result")
    assert got.notes.counts["sub_agent_turns"] == 2


def test_side_chain_lines_become_a_child_run_found_by_its_prompt() -> None:
    lines = SessionLines()
    lines.user("search")
    lines.answer("m1", call("t1", "Task", prompt="look"), call("t2", "Task", prompt="listen"))
    first = lines.user("listen", isSidechain=True, parentUuid=None)
    lines.answer("c1", "I hear", isSidechain=True, parentUuid=first["uuid"])
    lines.result("t1")
    lines.result("t2")
    lines.answer("m2", "there")

    got = read(claude_code, lines.text())

    assert got.notes.turns == 2
    child = _child(got)
    assert got.of("run_start", child)[0]["parent"]["call"] == "t2"
    assert len(got.turns(child)) == 1
    assert got.notes.counts["prompts"] == 1


def test_a_file_of_its_own_is_a_child_run_linked_by_its_meta_file(tmp_path: Path) -> None:
    parent = SessionLines()
    parent.user("search")
    parent.answer("m1", call("t1", "Agent", prompt="look"))
    parent.add(
        "progress", data={"type": "agent_progress", "agentId": "a9", "message": {"type": "user"}}, parentToolUseID="t1"
    )
    parent.result("t1", "found it", toolUseResult={"agentId": "a9"})
    parent.answer("m2", "there")
    child = SessionLines()
    child.user("look", isSidechain=True, agentId="a9")
    child.answer("c1", "found it", isSidechain=True, agentId="a9")
    session = parent.write(tmp_path / f"{parent.session}.jsonl")
    agent = child.write(tmp_path / parent.session / "subagents" / "agent-a9.jsonl")
    context = Context()

    one = read(claude_code, session, context)
    two = read(claude_code, agent, context)

    assert list(one.notes.runs) == [one.main], "the file is the better copy, progress lines are left alone"
    assert two.notes.turns == 1
    assert two.of("run_start")[0]["parent"] == {"run": one.main, "turn": 1, "call": "t1", "kind": "sub-agent"}

    agent.with_name("agent-a9.meta.json").write_text(json.dumps({"agentType": "Explore", "toolUseId": "t1"}))
    assert read(claude_code, agent, context).of("run_start")[0]["agent"] == "Explore"
    alone = read(claude_code, agent).of("run_start")[0]["parent"]
    assert (alone["run"], alone["call"]) == (one.main, "t1")


def _answer(name: str, *blocks: object) -> dict[str, object]:
    return {"id": name, "role": "assistant", "model": "acme-small-1", "content": list(blocks), "usage": {}}


def _result(name: str) -> dict[str, str]:
    return {"type": "tool_result", "tool_use_id": name, "content": "ok"}


def _child(got: Imported) -> str:
    (child,) = [run for run in got.notes.runs if run != got.main]
    return child
