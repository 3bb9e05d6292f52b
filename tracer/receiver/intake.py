"""What came in, whichever way: decoded, cleaned, written to the journal, counted; only then acknowledged."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import otlp, settings, tape
from ..journal import Journal
from ..redaction import redact
from .decoding import from_json, from_protobuf, message_classes
from .refusal import Refused, varint

_AGAIN = 5.0  # seconds until a journal that was full is tried anew
_SAID = 50


@dataclass(slots=True)
class Totals:
    """What a receiver took: items by signal, requests refused, and what was passed on."""

    requests: int = 0
    items: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    refused: int = 0
    forwarded: int = 0
    not_forwarded: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """An acknowledged request. ``rejected``: items without usable ids, with the reason."""

    rejected: int = 0
    reason: str = ""

    def reply(self, signal: str, *, as_json: bool) -> bytes:
        """The response's body."""
        if not self.rejected:
            return b"{}" if as_json else b""
        if as_json:
            name = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
            return json.dumps({"partialSuccess": {name: str(self.rejected), "errorMessage": self.reason}}).encode()
        said = self.reason.encode()
        inner = b"\x08" + varint(self.rejected) + b"\x12" + varint(len(said)) + said
        return b"\x0a" + varint(len(inner)) + inner


class Intake:
    """Where both servers bring what they receive; may be called from several threads.

    Args:
        say: Takes a line for people.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.totals = Totals()
        self._say = say
        self._classes = message_classes()
        self._journal = _journal()
        self._lock = threading.Lock()
        self._known: set[str] = set()
        self._full_until = 0.0

    def take(self, signal: str, data: bytes, *, as_json: bool) -> Taken:
        """Takes a request (unpacked) in. When this returns it survives us.

        Raises:
            Refused: It is not one, is too large, or cannot be written now (503).
        """
        if signal == "metrics":  # accepted so that exporters are content; no reader would ever look at them
            self._count(signal, 1, 0)
            return Taken()
        if as_json:
            body, rejected = from_json(signal, data)
        else:
            body, rejected = from_protobuf(signal, data, self._classes)
        records = otlp.records(signal, body, content=self._journal.content)
        if records:
            self._write(records)
        self._meet(signal, body)
        self._count(signal, sum(_items(r) for r in records), rejected)
        return Taken(rejected, "without a trace id of 16 and a span id of 8 octets" if rejected else "")

    def refused(self) -> None:
        """Counts a request that was not taken."""
        with self._lock:
            self.totals.refused += 1

    def stray(self, text: str) -> None:
        """Counts what was no request at all; says what it seems to be, once."""
        self.refused()
        with self._lock:
            if text in self._known or len(self._known) >= _SAID:
                return
            self._known.add(text)
        self._say(text)

    def close(self) -> None:
        """Releases the journal."""
        self._journal.close()

    def _write(self, records: list[tape.Record]) -> None:
        if time.monotonic() < self._full_until:
            raise Refused(503, "the journal is full: `looptape sync` makes room")
        if self._journal.write(records):
            return
        with self._lock:
            # a journal that reached its cap stays silent; a later one has room again when somebody synced
            self._journal.close()
            self._journal = _journal()
            self._full_until = time.monotonic() + _AGAIN
        raise Refused(503, "it could not be written to the journal; see what looptape receive says")

    def _count(self, signal: str, count: int, rejected: int) -> None:
        with self._lock:
            self.totals.requests += 1
            self.totals.items[signal] += count
            self.totals.rejected += rejected

    def _meet(self, signal: str, body: Mapping[str, Any]) -> None:
        """Says when a program sends something for the first time."""
        for above, scope, _ in otlp.items(signal, body):
            service = _service(above)
            name = str((scope.get("scope") or {}).get("name") or "no scope")
            with self._lock:
                if f"{service} {name}" in self._known or len(self._known) >= _SAID:
                    continue
                self._known.add(f"{service} {name}")
            what = "spans" if signal == "traces" else "logs"
            self._say(f"{what} from {redact(service[:80])} ({redact(name[:80])})")


def _journal() -> Journal:
    """A journal as the settings say. Raises LooptapeError where they cannot be read: they may ask for no content."""
    said = settings.effective()
    content = said["content"].value != "none"
    return Journal(Path(said["home"].value), cap_bytes=int(said["journal_cap_mb"].value) << 20, content=content)


def _service(above: Mapping[str, Any]) -> str:
    given = (above.get("resource") or {}).get("attributes")
    for one in given if isinstance(given, list) else ():
        if isinstance(one, dict) and one.get("key") == "service.name":
            return str(otlp.plain(one.get("value")) or "a program without a name")
    return "a program without a name"


def _items(record: tape.Record) -> int:
    return sum(1 for _ in otlp.items(record["signal"], record["body"]))
