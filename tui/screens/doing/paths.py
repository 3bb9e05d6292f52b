"""Paths as one types them: what is there to go on with."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..line import Offer

MOST = 200
"""Names that are offered at most."""


def folders(line: str) -> Sequence[Offer]:
    """Folders that the line could become."""
    return _inside(line, files=False)


def files(line: str) -> Sequence[Offer]:
    """Folders and files that the line could become."""
    return _inside(line, files=True)


def _inside(line: str, *, files: bool) -> Sequence[Offer]:
    head, _, begun = line.rpartition("/")
    folder = os.path.expanduser(f"{head}/" if head or line.startswith("/") else ".")
    found: list[Offer] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                is_folder = entry.is_dir()
                if entry.name.startswith(begun) and (is_folder or files) and (begun or not entry.name.startswith(".")):
                    before = f"{head}/" if "/" in line else ""
                    found.append(
                        Offer(f"{before}{entry.name}{'/' if is_folder else ''}", "" if is_folder else "there already")
                    )
                if len(found) >= MOST:
                    break
    except OSError:
        return ()
    return sorted((o for o in found if o.text != line), key=lambda o: o.text)
