"""Two texts side by side: which lines stand for each other, what is folded."""

from __future__ import annotations

import pytest

from looptape.replay.diff.side_lines import SideLine, beside, folded, side_lines


def shown(line: SideLine | int) -> str:
    if isinstance(line, int):
        return f"… {line}"
    marks = {"same": "", "removed": "-", "added": "+"}
    a, b = (None if side is None else "".join(marks[p.kind] + p.text for p in side) for side in (line.a, line.b))
    return f"{a} | {b}"


def test_a_line_that_came_does_not_move_those_below_it() -> None:
    lines = side_lines("one\ntwo\nthree", "one\nnew\ntwo\nthree")
    assert [shown(line) for line in lines] == ["one | one", "None | +new", "two | two", "three | three"]
    assert [line.same for line in lines] == [True, False, True, True]


def test_the_words_that_differ_are_marked_in_their_line() -> None:
    (line,) = side_lines("read the file", "read the folder")
    assert shown(line) == "read the -file | read the +folder"
    assert not line.same


@pytest.mark.parametrize(
    ("a", "b"),
    [("", ""), ("a", ""), ("", "a\nb"), ("a\n", "a"), ("a\n\n\nb", "a\nb"), ("x\ny", "y\nx"), ("a b\nc", "a c\nc\n")],
)
def test_both_texts_can_be_put_together_again(a: str, b: str) -> None:
    lines = side_lines(a, b)
    for text, side in ((a, "a"), (b, "b")):
        rows = [getattr(line, side) for line in lines]
        assert "\n".join("".join(p.text for p in row) for row in rows if row is not None) == text


def test_equal_stretches_fold_to_a_number_and_a_single_line_stays() -> None:
    text = [f"line {n}" for n in range(20)]
    other = [*text[:10], "another", *text[11:]]
    rows = folded(side_lines("\n".join(text), "\n".join(other)), 2)
    assert next(shown(r) for r in rows) == "… 8"
    assert [shown(r) for r in rows][-1] == "… 7"
    assert len(rows) == 7
    assert not any(isinstance(r, int) for r in folded(side_lines("a\nb\nc\nd", "a\nb\nX\nd"), 1))


def test_what_is_within_reach_of_a_difference_is_beside_it() -> None:
    assert beside([True, True, False, True, True, True], 1) == [False, True, True, True, False, False]
    assert beside([True, True], 5) == [False, False]
