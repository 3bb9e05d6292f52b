"""OTLP in its forms and dialects, from small inputs of our own."""

from __future__ import annotations

import base64
import json
import sys

import pytest

from imported import read
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import IMPORTERS, import_path, otlp
from looptape.tracer.store import memory_store
from looptape.tracer.store.filters import Filter
from otlp_spans import TRACE, asked, chat, loop, protobuf, request, said, span, words


def told(*requests):
    return read(otlp, "\n".join(json.dumps(r) for r in requests) + "\n")


# -- the given faults ----------------------------------------------------------------------------------------


def test_a_call_that_framework_and_sdk_both_tell_of_is_one_turn_with_the_inner_figures():
    outer = span(1, chat(**{"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}), ms=900)
    inner = chat(
        **{
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 10,
            "gen_ai.usage.cache_read.input_tokens": 60,
            "gen_ai.response.id": "msg_1",
        }
    )
    found = told(request(outer, span(2, inner, parent=1, at=5, ms=875)))
    (end,) = found.of("turn_end")
    assert (end["usage"]["input"], end["usage"]["cache_read"], end["usage"]["output"]) == (40, 60, 10)
    (wrapper,) = found.of("event")
    assert wrapper["event"] == "wrapper"
    assert wrapper["detail"]["span_id"] == f"{1:016x}"


def orphan(with_parent=False):
    agent = span(0xA1, {"gen_ai.operation.name": "invoke_agent"}, name="invoke_agent demo", ms=5000)
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    spans = [agent, span(0xA2, tool, name="execute_tool search", at=100, parent=0xFFFF)]
    if with_parent:
        spans.append(span(0xFFFF, {}, name="node", parent=0xA1, at=50))
    return spans


def test_a_tool_whose_parent_was_never_exported_stands_in_its_traces_run_and_says_so():
    found = told(request(*orphan()))
    assert [r["name"] for r in found.of("run_start")] == ["demo"]
    assert [r["name"] for r in found.of("call_start") if "name" in r] == ["search"]
    (start,) = found.of("turn_start")
    assert f"parent {0xFFFF:016x} not received" in start["flags"]
    assert any(f"{0xFFFF:016x}" in w for w in found.notes.warnings)


def test_an_orphan_is_none_when_its_parent_comes_later_in_the_file():
    found = told(request(*orphan()), request(span(0xFFFF, {}, name="node", parent=0xA1, at=50)))
    assert not any("not received" in f for r in found.of("turn_start") for f in r["flags"] if "parent" in f)
    assert not any("parents" in w for w in found.notes.warnings)


def test_an_orphan_is_none_any_more_when_its_parent_comes_with_a_later_import(tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text(json.dumps(request(*loop(parent=0xFFFF))))
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ask", "gen_ai.tool.call.id": "up"}
    caller = chat(
        **{
            "gen_ai.input.messages": said(("user", words("outer"))),
            "gen_ai.output.messages": said(("assistant", asked("up", "ask"))),
        }
    )
    second.write_text(json.dumps(request(span(0xC1, caller, at=-50), span(0xFFFF, tool, at=-20, ms=400))))
    with memory_store() as store:
        import_path(store, first)
        (run,) = store.runs(Filter())
        assert "not received" in str(store.turns(run.id)[0].flags)
        import_path(store, second)
        turns = store.turns(run.id)
        assert [t.flags for t in turns] == [(), ()]
        assert turns[0].text is None
        assert turns[1].text == "done"
        assert len(store.request(run.id, 2).messages) == 3
        assert [e.kind for e in store.events(run.id)] == ["parent_received"] * 2
        parent = store.run(run.id).parent
        assert parent is not None
        assert (parent.call, parent.kind) == ("up", "sub-agent")


def dialects():
    old = {
        "gen_ai.system": "anthropic",
        "gen_ai.request.model": "acme-large-1",
        "gen_ai.usage.prompt_tokens": 7,
        "gen_ai.usage.completion_tokens": 3,
    }
    events = [
        {"timeUnixNano": "1793610000000000000", "name": "gen_ai.user.message", "attributes": [{"key": "content", "value": {"stringValue": "hi"}}]},
        {"timeUnixNano": "1793610000000000001", "name": "gen_ai.choice", "attributes": [{"key": "message", "value": {"stringValue": '{"content":"yo"}'}}]},
    ]  # fmt: skip
    new = chat(
        **{
            "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 3, "gen_ai.input.messages": said(("user", words("hi"))),
            "gen_ai.output.messages": said(("assistant", words("yo"))),
        }
    )  # fmt: skip
    flat = {
        "openinference.span.kind": "LLM", "llm.model_name": "acme-large-1", "llm.token_count.prompt": 7,
        "llm.token_count.completion": 3, "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "hi",
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "yo",
    }  # fmt: skip
    return [span(1, old, events=events), span(2, new, at=20), span(3, flat, at=40)]


def test_three_dialects_give_the_same_turn():
    with memory_store() as store:
        store.ingest(told(request(*dialects())).records)
        turns = [t for r in store.runs(Filter(limit=0)) for t in store.turns(r.id)]
        assert len(turns) == 3
        assert {(t.usage.input, t.usage.output, t.text) for t in turns} == {(7, 3, "yo")}
        requests = [store.request(t.run, t.number).messages for t in turns]
        assert requests == [({"role": "user", "content": [{"type": "text", "text": "hi"}]},)] * 3
        assert sorted(str(t.provider) for t in turns) == ["None", "anthropic", "anthropic"]


def test_an_input_count_with_the_cache_in_it_is_split():
    counts = {
        "gen_ai.usage.input_tokens": 130213, "gen_ai.usage.cache_read.input_tokens": 128955,
        "gen_ai.usage.cache_creation.input_tokens": 1253, "gen_ai.usage.output_tokens": 100,
    }  # fmt: skip
    (end,) = told(request(span(1, chat(**counts)))).of("turn_end")
    usage = end["usage"]
    assert [usage[n] for n in ("input", "cache_read", "cache_write_5m", "output")] == [5, 128955, 1253, 100]


# -- forms -----------------------------------------------------------------------------------------------------


def test_lines_one_document_and_a_list_of_requests_are_read_alike():
    spans = loop()
    lines = "\n".join(json.dumps(request(s)) for s in spans)
    document = json.dumps(request(*spans), indent=1)
    many = json.dumps([request(s) for s in spans], indent=2)
    for text in (lines, document, many):
        assert otlp.recognise(text.encode())
        found = read(otlp, text)
        assert found.notes.turns == 2
        assert found.end() == ("completed", "the last answer calls no tool")


def test_ids_in_base64_enums_as_names_nulls_and_zero_times_are_understood():
    one, two = loop()
    for made in (one, two):
        made["traceId"] = base64.b64encode(bytes.fromhex(TRACE)).decode()
        made["spanId"] = base64.b64encode(bytes.fromhex(made["spanId"])).decode()
        made.update(
            kind="SPAN_KIND_CLIENT", events=None, links=[], status={"code": "STATUS_CODE_UNSET", "message": None}
        )
        made["attributes"].append({"key": "nothing", "value": None})
        made["attributes"].append({"key": "null", "value": {"stringValue": None}})
        made["events"] = [{"name": "x", "timeUnixNano": "0", "attributes": None}]
    found = told(request(one, two))
    starts = found.of("turn_start")
    assert [s["trace_id"] for s in starts] == [TRACE, TRACE]
    assert starts[0]["span_id"] == f"{1:016x}"
    assert [e["status"] for e in found.of("turn_end")] == ["ok", "ok"]


def test_structured_values_are_taken_like_json_text():
    asked_for = [{"role": "user", "parts": [words("hi")]}]
    answered = [{"role": "assistant", "parts": [words("yo")]}]
    found = told(request(span(1, chat(**{"gen_ai.input.messages": asked_for, "gen_ai.output.messages": answered}))))
    assert found.request(1) == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    assert found.response(1)["content"] == [{"type": "text", "text": "yo"}]


def test_protobuf_is_read_like_json():
    data = protobuf(request(*loop()))
    prefixed = len(data).to_bytes(4, "big") + data
    for whole in (data, prefixed):
        assert otlp.recognise(whole)
        assert [r for r in read(otlp, whole).records if r["kind"] != "blob"] == [
            r for r in told(request(*loop())).records if r["kind"] != "blob"
        ]


def test_protobuf_without_its_package_is_one_line_with_the_cure(monkeypatch):
    resource = b"\x0a\x20\x0a\x1e\x0a\x0cservice.name\x12\x0e\x0a\x0cdemo-service"
    data = b"\x0a" + bytes([len(resource)]) + resource
    assert otlp.recognise(data)
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.trace.v1.trace_service_pb2", None)
    with pytest.raises(LooptapeError) as error:
        read(otlp, data)
    assert error.value.cure == "pip install looptape[server]"


def test_what_is_no_otlp_is_not_claimed():
    for head in (
        b"{}",
        b"[]",
        b"\n{\n",
        b'{"resource": 1}',
        b"\x0a\x05hello",
        b"PK\x03\x04service.name",
        b'{"type":"user","resourceSpans":[]}',
    ):
        assert not otlp.recognise(head)


def test_only_this_importer_claims_otlp():
    for text in (json.dumps(request(*loop())), json.dumps(request(*loop()), indent=2), json.dumps([request(*loop())])):
        assert [i.FORMAT for i in IMPORTERS if i.recognise(text.encode())] == ["otlp"]


# -- what is missing is said ---------------------------------------------------------------------------------------


def test_without_genai_spans_the_scopes_are_named():
    found = told(request(span(1, {"http.method": "GET"}, name="GET /"), scope="flask"))
    assert list(found.notes.warnings) == ["no GenAI spans found; scopes seen: flask"]
    assert not found.notes.runs


def test_cut_spans_are_flagged():
    many = chat(**{f"x.{i}": i for i in range(125)})
    late = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.4.message.role": "user",
        "llm.input_messages.4.message.content": "x",
    }
    cut = chat(**{"gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "te'})
    dropped = span(4, chat(), at=300)
    dropped["droppedAttributesCount"] = 3
    found = told(request(span(1, many), span(2, late, at=100), span(3, cut, at=200), dropped))
    flags = [s["flags"] for run in found.notes.runs for s in found.of("turn_start", run)]
    assert len(flags) == 4
    assert all("truncated_at_source" in f for f in flags)


def test_unset_is_no_failure_and_an_error_type_is_one():
    fine, failed = span(1, chat()), span(2, chat(**{"error.type": "rate_limit"}), at=100)
    found = told(request(fine, failed))
    ends = [e for run in found.notes.runs for e in found.of("turn_end", run)]
    assert sorted((e["status"], e.get("error_type")) for e in ends) == [("error", "rate_limit"), ("ok", None)]


def test_lines_that_cannot_be_read_are_named_and_metrics_are_counted():
    text = json.dumps(request(*loop())) + '\n{"resourceSpans": [\n[1]\n{"resourceMetrics": []}\n'
    found = read(otlp, text)
    assert [s["line"] for s in found.notes.skipped] == [2, 3]
    assert found.notes.unknown == {"metrics": 1}
    assert found.notes.turns == 2


def test_log_records_in_the_file_beside_find_their_spans(tmp_path):
    one, two = loop()
    bare = [{**s, "attributes": [a for a in s["attributes"] if "messages" not in a["key"]]} for s in (one, two)]
    logs = [
        {
            "traceId": TRACE, "spanId": s["spanId"], "timeUnixNano": s["endTimeUnixNano"],
            "eventName": "gen_ai.client.inference.operation.details", "attributes": s["attributes"],
        }
        for s in (one, two)
    ]  # fmt: skip
    (tmp_path / "logs.jsonl").write_text(json.dumps({"resourceLogs": request(logs=logs)["resourceLogs"]}))
    (tmp_path / "traces.jsonl").write_text(json.dumps(request(*bare)))
    with memory_store() as store:
        (report,) = import_path(store, tmp_path)
        assert (report.turns, report.tool_calls, report.counts["files"]) == (2, 1, 2)
        (run,) = store.runs(Filter())
        assert store.turns(run.id)[0].tool_calls[0].result == "page"


def test_log_records_that_were_exported_twice_count_once(tmp_path):
    made = span(1, chat())
    texts = [
        ("gen_ai.user.message", {"content": "again"}),
        ("gen_ai.user.message", {"content": "again"}),
        ("gen_ai.choice", {"message": '{"content": "yo"}'}),
    ]
    logs = [
        {"traceId": TRACE, "spanId": made["spanId"], "timeUnixNano": made["startTimeUnixNano"], "eventName": name, "attributes": span(1, facts)["attributes"]}
        for name, facts in texts
    ]  # fmt: skip
    for name in ("one.jsonl", "two.jsonl"):
        (tmp_path / name).write_text(
            json.dumps(request(made, logs=logs)) + "\n" + json.dumps(request(logs=logs)) + "\n"
        )
    with memory_store() as store:
        import_path(store, tmp_path)
        (run,) = store.runs(Filter())
        (turn,) = store.turns(run.id)
        assert turn.text == "yo"
        assert json.dumps(store.request(run.id, 1).messages).count("again") == 2


def test_importing_twice_changes_nothing(tmp_path):
    path = tmp_path / "spans.jsonl"
    path.write_text(json.dumps(request(*loop())) + "\n" + json.dumps(request(*loop())) + "\n")
    with memory_store() as store:
        import_path(store, path)
        before = (
            store.sql("select * from runs")[2],
            store.sql("select * from turns")[2],
            store.sql("select * from tool_calls")[2],
        )
        import_path(store, path)
        after = (
            store.sql("select * from runs")[2],
            store.sql("select * from turns")[2],
            store.sql("select * from tool_calls")[2],
        )
        assert before == after
        assert len(before[1]) == 2
