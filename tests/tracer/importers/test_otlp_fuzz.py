"""Broken and odd OTLP: never a traceback, never a hang, never something lost without a word."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from imported import read
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import otlp
from looptape.tracer.store import memory_store
from otlp_spans import loop, request, span

_FACTS = {
    "openinference.span.kind": "LLM", "input.value": '{"messages": [[{"lc": 1, "kwargs": {"type": "human", "content": "x"}}]]}',
    "llm.input_messages.0.message.contents.0.message_content.type": "text", "llm.tools.0.tool.json_schema": "{}",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f",
}  # fmt: skip
_TRACELOOP = {
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": '[{"type": "text"}]',
    "llm.request.type": "chat",
}
_SEED = [
    request(*loop(), span(3, _FACTS, at=5), span(4, _TRACELOOP, at=6)),
    request(
        span(5, {"span.type": "tool", "tool_use_id": "x"}, name="claude_code.tool"),
        scope="com.anthropic.claude_code.tracing",
    ),
    request(span(6, {"request_data": "{}", "response_data": '{"message": {"content": []}}'}), scope="logfire.openai"),
    request(
        logs=[
            {
                "body": {"stringValue": "codex.sse_event"},
                "attributes": span(1, {"event.kind": "response.completed"})["attributes"],
            }
        ]
    ),
]
_ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8), st.just([]), st.just({}),
    st.just([[]]), st.just([None]), st.just({"values": None}), st.just({"stringValue": 3}), st.just("[{"), st.just("0" * 32),
)  # fmt: skip


def places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


def changed(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def imported(data):
    """What the importer makes of it goes into a store whole; a refusal has a cure."""
    try:
        found = read(otlp, data)
    except LooptapeError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert refused.cure
        return None
    with memory_store() as store:
        report = store.ingest(found.records)
        assert not report.bad
    return found


_PLACES = [(number, path) for number, seed in enumerate(_SEED) for path in places(seed) if path]


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(_PLACES), _ODD), min_size=1, max_size=3))
def test_odd_values_anywhere_are_no_traceback(changes):
    seeds = list(_SEED)
    for (number, path), new in changes:
        try:
            seeds[number] = changed(seeds[number], path, new)
        except (KeyError, IndexError, TypeError):
            continue
    found = read(otlp, "\n".join(json.dumps(s) for s in seeds))
    assert found.notes.counts["objects"] + found.notes.counts["skipped"] >= 1


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_json_text_inside_attributes_may_be_anything(data):
    names = [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.definitions",
        "gen_ai.system_instructions",
        "events",
        "input.value",
        "output.value",
        "request_data",
        "response_data",
        "metadata",
        "llm.invocation_parameters",
        "gen_ai.usage.raw",
        "gen_ai.response.finish_reasons",
    ]
    json_like = st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=4), st.sampled_from(["user", "tool_call", "text", "assistant"])),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["role", "parts", "type", "content", "id", "arguments", "tool_calls", "function", "messages", "choices", "message", "output", "usage", "lc", "kwargs", "generations"]), inner, max_size=4)),
        max_leaves=12,
    )  # fmt: skip
    made = []
    for number, extra in enumerate(
        ({"gen_ai.operation.name": "chat"}, {"openinference.span.kind": "LLM"}, {"openinference.span.kind": "TOOL"}), 1
    ):
        facts = {
            n: json.dumps(data.draw(json_like))
            for n in data.draw(st.lists(st.sampled_from(names), max_size=5, unique=True))
        }
        made.append(span(number, {**extra, **facts}, at=number * 20))
    assert imported(json.dumps(request(*made))) is not None
    read(otlp, json.dumps(request(*made, scope="logfire.openai")))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 6000), st.binary(max_size=4), st.integers(0, 40))
def test_torn_and_overwritten_bytes_are_named_and_the_rest_is_read(position, noise, cut):
    whole = "\n".join(json.dumps(s) for s in _SEED).encode()
    data = whole[:position] + noise + whole[position + cut :]
    found = imported(data)
    if found is not None and data != whole:
        lines = [line for line in data.splitlines() if line.strip()]
        assert (
            found.notes.counts["objects"] + found.notes.counts["skipped"] + sum(found.notes.unknown.values())
            >= len(lines) - 1
        )


def protobuf_seed():
    pb2 = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    made = pb2.ExportTraceServiceRequest()
    group = made.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "demo"
    for number in (1, 2):
        one = group.scope_spans.add().spans.add(
            trace_id=b"t" * 16, span_id=bytes([number]) * 8, name="chat", start_time_unix_nano=10**18
        )
        one.attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
    return made.SerializeToString()


@settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 200), st.binary(max_size=3), st.integers(0, 8))
def test_broken_protobuf_is_refused_with_a_cure_or_read(position, noise, cut):
    whole = protobuf_seed()
    data = whole[:position] + noise + whole[position + cut :]
    otlp.recognise(data)
    imported(data)


def test_spans_that_are_their_own_parents_and_rings_of_parents_do_not_hang():
    one, two = loop()
    one["parentSpanId"], two["parentSpanId"] = two["spanId"], one["spanId"]
    itself = span(9, {"gen_ai.operation.name": "invoke_agent"}, parent=9)
    assert imported(json.dumps(request(one, two, itself))) is not None


def test_deep_nesting_is_a_skipped_line_or_read():
    deep = '{"resourceSpans": ' + "[" * 100_000 + "]" * 100_000 + "}"
    found = read(otlp, json.dumps(request(*loop())) + "\n" + deep + "\n")
    assert [s["line"] for s in found.notes.skipped] == [2]
    value: dict = {"stringValue": "x"}
    for _ in range(150):
        value = {"arrayValue": {"values": [value]}}
    made = span(1, {"gen_ai.operation.name": "chat"})
    made["attributes"].append({"key": "gen_ai.input.messages", "value": value})
    assert imported(json.dumps(request(made))) is not None
