"""What a replay hands to the processes of a program: which tape, how to replay it, where to tell what happened."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...tracer.errors import LooptapeError
from ...tracer.settings import effective
from ..player.settings import ReplaySettings, from_json

VARIABLE = "LOOPTAPE_REPLAY"
"""Names the hand-over file in the environment of a program that is replayed."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A replay as its processes see it.

    Attributes:
        tape: The recording, a tape file.
        events: Folder where each process writes what happened in it.
        settings: How the replay is to be done.
    """

    tape: Path
    events: Path
    settings: ReplaySettings

    def write(self, file: Path) -> Path:
        """Writes the hand-over file."""
        # "closed" is for a Python that lacks looptape: its sitecustomize knows no settings
        parts = {
            "closed": self.settings.is_closed,
            "tape": str(self.tape),
            "events": str(self.events),
            "settings": json.loads(self.settings.to_json()),
        }
        file.write_text(json.dumps({"version": 1, **parts}), "utf-8")
        return file


def read(file: Path) -> Spec:
    """The replay of a hand-over file.

    Raises:
        LooptapeError: It is not there, or of another version.
    """
    try:
        given = json.loads(file.read_text("utf-8"))
        if given["version"] != 1:
            raise ValueError(f"version {given['version']}")
        settings = from_json(json.dumps(given["settings"]))
        return Spec(Path(given["tape"]), Path(given["events"]), settings)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LooptapeError(
            "bad-hand-over",
            f"{VARIABLE} names {file}, which cannot be read ({type(error).__name__}: {error})",
            f"The replay that made it is over: unset {VARIABLE}",
        ) from None


def normalisers(given: Sequence[str] = ()) -> tuple[str, ...]:
    """The user's normalisers: those of the settings, then these. Modules of the working directory can be named."""
    said = [part for part in str(effective()["normalisers"].value).split(",") if part]
    found = tuple(dict.fromkeys((*said, *given)))
    if found and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return found


def opened(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Ids of the runs that a replay opened, in order."""
    return list(dict.fromkeys(str(e["run"]) for e in events if e.get("event") == "opened"))
