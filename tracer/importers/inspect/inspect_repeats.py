"""By what the messages of an Inspect log are known again: requests repeat the whole conversation, digests stand for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from . import inspect_messages as said
from .inspect_parts import Listed

_MEMORY = 200_000


class Keys:
    """Digests of messages as the model saw them. A message that comes again is not put together again.

    Args:
        pool: Messages that requests name by their ranges.
        converted: A message in the words of the chat API, attachments put back.
    """

    def __init__(self, pool: Listed, converted: Callable[[Any], dict[str, Any]]) -> None:
        self._pool = pool
        self._converted = converted
        self._known: dict[bytes, bytes] = {}
        self._pooled: dict[int, bytes | None] = {}

    def of(self, given: dict[str, Any]) -> bytes:
        """Of a message as the log has it."""
        raw = digest(given)
        found = self._known.get(raw)
        if found is None:
            if len(self._known) >= _MEMORY:
                self._known.clear()
            found = self._known[raw] = digest(self._converted(given))
        return found

    def of_pool(self, refs: Any) -> Iterator[tuple[bytes, int]]:
        """Digest and index of each message that ranges of the pool name."""
        for index in said.expanded(refs, len(self._pool)):
            if index not in self._pooled:
                given = self._pool.at(index)
                self._pooled[index] = None if given is None else digest(self._converted(given))
            key = self._pooled[index]
            if key is not None:
                yield key, index


def digest(message: Any) -> bytes:
    """What equal messages have in common."""
    return hashlib.blake2b(said.dumps(message).encode("utf-8", "surrogatepass"), digest_size=16).digest()
