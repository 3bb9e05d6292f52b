"""Messages of every provider as readable parts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looptape.replay.message_parts import MessagePart, parts, plain_text, role

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "type", "content", "text", "tool_calls", "function", "input", "id", "summary", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("message", "who", "expected"),
    [
        ({"role": "user", "content": "hi"}, "user", [MessagePart("text", "hi")]),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "I look"},
                    {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "é"}},
                ],
            },
            "assistant",
            [MessagePart("thinking", "hm"), MessagePart("text", "I look"), MessagePart("call", '{"q": "é"}', "search", "c1")],
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": [{"type": "text", "text": "no"}]}]},
            "user",
            [MessagePart("result", "no", None, "c1", True)],
        ),
        ({"role": "tool", "tool_call_id": "c2", "content": "42"}, "tool", [MessagePart("result", "42", None, "c2")]),
        (
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c2", "function": {"name": "calc", "arguments": '{"x": 1'}}]},
            "assistant",
            [MessagePart("call", '{"x": 1', "calc", "c2")],
        ),
        ({"type": "function_call", "call_id": "c3", "name": "f", "arguments": "{}"}, "assistant", [MessagePart("call", "{}", "f", "c3")]),
        ({"type": "function_call_output", "call_id": "c3", "output": "done"}, "tool", [MessagePart("result", "done", None, "c3")]),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]},
            "assistant",
            [MessagePart("text", "yes")],
        ),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]}, "assistant", [MessagePart("thinking", "so")]),
        ("plain", "user", [MessagePart("text", "plain")]),
    ],
)  # fmt: skip
def test_parts_of_the_known_shapes(message: Any, who: str, expected: list[MessagePart]) -> None:
    assert role(message) == who
    assert parts(message) == expected


def test_an_image_is_described_and_not_dumped() -> None:
    block = {"type": "image", "source": {"type": "base64", "data": "A" * 5000}}
    assert parts({"role": "user", "content": [block]})[0].text.startswith("(image, 5,0")


def test_a_result_that_is_no_text_is_json() -> None:
    assert plain_text({"a": [1, 2]}) == '{"a": [1, 2]}'
    assert plain_text([1, 2]) == "[1, 2]"


@given(JSON)
def test_odd_messages_never_raise(message: Any) -> None:
    role(message)
    for part in parts(message):
        assert isinstance(part.text, str)
