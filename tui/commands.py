"""The language of the command line: names, their values, what a line could become, what it means. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from ..tracer.errors import UsageError


@dataclass(frozen=True, slots=True)
class Command:
    """One thing that can be typed.

    Attributes:
        name: The word.
        help: What it does.
        key: The key that does the same.
        takes: What stands behind the word: ``RUN[:N]``; empty where nothing does.
        values: What it can be, if that is known; of several words (``FORMAT [PATH]``) the first.
        needed: It does nothing without a value.
        other: Another word for the same, that is not offered.
    """

    name: str
    help: str
    key: str = ""
    takes: str = ""
    values: tuple[str, ...] = ()
    needed: bool = True
    other: str = ""


@dataclass(frozen=True, slots=True)
class Becomes:
    """A line that another could become, with what it does and the key for it."""

    line: str
    help: str
    key: str = ""


def offers(line: str, commands: Sequence[Command], recent: Sequence[str] = ()) -> list[Becomes]:
    """What a line could become: first what begins like it, then what has its letters anywhere.

    Args:
        recent: Lines that were run, the last first; offered while nothing is typed.
    """
    text = line.lstrip()
    name, blank, value = text.partition(" ")
    if blank:
        known = next((c for c in commands if name in (c.name, c.other)), None)
        if known is None:
            return []
        found = _like(value.strip().casefold(), [(v, "") for v in known.values])
        said = f"{known.takes}: {known.help}" if known.takes else known.help
        return [Becomes(f"{name} {v}", known.help) for v, _ in found] or [Becomes(text, said, known.key)]
    begun = [Becomes(r, "typed before") for r in recent] if not text else []
    by_name = {c.name: c for c in commands}
    words = _like(text.casefold(), [(c.name, f"{c.help} {c.key}") for c in commands])
    return begun + [_becomes(by_name[word]) for word, _ in words]


def resolve(line: str, commands: Sequence[Command]) -> tuple[Command, str]:
    """The command that a line names, by its word or a beginning that only it has, and its value.

    Raises:
        UsageError: There is none, or several begin so, or its value is missing or unknown; names the nearest.
    """
    name, _, value = line.strip().partition(" ")
    value = value.strip()
    command = next((c for c in commands if name in (c.name, c.other)), None) or _begun(name, commands)
    if command.takes and command.needed and not value:
        known = f": {', '.join(command.values)}" if command.values else ""
        raise UsageError("no-value", f"{command.name} needs {command.takes}{known}")
    if not command.takes and value:
        raise UsageError("usage", f"{command.name} takes nothing behind it", f"Type {command.name}")
    return command, _whole(command, value) if command.values and value else value


def _whole(command: Command, value: str) -> str:
    """The value with its known word whole; that is all of it, or the first word where more stands behind."""
    word, blank, rest = value.partition(" ") if " " in command.takes else (value, "", "")
    if word not in command.values:
        alike = [v for v in command.values if v.casefold().startswith(word.casefold())]
        if len(alike) != 1:
            raise UsageError("bad-value", f"{command.name} {word}: unknown", _nearest(word, command.values))
        word = alike[0]
    return f"{word}{blank}{rest}"


def _begun(name: str, commands: Sequence[Command]) -> Command:
    alike = [c for c in commands if c.name.startswith(name)] if name else []
    if len(alike) == 1:
        return alike[0]
    if alike:
        words = ", ".join(c.name for c in alike[:6])
        raise UsageError("ambiguous", f"{name} may be {words}", "Type more of it")
    raise UsageError("no-command", f"There is no command {name!r}", _nearest(name, [c.name for c in commands]))


def _nearest(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word.casefold(), known, 1, 0.5)
    return f"Did you mean {close[0]}?" if close else "Tab shows what there is"


def _like(text: str, words: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those that begin with a text, then those that hold it, then those whose explanation does."""
    first = [w for w in words if w[0].casefold().startswith(text)]
    then = [w for w in words if w not in first and text in w[0].casefold()]
    last = [w for w in words if w not in first and w not in then and text in w[1].casefold()]
    return [*first, *then, *last]


def _becomes(command: Command) -> Becomes:
    line = f"{command.name} " if command.takes else command.name
    return Becomes(line, f"{command.takes}: {command.help}" if command.takes else command.help, command.key)
