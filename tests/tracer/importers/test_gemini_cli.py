"""Gemini CLI chats: thoughts, tokens, calls with their results inside, and messages that are no turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from imported import read
from looptape.tracer.importers import import_path
from looptape.tracer.importers.trajectories import gemini_cli
from looptape.tracer.store import Filter, memory_store
from looptape.tracer.store.export import records_of
from testdata import folder, require


def chat(*messages: dict[str, Any], **facts: Any) -> str:
    """A chat whose messages are two seconds apart."""
    timed = [{"id": f"m{i}", "timestamp": f"2026-11-02T09:00:{i * 2:02}.000Z", **m} for i, m in enumerate(messages, 1)]
    begun = "2026-11-02T09:00:00.000Z"
    known = {"sessionId": "s-1", "projectHash": "ab12", "startTime": begun, "lastUpdated": timed[-1]["timestamp"]}
    return json.dumps({**known, **facts, "messages": timed}, indent=2)


def user(text: Any) -> dict[str, Any]:
    return {"type": "user", "content": text}


def gemini(text: str = "", *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    tokens = {"input": 100, "output": 10, "cached": 60, "thoughts": 25, "tool": 5, "total": 140}
    answer = {"type": "gemini", "content": text, "model": "gem-demo-3", "tokens": tokens, **more}
    return {**answer, "toolCalls": list(calls)} if calls else answer


def call(name: str, result: Any = None, status: str = "success", **more: Any) -> dict[str, Any]:
    made = {"id": name, "name": "read_file", "args": {"path": "a"}, "status": status, **more}
    if result is not None:
        made["result"] = [{"functionResponse": {"id": name, "name": "read_file", "response": result}}]
    return made


FULL = chat(
    user("read it"),
    gemini(
        "",
        call("c1", {"output": "hello"}, timestamp="2026-11-02T09:00:09.000Z", resultDisplay="1 file"),
        call("c2", {"error": "no such file"}, "error"),
        call("c3", {"a": 1, "b": [2]}),
        thoughts=[{"subject": "Reading", "description": "the file"}],
    ),
    {"type": "info", "content": "Update available"},
    gemini("It says hello."),
)


def test_thoughts_are_outside_the_output_of_the_file_and_inside_ours() -> None:  # cst-07, the file's own side
    got = read(gemini_cli, FULL)
    usage = got.turns()[1]["usage"]
    assert {k: usage[k] for k in ("input", "cache_read", "output", "reasoning")} == {
        "input": 45,  # 100 with 60 cached, and 5 of tool prompts beside them
        "cache_read": 60,
        "output": 35,
        "reasoning": 25,
    }
    assert usage["cache_write_5m"] is None, "not told is not zero"


def test_what_the_store_gives_back_is_what_the_chat_says() -> None:
    with memory_store() as store:
        store.ingest(read(gemini_cli, FULL).records)
        (run,) = store.runs(Filter(limit=0))
        first, second = store.turns(run.id)
        (event,) = store.events(run.id)
        request = store.request(run.id, 2)
    assert (run.source, run.session, run.title, run.status) == ("gemini-cli", "s-1", "read it", "completed")
    assert (run.tags, run.usage.output, run.list_price) == ({"project_hash": "ab12"}, 70, True)
    assert (first.thinking, first.model, first.user_turn, second.user_turn) == (
        "Reading\nthe file", "gem-demo-3", True, False,
    )  # fmt: skip
    one, two, three = first.tool_calls
    assert (one.result, one.is_error, one.ms, one.arguments) == ("hello", False, 5000.0, {"path": "a"})
    assert (two.result, two.is_error, two.ms) == ("no such file", True, None)
    assert json.loads(three.result)[0]["functionResponse"]["response"] == {"a": 1, "b": [2]}
    assert (event.kind, event.detail["text"], event.turn) == ("info", "Update available", 1)
    assert [len(m["content"]) if isinstance(m["content"], list) else m["content"] for m in request.messages] == [
        "read it", 4, 3,
    ]  # fmt: skip
    assert second.text == "It says hello."


@pytest.mark.parametrize(
    ("messages", "status", "reason"),
    [
        ([{"type": "warning", "content": "hook failed"}], "unknown", "no model call"),
        ([user("go")], "interrupted", "the last prompt has no answer"),
        ([user("go"), gemini("", call("c1", status="executing"))], "interrupted", "no result for c1"),
        ([user("go"), gemini("", call("c1", {"output": "x"}))], "interrupted", "no request follows"),
        ([user("go"), {"type": "error", "content": "[API Error: 429]"}], "failed", "[API Error: 429]"),
        ([user([{"text": "go"}, {"text": "on"}]), gemini("done")], "completed", "an answer without calls"),
    ],
)
def test_the_end_is_what_the_chat_tells(messages: list[dict[str, Any]], status: str, reason: str) -> None:
    got = read(gemini_cli, chat(*messages)).end()
    assert got[0] == status
    assert got[1].startswith(reason)


def test_a_cancelled_call_is_no_plain_failure() -> None:
    got = read(gemini_cli, chat(user("go"), gemini("", call("c1", status="cancelled")), user("stop")))
    (seen,) = got.of("call_seen")
    assert (seen["is_error"], seen["error_class"]) == (True, "cancelled")


def test_unknown_messages_are_kept_and_counted_and_odd_ones_named() -> None:
    odd = json.loads(chat(user("go"), {"type": "brand_new", "x": 1}))
    odd["messages"].append("text")
    got = read(gemini_cli, json.dumps(odd))
    assert got.notes.unknown == {"message brand_new": 1}
    assert [e["detail"]["record"]["x"] for e in got.of("event")] == [1]
    assert any("1 messages are no JSON objects" in w for w in got.notes.warnings)


def test_a_cut_document_is_named_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    from looptape.tracer.errors import LooptapeError

    place = tmp_path / "chat.json"
    place.write_text(FULL[:900])
    assert gemini_cli.recognise(place.read_bytes())
    with memory_store() as store:
        with pytest.raises(LooptapeError, match=r"chat\.json: line \d+: not JSON"):
            import_path(store, place)
        assert store.runs(Filter(limit=0, include_empty=True)) == []


def test_secrets_are_removed() -> None:
    secret = "sk-ant-api03-" + "Ab1_" * 24
    got = read(gemini_cli, chat(user(f"use {secret}"), gemini("", call("c1", {"output": secret}))))
    assert secret not in json.dumps(got.records)


def _files() -> list[dict[str, Any]]:
    place = folder("corpus")
    if place is None:
        return []
    files = json.loads((place / "MANIFEST.json").read_text())["files"]
    return [f for f in files if f["format"] == "gemini_cli"]


def test_the_gemini_corpus_is_here() -> None:
    require("corpus")
    assert _files()


@pytest.mark.parametrize("entry", _files(), ids=lambda entry: Path(entry["file"]).stem)
def test_counts_of_real_chats_are_those_of_the_manifest(entry: dict[str, Any]) -> None:
    place, counts = require("corpus") / entry["file"], entry["counts"]
    assert gemini_cli.recognise(place.read_bytes()[:65536])
    got = read(gemini_cli, place)
    kinds = counts["message_types"]
    assert (got.notes.turns, got.notes.tool_calls) == (counts["turns"], counts["tool_calls"])
    assert got.notes.counts["prompts"] == kinds.get("user", 0)
    assert got.notes.counts["events"] == kinds.get("info", 0) + kinds.get("warning", 0)
    used = [t["usage"] for t in got.turns().values()]
    tokens = counts["tokens"] or dict.fromkeys(("input", "output", "cached", "thoughts"), 0)
    assert sum(u["input"] + u["cache_read"] for u in used) == tokens["input"]
    assert sum(u["output"] for u in used) == tokens["output"] + tokens["thoughts"]
    assert sum(u["reasoning"] for u in used) == tokens["thoughts"]
    assert sum(u["cache_read"] for u in used) == tokens["cached"]
    assert sorted({t["model"] for t in got.turns().values()}) == counts["models"]
    assert not got.notes.unknown


def test_a_shorter_copy_of_a_chat_takes_nothing_away() -> None:
    place = require("corpus") / "gemini_cli"
    with memory_store() as store:
        for name in ("9c-53780d06b7-0.json", "c9-45f262e88d-0.json", "9c-53780d06b7-0.json"):
            import_path(store, place / name)
        (run,) = store.runs(Filter(limit=0))
        assert (run.turns, run.tool_calls, run.usage.reasoning) == (6, 4, 464)
        assert len(store.turns(run.id)[1].tool_calls) == 1


def test_a_copy_that_ends_before_the_calls_of_its_last_answer_takes_none_away(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.json", tmp_path / "part.json"
    whole.write_text(chat(user("read it"), gemini("I read.", call("c1", {"output": "x"}))))
    part.write_text(chat(user("read it"), gemini("I read.")))
    with memory_store() as store:
        for path in (whole, part):
            import_path(store, path)
        (run,) = store.runs()
        (ended,) = [r for r in records_of(store, run.id) if r["kind"] == "turn_end"]
        (said,) = [r for r in records_of(store, run.id) if r.get("hash") == ended["response"]]
        assert (run.tool_calls, "tool_use" in said["text"]) == (1, True)
