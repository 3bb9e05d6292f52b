"""Texts under their hashes: redacted once, hashed once, written once."""

from __future__ import annotations

from . import tape
from .canonical import digest
from .redaction import redact

MAX_WRITTEN = 200_000
MAX_HASHED_CHARACTERS = 8 << 20


class Blobs:
    """Remembers which texts this process's journal already holds.

    Args:
        content: False keeps texts out of the records (`LOOPTAPE_CONTENT=none`): hash and length remain.
    """

    def __init__(self, *, content: bool = True) -> None:
        self.content = content
        self._written: set[str] = set()
        self._hashes: dict[str, str] = {}
        self._hashed = 0
        self.seen: dict[str, str] | None = None
        """Where somebody wants to know them: the redacted texts by hash, as far as they had to be looked at."""

    def put(self, records: list[tape.Record], text: str) -> str:
        """The hash of a text; its blob record is added to ``records`` when it was not written before."""
        key = self._hashes.get(text)
        if key is not None and key in self._written:
            return key
        clean = redact(text)
        key = digest(clean)
        if self.seen is not None:
            self.seen[key] = clean
        self._remember(text, key)
        if key not in self._written:
            if len(self._written) >= MAX_WRITTEN:
                self._written.clear()
            self._written.add(key)
            body = {"text": clean} if self.content else {"length": len(clean)}
            records.append({"kind": "blob", "hash": key, **body})
        return key

    def restart(self) -> None:
        """Earlier records may be missing: every text is written again when it is next used."""
        self._written.clear()

    def _remember(self, text: str, key: str) -> None:
        """The same text comes again (a system prompt, tools, a history that is sent anew): hash it once."""
        self._hashed += len(text)
        if self._hashed > MAX_HASHED_CHARACTERS:
            self._hashes.clear()
            self._hashed = len(text)
        self._hashes[text] = key
