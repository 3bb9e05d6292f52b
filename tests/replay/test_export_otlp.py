"""A run as OTLP: conformant GenAI spans with the recorded ids and times, each thing counted once, readable again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import small_tape
from looptape.tracer.importers import import_path
from looptape.tracer.model import Run
from looptape.tracer.otlp_out import export_requests
from looptape.tracer.store import Filter, Store, memory_store
from looptape.tracer.tape import Record
from testdata import REPOSITORY

RUN = small_tape.RUN
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def stored(*runs: list[Record]) -> Store:
    store = memory_store()
    for records in runs:
        store.ingest(records)
    return store


def value(given: dict[str, Any]) -> Any:
    ((kind, found),) = given.items()
    return {"intValue": int, "arrayValue": lambda a: [value(v) for v in a["values"]]}.get(kind, lambda v: v)(found)


class Span:
    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.name, self.id, self.trace = raw["name"], raw["spanId"], raw["traceId"]
        self.parent = raw.get("parentSpanId")
        self.attributes = {a["key"]: value(a["value"]) for a in raw["attributes"]}
        self.start, self.end = int(raw["startTimeUnixNano"]), int(raw["endTimeUnixNano"])

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]

    def json(self, name: str) -> Any:
        return json.loads(self.attributes[name])


def spans(store: Store, run: str = RUN, first: int | None = None, last: int | None = None) -> list[Span]:
    return list(all_spans(store, run, first, last))


def all_spans(store: Store, run: str, first: int | None, last: int | None) -> Iterator[Span]:
    for request in export_requests(store, store.run(run), first, last):
        assert json.loads(json.dumps(request)) == request
        for resource in request["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                assert scope["scope"]["name"] == "looptape"
                yield from map(Span, scope["spans"])


def named(found: list[Span], start: str) -> list[Span]:
    return [s for s in found if s.name.startswith(start)]


def test_a_run_is_an_agent_over_turns_over_chats_and_tools() -> None:
    found = spans(stored(small_tape.records()))
    assert [s.name for s in found] == [
        "invoke_agent revenue", "turn 1", "chat claude-sonnet-4-5", "execute_tool search", "turn 2", "chat claude-sonnet-4-5",
    ]  # fmt: skip
    agent, first, chat, tool, second, _ = found
    assert agent.parent is None
    assert {s.parent for s in (first, second)} == {agent.id}
    assert {s.parent for s in (chat, tool)} == {first.id}
    assert len({s.id for s in found}) == len(found)
    assert {s.trace for s in found} == {agent.trace}
    assert [s.raw["kind"] for s in found] == [1, 1, 3, 1, 1, 3]
    assert [s.attributes.get("gen_ai.operation.name") for s in found] == [
        "invoke_agent", None, "chat", "execute_tool", None, "chat",
    ]  # fmt: skip


def test_usage_stands_on_chat_spans_alone_and_input_includes_the_cache() -> None:
    found = spans(stored(small_tape.records()))
    counted = [s for s in found if any("usage" in k for k in s.attributes)]
    assert counted == named(found, "chat ")
    assert counted[0]["gen_ai.usage.input_tokens"] == 1300
    assert counted[0]["gen_ai.usage.cache_read.input_tokens"] == 100
    assert counted[0]["gen_ai.usage.output_tokens"] == 300
    assert "gen_ai.usage.reasoning.output_tokens" not in counted[0].attributes


def test_content_is_a_few_json_attributes_in_the_shape_of_the_conventions() -> None:
    chat, last = named(spans(stored(small_tape.records(thinking="hm", is_error=True))), "chat ")
    assert chat.json("gen_ai.input.messages") == [
        {"role": "user", "parts": [{"type": "text", "content": "What is 7% of last year's revenue?"}]}
    ]
    assert chat.json("gen_ai.output.messages") == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm", "signature": "s"},
                {"type": "text", "content": "I look it up."},
                {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "revenue"}},
            ],
            "finish_reason": "tool_call",
        }
    ]
    assert last.json("gen_ai.input.messages")[2] == {
        "role": "user",
        "parts": [{"type": "tool_call_response", "id": "c1", "response": "revenue: 1200", "is_error": True}],
    }
    assert chat.json("gen_ai.system_instructions") == [{"type": "text", "content": "You are a careful analyst."}]
    assert chat.json("gen_ai.tool.definitions") == [
        {"type": "function", "name": "search", "description": "looks up", "parameters": {"type": "object"}}
    ]
    assert chat["gen_ai.request.max_tokens"] == 100
    assert chat["gen_ai.response.finish_reasons"] == ["tool_call"]
    assert chat["gen_ai.provider.name"] == "anthropic"
    assert all(len(s.attributes) < 60 for s in (chat, last))


def test_times_are_those_of_the_recording_in_nanoseconds() -> None:
    agent, turn, chat, tool, *_ = spans(stored(small_tape.records()))
    start, second = small_tape.START * 1000, 10**9
    assert (agent.start, agent.end) == (start, start + 3 * second)
    assert (chat.start, chat.end) == (start, start + second)
    assert (tool.start, tool.end) == (start + second, start + 2 * second)
    assert (turn.start, turn.end) == (start, start + 2 * second)


def test_an_unknown_time_is_zero_and_never_made_up() -> None:
    records = [{k: v for k, v in r.items() if k != "at"} for r in small_tape.records()]
    store = stored(records)
    run = store.run(RUN)
    assert run.started_at is None
    assert {(s.start, s.end) for s in spans(store)} == {(0, 0)}


def test_recorded_ids_are_kept_and_missing_ones_are_always_the_same() -> None:
    records = small_tape.records()
    for r in records:
        if r["kind"] == "turn_start":
            r.update(trace_id=TRACE, span_id=f"{r['turn']:016x}", parent_span_id=SPAN)
    found = spans(stored(records))
    assert {s.trace for s in found} == {TRACE}
    assert [s.id for s in named(found, "turn ")] == ["0000000000000001", "0000000000000002"]
    assert found[0].id == SPAN
    assert [s.id for s in spans(stored(records))] == [s.id for s in found]


def test_a_turn_of_another_trace_is_linked_to_its_run_and_has_no_foreign_parent() -> None:
    """A loop without a span of its own gives a trace a turn."""
    records = small_tape.records()
    for r in records:
        if r["kind"] == "turn_start":
            r.update(trace_id=f"{r['turn']:032x}", span_id=f"{r['turn']:016x}")
    agent, first, _, _, second, chat = spans(stored(records))
    assert (first.trace, first.parent) == (agent.trace, agent.id)
    assert (second.parent, second.raw["links"]) == (None, [{"traceId": agent.trace, "spanId": agent.id}])
    assert (chat.trace, chat.parent) == (second.trace, second.id)


def test_errors_are_errors_and_success_stays_unset() -> None:
    found = spans(stored(small_tape.records(is_error=True)))
    (tool,) = named(found, "execute_tool")
    assert tool.raw["status"]["code"] == 2
    assert tool["error.type"]
    assert {json.dumps(s.raw["status"]) for s in found if s is not tool} == {"{}"}
    records = [
        {**r, "status": "error", "error": "overloaded", "error_type": "OverloadedError"}
        if r["kind"] == "turn_end" and r["turn"] == 2
        else {**r, "status": "failed", "reason": "no answer"}
        if r["kind"] == "run_end"
        else r
        for r in small_tape.records()
    ]
    found = spans(stored(records))
    failed = [s for s in found if s.raw["status"].get("code") == 2]
    assert [s.name for s in failed] == ["invoke_agent revenue", "turn 2", "chat claude-sonnet-4-5"]
    assert failed[2]["error.type"] == "OverloadedError"
    assert failed[2].raw["status"]["message"] == "overloaded"


def test_a_range_holds_its_turns_only() -> None:
    store = stored(small_tape.records())
    assert [s.name for s in spans(store, RUN, 2, 2)] == ["invoke_agent revenue", "turn 2", "chat claude-sonnet-4-5"]


def test_a_session_is_the_conversation_and_none_is_made_up() -> None:
    assert spans(stored(small_tape.records(session="s1")))[0]["gen_ai.conversation.id"] == "s1"
    assert all("gen_ai.conversation.id" not in s.attributes for s in spans(stored(small_tape.records())))


def test_odd_texts_give_valid_utf8_and_keep_their_meaning() -> None:
    found = spans(stored(small_tape.records(result="half \ud83e emoji \x00", answer="\ud83e")))
    (tool,) = named(found, "execute_tool")
    assert tool["gen_ai.tool.call.result"].encode()
    part = named(found, "chat ")[1].json("gen_ai.input.messages")[2]["parts"][0]
    assert part["response"] == "half \ud83e emoji \x00"


def test_sub_agents_hang_under_the_call_that_started_them() -> None:
    """As children where the recording has one trace, as links where each agent was recorded in its own."""
    store = memory_store()
    import_path(store, REPOSITORY / "sample_traces" / "sub_agent.jsonl")
    (parent,) = [r for r in store.runs(Filter(limit=0)) if r.parent is None]
    found = spans(store, parent.id)
    agents = named(found, "invoke_agent")
    assert len(agents) == 3
    tools = {(s.trace, s.id) for s in named(found, "execute_tool")}
    for agent in agents[1:]:
        (link,) = agent.raw.get("links") or [{"traceId": agent.trace, "spanId": agent.parent}]
        assert (link["traceId"], link["spanId"]) in tools
        assert agent.json("looptape.run.parent")["run"] == parent.id
    assert len({s.id for s in found}) == len(found)


@pytest.mark.parametrize("tape", sorted((REPOSITORY / "sample_traces").glob("*.jsonl")), ids=lambda p: p.stem)
def test_every_sample_is_a_tree_of_spans_whose_numbers_are_the_runs(tape: Path) -> None:
    store = memory_store()
    import_path(store, tape)
    runs = store.runs(Filter(limit=0, include_empty=True))
    heads = [r for r in runs if r.parent is None or r.parent.run not in {o.id for o in runs}]
    found = [s for r in heads for s in spans(store, r.id)]
    ids = {(s.trace, s.id) for s in found}
    assert len(ids) == len(found)
    assert all(s.parent is None or (s.trace, s.parent) in ids for s in found)
    assert all(s.start <= s.end for s in found)
    for run in runs:
        chats = [s for s in named(found, "chat") if s["looptape.run.id"] == run.id]
        assert len(chats) == run.turns
        assert sum(s.attributes.get("gen_ai.usage.output_tokens", 0) for s in chats) == (run.usage.output or 0)


@pytest.mark.parametrize("tape", sorted((REPOSITORY / "sample_traces").glob("*.jsonl")), ids=lambda p: p.stem)
def test_the_importer_reads_it_back(tape: Path, tmp_path: Path) -> None:
    """Turns, calls with arguments and results, usage, models, texts, times and ids survive the way out and in."""
    before, after = memory_store(), memory_store()
    import_path(before, tape)
    runs = before.runs(Filter(limit=0))
    path = tmp_path / "spans.jsonl"
    heads = [r for r in runs if r.parent is None]
    path.write_text("".join(json.dumps(line) + "\n" for r in heads for line in export_requests(before, r)))
    import_path(after, path)
    again = after.runs(Filter(limit=0))
    assert sorted(facts(after, r) for r in again) == sorted(facts(before, r) for r in runs)


def facts(store: Store, run: Run) -> str:
    """What a round trip must keep of a run's turns."""
    return json.dumps([
        (t.number, t.model or t.request_model, t.text, t.usage.context, t.usage.cache_read, t.usage.output, t.started_at,
         t.ended_at, t.trace_id, [(c.name, c.arguments, c.result, bool(c.is_error)) for c in t.tool_calls])
        for t in store.turns(run.id)
    ])  # fmt: skip
