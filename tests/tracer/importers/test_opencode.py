"""OpenCode stores: sessions with their parts, states, times and children, from a dump and from the SQLite file."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from imported import read
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import import_path
from looptape.tracer.importers.trajectories import opencode
from looptape.tracer.store import Filter, memory_store
from testdata import require

T0 = 1_790_000_000_000


def session(name: str, **more: Any) -> dict[str, Any]:
    model = json.dumps({"id": "demo-1", "providerID": "acme"})
    row = {
        "id": name,
        "title": f"title {name}",
        "agent": "build",
        "directory": "/w",
        "model": model,
        "version": "2.0.14",
    }
    return {"table": "session_v2", "row": {**row, "time_created": T0, "parent_id": None, "cost": 0.25, **more}}


def message(owner: str, seq: int, kind: str, **data: Any) -> dict[str, Any]:
    data.setdefault("time", {"created": T0 + seq * 1000})
    row = {"id": f"{owner}-m{seq}", "session_id": owner, "seq": seq, "type": kind, "time_created": T0 + seq * 1000}
    return {"table": "session_message", "row": {**row, "data": data}}


def answer(owner: str, seq: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    at = T0 + seq * 1000
    facts = {
        "agent": "build",
        "content": list(parts),
        "cost": 0.125,
        "finish": "stop",
        "rawFinish": "stop",
        "model": {"id": "demo-1", "providerID": "acme"},
        "time": {"created": at, "streamed": at + 500, "completed": at + 900},
        "tokens": {"input": 100, "output": 10, "reasoning": 4, "cache": {"read": 60, "write": 3}},
    }
    return message(owner, seq, "assistant", **{**facts, **more})


def tool(name: str, state: dict[str, Any], begun: int | None = None, done: int | None = None) -> dict[str, Any]:
    times = {"created": T0, "ran": begun, "completed": done}
    return {"type": "tool", "id": name, "name": "shell", "state": state, "time": times, "executed": False}


def rows() -> list[dict[str, Any]]:
    ok = {"status": "completed", "input": {"command": "ls"}, "content": [{"type": "text", "text": "a"}]}
    bad = {"status": "error", "input": {"command": "rm"}, "error": {"message": "not allowed"}}
    task = {**ok, "metadata": {"sessionId": "ses_child"}}
    return [
        session("ses_child", parent_id="ses_main", agent="explore", cost=0.5),
        session("ses_main", idle_outcome="succeeded"),
        message("ses_main", 1, "user", text="do it", files=[], agents=[]),
        answer(
            "ses_main",
            2,
            {"type": "reasoning", "text": "hm", "time": {"created": T0 + 2100}},
            {"type": "text", "text": "on it"},
            tool("c1", ok, T0 + 2600, T0 + 2700),
            tool("c2", bad, T0 + 2600, T0 + 2650),
            tool("c3", task, T0 + 2600, T0 + 9000),
            finish="tool-calls",
            rawFinish="tool_calls",
        ),
        message("ses_main", 3, "synthetic", text="a reminder"),
        message("ses_main", 4, "shell", command="pwd", exit=0, output={"output": "/w"}),
        answer("ses_main", 12, {"type": "text", "text": "done"}),
        message("ses_main", 13, "idle", outcome="succeeded"),
        message("ses_child", 1, "user", text="explore"),
        answer("ses_child", 2, {"type": "text", "text": "found"}),
    ]


def dump(lines: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_what_the_store_gives_back_is_what_the_rows_say() -> None:
    with memory_store() as store:
        store.ingest(read(opencode, dump(rows())).records)
        main, child = sorted(store.runs(Filter(limit=0)), key=lambda r: r.title or "", reverse=True)
        first, second = store.turns(main.id)
        events = store.events(main.id)
        request = store.request(main.id, 2)
    assert (main.title, main.agent, main.project, main.status, main.reason) == (
        "title ses_main", "build", "/w", "completed", "idle: succeeded",
    )  # fmt: skip
    assert (main.reported_cost_usd, first.reported_cost_usd, first.provider, first.model) == (
        0.25,
        0.125,
        "acme",
        "demo-1",
    )
    assert (first.text, first.thinking, first.stop_reason, first.generate_ms) == ("on it", "hm", "tool_calls", 500.0)
    usage = first.usage
    assert (usage.input, usage.cache_read, usage.cache_write_5m, usage.output, usage.reasoning) == (100, 60, 3, 14, 4)
    one, two, three = first.tool_calls
    assert (one.ms, one.timing, one.result, one.is_error) == (100.0, "measured", [{"type": "text", "text": "a"}], False)
    assert (two.result, two.is_error) == ("not allowed", True)
    assert three.child_run == child.id
    assert (child.agent, child.parent.run, child.parent.turn, child.parent.call) == ("explore", main.id, 1, "c3")  # type: ignore[union-attr]
    assert [(e.kind, e.turn) for e in events] == [("user_shell", 1)]
    assert [m["content"] for m in request.messages if isinstance(m["content"], str)] == ["do it", "a reminder"]
    assert second.user_turn is False


def test_the_sqlite_file_gives_the_same_runs_as_its_dump(tmp_path: Path) -> None:
    place = tmp_path / "opencode.db"
    base = sqlite3.connect(place)
    columns = sorted({key for line in rows() if line["table"] == "session_v2" for key in line["row"]})
    base.execute(f"create table session_v2 ({', '.join(columns)})")
    base.execute("create table session_message (id, session_id, seq, type, time_created, data)")
    for line in rows():
        row = {k: json.dumps(v) if k == "data" else v for k, v in line["row"].items()}
        marks = ", ".join("?" * len(row))
        base.execute(f"insert into {line['table']} ({', '.join(row)}) values ({marks})", list(row.values()))
    base.commit()
    base.close()
    before = place.read_bytes()
    assert opencode.recognise(before[:65536])
    one, other = read(opencode, place), read(opencode, dump(rows()))
    assert sorted(map(json.dumps, one.records)) == sorted(map(json.dumps, other.records))
    assert place.read_bytes() == before
    streamed = read(opencode, before)
    assert streamed.notes.runs == one.notes.runs


def test_a_damaged_sqlite_file_is_named(tmp_path: Path) -> None:
    place = tmp_path / "opencode.db"
    place.write_bytes(b"SQLite format 3\0" + b"session_v2 session_message" * 200)
    with (
        memory_store() as store,
        pytest.raises(LooptapeError, match=r"opencode\.db: not readable as an OpenCode store"),
    ):
        import_path(store, place)


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ([message("s", 1, "user", text="go")], "interrupted"),
        ([message("s", 1, "idle", outcome="succeeded")], "unknown"),
        ([answer("s", 1, {"type": "text", "text": "x"}), message("s", 2, "user", text="go")], "interrupted"),
        ([answer("s", 1, tool("c", {"status": "running", "input": {}}))], "interrupted"),
        ([answer("s", 1, {"type": "text", "text": "x"}, error={"name": "APIError", "message": "529"})], "failed"),
        ([answer("s", 1, {"type": "text", "text": "x"}), message("s", 2, "idle", outcome="failed")], "failed"),
        ([answer("s", 1, {"type": "text", "text": "x"})], "completed"),
    ],
)
def test_the_end_is_what_the_rows_tell(last: list[dict[str, Any]], status: str) -> None:
    assert read(opencode, dump([session("s"), *last])).end()[0] == status


def test_arguments_that_were_cut_keep_their_text_and_unknown_parts_are_counted() -> None:
    cut = answer("s", 1, tool("c", {"status": "pending", "input": '{"comm'}), {"type": "hologram", "x": 1})
    got = read(opencode, dump([cut]))
    (call,) = got.turns()[1]["calls"]
    assert (call["valid"], call["arguments_raw"], call["state"]) == (False, '{"comm', "incomplete")
    assert got.notes.unknown == {"part hologram": 1}
    assert any("own row is not in the file" in w for w in got.notes.warnings)


def test_the_excerpt_of_a_real_store_gives_its_counts() -> None:
    place = require("corpus") / "opencode" / "EXCERPT-2.0.14.jsonl"
    assert opencode.recognise(place.read_bytes())
    got = read(opencode, place)
    assert (got.notes.counts["objects"], got.notes.turns, got.notes.tool_calls, got.notes.skipped) == (6, 2, 2, [])
    usage = [(t["usage"]["input"], t["usage"]["cache_read"], t["usage"]["output"]) for t in got.turns().values()]
    assert usage == [(8181, 256, 64), (1127, 8448, 160)]
    assert [len(t["calls"]) for t in got.turns().values()] == [0, 2]
    assert got.end() == ("completed", "idle: succeeded")
    assert not got.notes.unknown
