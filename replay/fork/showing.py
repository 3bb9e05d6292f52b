"""What edits change, as a unified diff of the request written out path by path."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any

from .draft import Draft

_AROUND = 2
_INLINE = 100


def diff(before: Draft, after: Draft) -> list[str]:
    """Lines of a unified diff, ``---`` and ``+++`` with the turn's name; empty when nothing is changed."""
    old, new = list(lines(before, kept=after.response is not None)), list(lines(after, kept=after.response is not None))
    name = f"{before.run}:{before.number}"
    return list(difflib.unified_diff(old, new, name, f"{name} edited", lineterm="", n=_AROUND))


def lines(draft: Draft, *, kept: bool = False) -> Iterator[str]:
    """A draft as lines ``path: value``; a text of several lines stands indented below its path.

    Args:
        kept: Write turn N's answer and results too.
    """
    body = draft.body
    key = draft.list_key
    for name in sorted(k for k in body if k != key):
        yield from _at(name, body[name])
    for place, message in enumerate(draft.messages, 1):
        yield from _at(f"messages[{place}]", message)
    if not kept:
        return
    where = f"turn[{draft.number}]"
    yield from _at(f"{where}.response", draft.response if draft.response is not None else draft.turn.response)
    for place, call in enumerate((c for c in draft.turn.tool_calls if c.origin != "provider"), 1):
        known = draft.results.get(call.id)
        yield from _at(f"{where}.calls[{place}].result", call.result if known is None else known.content)


def _at(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _at(f"{path}.{key}", inner)
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value, 1):
            yield from _at(f"{path}[{place}]", inner)
    elif isinstance(value, str) and ("\n" in value or len(value) > _INLINE):
        yield f"{path}:"
        yield from (f"  {line}" for line in value.splitlines())
    else:
        yield f"{path}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
