"""A history read as the continuation of an earlier one says what it says read alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looptape.tracer.importers.otlp.blocks import from_parts
from looptape.tracer.importers.otlp.histories import Histories


def said(role, *parts):
    return {"role": role, "parts": [{"type": "text", "content": p} if isinstance(p, str) else p for p in parts]}


CALL = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"page": 1}}
RESULT = {"type": "tool_call_response", "id": "c1", "response": "seen"}
MESSAGES = st.sampled_from(
    [said("user", "hi"), said("assistant", "yes"), said("assistant", CALL), said("user", RESULT), said("system", "be"),
     said("user", "]"), said("user", '"},'), said("tool", RESULT), {"role": "user", "content": "plain"}, 1, "x", None]
)  # fmt: skip
DUMPS = [json.dumps, lambda v: json.dumps(v, separators=(",", ":")), lambda v: json.dumps(v, indent=1)]


def content(conversation):
    return conversation.messages, conversation.system, conversation.cut


@given(st.lists(st.lists(MESSAGES, max_size=4), min_size=1, max_size=6), st.sampled_from(DUMPS), st.booleans())
def test_any_order_of_histories_reads_as_each_alone(pieces, dumps, one_trace):
    histories, before, read = Histories(), [], []
    for number, piece in enumerate(pieces):
        before = before + piece if number % 3 else list(piece)
        text = dumps(before)
        read.append((text, histories.read("t" if one_trace else f"t{number}", text)))
    for text, found in read:  # also those that later ones went on with
        assert content(found) == content(from_parts(text))


def test_what_was_read_is_not_decoded_again():
    histories = Histories()
    first = histories.read("t", json.dumps([said("user", "hi"), said("assistant", "yes")]))
    later = histories.read("t", json.dumps([said("user", "hi"), said("assistant", "yes"), said("user", "more")]))
    assert [a is b for a, b in zip(first.messages, later.messages, strict=False)] == [True, True]


@pytest.mark.parametrize("rest", ['2, "x"]', "", "] ]", ', {"role": "us', "}"], ids=repr)
def test_a_text_that_only_begins_alike_is_read_by_itself(rest):
    histories = Histories()
    histories.read("t", json.dumps([said("user", "hi"), 1]))
    text = json.dumps([said("user", "hi"), 1])[:-1] + rest
    assert content(histories.read("t", text)) == content(from_parts(text))
