"""Documents: where lines stand, what a row says, and that size costs little."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from looptape.tui.widgets.blocks import Body, Head
from looptape.tui.widgets.document import lay_out
from looptape.tui.widgets.json_text import coloured, pretty, pretty_text
from looptape.tui.widgets.wrapping import wrap


def rows(document, width: int) -> list[str]:
    layout = lay_out(document, width)
    return ["".join(t for t, _ in layout.row(y)) for y in range(layout.rows)]


def test_text_wraps_at_words_and_long_words_at_the_edge() -> None:
    assert rows((Body("the quick brown fox"),), 10) == ["the quick", "brown fox"]
    assert rows((Body("abcdefghijklm"),), 5) == ["abcde", "fghij", "klm"]


def test_headings_hang() -> None:
    assert rows((Head((("RESUME  ", "accent"), ("one two three", "dim")), hang=8),), 16) == [
        "RESUME  one two",
        "        three",
    ]


def test_wide_characters_never_pass_the_edge() -> None:
    for text in ("漢字テスト" * 20, "a漢" * 40, "👩‍👩‍👧" * 30, "é́́" * 100):
        for width in (1, 2, 5, 11):
            for row in wrap(((text, "text"),), width):
                assert cell_len("".join(t for t, _ in row)) <= max(width, 2)
            assert "".join(t for row in wrap(((text, "text"),), width) for t, _ in row) == text


@pytest.mark.parametrize("line", ["x" * 1_000_000, "漢" * 300_000, "word and " * 100_000, "é" * 200_000])
def test_a_huge_line_is_whole_and_its_end_can_be_read(line: str) -> None:
    layout = lay_out((Body(line + "END"),), 80)
    shown = "".join("".join(t for t, _ in layout.row(y)) for y in range(layout.rows))
    assert shown.rstrip().endswith("END")
    assert shown.replace(" ", "") == (line + "END").replace(" ", "")


def test_twenty_megabytes_are_laid_out_without_being_wrapped() -> None:
    body = "\n".join(f"line {i} " + "x" * 430 for i in range(45_000))
    layout = lay_out((Body(body),), 100)
    assert layout.rows == 45_000 * 5
    assert "line 44999" in "".join(t for t, _ in layout.row(layout.rows - 5))


def test_what_is_left_out_is_counted() -> None:
    assert rows((Body("\n".join("abcdef"), most=3),), 40) == ["a", "b", "c", "… 3 more lines"]
    assert rows((Body("a\nb\nc\nd", most=3),), 40) == ["a", "b", "c", "d"]
    assert "more characters" in rows((Body("y" * 10_000, most=3),), 4000)[-1]


def test_no_control_code_survives_and_no_line_is_lost() -> None:
    shown = rows((Body("a\x1b[2J\r\nb\x00\tc\x9b31m\nlone\ud83e"), Head((("t\x1b]0;x\x07", "dim"),))), 60)
    assert len(shown) == 4
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for line in shown for c in line)


def test_json_is_indented_and_small_values_stay_on_a_line() -> None:
    assert pretty({"a": 1, "b": [1, 2]}) == '{\n  "a": 1,\n  "b": [1, 2]\n}'
    assert pretty_text('{"a": 1}') == ('{"a": 1}', "json")
    assert pretty_text("plain") == ("plain", "")
    assert pretty_text('{"cut": ') == ('{"cut": ', "")
    assert pretty_text("[" * 100_000) == ("[" * 100_000, "")


def test_colouring_changes_no_character() -> None:
    for line in ('  "a\\"b": "c", 1.5, true', '"unclosed', "nothing", '{"a": [1, {"b": null}]}'):
        assert "".join(t for t, _ in coloured(line)) == line
    assert ('"a"', "key") in coloured('{"a": "a"}')
