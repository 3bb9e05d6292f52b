"""Chat Completions: usage, finish reasons, streams of several servers, results, requests."""

import pytest

from looptape.tracer.providers import by_path, openai_chat
from wire import stream


def completion(message, finish="stop", **more):
    return {"id": "c", "model": "acme", "choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}


def chunk(delta, finish=None, index=0, **more):
    return {"id": "c", "model": "acme", "choices": [{"index": index, "delta": delta, "finish_reason": finish}], **more}


def tool(index, call_id=None, name=None, arguments=""):
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    told = {"index": index, "id": call_id, "type": "function", "function": function}
    return {"tool_calls": [{k: v for k, v in told.items() if v is not None}]}


def usage(**raw):
    u = openai_chat.answer({"usage": raw}).usage
    return u.input, u.cache_read, u.cache_write_5m, u.output, u.reasoning


def test_cached_tokens_are_taken_out_of_the_input():
    assert usage(
        prompt_tokens=1000,
        completion_tokens=50,
        prompt_tokens_details={"cached_tokens": 900, "cache_write_tokens": 60},
        completion_tokens_details={"reasoning_tokens": 20},
    ) == (40, 900, 60, 50, 20)


def test_more_cached_than_read_never_gives_a_negative_input():
    assert usage(prompt_tokens=10, prompt_tokens_details={"cached_tokens": 900}) == (0, 900, None, None, None)


def test_what_a_server_does_not_tell_is_unknown_and_not_zero():
    assert usage(prompt_tokens=10, completion_tokens=2) == (10, None, None, 2, None)
    assert openai_chat.answer(completion({"content": "hi"})).usage.origin == "missing"


def test_reasoning_that_a_server_counts_beside_the_output_is_put_inside():
    details = {"reasoning_tokens": 30}
    beside = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 45, "completion_tokens_details": details}
    assert usage(**beside)[3:] == (35, 30)
    assert usage(**{**beside, "completion_tokens": 35})[3:] == (35, 30)


@pytest.mark.parametrize(
    ("finish", "end"),
    [
        ("stop", "completed"),
        ("content_filter", "completed"),
        ("length", "limit"),
        ("tool_calls", None),
        ("error", "failed"),
        ("new_word", None),
    ],
)
def test_every_finish_reason_is_kept_raw_and_told_apart(finish, end):
    answer = openai_chat.answer(completion({"content": "hi"}, finish))
    assert (answer.stop_reason, answer.end) == (finish, end)


def test_a_server_that_says_stop_although_it_calls_does_not_end_the_run():
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": {"zone": "UTC"}}}
    answer = openai_chat.answer(completion({"content": None, "tool_calls": [call]}))
    assert (answer.end, answer.calls[0].arguments_raw, answer.calls[0].valid) == (None, '{"zone": "UTC"}', True)


def test_arguments_that_are_no_json_object_are_kept_and_said_so():
    calls = [{"id": str(i), "function": {"name": "f", "arguments": a}} for i, a in enumerate(['{"a": ', "[1]", ""])]
    answer = openai_chat.answer(completion({"tool_calls": calls}, "tool_calls"))
    assert [(c.arguments_raw, c.valid) for c in answer.calls] == [('{"a": ', False), ("[1]", False), ("", False)]


def test_free_text_of_a_custom_tool_becomes_an_object():
    call = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    answer = openai_chat.answer(completion({"tool_calls": [call]}, "tool_calls"))
    assert (answer.calls[0].name, answer.calls[0].arguments_raw) == ("patch", '{"input": "*** Begin"}')


def test_a_refusal_is_the_text_of_the_answer():
    assert openai_chat.answer(completion({"content": None, "refusal": "I cannot."})).text == "I cannot."


def test_the_old_function_call_and_its_result_find_each_other():
    body = completion({"content": None, "function_call": {"name": "now", "arguments": "{}"}}, "function_call")
    answer = openai_chat.answer(body)
    [seen] = openai_chat.results({"role": "function", "name": "now", "content": "12:00"})
    assert (answer.calls[0].id, answer.end) == (seen.call, None)


def test_parallel_calls_are_put_together_by_their_index():
    body, whole = openai_chat.assemble(
        stream(
            chunk({"role": "assistant", "content": None}),
            chunk(tool(0, "a", "f")), chunk(tool(1, "b", "g")),
            chunk(tool(0, arguments='{"x":')), chunk(tool(1, arguments="{}")), chunk(tool(0, arguments="1}")),
            chunk({}, "tool_calls"), "[DONE]",
        )
    )  # fmt: skip
    calls = openai_chat.answer(body).calls
    assert whole
    assert [(c.id, c.name, c.arguments_raw) for c in calls] == [("a", "f", '{"x":1}'), ("b", "g", "{}")]


@pytest.mark.parametrize("index", [0, None])
def test_calls_of_a_server_that_does_not_count_them_are_kept_apart(index):
    body, _ = openai_chat.assemble(
        stream(
            chunk(tool(index, "a", "f", "{}")),
            chunk(tool(index, "b", "f", '{"y"')),
            chunk(tool(index, arguments=":2}")),
        )
    )
    assert [(c.id, c.arguments_raw) for c in openai_chat.answer(body).calls] == [("a", "{}"), ("b", '{"y":2}')]


def test_several_choices_are_kept_and_the_first_counts():
    body, whole = openai_chat.assemble(
        stream(
            chunk({"content": "B"}, index=1), chunk({"content": "A"}), chunk({}, "stop"), chunk({}, "length", index=1)
        )
    )
    answer = openai_chat.answer(body)
    assert whole
    assert (answer.text, answer.stop_reason) == ("A", "stop")
    assert [c["message"]["content"] for c in body["choices"]] == ["A", "B"]


def test_a_cut_stream_is_not_whole_and_its_last_call_not_complete():
    counted = {"usage": {"prompt_tokens": 10, "completion_tokens": 1}}
    body, whole = openai_chat.assemble(
        stream(chunk(tool(0, "a", "f", "{}")), chunk(tool(1, "b", "rm", "{}"), **counted))
    )
    answer = openai_chat.answer(body)
    assert not whole
    assert [c.state for c in answer.calls] == [None, "incomplete"]
    assert (answer.usage.input, answer.usage.partial, answer.stop_reason) == (10, True, None)


def test_an_error_inside_a_stream_is_the_answers_error():
    error = {"error": {"code": 502, "message": "upstream is gone"}}
    body, whole = openai_chat.assemble(stream(chunk({"content": "Par"}), error, "[DONE]"))
    answer = openai_chat.answer(body)
    assert not whole
    assert (answer.error, answer.error_type, answer.text) == ("upstream is gone", "502", "Par")


def test_azure_starts_with_an_empty_chunk_and_is_read_all_the_same():
    first = {"id": "", "model": "", "choices": [], "prompt_filter_results": []}
    body, _ = openai_chat.assemble(stream(first, chunk({"content": "hi"}, "stop")))
    answer = openai_chat.answer(body)
    assert (answer.id, answer.model, answer.text) == ("c", "acme", "hi")


def test_reasoning_text_of_other_servers_is_thinking():
    body, _ = openai_chat.assemble(
        stream(chunk({"reasoning_content": "h"}), chunk({"reasoning_content": "m"}), chunk({"content": "7"}, "stop"))
    )
    assert openai_chat.answer(body).thinking == "hm"


def test_requests_keep_system_messages_where_they_were():
    body = {"model": "m", "messages": [{"role": "system", "content": "s"}], "tools": [1], "stream": True, "n": 2}
    parts = openai_chat.request(body)
    assert (parts.system, parts.tools, parts.params, parts.stream) == (None, [1], {"model": "m", "n": 2}, True)
    assert not openai_chat.is_prompt(body["messages"][0])
    assert openai_chat.is_prompt({"role": "user", "content": "hi"})


def test_a_tool_message_is_a_result():
    [seen] = openai_chat.results({"role": "tool", "tool_call_id": "a", "content": "12"})
    assert (seen.call, seen.content, seen.path, seen.is_error) == ("a", "12", "$.content", False)
    assert openai_chat.results({"role": "user", "content": "12"}) == []


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/v1/chat/completions", True),
        ("/openai/deployments/acme/chat/completions", True),
        ("/v1/chat/completions/chatcmpl-1/messages", False),
        ("/v1/completions", False),
        ("/v1/embeddings", False),
    ],
)
def test_only_chat_completions_are_recognised(path, known):
    assert (by_path(path) is openai_chat) is known
