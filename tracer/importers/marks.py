"""Where files that are followed were read last: one small file each, in the folder ``followed`` of the store directory."""

from __future__ import annotations

import json
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from .. import paths
from ..canonical import stable_id
from .growth import Mark

KEPT_DAYS = 7  # a session that nobody added to for so long is read whole when it goes on after all


def load(path: Path, home: Path | None = None) -> Mark | None:
    """The mark of a file; None when there is none, or none that can be read."""
    try:
        facts, _, state = _place(path, home).read_bytes().partition(b"\n")
        return Mark(**json.loads(facts), state=state)
    except (OSError, ValueError, TypeError):
        return None


def save(path: Path, mark: Mark | None, home: Path | None = None) -> None:
    """Keeps a mark in place of the one before; None removes that. Raises OSError."""
    place = _place(path, home)
    if mark is None or _is_old(path):
        place.unlink(missing_ok=True)
        return
    paths.make_private(place.parent)
    facts = {name: value for name, value in asdict(mark).items() if name != "state"}
    number, new = tempfile.mkstemp(prefix=f"{place.stem}-", suffix=".new", dir=place.parent)  # another may save it too
    try:
        with open(number, "wb") as file:
            file.write(json.dumps(facts).encode() + b"\n" + mark.state)
        os.replace(new, place)
    except BaseException:
        os.unlink(new)
        raise


def tidy(home: Path | None = None) -> None:
    """Lets marks go that nobody renewed for a week. Never raises."""
    before = time.time() - KEPT_DAYS * 86_400
    try:
        for entry in os.scandir(_folder(home)):
            with suppress(FileNotFoundError):  # another process tidies too
                if entry.stat().st_mtime < before:
                    os.unlink(entry.path)
    except OSError:
        pass


def _is_old(path: Path) -> bool:
    return path.stat().st_mtime < time.time() - KEPT_DAYS * 86_400


def _place(path: Path, home: Path | None) -> Path:
    return _folder(home) / f"{stable_id(str(path.absolute()))}.mark"


def _folder(home: Path | None) -> Path:
    return (home or paths.home()) / "followed"
