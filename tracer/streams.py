"""A streamed response as it arrives: decoded, its chunk boundaries and times kept, flushed in safe pieces.

A secret may be split over several deltas. So a flush holds back what could be the first half of one, and
text is looked at across deltas; where something must go, the affected piece is written anew, an event
a part, and marked altered.
"""

from __future__ import annotations

import codecs
import json
import re
import time
import zlib
from collections.abc import Callable
from typing import Any

from .redaction import redact

FLUSH_SECONDS = 0.25
FLUSH_CHARACTERS = 64 << 10

Part = tuple[int, str]
_DELTAS = re.compile(r'"(?:text|thinking|partial_json|content|arguments|delta)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_TEXT_KEYS = ("text", "thinking", "partial_json", "content", "arguments", "delta")
_SAFE_END = re.compile(r'[\s"\'`,;)}\]]')


class Unzip:
    """Undoes a content-encoding piece by piece; `None` from `feed` when only the whole can be undone."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding.strip().lower()
        self._zlib = None
        if self.encoding in ("gzip", "x-gzip"):
            self._zlib = zlib.decompressobj(16 + zlib.MAX_WBITS)
        elif self.encoding == "deflate":
            self._zlib = zlib.decompressobj()
        self.plain = self.encoding in ("", "identity")

    def feed(self, data: bytes) -> bytes | None:
        """The decoded bytes of this piece, None for encodings that need the whole body."""
        if self.plain:
            return data
        return self._zlib.decompress(data) if self._zlib else None


class StreamLog:
    """Collects a server-sent event stream and hands safe chunk records to `write`.

    Args:
        started: `time.monotonic()` of the response's first byte being awaited.
        write: Called with the parts of one chunk record and whether they were altered.
    """

    def __init__(self, started: float, write: Callable[[list[Part], bool], None]) -> None:
        self._started = started
        self._write = write
        self._pending: list[Part] = []
        self._pending_size = 0
        self._flushed = started
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._all: list[str] = []

    def feed(self, data: bytes) -> None:
        """One chunk as it came from the wire, decoded from its content-encoding."""
        text = self._decoder.decode(data)
        if not text:
            return
        now = time.monotonic()
        self._all.append(text)
        self._pending.append((int((now - self._started) * 1e6), text))
        self._pending_size += len(text)
        if now - self._flushed >= FLUSH_SECONDS or self._pending_size >= FLUSH_CHARACTERS:
            self._flush(now, final=False)

    def finish(self) -> str:
        """Flushes the rest and gives the whole text of the stream."""
        self._flush(time.monotonic(), final=True)
        return "".join(self._all)

    def _flush(self, now: float, *, final: bool) -> None:
        count = len(self._pending) if final else _safe_count(self._pending)
        if not count and self._pending_size < 16 * FLUSH_CHARACTERS:
            return
        parts, self._pending = self._pending[: count or None], self._pending[count or len(self._pending) :]
        self._pending_size = sum(len(t) for _, t in self._pending)
        self._flushed = now
        if parts:
            self._write(*clean_parts(parts))


def clean_parts(parts: list[Part]) -> tuple[list[Part], bool]:
    """The parts without secrets, and whether any had to be altered."""
    joined = "".join(t for _, t in parts)
    across = "".join(_DELTAS.findall(joined))
    if redact(joined) == joined and redact(across) == across:
        return parts, False
    return _rewrite(parts), True


def sse_events(text: str) -> list[tuple[str | None, str]]:
    """Server-sent events of a text: (event name, data). Comments and empty events are left out."""
    events: list[tuple[str | None, str]] = []
    for block in re.split(r"\r\n\r\n|\n\n|\r\r", text):
        name, data = None, []
        for line in _lines(block):
            if line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif line.startswith("event:"):
                name = line[6:].strip()
        if data:
            events.append((name, "\n".join(data)))
    return events


def _lines(text: str) -> list[str]:
    """Lines as the event stream format knows them; str.splitlines also splits at U+2028 inside the data."""
    return re.split(r"\r\n|\n|\r", text)


def _safe_count(parts: list[Part]) -> int:
    """How many leading parts can go: up to one whose visible text ends where no secret can be cut in two."""
    joined = "".join(t for _, t in parts)
    if joined.rfind("-----BEGIN") > joined.rfind("-----END"):
        return 0
    for index in range(len(parts) - 1, 0, -1):
        if not parts[index - 1][1].endswith("\n\n"):
            continue
        before = _DELTAS.findall(parts[index - 1][1])
        after = _DELTAS.findall(parts[index][1])
        edge = (before[-1][-1:] if before else " ") or " "
        start = (after[0][:1] if after else " ") or " "
        if _SAFE_END.match(edge) or _SAFE_END.match(start):
            return index
    return 0


def _rewrite(parts: list[Part]) -> list[Part]:
    """The same events, a part each; the text of a series of deltas stands redacted in its first one."""
    offset = parts[-1][0]
    blocks = re.split(r"(\r\n\r\n|\n\n|\r\r)", "".join(t for _, t in parts))
    events = ["".join(blocks[i : i + 2]) for i in range(0, len(blocks), 2)]
    decoded = [_data_of(e) for e in events]
    holders: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for value in decoded:
        for place, holder, key in _texts(value):
            holders.setdefault(place, []).append((holder, key))
    for series in holders.values():
        whole = "".join(h[k] for h, k in series)
        clean = redact(whole)
        if clean != whole:
            for holder, key in series:
                holder[key] = ""
            series[0][0][series[0][1]] = clean
    rewritten = []
    for event, value in zip(events, decoded, strict=True):
        text = event if value is None else _with_data(event, value)
        if text:
            rewritten.append((offset, redact(text)))
    return rewritten


def _data_of(event: str) -> Any:
    data = "\n".join(line[5:].removeprefix(" ") for line in _lines(event) if line.startswith("data:"))
    try:
        return json.loads(data) if data else None
    except (ValueError, RecursionError):
        return None


def _with_data(event: str, value: Any) -> str:
    head = "".join(f"{line}\n" for line in _lines(event) if line.strip() and not line.startswith("data:"))
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n"


def _texts(value: Any, place: str = "") -> list[tuple[str, dict[str, Any], str]]:
    """Every streamed text in an event: the series it belongs to, its holder and key."""
    found: list[tuple[str, dict[str, Any], str]] = []
    if isinstance(value, dict):
        here = f"{place}/{value.get('index', value.get('output_index', ''))}"
        for key, inner in value.items():
            if key in _TEXT_KEYS and isinstance(inner, str):
                found.append((f"{here}.{key}", value, key))
            else:
                found += _texts(inner, here)
    elif isinstance(value, list):
        for inner in value:
            found += _texts(inner, place)
    return found
