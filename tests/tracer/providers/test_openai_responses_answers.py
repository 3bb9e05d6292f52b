"""Responses: items that call, items the provider ran, statuses, usage, cut streams, server-held history."""

import pytest

from looptape.tracer.providers import by_path, openai_responses
from wire import stream

CALL = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "search", "arguments": '{"q": 1}'}
TEXT = {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "7 %"}]}


def response(*output, status="completed", **more):
    return {"id": "resp_1", "object": "response", "model": "acme", "status": status, "output": list(output), **more}


def answer(*output, **more):
    return openai_responses.answer(response(*output, **more))


def test_function_and_custom_calls_are_ours_and_keep_the_run_open():
    custom = {"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": "*** Begin"}
    got = answer(TEXT, CALL, custom)
    assert [(c.id, c.name, c.arguments_raw, c.provider_side) for c in got.calls] == [
        ("call_1", "search", '{"q": 1}', False),
        ("call_2", "patch", '{"input": "*** Begin"}', False),
    ]
    assert (got.text, got.stop_reason, got.end) == ("7 %", "completed", None)


def test_steps_of_the_provider_are_not_ours_and_do_not_keep_the_run_open():
    search = {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    }
    code = {"id": "ci_1", "type": "code_interpreter_call", "status": "failed", "code": "1/0", "outputs": []}
    mcp = {"id": "mcp_1", "type": "mcp_call", "name": "look", "arguments": "{}", "output": "o", "error": "denied"}
    got = answer(search, code, mcp, TEXT)
    assert [(c.id, c.name, c.provider_side, c.is_error) for c in got.calls] == [
        ("ws_1", "web_search", True, False),
        ("ci_1", "code_interpreter", True, True),
        ("mcp_1", "look", True, True),
    ]
    assert [c.arguments_raw for c in got.calls[1:]] == ['{"code": "1/0"}', "{}"]
    assert got.end == "completed"


def test_a_shell_is_ours_unless_its_output_stands_beside_it():
    shell = {"id": "sh_1", "type": "shell_call", "call_id": "call_3", "action": {"commands": ["ls"]}}
    output = {"type": "shell_call_output", "call_id": "call_3", "output": [{"stdout": "a"}]}
    assert [(c.provider_side, c.result) for c in answer(shell).calls] == [(False, None)]
    assert [(c.provider_side, c.result) for c in answer(shell, output).calls] == [(True, [{"stdout": "a"}])]


def test_a_wish_for_approval_keeps_the_run_open():
    wish = {"id": "mcpr_1", "type": "mcp_approval_request", "name": "drop", "arguments": "{}", "server_label": "db"}
    assert answer(wish).end is None


@pytest.mark.parametrize(
    ("body", "stop", "end"),
    [
        ({"status": "completed"}, "completed", "completed"),
        ({"status": "failed", "error": {"code": "server_error", "message": "no"}}, "failed", "failed"),
        ({"status": "cancelled"}, "cancelled", "failed"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "incomplete:max_output_tokens",
            "limit",
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "incomplete:content_filter",
            "completed",
        ),
        ({"status": "queued"}, None, None),
        ({"status": "in_progress"}, None, None),
    ],
)
def test_every_status_is_told_apart(body, stop, end):
    got = answer(TEXT, **body)
    assert (got.stop_reason, got.end) == (stop, end)


def test_a_failed_response_tells_its_error_and_keeps_its_text():
    got = answer(TEXT, status="failed", error={"code": "server_error", "message": "no"})
    assert (got.error, got.error_type, got.text) == ("no", "server_error", "7 %")


def test_reasoning_is_thinking_also_without_a_summary():
    summary = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"}
    plain = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "open"}]}
    assert answer(summary).thinking == "hm"
    assert answer(plain).thinking == "open"


def test_cached_and_written_tokens_are_taken_out_of_the_input():
    details = {"cached_tokens": 900, "cache_write_tokens": 60}
    raw = {"input_tokens": 1000, "input_tokens_details": details, "output_tokens": 50}
    usage = answer(usage={**raw, "output_tokens_details": {"reasoning_tokens": 20}}).usage
    assert (usage.input, usage.cache_read, usage.cache_write_5m, usage.output, usage.reasoning) == (40, 900, 60, 50, 20)
    assert usage.raw["input_tokens"] == 1000


def cut_stream():
    return stream(
        {"type": "response.created", "response": response(status="in_progress", usage=None)},
        {"type": "response.output_item.added", "output_index": 0, "item": {**TEXT, "content": []}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "7"},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": " %"},
        {"type": "response.output_item.done", "output_index": 0, "item": TEXT},
        {"type": "response.output_item.added", "output_index": 1, "item": {**CALL, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"q"'},
    )


def test_a_stream_cut_in_the_middle_keeps_what_came():
    body, whole = openai_responses.assemble(cut_stream())
    got = openai_responses.answer(body)
    [call] = got.calls
    assert not whole
    assert (got.text, got.stop_reason, got.end, got.usage.origin) == ("7 %", None, None, "missing")
    assert (call.arguments_raw, call.valid, call.state) == ('{"q"', False, "incomplete")


def test_an_error_event_is_the_answers_error():
    event = {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}
    body, whole = openai_responses.assemble([*cut_stream(), *stream(event)])
    got = openai_responses.answer(body)
    assert not whole
    assert (got.error, got.error_type, got.text) == ("slow down", "rate_limit_exceeded", "7 %")


def test_a_last_event_without_output_keeps_the_items_that_came():
    last = {"type": "response.completed", "response": response(usage={"input_tokens": 3, "output_tokens": 4})}
    body, whole = openai_responses.assemble([*cut_stream()[:5], *stream(last)])
    got = openai_responses.answer(body)
    assert whole
    assert (got.text, got.usage.output, got.usage.partial, got.end) == ("7 %", 4, False, "completed")


def test_instructions_are_the_system_text_and_a_plain_string_is_a_prompt():
    body = {"model": "m", "input": "What is 7 %?", "instructions": "Be short", "stream": True}
    parts = openai_responses.request(body)
    assert (parts.system, parts.mode, parts.params, parts.stream) == ("Be short", "full", {"model": "m"}, True)
    assert openai_responses.is_prompt("What is 7 %?")


def test_server_held_history_is_named():
    parts = openai_responses.request({"input": [], "previous_response_id": "resp_0", "store": True})
    assert (parts.mode, parts.previous, parts.params) == ("previous_response", "resp_0", {"store": True})
    parts = openai_responses.request({"input": [], "conversation": "conv_1"})
    assert (parts.mode, parts.previous, parts.params) == ("thread", None, {"conversation": "conv_1"})


def test_outputs_are_results_and_answers_are_no_prompts():
    [seen] = openai_responses.results({"type": "function_call_output", "call_id": "call_1", "output": "12"})
    assert (seen.call, seen.content, seen.path) == ("call_1", "12", "$.output")
    assert [openai_responses.is_prompt(m) for m in (TEXT, CALL, {"role": "user", "content": "hi"})] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/v1/responses", True),
        ("/openai/v1/responses", True),
        ("/v1/responses/resp_1/cancel", False),
        ("/v1/responses/compact", False),
    ],
)
def test_only_creating_a_response_is_recognised(path, known):
    assert (by_path(path) is openai_responses) is known
