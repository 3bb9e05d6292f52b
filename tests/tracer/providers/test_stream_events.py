"""A body as a stream: the events put together again are the body, also of one that was cut."""

import json

import pytest

from looptape.tracer.providers import by_api
from looptape.tracer.streams import sse_events

LONG = "Grüße – " * 40
ANTHROPIC = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
    "stop_sequence": None, "container": {"id": "c1"}, "context_management": {"applied_edits": []},
    "usage": {"input_tokens": 3, "output_tokens": 9, "cache_read_input_tokens": 7},
    "content": [
        {"type": "thinking", "thinking": LONG, "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eHh4"},
        {"type": "text", "text": LONG, "citations": [{"type": "char_location", "cited_text": "a"}]},
        {"type": "text", "text": ""},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": [1, {"b": LONG}], "c": None}},
        {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
    ],
}  # fmt: skip
CUT = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": None, "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 1}, "stream_cut": True,
    "content": [
        {"type": "text", "text": LONG},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}, "incomplete": True, "partial_json": '{"a": [1, '},
    ],
}  # fmt: skip
CHAT = {
    "id": "chat_1", "object": "chat.completion", "created": 1, "model": "m", "system_fingerprint": "f",
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    "choices": [
        {
            "index": 0, "finish_reason": "tool_calls", "logprobs": {"content": [{"token": "a"}], "refusal": []},
            "message": {
                "role": "assistant", "content": LONG, "refusal": None, "reasoning_content": "hm",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": "' + LONG + '"}'}},
                    {"id": "c2", "type": "function", "function": {"name": "f", "arguments": ""}},
                    {"id": "c3", "type": "custom", "custom": {"name": "g", "input": LONG}},
                ],
            },
        },
        {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": None, "refusal": "no"}},
    ],
}  # fmt: skip
LEGACY = {
    "id": "chat_1", "object": "chat.completion",
    "choices": [{"index": 0, "finish_reason": "function_call", "message": {
        "role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}}}],
}  # fmt: skip
PART = {"type": "output_text", "text": LONG, "annotations": [{"type": "url_citation", "url": "u"}], "logprobs": []}
RESPONSE = {
    "id": "resp_1", "object": "response", "status": "completed", "model": "m", "error": None, "usage": {"input_tokens": 3},
    "incomplete_details": None,
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": LONG}], "content": [],
         "encrypted_content": "ZW5j"},
        {"id": "m_1", "type": "message", "status": "completed", "role": "assistant",
         "content": [PART, {"type": "refusal", "refusal": "no"}]},
        {"id": "fc_1", "type": "function_call", "status": "completed", "name": "f", "call_id": "c1", "arguments": "{}"},
        {"id": "ct_1", "type": "custom_tool_call", "name": "g", "call_id": "c2", "input": LONG},
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}},
    ],
}  # fmt: skip
STOPPED = {
    **RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": RESPONSE["output"][:1],
}  # fmt: skip
GEMINI = {
    "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
        {"text": LONG}, {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"}]}}],
    "usageMetadata": {"promptTokenCount": 3}, "modelVersion": "m", "responseId": "r",
}  # fmt: skip
GEMINI_CUT = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "half"}]}}], "stream_cut": True,
    "stream_error": {"code": 503, "status": "UNAVAILABLE"},
}  # fmt: skip
BODIES = {
    "anthropic": ("anthropic.messages", ANTHROPIC, True),
    "anthropic cut": ("anthropic.messages", CUT, False),
    "anthropic failed": ("anthropic.messages", {**CUT, "stream_error": {"type": "overloaded_error"}, "stream_error_request_id": "r"}, False),
    "chat": ("openai.chat", CHAT, True),
    "chat of old": ("openai.chat", LEGACY, True),
    "chat cut": ("openai.chat", {**CHAT, "choices": [{**CHAT["choices"][0], "finish_reason": None}], "stream_cut": True}, False),
    "responses": ("openai.responses", RESPONSE, True),
    "responses stopped": ("openai.responses", STOPPED, True),
    "gemini": ("google.generate_content", GEMINI, True),
    "gemini failed": ("google.generate_content", GEMINI_CUT, False),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BODIES))
def test_the_events_of_a_body_put_together_are_the_body(name):
    api, body, whole = BODIES[name]
    provider = by_api(api)
    events = provider.stream(body, {"stream_options": {"include_usage": True}})
    assert all(e.endswith(b"\n\n") and e.count(b"\n\n") == 1 for e in events)
    expected = dict(body)
    if name == "chat cut":
        expected.pop("usage")
    assert provider.assemble(sse_events(b"".join(events).decode())) == (expected, whole)


def test_long_texts_come_in_pieces():
    events = by_api("anthropic.messages").stream(ANTHROPIC)
    texts = [json.loads(e.split(b"data: ")[1])["delta"]["text"] for e in events if b'"text_delta"' in e]
    assert len(texts) > 3
    assert "".join(texts) == LONG


def test_a_session_that_knows_no_usage_still_streams():
    events = by_api("anthropic.messages").stream({"id": "m", "content": "Hi", "stop_reason": "end_turn"})
    body, whole = by_api("anthropic.messages").assemble(sse_events(b"".join(events).decode()))
    assert whole
    assert body["content"] == [{"type": "text", "text": "Hi"}]
    assert body["usage"] == {"input_tokens": 0, "output_tokens": 0}
