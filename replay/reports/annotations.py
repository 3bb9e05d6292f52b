"""Notes as GitHub annotations: the ten worst, then how many more; no recorded text can start a command of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

MOST = 10
"""GitHub shows ten errors and ten warnings of a step."""

Level = Literal["error", "warning", "notice"]


@dataclass(frozen=True, slots=True)
class Note:
    """One annotation. ``file`` (from the root of the repository) and ``line`` where it belongs to a place."""

    level: Level
    title: str
    text: str
    file: str | None = None
    line: int | None = None


def commands(notes: Sequence[Note], noun: str, where: str) -> Iterator[str]:
    """A line each, for the step's output, the worst first; the last line tells how many more there are.

    Args:
        noun: What they are, in the singular (``finding``).
        where: Where all of them stand (``the summary and the JUnit file have them``).
    """
    for note in notes[:MOST]:
        given = {"file": note.file, "line": note.line if note.file else None, "title": note.title}
        places = ",".join(f"{k}={_property(str(v))}" for k, v in given.items() if v is not None)
        yield f"::{note.level} {places}::{_data(note.text)}"
    more = len(notes) - MOST
    if more > 0:
        plural = noun if more == 1 else f"{noun}s"
        yield f"::notice title=looptape::{more} more {plural}, {len(notes)} in all; {where}"


def _data(text: str) -> str:
    """The message of a workflow command."""
    return _lines(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _lines(text: str) -> str:
    """Every kind of line end as one that is escaped, and no control code beside it."""
    joined = "\n".join(text.splitlines())
    return "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in joined)
