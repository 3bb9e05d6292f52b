"""What a recording lacks for a faithful request is named before anything runs; nothing is made up in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import talking
import testdata
from looptape.replay.fork.draft import draft
from looptape.replay.fork.edits import apply, edit
from looptape.replay.fork.faithful import start
from looptape.replay.fork.pairing import NO_RESULT
from looptape.replay.fork.rebuild import rebuild
from looptape.replay.fork.start import Start
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, Store, memory_store


def session(tmp_path: Path, *rows: dict[str, Any]) -> tuple[Store, str]:
    """A Claude Code session of these rows, imported."""
    shared = {"sessionId": "s1", "cwd": "/work", "version": "2.0.1", "isSidechain": False}
    lines = []
    for place, row in enumerate(rows, 1):
        above = f"u{place - 1}" if place > 1 else None
        stamp = f"2026-11-01T10:00:{place:02}.000Z"
        lines.append(json.dumps({**shared, "uuid": f"u{place}", "parentUuid": above, "timestamp": stamp, **row}))
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join(lines) + "\n")
    store = memory_store()
    import_path(store, file)
    return store, store.runs(Filter(limit=0))[0].id


def user(content: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": content}}


def says(number: int, *blocks: dict[str, Any]) -> dict[str, Any]:
    stop = "tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn"
    body = {"id": f"m{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": list(blocks),
            "stop_reason": stop, "usage": {"input_tokens": 9, "output_tokens": 3}}  # fmt: skip
    return {"type": "assistant", "requestId": f"r{number}", "message": body}


def call(number: int, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": arguments}


def result(number: int, text: str) -> dict[str, Any]:
    return user([{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}])


READ = (user("Read it."), says(1, call(1, path="/a")), result(1, "text"), says(2, {"type": "text", "text": "Done."}))


def said(made: Start, part: str) -> bool:
    return any(part in line for line in (*made.lacks, *made.notes))


def test_a_session_without_system_prompt_tools_and_parameters_says_so(tmp_path: Path) -> None:
    store, run = session(tmp_path, *READ)
    made = rebuild(store, run, 2)
    assert said(made, "no system prompt in the recording; give one with --system")
    assert said(made, "no tool definitions in the recording, though tools were called (Read)")
    assert said(made, "no request parameters")
    assert said(made, "max_tokens is 8192")
    assert "tools" not in made.body
    assert "system" not in made.body


def test_tools_are_derived_from_what_was_seen_only_when_asked(tmp_path: Path) -> None:
    rows = [user("Go."), says(1, call(1, path="/a", limit=3)), result(1, "x"), says(2, call(2, path="/b")), result(2, "y"),
            says(3, {"type": "text", "text": "Done."})]  # fmt: skip
    store, run = session(tmp_path, *rows)
    made = rebuild(store, run, 3, seen_tools=True)
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["path"],
    }
    assert [(t["name"], t["input_schema"]) for t in made.body["tools"]] == [("Read", schema)]
    assert said(made, "derived from the arguments seen: Read")
    assert not said(made, "no tool definitions")


def test_what_the_user_gives_is_lacking_no_more(tmp_path: Path) -> None:
    store, run = session(tmp_path, *READ)
    tools = json.dumps([{"name": "Read", "input_schema": {"type": "object"}}])
    given = [edit("system=Be brief."), edit(f"tools={tools}"), edit("max_tokens=100")]
    made = start(apply(draft(store, run, 2), given))
    assert made.lacks == ()
    assert made.notes == ()
    assert made.body["system"] == "Be brief."


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ({"type": "thinking", "thinking": "hm", "signature": ""}, "without a signature"),
        (
            {"type": "thinking", "thinking": "key [redacted:aws-key]", "signature": "abc"},
            "altered where a secret was removed",
        ),
        ({"type": "redacted_thinking", "data": ""}, "without its data"),
    ],
)
def test_thinking_that_cannot_be_sent_is_left_out_and_named(tmp_path: Path, block: dict[str, Any], why: str) -> None:
    store, run = session(
        tmp_path,
        user("Read it."),
        says(1, block, call(1, path="/a")),
        result(1, "text"),
        says(2, {"type": "text", "text": "Done."}),
    )
    made = rebuild(store, run, 2)
    assert said(made, f"1 thinking part {why}: left out")
    assert [b["type"] for b in made.body["messages"][1]["content"]] == ["tool_use"]


def test_signed_thinking_stays(tmp_path: Path) -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "abc"}
    store, run = session(
        tmp_path,
        user("Read it."),
        says(1, block, call(1, path="/a")),
        result(1, "text"),
        says(2, {"type": "text", "text": "Done."}),
    )
    assert rebuild(store, run, 2).body["messages"][1]["content"][0] == block


def test_removed_secrets_are_counted_by_kind(tmp_path: Path) -> None:
    secret = "AKIA" + "Q" * 16
    store, run = session(
        tmp_path,
        user(f"Use {secret} and {secret}."),
        says(1, call(1, path="/a")),
        result(1, "text"),
        says(2, {"type": "text", "text": "Done."}),
    )
    assert said(rebuild(store, run, 1), "secrets were removed from the recording: 2 aws-key")


def test_a_run_killed_in_a_tool_goes_on_with_an_error_result_that_is_named(tmp_path: Path) -> None:
    """imp-14: before any live call the open tool call has an error result, or the one that the user gives."""
    store, run = session(tmp_path, user("Run it."), says(1, call(1, path="/a")))
    made = rebuild(store, run, 2)
    (block,) = made.body["messages"][-1]["content"]
    assert block == {"type": "tool_result", "tool_use_id": "toolu_1", "content": NO_RESULT, "is_error": True}
    assert said(
        made,
        "no result of Read (toolu_1), turn 1: an error result is put in; say another with --edit 'turn[1].calls[1].result=...'",
    )
    given = start(apply(draft(store, run, 2), [edit("turn[1].calls[1].result=It ran.")]))
    assert given.body["messages"][-1]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "It ran.",
    }
    assert not said(given, "no result of")


def test_the_killed_session_of_the_faults_goes_on_so() -> None:
    store = memory_store()
    import_path(store, testdata.require("faults") / "inputs" / "imp-14" / "killed.jsonl")
    run = store.runs(Filter(limit=0))[0]
    made = rebuild(store, run.id, run.turns + 1)
    assert made.body["messages"][-1]["content"][0]["is_error"] is True
    assert said(made, "an error result is put in")


def test_a_prompt_after_an_unanswered_call_stands_behind_its_error_result(tmp_path: Path) -> None:
    store, run = session(
        tmp_path,
        user("Run it."),
        says(1, call(1, path="/a")),
        user("Still there?"),
        says(2, {"type": "text", "text": "Yes."}),
    )
    made = rebuild(store, run, store.run(run).turns)
    first = made.body["messages"][2]["content"]
    assert [b["type"] for b in first] == ["tool_result", "text"]
    assert first[1]["text"] == "Still there?"
    assert first[0]["is_error"] is True


def test_a_run_of_no_provider_is_sent_in_the_nearest_format_and_says_so(tmp_path: Path) -> None:
    talk = talking.loop(laps=1)
    run = talking.record(tmp_path, "manual", talk)
    with talking.stored(tmp_path) as store:
        made = rebuild(store, run, 2)
    assert (made.api, made.body) == ("anthropic.messages", talk[1][0])
    assert said(made, "the recorded wire format is no provider's: sent as anthropic.messages, the nearest")


def test_speakers_without_a_role_of_the_api_keep_their_names(tmp_path: Path) -> None:
    body = {
        "messages": [
            {"role": "human", "content": "Find it."},
            {"role": "Planner", "content": "I look."},
            {"role": "assistant", "content": "Hm."},
        ]
    }
    run = talking.record(tmp_path, "manual", [(body, talking.answer([{"type": "text", "text": "Done"}], "end_turn"))])
    with talking.stored(tmp_path) as store:
        made = rebuild(store, run, 1)
    first, second = made.body["messages"]
    assert [b["text"] for b in first["content"]] == ["[human] Find it.", "[Planner] I look."]
    assert second["role"] == "assistant"
    assert said(made, "the name in front: Planner, human")


def test_another_wire_format_keeps_calls_with_results_and_names_what_is_lost(tmp_path: Path) -> None:
    talk = talking.loop(laps=1)
    thought = {"type": "thinking", "thinking": "hm", "signature": "abc"}
    talk[1][0]["messages"][1] = {"role": "assistant", "content": [thought, *talk[1][0]["messages"][1]["content"]]}
    run = talking.record(tmp_path, talking.ANTHROPIC, talk)
    with talking.stored(tmp_path) as store:
        made = rebuild(store, run, 2, api="openai.chat")
    system, ask, calls, told = made.body["messages"]
    assert system == {"role": "system", "content": "You look things up."}
    assert ask == {"role": "user", "content": "What is 7% of the revenue?"}
    assert json.loads(calls["tool_calls"][0]["function"]["arguments"]) == {"q": "revenue 1"}
    assert told == {"role": "tool", "tool_call_id": "c1", "content": "revenue 1: 1200"}
    assert made.body["tools"][0]["function"]["name"] == "search"
    assert made.body["max_completion_tokens"] == 500
    assert said(made, "thinking left out")
    assert said(made, "sent as openai.chat, the model speaks it")


def test_reasoning_that_only_the_server_could_read_is_left_out_and_named(tmp_path: Path) -> None:
    items = [{"role": "user", "content": "How much?"}, {"type": "reasoning", "id": "rs_1", "summary": []},
             {"type": "function_call", "call_id": "k", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "k", "output": "1"}]  # fmt: skip
    body = {"model": "gpt-5", "input": items, "tools": [{"type": "function", "name": "f", "parameters": {}}]}
    run = talking.record(tmp_path, talking.RESPONSES, [(body, {"id": "r", "status": "completed", "output": []})])
    with talking.stored(tmp_path) as store:
        made = rebuild(store, run, 1)
    assert [i.get("type") for i in made.body["input"]] == [None, "function_call", "function_call_output"]
    assert made.lacks == ("1 thinking part without its encrypted content: left out",)


def test_gemini_goes_over_with_an_id_for_each_call(tmp_path: Path) -> None:
    calls = [{"functionCall": {"name": "f", "args": {"n": n}}} for n in (1, 2)]
    told = [{"functionResponse": {"name": "f", "response": {"output": n}}} for n in (1, 2)]
    contents = [
        {"role": "user", "parts": [{"text": "Go."}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": told},
    ]
    tools = [{"functionDeclarations": [{"name": "f", "description": "d", "parameters": {"type": "object"}}]}]
    body = {"contents": contents, "systemInstruction": {"parts": [{"text": "Be brief."}]}, "tools": tools}
    done = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]}, "finishReason": "STOP"}],
        "modelVersion": "gemini-2.5",
    }
    run = talking.record(tmp_path, "google.generate_content", [(body, done)])
    with talking.stored(tmp_path) as store:
        made = rebuild(store, run, 1)
    _, said_, results = made.body["messages"]
    ids = [b["id"] for b in said_["content"]]
    assert len(set(ids)) == 2
    assert [b["tool_use_id"] for b in results["content"]] == ids
    assert (made.body["system"], made.body["tools"][0]["name"]) == ("Be brief.", "f")


def test_an_agent_that_writes_its_calls_as_words_is_named() -> None:
    folder = testdata.require("corpus") / "swe_agent"
    store = memory_store()
    import_path(store, folder / "eps.traj")
    made = rebuild(store, store.runs(Filter(limit=0))[0].id, 7)
    assert said(made, "this agent writes its calls as words")
