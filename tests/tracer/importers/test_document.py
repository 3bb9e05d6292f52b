"""A file that is one JSON value: read whole without its secrets, recognised from however little of it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looptape.tracer.importers.context import Source
from looptape.tracer.importers.document import document, glimpse, money, seconds
from looptape.tracer.importers.report import Notes

SECRET = "sk-ant-" + "a1B2c3D4" * 5
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(['"', "\\", "{[,", "]}"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def _read(data: bytes) -> tuple[Any, Notes]:
    notes = Notes()
    return document(Source("-", stream=io.BytesIO(data)), notes), notes


def test_secrets_are_removed_string_by_string_and_their_lines_counted() -> None:
    value, notes = _read(json.dumps({"a": SECRET, "b": [f"x {SECRET}", 1]}, indent=1).encode())

    assert value == {"a": "[redacted:anthropic-key]", "b": ["x [redacted:anthropic-key]", 1]}
    assert notes.counts["lines_with_secrets"] == 2


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b'{"a": 1,\n "b": }', 2, "not JSON (Expecting value at column 7)"),
        (b"[1,\n2", 2, "cut short"),
        (b"[" * 100_000, 1, "nested too deeply"),
        (b"", 1, "not JSON"),
    ],
)
def test_what_cannot_be_read_is_noted_with_its_line(data: bytes, line: int, reason: str) -> None:
    value, notes = _read(data)

    assert value is None
    assert [s["line"] for s in notes.skipped] == [line]
    assert reason in notes.skipped[0]["reason"]


def test_a_byte_order_mark_and_numbers_that_are_none_do_no_harm() -> None:
    assert _read(b'\xef\xbb\xbf[NaN, "\xff"]')[0] == ["NaN", "\ufffd"]


def test_octets_that_are_no_utf8_are_told() -> None:
    told = [_read(b)[1].warnings for b in (b'["caf\xe9"]', '["caf\u00e9 \ufffd"]'.encode())]
    assert [list(w) for w in told] == [["not all of it is UTF-8: what is not stands as \ufffd"], []]


@pytest.mark.parametrize("end", ["long", r"esc\\", r"esc\u00", "esc\\"])
def test_a_glimpse_shows_the_begin_of_a_text_that_is_cut(end: str) -> None:
    seen = glimpse(f'[{{"role": "user", "content": "so {end}'.encode())
    assert (seen[0]["role"], seen[0]["content"][:3]) == ("user", "so ")
    assert glimpse(b'{"role": "user", "conte') == {"role": "user"}


@given(st.lists(JSON, max_size=4) | st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.data())
def test_a_glimpse_of_a_cut_head_is_a_part_of_the_whole(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value).encode()
    place = data.draw(st.integers(1, len(text)))
    seen = glimpse(text[:place])

    assert type(seen) is type(value)
    if place == len(text):
        assert seen == value
    elif isinstance(value, list):
        assert seen[:-1] == value[: max(0, len(seen) - 1)]
    else:
        assert set(seen) <= set(value)


def test_a_glimpse_takes_the_first_of_several_values_and_nothing_else() -> None:
    assert glimpse(b'{"a": 1}\n{"b": 2}\n') == {"a": 1}
    assert [glimpse(b) for b in (b"", b"plain", b'"text"', b"\xff\xfe{}", b"]")] == [None] * 5


def test_times_and_amounts_that_cannot_be_are_unknown() -> None:
    assert [seconds(v) for v in (1775815864.25, 0, -1, 10**30, True, "1", None)] == [1775815864250000, *[None] * 6]
    assert [money(v) for v in (0.25, 0, -1, True, "1", None)] == [0.25, 0.0, None, None, None, None]
