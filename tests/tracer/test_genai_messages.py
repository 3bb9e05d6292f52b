"""Messages of every provider in the words of the GenAI conventions, nothing lost that somebody may need again."""

from __future__ import annotations

from typing import Any

import pytest

from looptape.tracer.genai_messages import genai_message, genai_system, genai_tools


@pytest.mark.parametrize(
    ("message", "role", "parts"),
    [
        ({"role": "user", "content": "hi"}, "user", [{"type": "text", "content": "hi"}]),
        ("hi", "user", [{"type": "text", "content": "hi"}]),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
         "assistant", [{"type": "tool_call", "id": "c", "name": "f", "arguments": "{}"}]),
        ({"role": "tool", "tool_call_id": "c", "content": "42"}, "tool", [{"type": "tool_call_response", "id": "c", "response": "42"}]),
        ({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"},
         "assistant", [{"type": "tool_call", "id": "c", "name": "f", "arguments": "{}"}]),
        ({"type": "function_call_output", "call_id": "c", "output": "42"}, "tool",
         [{"type": "tool_call_response", "id": "c", "response": "42"}]),
        ({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"}, "assistant",
         [{"type": "reasoning", "content": "hm", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"}]),
        ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}, "user", [{"type": "text", "content": "hi"}]),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}, "assistant",
         [{"type": "reasoning", "content": "hm", "signature": "s"}]),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}, "partial_json": '{"a": '}]},
         "assistant", [{"type": "tool_call", "id": "c", "name": "f", "arguments": '{"a": '}]),
        ({"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}, "user",
         [{"type": "text", "content": "a", "cache_control": {"type": "ephemeral"}}]),
        ({"role": "user", "content": [{"type": "image", "source": {"type": "url"}}]}, "user",
         [{"type": "image", "source": {"type": "url"}}]),
        ({"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}}]}, "assistant",
         [{"type": "server_tool_call", "id": "s", "name": "web_search",
           "server_tool_call": {"type": "server_tool_use", "arguments": {"q": 1}}}]),
    ],
)  # fmt: skip
def test_messages(message: Any, role: str, parts: list[Any]) -> None:
    found = genai_message(message)
    assert (found["role"], found["parts"]) == (role, parts)


@pytest.mark.parametrize(
    "odd",
    [
        None,
        7,
        [],
        {},
        {"role": 7},
        {"type": []},
        {"role": "user", "content": [{"type": {}}]},
        {"content": [None, 3, {"type": []}]},
        {"role": "user", "tool_calls": [None, {}]},
    ],
)
def test_odd_messages_do_not_raise(odd: Any) -> None:
    assert genai_message(odd)["role"]


def test_a_refused_or_failed_result_says_so() -> None:
    (part,) = genai_message(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True}]}
    )["parts"]
    assert part == {"type": "tool_call_response", "id": "c", "response": "no", "is_error": True}


def test_tools_of_each_api_have_one_shape() -> None:
    wanted = [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}]
    inner = {"name": "f", "description": "d", "parameters": {"type": "object"}}
    assert genai_tools([{"name": "f", "description": "d", "input_schema": {"type": "object"}}]) == wanted
    assert genai_tools([{"type": "function", "function": inner}]) == wanted
    assert genai_tools([{"type": "function", **inner}]) == wanted
    assert genai_tools([{"type": "web_search_20250305", "name": "web_search"}]) == [
        {"type": "web_search_20250305", "name": "web_search"}
    ]


def test_a_system_prompt_is_text_parts() -> None:
    assert genai_system("a") == [{"type": "text", "content": "a"}]
    assert genai_system([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]) == [
        {"type": "text", "content": "a"},
        {"type": "text", "content": "b"},
    ]
