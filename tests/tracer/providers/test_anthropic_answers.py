"""Anthropic Messages: cut streams, cumulative usage, stop reasons, the provider's own tool steps."""

import json

import pytest

from looptape.tracer.providers import anthropic
from looptape.tracer.streams import sse_events
from wire import stream

MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "acme", "content": []}


def start(**usage):
    return {"type": "message_start", "message": {**MESSAGE, "stop_reason": None, "usage": usage}}


def delta(stop, **usage):
    return {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}


def event(kind, **more):
    return {"type": f"content_block_{kind}", **more}


def test_an_error_event_in_a_stream_keeps_what_came_and_nothing_more():
    """trc-03: 200, pings, then an in-band error and no message_stop."""
    tool = {"type": "tool_use", "id": "toolu_9", "name": "Bash", "input": {}}
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_x"}
    events = [
        start(input_tokens=25, output_tokens=1),
        event("start", index=0, content_block={"type": "text", "text": ""}),
        {"type": "ping"},
        event("delta", index=0, delta={"type": "text_delta", "text": "Par"}),
        {"type": "ping"},
        event("delta", index=0, delta={"type": "text_delta", "text": "tial"}),
        event("stop", index=0),
        event("start", index=1, content_block=tool),
        event("delta", index=1, delta={"type": "input_json_delta", "partial_json": '{"command": "ls'}),
        error,
    ]
    text = ": comment\n\n" + "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)

    body, whole = anthropic.assemble(sse_events(text))
    answer = anthropic.answer(body)

    assert not whole
    assert (answer.error, answer.error_type, answer.request_id) == ("Overloaded", "overloaded_error", "req_x")
    assert (answer.text, answer.stop_reason, answer.end) == ("Partial", None, None)
    [call] = answer.calls
    assert (call.id, call.arguments_raw, call.valid, call.state) == ("toolu_9", '{"command": "ls', False, "incomplete")
    assert (answer.usage.input, answer.usage.output, answer.usage.partial) == (25, 1, True)


def test_an_error_before_the_first_message_is_an_answer_without_words():
    body, whole = anthropic.assemble(stream({"type": "error", "error": {"type": "api_error", "message": "no"}}))
    answer = anthropic.answer(body)
    assert not whole
    assert (answer.error_type, answer.text, answer.usage.origin) == ("api_error", None, "missing")


def test_usage_of_a_stream_is_cumulative_and_never_added():
    """trc-04: message_delta repeats the input counts of message_start."""
    cached = {"input_tokens": 25, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0}
    body, whole = anthropic.assemble(
        stream(
            start(**cached, output_tokens=1),
            event("start", index=0, content_block={"type": "text", "text": ""}),
            event("delta", index=0, delta={"type": "text_delta", "text": "Hello!"}),
            event("stop", index=0),
            delta("end_turn", **cached, output_tokens=15),
            {"type": "message_stop"},
        )
    )
    usage = anthropic.answer(body).usage
    assert whole
    assert (usage.input, usage.cache_read, usage.output, usage.partial) == (25, 100, 15, False)


def test_a_call_cut_before_its_first_argument_is_no_call_without_arguments():
    tool = {"type": "tool_use", "id": "toolu_1", "name": "rm", "input": {}}
    body, _ = anthropic.assemble(stream(start(input_tokens=1), event("start", index=0, content_block=tool)))
    assert [c.state for c in anthropic.answer(body).calls] == ["incomplete"]


def test_arguments_cut_by_max_tokens_keep_their_raw_text():
    tool = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {}}
    body, whole = anthropic.assemble(
        stream(
            start(input_tokens=1),
            event("start", index=0, content_block=tool),
            event("delta", index=0, delta={"type": "input_json_delta", "partial_json": '{"text": "abc'}),
            event("stop", index=0),
            delta("max_tokens", output_tokens=9),
            {"type": "message_stop"},
        )
    )
    answer = anthropic.answer(body)
    assert whole
    assert (answer.calls[0].arguments_raw, answer.calls[0].valid, answer.end) == ('{"text": "abc', False, "limit")


@pytest.mark.parametrize(
    ("stop", "end"),
    [
        ("end_turn", "completed"),
        ("stop_sequence", "completed"),
        ("refusal", "completed"),
        ("max_tokens", "limit"),
        ("model_context_window_exceeded", "limit"),
        ("tool_use", None),
        ("pause_turn", None),
        ("something_new", None),
    ],
)
def test_every_stop_reason_is_kept_raw_and_told_apart(stop, end):
    answer = anthropic.answer({**MESSAGE, "stop_reason": stop})
    assert (answer.stop_reason, answer.end) == (stop, end)


def test_a_step_the_provider_ran_is_not_ours_and_carries_its_result():
    content = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u"}]},
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "look", "server_name": "s", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": True, "content": []},
        {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_fetch", "input": {}},
        {
            "type": "web_fetch_tool_result",
            "tool_use_id": "srvtoolu_2",
            "content": {"type": "web_fetch_tool_result_error", "error_code": "unavailable"},
        },
        {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}},
    ]
    search, look, fetch, ours = anthropic.answer({**MESSAGE, "content": content}).calls
    assert (search.provider_side, search.result, search.is_error) == (True, [{"url": "u"}], False)
    assert (look.provider_side, look.is_error, fetch.is_error) == (True, True, True)
    assert (ours.provider_side, ours.result, ours.is_error) == (False, None, None)


def test_cache_writes_are_split_by_lifetime_and_never_lost():
    def writes(total, **split):
        usage = anthropic.usage({"cache_creation_input_tokens": total, "cache_creation": split or None})
        return usage.cache_write_5m, usage.cache_write_1h

    assert writes(30) == (30, None)
    assert writes(30, ephemeral_5m_input_tokens=10, ephemeral_1h_input_tokens=20) == (10, 20)
    assert writes(50, ephemeral_5m_input_tokens=10, ephemeral_1h_input_tokens=20) == (30, 20)
    assert writes(0, ephemeral_5m_input_tokens=0, ephemeral_1h_input_tokens=0) == (0, 0)
    assert anthropic.usage({"output_tokens": 3}).input is None


def test_results_name_their_place_in_the_message_as_it_was_sent():
    message = {
        "role": "user",
        "content": [
            "odd",
            {"type": "tool_result", "tool_use_id": "a", "content": "1"},
            {"type": "text", "text": "go on"},
            {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text"}], "is_error": True},
        ],
    }
    seen = anthropic.results(message)
    assert [(s.call, s.path, s.is_error) for s in seen] == [
        ("a", "$.content[1].content", False),
        ("b", "$.content[3].content", True),
    ]
    assert anthropic.is_prompt(message)
    assert not anthropic.is_prompt({"role": "user", "content": message["content"][1:2]})


def test_a_server_held_thread_names_what_it_continues():
    parts = anthropic.request(
        {"model": "m", "messages": [], "thread": {"previous_message_id": "msg_0", "type": "continue"}}
    )
    assert (parts.mode, parts.previous, parts.params) == (
        "thread",
        "msg_0",
        {"model": "m", "thread": {"type": "continue"}},
    )
