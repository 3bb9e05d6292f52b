"""The language of the command line: completion, beginnings, values, and the nearest word when there is none."""

from __future__ import annotations

import pytest

from looptape.tracer.errors import UsageError
from looptape.tui.commands import Command, offers, resolve

KNOWN = [
    Command("open", "a run", takes="RUN[:N]"),
    Command("theme", "the colours", "T", "NAME", ("dark", "light")),
    Command("filter", "only these", "/", "TEXT", needed=False),
    Command("sort", "by a column", "s"),
    Command("save", "a picture"),
    Command("quit", "leave", other="q"),
    Command("export", "to a file", "e", "FORMAT [PATH]", ("tape", "html"), needed=False),
]


def lines(text: str, recent: tuple[str, ...] = ()) -> list[str]:
    return [o.line for o in offers(text, KNOWN, recent)]


def test_nothing_typed_offers_what_was_run_and_then_everything() -> None:
    assert lines("", ("theme dark",)) == ["theme dark", "open ", "theme ", "filter ", "sort", "save", "quit", "export "]


def test_letters_offer_what_begins_so_then_what_has_them_then_what_says_them() -> None:
    assert lines("s")[:2] == ["sort", "save"]
    assert lines("o")[0] == "open "
    assert "theme " in lines("colour")


def test_behind_a_command_its_values_are_offered() -> None:
    assert lines("theme ") == ["theme dark", "theme light"]
    assert lines("theme l") == ["theme light"]
    assert offers("open 3f", KNOWN)[0].help == "RUN[:N]: a run"
    assert lines("nonsense x") == []


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("sort", "sort", ""),
        ("  so ", "sort", ""),
        ("q", "quit", ""),
        ("theme light", "theme", "light"),
        ("theme d", "theme", "dark"),
        ("open last:7", "open", "last:7"),
        ("filter error:yes since:7d", "filter", "error:yes since:7d"),
        ("filter", "filter", ""),
        ("export", "export", ""),
        ("export h a b.html", "export", "html a b.html"),
    ],
)
def test_a_line_means_a_command_and_its_value(line: str, name: str, value: str) -> None:
    command, got = resolve(line, KNOWN)
    assert (command.name, got) == (name, value)


@pytest.mark.parametrize(
    ("line", "what", "cure"),
    [
        ("srot", "There is no command 'srot'", "Did you mean sort?"),
        ("xyzzy", "There is no command", "Tab shows"),
        ("s", "s may be sort, save", "Type more"),
        ("open", "open needs RUN[:N]", ""),
        ("theme blue", "theme blue: unknown", "Tab shows"),
        ("theme lihgt", "theme lihgt: unknown", "Did you mean light?"),
        ("sort x", "sort takes nothing", ""),
        ("theme light x", "theme light x: unknown", "Did you mean light?"),
        ("export htm1 x", "export htm1: unknown", "Did you mean html?"),
    ],
)
def test_what_cannot_be_meant_names_the_nearest(line: str, what: str, cure: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(line, KNOWN)
    assert what in caught.value.what
    assert cure in (caught.value.cure or "")
