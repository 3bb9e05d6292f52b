"""The O menu: how the session goes on in its own tool: run here, copied, or only shown."""

from __future__ import annotations

import os
import shutil
import textwrap
from pathlib import Path

from ...messages import Answered
from ...outside.resume import Resume, resume_of
from ..menu import Choice, Menu
from .desk import Desk
from .opening import hand_over


def offer(desk: Desk) -> None:
    """Find out how the run of what is selected is gone on with, and ask what to do with the command."""
    place = desk.subject().place
    if place is None:
        desk.say("choose a run first")
        return
    run = place.run

    def job() -> Answered:
        found = desk.source.ask(lambda store: resume_of(store, store.run(run), os.environ))
        return Answered(lambda: _ask(desk, found))

    desk.read(job, "resume")


def choices_of(found: Resume) -> list[Choice]:
    """What can be done with a command; what one should know of it stands below."""
    copied, shown = Choice("copy", "copy the command", "y"), Choice("show", "only show it", "s")
    notes = [Choice("show", note) for note in found.notes]
    if found.obstacle:
        return [copied, shown, Choice("run", f"not run here: {found.obstacle}", "r"), *notes]
    return [
        Choice("run", f"run it here; {found.command[0]} has the terminal until it ends", "r"),
        copied,
        shown,
        *notes,
    ]


def _ask(desk: Desk, found: Resume) -> None:
    if not found.command:
        desk.say(found.notes[0])
        return
    Menu(found.text, choices_of(found), verb="do it").ask(desk.app, lambda choice: _do(desk, found, choice))


def _do(desk: Desk, found: Resume, choice: str) -> None:
    if choice == "copy":
        desk.copy(found.text)
    elif choice == "show":
        room = max(20, desk.app.size.width - 24)
        lines = textwrap.wrap(found.text, room, break_on_hyphens=False, drop_whitespace=False)
        desk.app.push_screen(Menu(found.tool, [Choice("", line) for line in lines], verb="close"))
    elif found.obstacle:
        desk.say(f"{found.obstacle}; the command is {found.text}")
    else:
        program = shutil.which(found.command[0]) or found.command[0]
        hand_over(desk, lambda: [program, *found.command[1:]], folder=Path(found.folder) if found.folder else None)
