"""Problems of replays as GitHub annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..reports.annotations import Note, commands
from .gate import Problem


def commands_of(problems: Sequence[Problem]) -> Iterator[str]:
    """A line each, for the step's output: the ten worst, then how many more."""
    notes = [Note(p.severity, f"{p.case}: {p.title}", p.text, p.file, p.line) for p in problems]
    return commands(notes, "problem", "the summary and the JUnit file have them")
