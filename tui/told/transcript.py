"""A run as plain text on stdout: per turn its head, what came in, thinking, words, calls and results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ...replay.recording import Recording
from ...tracer.model import Run, Turn
from ...tracer.observers import STATE
from .. import report
from ..report import Styled
from ..safe_text import clean
from . import telling
from .telling import Call, Line, Passage, Said


def show_run(recording: Recording, *, whole: bool = False) -> None:
    """Prints the head of the run and every loaded turn; ``whole``: nothing is shortened."""
    show_head(recording.run)
    for event in recording.events:
        if event.turn is None and event.kind != STATE:
            _print([telling.of_event(event)], whole)
    for turn in recording.turns:
        report.out()
        show_turn(recording, turn, whole=whole)


def show_head(run: Run) -> None:
    """Three lines: what run this is, how it ended, what it used."""
    _print(telling.of_run(run), False)


def show_turn(recording: Recording, turn: Turn, *, whole: bool = False) -> None:
    """Prints one turn; ``whole``: nothing is shortened, every figure is said."""
    _print(telling.of_turn(recording, turn, figures=whole), whole)


def subtitle(run: Run) -> Styled:
    """The line over a part of a run: which run this is."""
    return Styled(f"{run.id}  {clean(run.name or run.title or '', limit=telling.TITLE)}", "dim")


def json_block(value: Any) -> str:
    """Any JSON value, indented."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def _print(said: Iterable[Said], whole: bool) -> None:
    for item in said:
        if isinstance(item, Passage):
            _passage(item, whole)
        else:
            _line(item.line(whole=whole) if isinstance(item, Call) else item)


def _line(line: Line) -> None:
    report.out(" " * line.indent, *line.parts)


def _passage(passage: Passage, whole: bool) -> None:
    shown = passage.text if whole else passage.shortened
    indent, pad, style = " " * passage.indent, " " * len(passage.mark), passage.style
    for index, row in enumerate(shown.rstrip("\n").split("\n")):
        row = row.rstrip("\r").expandtabs(4)
        if row or index == 0:
            report.out(indent, passage.mark if index == 0 else pad, Styled(row, style) if style else row)
        else:
            report.out()
    if len(shown) < len(passage.text):
        left = len(passage.text) - len(shown)
        report.out(indent, pad, Styled(f"… {left:,} more characters: {passage.more}", "dim"))
