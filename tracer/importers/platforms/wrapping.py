"""What exports of tracing products come wrapped in: JSON lines, a list, one object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..context import Source
from ..document import document, glimpse
from ..reading import first_objects
from ..reading import objects as objects_of_lines
from ..report import Notes


def first(head: bytes) -> dict[str, Any]:
    """The first object of a file that begins so, perhaps cut; empty when it has none."""
    value = glimpse(head)
    if isinstance(value, list):
        value = value[0] if value else None
    if value is None:
        value = next(iter(first_objects(head)), None)
    return value if isinstance(value, dict) else {}


def objects(source: Source, notes: Notes) -> Iterator[dict[str, Any]]:
    """The objects of a file, of whichever form; what is none is noted."""
    start = source.head().lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"{") and len(first_objects(start)) > 1:
        yield from (value for _, value in objects_of_lines(source.lines(), notes))
        return
    value = document(source, notes)
    for number, item in enumerate(value if isinstance(value, list) else [] if value is None else [value], 1):
        if isinstance(item, dict):
            notes.counts["objects"] += 1
            yield item
        else:
            notes.skip(1, f"element {number} is no object")
