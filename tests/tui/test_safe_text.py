"""Untrusted text: nothing acts, nothing hides, plain text stays as it is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from looptape.tui.safe_text import clean, fit, lines, width

NASTY = st.sampled_from(
    [
        "\x1b]52;c;eA==\x07",
        "\x1b[2J",
        "\x9b2J",
        "\r\n",
        "\r",
        "\n",
        "\t",
        "\u200d",
        "\u200c",
        "️",
        "︁",
        "\u202e",
        "�",
        "́" * 9,
        "\U000e0041",
        "\U000e007f",
        "👨",
        "♀",
        "1",
        "क्",
        "م",
        "e",
        "ㅤ",
        "\u2028",
        "\x00",
    ]
)
TEXTS = st.one_of(
    st.text(st.characters(codec=None, categories=None), max_size=40), st.lists(NASTY, max_size=12).map("".join)
)


@given(TEXTS, st.booleans(), st.none() | st.integers(0, 30))
@example("👨\u200d\u200d👩", False, None)
@example("👨\u200d👩\u200d👧", False, 2)
def test_cleaning_twice_is_cleaning_once(text: str, multiline: bool, limit: int | None) -> None:
    once = clean(text, multiline=multiline, limit=limit)
    assert clean(once, multiline=multiline, limit=limit) == once


@given(TEXTS, st.booleans())
def test_no_control_code_or_lone_surrogate_is_left(text: str, multiline: bool) -> None:
    left = clean(text, multiline=multiline)
    if multiline:
        left = left.replace("\n", "")
    assert not [c for c in left if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    left.encode("utf-8")


@given(TEXTS, st.integers(0, 30))
def test_a_limit_is_kept_in_cells(text: str, limit: int) -> None:
    assert width(clean(text, limit=limit)) <= limit


@given(st.text(st.characters(categories=["Lu", "Ll", "Nd", "Po", "Sm", "Sc", "Pd"], max_codepoint=0x24F)))
def test_plain_text_is_not_changed(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    "text",
    ["naïve café", "日本語のテキスト", "👨\u200d👩\u200d👧 family", "❤️ 1️⃣ ☎️", "👍🏽", "نمی\u200cشود", "क्\u200dष", "שלום", "[b]bold[/b] [/ [@click=app.quit]x"],
)  # fmt: skip
def test_what_people_write_is_not_changed(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x1b]0;title\x1b\\", "␛]0;title␛\\"),
        ("\x9b2J", "‹U+009B›2J"),
        ("a\u202eb", "a‹U+202E›b"),
        ("pass\u200bword", "pass‹U+200B›word"),
        ("x\ud83ey", "x‹U+D83E›y"),
        ("\x7f", "␡"),
        ("\ufeffstart", "‹U+FEFF›start"),
        ("ok\U000e0068\U000e0069", "ok‹tags hi›"),
        ("a\u200d\u200d", "a‹U+200D›‹U+200D›"),
        ("a\u2028b", "a‹U+2028›b"),
    ],
)
def test_what_hides_or_acts_becomes_visible(hidden: str, shown: str) -> None:
    assert clean(hidden) == shown


def test_line_ends_show_as_a_sign_where_there_is_one_line_and_stay_where_there_are_many() -> None:
    assert clean("a\r\nb\nc\rd\te") == "a↵b↵c␍d e"
    assert clean("a\r\nb\n\tc", multiline=True) == "a\nb\n    c"
    assert lines("a\x0bb\x85c\nd") == ["a␋b‹U+0085›c", "d"]


def test_a_tower_of_combining_marks_is_cut_down() -> None:
    assert clean("e" + "\u0301" * 500).count("\u0301") == 8


def test_a_cut_text_says_so_and_leaves_no_half_emoji() -> None:
    assert clean("abcdef", limit=4) == "abc…"
    assert clean("日本語", limit=4) == "日…"
    assert clean("x" * 10_000_000, limit=5) == "xxxx…"
    assert clean("ab👨\u200d👩cd", limit=5) == "ab👨\u200d👩…"


def test_fit_fills_cells_exactly() -> None:
    assert fit("日本", 6) == "日本  "
    assert fit("7", 3, right=True) == "  7"
    assert width(fit("日本語", 5)) == 5
