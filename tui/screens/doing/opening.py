"""Handing the terminal to another program: $PAGER and $EDITOR for what is selected, the editor at the caller's line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from textual.app import SuspendNotSupported

from ....tracer.errors import LooptapeError
from ...messages import Answered
from ...outside import handover
from ...place import Place, Subject
from ...safe_text import clean
from ..menu import Choice, Menu
from .copying import markdown_of
from .desk import Desk

KINDS = ("pager", "editor", "caller")


def offer(desk: Desk) -> None:
    """Ask where to open what is selected."""
    subject = desk.subject()
    choices = choices_of(subject)
    if not choices:
        desk.say("nothing to open here")
        return
    Menu("open", choices, verb="open").ask(desk.app, lambda kind: open_in(desk, subject, kind))


def choices_of(subject: Subject) -> list[Choice]:
    """Where a subject can be opened; the key that opened the menu takes the first."""
    what = subject.what or "the value"
    if subject.value is None:
        place = subject.place
        if place is None:
            return []
        what = f"run {place.run}" if place.turn is None else f"turn {place.turn}"
    found = [Choice("pager", f"{what} in the pager", "o", _named("PAGER"))]
    found.append(Choice("editor", f"{what} in the editor", "e", _named("VISUAL", "EDITOR")))
    if subject.caller is not None:
        found.append(Choice("caller", "the line of the program that called", "c", subject.caller))
    return found


def open_in(desk: Desk, subject: Subject, kind: str) -> None:
    """Open a subject in one of ``KINDS``."""
    if kind == "caller":
        _open_caller(desk, subject)
    elif subject.value is not None:
        _show(desk, kind, subject.value, _file_name(subject))
    elif subject.place is not None:
        place = subject.place

        def job() -> Answered:
            text = desk.source.ask(partial(markdown_of, place))
            return Answered(lambda: _show(desk, kind, text, f"{place.written}.md"))

        desk.read(job, "open")


def hand_over(desk: Desk, command: Callable[[], list[str]], *, folder: Path | None = None) -> int | None:
    """Give the terminal to a program until it ends; its exit status, None when it could not be started.

    Says on the desk what went wrong; the screen comes back whatever happens.

    Args:
        command: Gives the words of the command; may raise LooptapeError.
        folder: Where it runs; here where it is None.
    """
    try:
        words = command()
        with desk.app.suspend():
            code = subprocess.run(words, cwd=folder, check=False).returncode
    except LooptapeError as error:
        desk.say(str(error))
    except SuspendNotSupported:
        desk.say("this screen cannot hand its terminal over")
    except OSError as error:
        desk.say(f"{words[0]} could not be started: {error.strerror}")
    else:
        if code:
            desk.say(f"{Path(words[0]).name} ended with {code}")
        return code
    return None


def _show(desk: Desk, kind: str, text: str, name: str) -> None:
    """A pager gets the text cleaned: what it prints goes to the terminal. An editor shows control codes itself."""
    if kind == "pager":
        text = clean(text, multiline=True)
    with handover.passing_file(text, name) as path:
        if kind == "pager":
            hand_over(desk, lambda: handover.pager(path, os.environ))
        else:
            hand_over(desk, lambda: handover.editor(path, None, os.environ))


def _open_caller(desk: Desk, subject: Subject) -> None:
    caller, place = subject.caller or "", subject.place

    def job() -> Answered:
        project = None if place is None else desk.source.ask(lambda store: store.run(place.run).project)
        path, line = handover.caller_place(caller, project)
        return Answered(lambda: _edit(desk, path, line))

    desk.read(job, "open")


def _edit(desk: Desk, path: Path, line: int) -> None:
    hand_over(desk, lambda: handover.editor(path, line, os.environ))


def _file_name(subject: Subject) -> str:
    ending = ".json" if subject.json is not None else ".txt"
    where = "" if subject.place is None else f"{_short(subject.place)}-"
    return f"{where}{subject.what or 'value'}"[:80] + ending


def _short(place: Place) -> str:
    return place.run[:8] if place.turn is None else f"{place.run[:8]}-{place.turn}"


def _named(*variables: str) -> str:
    """The program that a variable names, or how the variable is called."""
    found = next((os.environ[v].strip() for v in variables if os.environ.get(v, "").strip()), "")
    return found or f"${variables[-1]}"
