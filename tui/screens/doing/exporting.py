"""The export menu: a run or a turn into a file, in the forms of `looptape export`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...format import octets, size
from ...messages import Answered
from ...outside.export_files import file_name, write_texts
from ...outside.export_forms import FORMS, write
from ...place import Subject
from ..line import Line
from ..menu import Choice, Menu
from .desk import Desk
from .paths import files

if TYPE_CHECKING:
    from ....tracer.store import Store

_SAID = {
    "tape": ("t", "the run itself, to import anywhere"),
    "ci-tape": ("c", "the run as a test's tape, with its transcript"),
    "markdown": ("m", "text for an issue or a review"),
    "html": ("h", "one page to read, send, print"),
    "messages": ("s", "the request as the provider's JSON"),
    "otlp": ("o", "OpenTelemetry spans"),
    "atif": ("a", "an ATIF trajectory"),
}
"""The forms offered, each with its letter and what it is. Rows (parquet, csv) are the command line's."""
KINDS = ("value", *_SAID)


def offer(desk: Desk) -> None:
    """Ask for a form, then for a file."""
    subject = desk.subject()
    place = subject.place
    if place is None:
        desk.say("choose a run or a turn first")
        return
    choices = choices_of(subject)
    title = f"export {place.run}" if place.turn is None else f"export turn {place.turn}"
    Menu(title, choices, verb="export").ask(desk.app, lambda form: ask_file(desk, subject, form))


def choices_of(subject: Subject) -> list[Choice]:
    """The forms there are of a subject; the key that opened the menu takes the first of a value."""
    place = subject.place
    if place is None:
        return []
    choices = []
    if subject.value is not None:
        choices.append(Choice("value", f"{subject.what or 'the value'} as it is", "e", size(octets(subject.value))))
    for form, (key, text) in _SAID.items():
        whole = FORMS[form].whole and place.turn is not None
        choices.append(Choice(form, f"{form}: {text}", key, "the whole run" if whole else ""))
    return choices


def export(desk: Desk, subject: Subject, form: str, path: str) -> None:
    """Write a file; asks before it takes the place of one that is there."""
    target = Path(path.strip()).expanduser()
    if not path.strip() or target.is_dir():
        target = target / _usual(subject, form)
    if not target.exists():
        _write(desk, subject, form, target)
        return
    choices = (
        Choice("no", "leave it as it is", "n"),
        Choice("other", "another name", "o"),
        Choice("yes", "replace it", "Y"),
    )
    after: dict[str, Callable[[], None]] = {
        "no": lambda: None,
        "other": lambda: ask_file(desk, subject, form, str(target)),
        "yes": lambda: _write(desk, subject, form, target),
    }
    Menu(f"{target} is there already", choices).ask(desk.app, lambda answer: after[answer]())


def ask_file(desk: Desk, subject: Subject, form: str, value: str = "") -> None:
    """Ask for the file, then write it."""
    line = Line(f"export {form} to", value or _usual(subject, form), offers=files)
    line.ask(desk.app, lambda path: export(desk, subject, form, path))


def _write(desk: Desk, subject: Subject, form: str, target: Path) -> None:
    place, value = subject.place, subject.value

    def question(store: Store) -> None:
        from ....replay.reference import Found

        if place is not None:
            turn = None if FORMS[form].whole else place.turn
            write(target, form, Found(store.run(place.run), store, turn, turn))

    def job() -> Answered:
        if form == "value" and value is not None:
            write_texts(target, iter([value]))
        else:
            desk.source.ask(question)
        wrote = target.stat().st_size
        return Answered(lambda: desk.say(f"wrote {os.path.abspath(target)} ({size(wrote)})"))

    desk.say(f"writing {target} …")
    desk.read(job, "export")


def _usual(subject: Subject, form: str) -> str:
    place = subject.place
    run = "looptape" if place is None else file_name(place.run)
    if form == "value":
        turn = "" if place is None or place.turn is None else f"-{place.turn}"
        what = re.sub(r"[^A-Za-z0-9._-]+", "-", subject.what or "value").strip("-.")[:60]
        return f"{run}{turn}-{what or 'value'}{'.json' if subject.json is not None else '.txt'}"
    turn = "" if FORMS[form].whole or place is None or place.turn is None else f"-{place.turn}"
    return f"{run}{turn}{FORMS[form].ending}"
