"""Raw message lists and requests of four APIs, as JSON and JSON Lines: every answer is a turn, nothing is invented."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from imported import Imported, read
from looptape.tracer import tape as tapes
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import import_path
from looptape.tracer.importers.wire import raw_messages
from looptape.tracer.store import Store, memory_store
from testdata import require

ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "weather in Paris and Oslo?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "two calls", "signature": "c2ln"},
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Paris"}},
            {"type": "tool_use", "id": "t2", "name": "weather", "input": {"city": "Oslo"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "sun"},
            {"type": "tool_result", "tool_use_id": "t2", "content": "no such city", "is_error": True},
        ],
    },
    {"role": "assistant", "content": "Sun in Paris."},
]
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "weather in Paris?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Paris"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "sun"},
    {"role": "assistant", "content": "Sun."},
]
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "weather in Paris?"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "one call"}]},
    {"type": "function_call", "call_id": "f1", "name": "weather", "arguments": '{"city":"Paris"}'},
    {"type": "function_call_output", "call_id": "f1", "output": "sun"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sun."}]},
]
CONVERSE: dict[str, Any] = {
    "modelId": "amazon.nova-micro-v1:0",
    "system": [{"text": "Be short."}],
    "toolConfig": {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": {"type": "object"}}}}]},
    "messages": [
        {"role": "user", "content": [{"text": "weather in Paris?"}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "one call", "signature": "c2ln"}}},
                {"toolUse": {"toolUseId": "u1", "name": "weather", "input": {"city": "Paris"}}},
            ],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "u1", "content": [{"json": {"sky": "?"}}], "status": "error"}}],
        },
    ],
}
CONVERSE_ANSWER: dict[str, Any] = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Unknown."}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 40, "outputTokens": 3, "totalTokens": 143, "cacheReadInputTokens": 100},
    "metrics": {"latencyMs": 7},
}


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as kept:
        yield kept


def _one(value: Any) -> Imported:
    text = json.dumps(value)
    assert raw_messages.recognise(text.encode())
    return read(raw_messages, text)


def _lines(values: list[Any]) -> Imported:
    text = "".join(json.dumps(v) + "\n" for v in values)
    assert raw_messages.recognise(text.encode())
    return read(raw_messages, text)


def test_an_anthropic_message_list_becomes_a_run(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "messages.json"
    file.write_text(json.dumps(ANTHROPIC, indent=1))

    (report,) = import_path(store, file)

    assert (report.format, report.turns, report.tool_calls) == ("messages", 2, 2)
    assert report.warnings == ("2 of 2 answers have no token counts: messages alone do not hold them",)
    (run,) = store.runs()
    assert (run.title, run.status, run.started_at) == ("weather in Paris and Oslo?", "completed", None)
    assert run.usage.output is None, "missing is not 0"
    first, second = store.turns(run.id)
    assert (first.user_turn, first.text, first.thinking) == (True, "Looking.", "two calls")
    assert [(c.name, c.result, c.is_error, c.state) for c in first.tool_calls] == [
        ("weather", "sun", False, "done"),
        ("weather", "no such city", True, "done"),
    ]
    assert (first.generate_ms, first.stop_reason, second.text) == (None, None, "Sun in Paris.")
    assert list(store.request(run.id, 2).messages) == ANTHROPIC[:3]


def test_what_stands_around_the_messages_of_a_request_is_kept(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    tools = [{"name": "weather", "input_schema": {"type": "object"}}]
    body = {"model": "claude-x", "max_tokens": 9, "system": "Be short.", "tools": tools, "messages": ANTHROPIC[:3]}
    file.write_text(json.dumps(body))

    (report,) = import_path(store, file)

    (run,) = store.runs()
    assert report.turns == 1
    assert (run.status, run.reason) == ("unknown", "the file ends before the answer to its last message")
    request = store.request(run.id, 1)
    assert (request.system, request.tools) == ("Be short.", tools)
    assert store.turns(run.id)[0].model == "claude-x"


def test_a_pair_adds_the_answer_with_its_tokens() -> None:
    response = {
        "id": "msg_9",
        "type": "message",
        "role": "assistant",
        "model": "claude-x-1",
        "content": [{"type": "text", "text": "Sun."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
    found = _one({"request": {"model": "claude-x", "messages": ANTHROPIC[:3]}, "response": response})

    last = found.turns()[2]
    assert (last["model"], last["stop_reason"], last["response_id"]) == ("claude-x-1", "end_turn", "msg_9")
    assert (last["usage"]["input"], last["usage"]["output"]) == (5, 2)
    assert found.response(2) == response
    assert found.end() == ("completed", "end_turn")


def test_a_prefilled_answer_is_part_of_its_request_and_no_turn() -> None:
    request = {"model": "claude-x", "messages": [*ANTHROPIC[:1], {"role": "assistant", "content": "In "}]}
    response = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Paris"}]}
    found = _one({"request": request, "response": response})

    assert len(found.turns()) == 1
    assert found.request(1) == request["messages"]


def test_an_openai_chat_list_becomes_a_run() -> None:
    found = _one(CHAT)

    assert len(found.turns()) == 2
    (call,) = found.turns()[1]["calls"]
    assert (call["name"], call["arguments_raw"]) == ("weather", '{"city":"Paris"}')
    (seen,) = found.of("call_seen")
    assert "is_error" not in seen, "this API does not tell"
    assert found.request(2) == CHAT[:4]


def test_a_chat_request_with_its_completion_keeps_the_time_and_the_disjoint_tokens() -> None:
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1731368630,
        "model": "gpt-x-1",
        "choices": [{"index": 0, "message": CHAT[4], "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 20}},
    }
    found = _one({"request": {"model": "gpt-x", "messages": CHAT[:4]}, "response": completion})

    last = found.turns()[2]
    assert (last["usage"]["input"], last["usage"]["cache_read"], last["usage"]["output"]) == (10, 20, 4)
    starts = {r["turn"]: r.get("at") for r in found.of("turn_start")}
    assert starts == {1: None, 2: 1731368630_000_000}


def test_responses_items_between_two_inputs_are_one_answer() -> None:
    found = _one(ITEMS)

    assert len(found.turns()) == 2
    assert found.response(1) == {"output": ITEMS[1:3]}
    assert [c["name"] for c in found.turns()[1]["calls"]] == ["weather"]
    assert found.request(2) == ITEMS[:4]


def test_an_input_and_an_output_list_side_by_side_are_read() -> None:
    found = _one({"input": ITEMS[:4], "output": ITEMS[4:]})

    assert len(found.turns()) == 2
    assert found.end()[0] == "completed"


def test_bedrock_converse_is_read_in_anthropics_shape_with_nothing_lost(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "pair.json"
    file.write_text(json.dumps({"request": CONVERSE, "response": CONVERSE_ANSWER}))

    import_path(store, file)

    (run,) = store.runs()
    first, last = store.turns(run.id)
    assert (first.thinking, first.provider, first.model) == ("one call", "aws", "amazon.nova-micro-v1:0")
    (call,) = first.tool_calls
    assert (call.name, json.loads(call.arguments_raw), call.is_error) == ("weather", {"city": "Paris"}, True)
    assert (last.text, last.stop_reason) == ("Unknown.", "end_turn")
    assert (last.usage.input, last.usage.cache_read, last.usage.output) == (40, 100, 3)
    assert last.usage.raw["totalTokens"] == 143
    request = store.request(run.id, 2)
    assert request.tools == [{"name": "weather", "input_schema": {"type": "object"}}]
    assert request.messages[2]["content"][0]["content"] == [{"type": "json", "json": {"sky": "?"}}]


def test_one_message_a_line_is_one_run() -> None:
    found = _lines(ANTHROPIC)

    assert len(found.notes.runs) == 1
    assert len(found.turns()) == 2


def test_whole_responses_between_the_messages_keep_their_tokens() -> None:
    whole = {
        "id": "msg_1",
        "type": "message",
        "model": "claude-x",
        "stop_reason": "end_turn",
        "usage": {"output_tokens": 7},
    }
    found = _lines([ANTHROPIC[0], {**whole, **ANTHROPIC[1]}, *ANTHROPIC[2:]])

    assert len(found.notes.runs) == 1
    assert [t["usage"]["output"] for t in found.turns().values()] == [7, None]
    assert found.request(2) == ANTHROPIC[:3]


def test_a_dataset_of_conversations_gives_a_run_for_each_line() -> None:
    other = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    found = _lines([{"messages": CHAT}, {"messages": other}])

    assert len(found.notes.runs) == 2
    assert found.notes.turns == 3
    (start,) = found.of("turn_start", list(found.notes.runs)[1])
    assert "provider" not in start, "plain texts do not tell whose API it was"


def test_logged_requests_that_grow_are_one_run_whose_turns_count_once() -> None:
    marked = json.loads(json.dumps(ANTHROPIC[0]))
    marked["content"] = [{"type": "text", "text": "weather?", "cache_control": {"type": "ephemeral"}}]
    plain = {"role": "user", "content": [{"type": "text", "text": "weather?"}]}
    found = _lines(
        [{"messages": [marked]}, {"messages": [plain, *ANTHROPIC[1:3]]}, {"messages": [plain, *ANTHROPIC[1:]]}]
    )

    assert len(found.notes.runs) == 1
    assert found.notes.turns == 2
    assert found.notes.counts["shorter_copies"] == 2


def _pair(messages: list[Any], name: str, content: Any) -> dict[str, Any]:
    said = {
        "type": "message",
        "role": "assistant",
        "content": content,
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
    return {"request": {"model": "claude-x", "messages": messages}, "response": {"id": name, **said}}


def test_logged_pairs_that_extend_each_other_are_one_run() -> None:
    other = _pair([{"role": "user", "content": "a title?"}], "m9", [{"type": "text", "text": "Weather"}])
    first = _pair(ANTHROPIC[:1], "m1", ANTHROPIC[1]["content"])
    second = _pair(ANTHROPIC[:3], "m2", [{"type": "text", "text": "Sun in Paris."}])
    found = _lines([first, other, second])

    assert [len(found.turns(r)) for r in found.notes.runs] == [2, 1]
    assert [t["response_id"] for t in found.turns().values()] == ["m1", "m2"]
    assert [(r["call"], r["is_error"]) for r in found.of("call_seen")] == [("t1", False), ("t2", True)]
    assert found.request(2) == ANTHROPIC[:3]


def test_a_log_of_pairs_that_grew_is_the_same_run(store: Store, tmp_path: Path) -> None:
    lines = [_pair(ANTHROPIC[:1], "m1", ANTHROPIC[1]["content"]), _pair(ANTHROPIC[:3], "m2", [])]
    lines += [_pair([{"role": "user", "content": "other"}], "m3", [])]
    file = tmp_path / "log.jsonl"
    for count in (1, 3, 3):
        file.write_text("".join(json.dumps(line) + "\n" for line in lines[:count]))
        import_path(store, file)

    assert sorted(r.turns for r in store.runs()) == [1, 2]


def test_a_response_that_the_server_continues_by_name_is_one_run() -> None:
    first = {"id": "r1", "object": "response", "status": "completed", "output": ITEMS[1:3]}
    last = {"id": "r2", "object": "response", "status": "completed", "output": ITEMS[4:]}
    found = _lines(
        [
            {"request": {"model": "gpt-x", "input": "weather in Paris?"}, "response": first},
            {"request": {"model": "gpt-x", "input": ITEMS[3:4], "previous_response_id": "r1"}, "response": last},
        ]
    )

    assert [len(found.turns(r)) for r in found.notes.runs] == [2]
    assert found.of("turn_start")[1]["mode"] == "previous_response"
    assert [r["call"] for r in found.of("call_seen")] == ["f1"]


def test_the_same_file_twice_changes_nothing(store: Store, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(CHAT))
    (tmp_path / "copy.json").write_text(json.dumps(CHAT, indent=2))

    import_path(store, tmp_path)

    assert [r.turns for r in store.runs()] == [2]


def test_secrets_are_removed_on_the_way_in() -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    found = _one([{"role": "user", "content": f"use {key}"}, {"role": "assistant", "content": f"{key} it is"}])

    assert key not in json.dumps(found.records)


def test_calls_without_results_are_an_interruption() -> None:
    assert _one(CHAT[:3]).end() == ("interrupted", "the last calls have no result")


@pytest.mark.parametrize(
    "value",
    [
        {"sessionId": "s", "messages": [{"role": "user", "content": "x"}]},
        {"info": {}, "messages": [{"role": "user", "content": "x"}]},
        {"type": "user", "message": {"role": "user", "content": "x"}, "uuid": "u"},
        {"kind": "header", "format": "looptape"},
        {"messages": []},
        {"input": "x"},
        [1, 2],
        [],
        {},
    ],
)
def test_other_documents_are_not_claimed(value: Any) -> None:
    assert not raw_messages.recognise(json.dumps(value).encode())


def test_a_document_that_is_cut_is_named_with_its_line_and_nothing_is_kept(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "cut.json"
    file.write_text(json.dumps({"messages": ANTHROPIC}, indent=1)[:-40])

    with pytest.raises(LooptapeError, match=r"cut\.json: line \d+: not JSON"):
        import_path(store, file)
    assert store.runs() == []


def test_a_broken_line_is_skipped_and_named() -> None:
    text = "".join(json.dumps(m) + "\n" for m in CHAT)
    found = read(raw_messages, text.replace('{"role": "tool"', '{"role": tool"'))

    assert [s["line"] for s in found.notes.skipped] == [4]
    assert len(found.turns()) == 2


def test_no_other_format_of_the_corpus_is_claimed() -> None:
    claimed = set()
    for name in ("corpus", "otlp"):
        for file in sorted(p for p in require(name).rglob("*") if p.is_file()):
            with file.open("rb") as stream:
                if raw_messages.recognise(stream.read(1 << 16)):
                    claimed.add(file.name)
    bare = {"github_issue.traj.json", "local.traj.json"}  # lists of messages and nothing more: whoever asks first
    assert {n for n in claimed if not n.endswith((".request.json", ".response.json"))} <= bare


SAMPLES: list[Any] = [ANTHROPIC, CHAT, ITEMS, {"request": CONVERSE, "response": CONVERSE_ANSWER}]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 10**30, 1.5, "", "\ud800", "x" * 300, [], [[]], {}, {"type": []}, [None], [{}], {"text": 1}]
)


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    value = json.loads(json.dumps(draw(st.sampled_from(SAMPLES))))
    for _ in range(draw(st.integers(1, 4))):
        node = value
        while isinstance(node, (dict, list)) and node:
            key = draw(st.sampled_from(sorted(node) if isinstance(node, dict) else list(range(len(node)))))
            if not isinstance(node[key], (dict, list)) or not node[key] or draw(st.booleans()):
                node[key] = json.loads(json.dumps(draw(ODD)))
                break
            node = node[key]
    lines = isinstance(value, list) and draw(st.booleans())
    data = "\n".join(map(json.dumps, value)) if lines else json.dumps(value, indent=draw(st.sampled_from([None, 1])))
    return data.encode()[: draw(st.sampled_from([None, None, None, len(data) // 2]))]


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_damaged())
def test_damaged_files_never_raise_and_are_never_lost_without_a_word(data: bytes) -> None:
    raw_messages.recognise(data)
    try:
        found = read(raw_messages, data)
    except LooptapeError:
        return
    known: set[str] = set()
    for record in found.records:
        tapes.line(record)
        known |= {record["hash"]} if record["kind"] == "blob" else set()
        assert set(record.get("append", ())) <= known
    assert found.notes.runs or found.notes.skipped


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_damaged())
def test_what_is_left_of_damaged_files_can_be_stored(data: bytes) -> None:
    with contextlib.suppress(LooptapeError), memory_store() as kept:
        assert kept.ingest(read(raw_messages, data).records).bad == []


@pytest.mark.parametrize("depth", [300, 600, 900, 100_000])
def test_deep_nesting_beside_a_secret_is_read_or_named(depth: int) -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    deep = "[" * depth + "]" * depth
    first = f'{{"role": "user", "content": [{{"type": "text", "text": "{key}", "x": {deep}}}]}}'
    found = read(raw_messages, first + '\n{"role": "assistant", "content": "ok"}\n')

    assert len(found.turns()) == 1
    assert [s["reason"] for s in found.notes.skipped] == (["nested too deeply"] if depth > 1000 else [])
    assert key not in json.dumps(found.records)
