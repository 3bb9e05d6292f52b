"""Histories decoded once, although every call of a conversation repeats the whole of it as JSON text."""

from __future__ import annotations

from typing import Any

from .blocks import Conversation, from_parts
from .wire import nested

_HEAD = 200  # characters by which a conversation is found in another trace
_MOST = 4  # texts kept of one trace, or of one beginning


class Histories:
    """The message lists that were read so far. A text that begins with one of them needs only its rest decoded.

    Messages that two calls share are the same objects: nobody may change them.
    """

    def __init__(self) -> None:
        self._known: dict[str | None, list[tuple[str, Conversation]]] = {}

    def read(self, trace: str | None, value: Any) -> Conversation:
        """The conversation of GenAI messages (`from_parts`), decoded or as JSON text."""
        if not isinstance(value, str) or not value.startswith("["):
            return from_parts(value)
        places = (trace, value[:_HEAD])
        found = None
        for text, said in (one for place in places for one in reversed(self._known.get(place, ()))):
            found = _continued(value, text, said)
            if found is not None:
                break
        if found is None:
            found = from_parts(value)
        if value.endswith("]") and not found.cut:
            for place in places:
                kept = self._known.setdefault(place, [])
                kept.append((value, found))
                del kept[:-_MOST]
        return found


def _continued(value: str, text: str, said: Conversation) -> Conversation | None:
    """The conversation of ``value``, which begins as the list ``text`` does; None when it does not.

    A list without its last bracket is whole values: where a comma follows, what comes is the list's next value.
    """
    size = len(text) - 1
    if len(value) <= size or not value.startswith(text[:size]):
        return None
    rest = value[size:].lstrip()
    if rest == "]":
        return said
    if not rest.startswith(","):
        return None
    more = nested("[" + rest[1:])
    return from_parts(more, said.copy()) if isinstance(more, list) else None
