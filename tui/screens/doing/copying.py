"""The copy menu: what is selected as text, JSON, Markdown, curl, as a reference, as a test; and how it is sent off."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....tracer.errors import LooptapeError
from ...format import counted, octets, size
from ...messages import Answered
from ...outside import clipboard
from ...place import Place, Subject
from ..line import Line
from ..menu import Choice, Menu
from .desk import Desk
from .paths import folders

if TYPE_CHECKING:
    from ....replay.ci.as_test import Plan
    from ....tracer.store import Store

KINDS = ("value", "json", "markdown", "curl", "place", "test")
_KEYS = {"value": "y", "json": "J", "markdown": "m", "curl": "c", "place": "r", "test": "t"}


def offer(desk: Desk) -> None:
    """Ask what to copy of what is selected."""
    subject = desk.subject()
    choices = choices_of(subject)
    if not choices:
        desk.say("nothing to copy here")
        return
    Menu("copy", choices, verb="copy").ask(desk.app, lambda kind: copy_as(desk, subject, kind))


def choices_of(subject: Subject) -> list[Choice]:
    """The kinds there are of a subject; the first has the key that opened the menu, so that twice the key takes it."""
    place, found = subject.place, list[Choice]()
    if subject.value is not None:
        found.append(Choice("value", subject.what or "the value", note=size(octets(subject.value))))
    if place is not None:
        found.append(Choice("place", "where it is", note=place.written))
    if subject.json is not None:
        found.append(Choice("json", f"{subject.what or 'the value'} as JSON"))
    elif place is not None:
        found.append(Choice("json", f"{_kind(place)} as JSON"))
    if place is not None:
        found.append(Choice("markdown", f"{_kind(place)} as Markdown"))
        found.append(Choice("curl", "the request as curl", note="its key by name only"))
        found.append(Choice("test", "the run as a pytest test", note="writes a test and its tape"))
    return [replace(choice, key="y" if at == 0 else _KEYS[choice.id]) for at, choice in enumerate(found)]


def copy_as(desk: Desk, subject: Subject, kind: str) -> None:
    """Copy a subject as one of ``KINDS``."""
    place = subject.place
    if kind == "value" and subject.value is not None:
        desk.copy(subject.value, subject.what or "value")
    elif kind == "json" and subject.json is not None:
        desk.read(lambda: _as_json(desk, subject), "copy")
    elif place is None:
        desk.say("choose a run or a turn first")
    elif kind == "place":
        desk.copy(place.written)
    elif kind == "test":
        _ask_folder(desk, place)
    else:
        desk.read(lambda: _built(desk, place, kind), "copy")


def send(desk: Desk, text: str, what: str) -> None:
    """Copy a text in a thread and say which way it went."""
    home, env = desk.source.home, dict(os.environ)

    def job() -> Answered:
        try:
            sent = clipboard.put(text, home, env)
        except OSError as error:
            raise LooptapeError("no-clipboard", f"Nothing takes the copy, no file either: {error.strerror}") from None
        return Answered(partial(_arrived, desk, sent, what or text))

    desk.read(job, "copy")


def _arrived(desk: Desk, sent: clipboard.Sent, what: str) -> None:
    driver = desk.app._driver
    if sent.sequence and driver is not None:
        driver.write(sent.sequence)
    desk.say(f"{what}: {sent.said}")


def _kind(place: Place | None) -> str:
    return "the run" if place is None or place.turn is None else f"turn {place.turn}"


def _as_json(desk: Desk, subject: Subject) -> Answered:
    text = json.dumps(subject.json, indent=2, ensure_ascii=False)
    return Answered(lambda: desk.copy(text, f"{subject.what or 'value'} as JSON"))


def _built(desk: Desk, place: Place, kind: str) -> Answered:
    text = desk.source.ask(partial({"json": _json, "markdown": markdown_of, "curl": _curl}[kind], place))
    what = {"json": "JSON", "markdown": "Markdown", "curl": "curl"}[kind]
    return Answered(lambda: desk.copy(text, f"{place.written} as {what}"))


def _json(place: Place, store: Store) -> str:
    from ...told import json_shape

    shown: dict[str, Any] = {"version": 1, "run": json_shape.run(store.run(place.run))}
    shown["turns"] = [json_shape.turn(t) for t in store.turns(place.run, place.turn, place.turn)]
    return json.dumps(shown, indent=2, ensure_ascii=False)


def markdown_of(place: Place, store: Store) -> str:
    """A run or a turn as Markdown, cleaned."""
    from ....replay.export_markdown import markdown
    from ....replay.recording import load
    from ...safe_text import clean

    return markdown(load(store, store.run(place.run), place.turn, place.turn), partial(clean, multiline=True))


def _curl(place: Place, store: Store) -> str:
    from ....replay.export_curl import curl

    return curl(store, store.run(place.run), place.turn)


def _ask_folder(desk: Desk, place: Place) -> None:
    usual = "tests/" if Path("tests").is_dir() else "./"
    Line("folder of the test", usual, offers=folders).ask(
        desk.app, lambda folder: _plan_test(desk, place, Path(folder.strip() or ".").expanduser())
    )


def _plan_test(desk: Desk, place: Place, folder: Path) -> None:
    def job() -> Answered:
        from ....replay.ci.as_test import plan

        files = desk.source.ask(lambda store: plan(store.run(place.run), folder))
        return Answered(partial(_confirm, desk, place, files))

    desk.read(job, "copy")


def _confirm(desk: Desk, place: Place, files: Plan) -> None:
    if not files.there:
        _write_test(desk, place, files, replace=False)
        return
    there = f"{counted(len(files.there), 'file')} there already: {', '.join(str(p) for p in files.there)}"
    desk.app.push_screen(
        Menu(there, (Choice("no", "leave them as they are", "n"), Choice("yes", "replace them", "Y")), verb="take it"),
        lambda answer: _write_test(desk, place, files, replace=True) if answer == "yes" else None,
    )


def _write_test(desk: Desk, place: Place, files: Plan, *, replace: bool) -> None:
    def job() -> Answered:
        from ....replay.ci.as_test import write

        desk.source.ask(lambda store: write(store, store.run(place.run), files, replace=replace))
        return Answered(lambda: desk.say(f"wrote {files.module} and {files.tape}; run it: pytest {files.module}"))

    desk.read(job, "copy")
