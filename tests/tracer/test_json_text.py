"""Encoders and decoders that are made once say what those of the standard library say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from looptape.tracer.json_text import decoder, encoder

WRITTEN = (
    {"ensure_ascii": False},
    {"ensure_ascii": True, "separators": (",", ":"), "default": str},
    {"sort_keys": True, "separators": (",", ":"), "allow_nan": False},
)
ODD_TEXTS = (
    '{"a": 1}', ' {"a": 1}', '{"a": 1}\n', "[1] [2]", '{"a": 1', "", " ", "nonsense", '"text"', "NaN", "\ufeff{}", '{"a": "\\ud83d"}',
)  # fmt: skip

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def outcome(work, value):
    """What a call gives: the text of a value (NaN equals itself there), or the kind of its error."""
    try:
        return repr(work(value))
    except (ValueError, TypeError, RecursionError) as error:
        return type(error)


@settings(max_examples=examples(60))
@given(values)
def test_values_are_written_as_the_standard_library_writes_them(value):
    for options in WRITTEN:
        assert outcome(encoder(**options), value) == outcome(json.JSONEncoder(**options).encode, value)


@settings(max_examples=examples(60))
@given(values)
def test_texts_are_read_as_the_standard_library_reads_them(value):
    text = json.dumps(value)
    assert outcome(decoder(), text) == outcome(json.loads, text)


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_what_is_around_a_value_or_no_value_is_told_as_ever(text):
    assert outcome(decoder(), text) == outcome(json.JSONDecoder().decode, text)


def test_what_holds_itself_or_is_no_json_fails_as_ever_and_the_next_value_is_written():
    write = encoder()
    inside: list[object] = []
    inside.append(inside)
    with pytest.raises(ValueError, match="Circular"):
        write(inside)
    with pytest.raises(TypeError):
        write({"a": object()})
    assert write({"a": [1]}) == '{"a": [1]}'
