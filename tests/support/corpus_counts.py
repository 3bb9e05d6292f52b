"""Files of one corpus format with the counts that were made of them by other means."""

from __future__ import annotations

import json
from typing import Any

from testdata import folder


def entries(name: str) -> list[dict[str, Any]]:
    """The manifest's entries of a format; none when the corpus is not here."""
    place = folder("corpus")
    if place is None:
        return []
    files = json.loads((place / "MANIFEST.json").read_text())["files"]
    return [f for f in files if f["format"] == name]
