"""What reaches stdout and stderr, and with which exit code."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import click
import pytest

from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tui import report
from looptape.tui.report import Column, Styled


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def raiser(error: BaseException) -> Callable[[], object]:
    def work() -> object:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UsageError("x", "there is no run 'a'", "Nearest: b"), 2, "looptape: there is no run 'a'. Nearest: b\n"),
        (LooptapeError("x", "the store is held\x1b[2J"), 3, "looptape: the store is held␛[2J\n"),
        (click.UsageError("No such option: --x"), 2, "looptape: No such option: --x. See looptape --help\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 0, ""),
        (
            ValueError("a\nb"),
            1,
            "looptape: something went wrong inside looptape (ValueError: a↵b). LOOPTAPE_DEBUG=1 shows where\n",
        ),
    ],
)
def test_every_end_has_its_code_and_at_most_one_line(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOOPTAPE_DEBUG", raising=False)
    monkeypatch.setattr(report, "_close_quietly", lambda: None)
    assert report.guard(raiser(error)) == code
    assert capsys.readouterr() == ("", line)


@pytest.mark.parametrize(
    ("env", "terminal", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colour_follows_terminal_and_environment(
    env: dict[str, str], terminal: bool, colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    report.out("a ", Styled("b\x1b[2J", "bad"))
    assert stream.getvalue() == ("a \x1b[31mb␛[2J\x1b[0m\n" if colour else "a b␛[2J\n")


def test_a_table_aligns_numbers_right_and_is_whole_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    report.table([Column("run", grow=True), Column("turns", right=True)], [["日本" * 40, "7"], ["a\nb", "1,904"]])
    head, wide, narrow = capsys.readouterr().out.splitlines()
    assert head.startswith("run")
    assert head.endswith("  turns")
    assert wide == "日本" * 40 + "      7"
    assert narrow.startswith("a↵b ")
    assert narrow.endswith("  1,904")


def test_a_table_is_cut_to_the_terminal_with_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    report.table([Column("run", grow=True), Column("n", right=True)], [["x" * 100, "7"]])
    row = screen.getvalue().splitlines()[1]
    assert len(row) == 40
    assert "…" in row
    assert row.endswith(" 7")


def test_json_is_one_object_without_control_codes_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    odd = {"a": "\x1b\x9b\x7f\u202e\ud83e", "nan": float("nan")}
    report.data({"odd": odd})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert printed.count("\n") == 1
    assert printed[:-1].isprintable()
    assert json.loads(printed) == {"version": 1, "odd": {**odd, "nan": "nan"}}
