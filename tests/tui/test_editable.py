"""Texts in an editor on the screen: nothing raw in them, everything back exactly."""

from __future__ import annotations

import json
import random

import pytest
from textual.document._document import Document

from looptape.tui.outside.editable import editable
from looptape.tui.safe_text import clean
from tui_fakes import EVIL, HOSTILE

PIECES = [*"ab \n\t\r‹U+›0041\x1b\u200d\ufe0f❤👩\u202e\u0300é\ud83e\U000e0041\u2028\x85\x0b", "\r\n"]


def through_the_editor(text: str, *, as_json: bool = False) -> str:
    """A text as it comes back from a TextArea that nobody typed into."""
    given = editable(text, json=as_json)
    held = Document(given.text).text
    assert held == given.text
    assert clean(held, multiline=True) == held.expandtabs(4)  # nothing in it needs cleaning
    return given.back(held)


@pytest.mark.parametrize("text", [*HOSTILE, EVIL, "", "\n", "a\r\nb\r\n", "a\r\nb\n", "‹U+0041›"], ids=range(len(HOSTILE) + 6))  # fmt: skip
def test_what_nobody_typed_into_comes_back_exactly(text: str) -> None:
    assert through_the_editor(text) == text


def test_any_text_comes_back_exactly() -> None:
    chance = random.Random(7)
    for _ in range(3000):
        text = "".join(chance.choice(PIECES) for _ in range(chance.randrange(25)))
        assert through_the_editor(text) == text
        value = json.dumps({text: [text]}, ensure_ascii=False, indent=2)
        assert json.loads(through_the_editor(value, as_json=True)) == {text: [text]}


def test_characters_that_must_not_reach_a_terminal_stand_there_by_name() -> None:
    assert editable("a\x1b[2Jb\u202e").text == "a‹U+001B›[2Jb‹U+202E›"
    assert editable('"\u202e\U000e0041"', json=True).text == '"\\u202e\\udb40\\udc41"'
    assert editable("👩\u200d💻 \u0645\u06cc\u200c\u062e").text == "👩\u200d💻 \u0645\u06cc\u200c\u062e"


def test_lines_that_ended_with_carriage_returns_do_so_again() -> None:
    given = editable("one\r\ntwo")
    assert given.text == "one\ntwo"
    assert given.back("one\ntwo\nthree") == "one\r\ntwo\r\nthree"


def test_what_is_pasted_is_cleaned_and_meant() -> None:
    given = editable("")
    held = given.pasted("x\r\ny\x1b]52;c;ZXZpbA==\x07")
    assert held == "x\ny‹U+001B›]52;c;ZXZpbA==‹U+0007›"
    assert given.back(held) == "x\ny\x1b]52;c;ZXZpbA==\x07"


def test_a_name_of_no_character_is_left_alone() -> None:
    assert editable("").back("‹U+FFFFFF›") == "‹U+FFFFFF›"
