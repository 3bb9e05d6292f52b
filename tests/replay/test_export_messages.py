"""One turn's request as the provider's JSON: the same that was sent, whole, also where the server held the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import small_tape
from looptape.replay.export_messages import request_body
from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tracer.importers import import_path
from looptape.tracer.store import Store, memory_store
from looptape.tracer.tape import Record, blob

RUN = small_tape.RUN


def stored(records: list[Record]) -> Store:
    store = memory_store()
    store.ingest(records)
    return store


def body(records: list[Record], number: int | None = None) -> dict[str, Any]:
    with stored(records) as store:
        return request_body(store, store.run(RUN), number)


def test_the_last_request_by_default_and_any_other_by_its_number() -> None:
    last = body(small_tape.records())
    assert last["model"] == "claude-sonnet-4-5"
    assert last["max_tokens"] == 100
    assert last["system"] == "You are a careful analyst."
    assert [t["name"] for t in last["tools"]] == ["search"]
    assert [m["role"] for m in last["messages"]] == ["user", "assistant", "user"]
    assert last["messages"][2]["content"][0]["tool_use_id"] == "c1"
    assert "stream" not in last
    assert [m["role"] for m in body(small_tape.records(), 1)["messages"]] == ["user"]


@pytest.mark.parametrize(
    ("api", "system", "messages"),
    [("openai.responses", "instructions", "input"), ("openai.chat", "system", "messages")],
)
def test_each_api_has_its_own_words(api: str, system: str, messages: str) -> None:
    records = [{**r, "api": api, "stream": True} if r["kind"] == "turn_start" else r for r in small_tape.records()]
    found = body(records)
    assert found[system] == "You are a careful analyst."
    assert len(found[messages]) == 3
    assert found["stream"] is True


def test_a_request_that_the_server_completed_is_written_whole_and_without_the_chain() -> None:
    """previous_response_id together with all messages would say everything twice."""
    records = small_tape.records()
    params = blob(json.dumps({"max_tokens": 100, "thread": {"type": "continue"}, "previous_message_id": "m"}))
    second = next(r for r in records if r["kind"] == "turn_start" and r["turn"] == 2)
    second.update(mode="thread", keep=0, base=1, append=second["append"][1:], params=params["hash"])
    found = body([params, *records])
    assert [m["role"] for m in found["messages"]] == ["user", "assistant", "user"]
    assert not {"thread", "previous_message_id"} & set(found)


def test_content_that_was_not_recorded_is_an_error_and_no_empty_request() -> None:
    records = [
        {"kind": "blob", "hash": r["hash"], "length": len(r["text"])} if r["kind"] == "blob" else r
        for r in small_tape.records()
    ]
    with pytest.raises(LooptapeError, match="3 of its 3 messages were not recorded"):
        body(records)


def test_a_run_without_turns_is_an_error() -> None:
    start = [r for r in small_tape.records() if r["kind"] == "run_start"]
    with pytest.raises(UsageError, match="no turn"):
        body(start)


def test_the_raw_importer_takes_it_in_again(tmp_path: Path) -> None:
    """The same messages come back as the request of the last turn, or inside it."""
    sent = body(small_tape.records())
    path = tmp_path / "request.json"
    path.write_text(json.dumps(sent, indent=2))
    with memory_store() as store:
        (report,) = import_path(store, path)
        turns = store.turns(report.runs[0])
        assert [c.name for t in turns for c in t.tool_calls] == ["search"]
        assert turns[0].tool_calls[0].result == "revenue: 1200"
        assert list(store.request(report.runs[0], 1).messages) == sent["messages"][:1]
