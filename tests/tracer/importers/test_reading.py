"""Lines are read in the quickest way, and say what the standard library reads in them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from looptape.tracer.importers.reading import objects
from looptape.tracer.importers.report import Notes

DEEP = 300
LINES = {
    "half of a surrogate pair": (b'{"a": "\\ud83d"}', {"a": "\ud83d"}),
    "a number beyond 64 bits": (b'{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
    "NaN and Infinity by name": (b'{"a": [NaN, -Infinity]}', {"a": ["NaN", "-Infinity"]}),
    "a key twice": (b'{"a": 1, "b": 2, "a": 3}', {"a": 3, "b": 2}),
    "minus nothing": (b'{"a": [-0, -0.0]}', {"a": [0, -0.0]}),
    "bytes that are no UTF-8": (b'{"a": "\xff"}', {"a": "\ufffd"}),
    "white space around": (b' \t{"a": 1} \r\n', {"a": 1}),
}

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def read(line: bytes) -> list:
    return [value for _, value in objects([(2, line)], Notes())]


@settings(max_examples=examples(200))
@given(st.dictionaries(st.text(), values, max_size=4), st.booleans())
def test_an_object_is_read_as_the_standard_library_reads_it(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    (found,) = read(text.encode() + b"\n")
    assert repr(found) == repr(json.loads(text))  # by its text: -0.0 is 0.0, and 1 is True


@settings(max_examples=examples(200))
@given(st.dictionaries(st.text(), values, max_size=4), st.data())
def test_a_line_with_a_fault_is_read_as_the_standard_library_reads_it_or_not_at_all(value, data):
    line = bytearray(json.dumps(value).encode())
    at = data.draw(st.integers(0, len(line) - 1))
    line[at : at + data.draw(st.integers(0, 1))] = data.draw(st.sampled_from([b"", b"0", b"e", b"-", b'"', b",", b"}"]))
    try:
        expected = json.loads(line)
    except ValueError:
        return  # a line may hold several objects, which is told elsewhere
    assert repr(read(bytes(line))) == repr([expected] if isinstance(expected, dict) else [])


@pytest.mark.parametrize(
    ("line", "warned"),
    [
        (b'{"a": "\xff"}\n', True),
        ('{"a": "\ufffd"}\n'.encode(), False),  # it was written there
        (b'{"a": "whole", "b": "\xe2\x82', False),  # the rest is to come
    ],
    ids=["no UTF-8", "a replacement of somebody else", "a torn end"],
)
def test_bytes_that_are_lost_are_told(line: bytes, warned: bool) -> None:
    notes = Notes()
    list(objects([(1, line)], notes))
    assert [*notes.warnings] == ["not all of it is UTF-8: what is not stands as \ufffd"] * warned


@pytest.mark.parametrize("name", LINES)
def test_an_odd_line_loses_nothing(name):
    line, expected = LINES[name]
    assert repr(read(line)) == repr([expected])


def test_an_object_nested_deeper_than_the_quick_reader_goes_is_read():
    (found,) = read(b'{"a":' * DEEP + b"1" + b"}" * DEEP)
    for _ in range(DEEP):
        found = found["a"]
    assert found == 1
