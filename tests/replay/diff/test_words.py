"""Word by word: the stretches make both texts again, a cut text is known as cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looptape.replay.diff.words import Run, hunks, truncated, words

texts = st.lists(st.sampled_from(["the ", "cat ", "sat", "\n", ", ", "on", " ", "é"]), max_size=30).map("".join)


def sides(runs: list[Run]) -> tuple[str, str]:
    left = "".join(r.text for r in runs if r.kind != "added")
    return left, "".join(r.text for r in runs if r.kind != "removed")


@given(texts, texts)
def test_the_stretches_make_both_texts_again(a: str, b: str) -> None:
    assert sides(words(a, b)) == (a, b)


@given(texts, texts)
def test_so_they_do_when_lines_are_compared_first(a: str, b: str) -> None:
    a, b = a + "line\n" * 500, "line\n" * 500 + b
    assert sides(words(a, b)) == (a, b)


def test_only_the_changed_words_are_marked() -> None:
    found = words("The order was 79.90, so wait.", "The order was 89.90, so wait.")
    assert [(r.kind, r.text) for r in found if r.kind != "same"] == [("removed", "79"), ("added", "89")]


def test_one_word_in_a_long_text_is_found_among_its_lines() -> None:
    lines = [f"line {n} of a long prompt" for n in range(2000)]
    other = [*lines[:1000], lines[1000].replace("long", "short"), *lines[1001:]]
    found = [(r.kind, r.text) for r in words("\n".join(lines), "\n".join(other)) if r.kind != "same"]
    assert found == [("removed", "long"), ("added", "short")]


def test_long_equal_stretches_are_shortened_and_say_so() -> None:
    found = hunks(words("a " * 500 + "x" + " b" * 500, "a " * 500 + "y" + " b" * 500))
    assert [r.kind for r in found] == ["same", "removed", "added", "same"]
    assert found[0].text.startswith("…")
    assert found[-1].text.endswith("…")
    assert len(found[0].text) < 50


@pytest.mark.parametrize(
    ("a", "b", "cut"),
    [
        ("word " * 200, "word " * 50, True),
        ("word " * 200, "word " * 50 + "... [750 characters truncated]", True),
        ("".join(map(str, range(500))), "".join(map(str, range(80))) + " [cut] " + "498499", True),
        ("a long answer with words", "other words", False),
        ("word " * 20, "word " * 30, False),
        ("So far: nothing. Left to do: all", "Two months are left", False),
        ("all", "", False),
        ("go zero", "go one", False),
        ("delete 10 files", "delete 9 files", False),
        ("delete 10 files", "delete 1 files", False),
        ("delete 10 files", "delete 10", True),
    ],
    ids=["beginning", "mark", "middle", "other", "longer", "ending", "empty", "word", "figure", "digit", "short"],
)
def test_a_cut_text_is_known(a: str, b: str, cut: bool) -> None:
    assert truncated(a, b) is cut
