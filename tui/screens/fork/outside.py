"""A text in $EDITOR and back: through a private file that is gone afterwards."""

from __future__ import annotations

import os

from ....replay.fork.parts import Part
from ...outside import handover
from ..doing.desk import Desk
from ..doing.opening import hand_over


def edited_outside(desk: Desk, part: Part, text: str) -> str | None:
    """The text as the editor left it; None when it could not be opened, failed, or left no text.

    A line end that the editor put behind the last line, where there was none, is not the user's.
    """
    with handover.passing_file(text, part.title + (".json" if part.json else ".txt")) as path:
        if hand_over(desk, lambda: handover.editor(path, None, os.environ)) != 0:
            return None
        try:
            edited = path.read_bytes().decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError):
            desk.say("the editor left no UTF-8 text: nothing is taken")
            return None
    if edited.endswith("\n") and not text.endswith("\n"):
        edited = edited[:-2] if edited.endswith("\r\n") and "\r\n" in text else edited[:-1]
    return edited
