"""A streamed response as it arrives: decoded, its chunk boundaries and times kept, flushed in safe pieces.

A secret may be split over several deltas. So a flush holds back what could be the first half of one, and
text is looked at across deltas; where something must go, the affected piece is written anew, an event
a part, and marked altered.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from .clock import monotonic
from .redaction import redact, wants_whole_texts

FLUSH_SECONDS = 0.25
FLUSH_CHARACTERS = 64 << 10
HELD_CHARACTERS = 1 << 20
TOO_LONG = ": [redacted:too-long]\n\n"  # a comment, which no reader of events takes for one

Part = tuple[int, str]
Event = tuple[str, Any]
_TEXT_KEYS = (
    "text", "thinking", "partial_json", "content", "arguments", "delta", "reasoning", "reasoning_content", "refusal",
)  # fmt: skip
_INDEX_KEYS = ("index", "output_index", "content_index", "summary_index")
_DELTAS = re.compile(rf'"(?:{"|".join(_TEXT_KEYS)})"\s*:\s*"((?:[^"\\]|\\.)*)"')
_INDEXES = re.compile(rf'"(?:{"|".join(_INDEX_KEYS)})"\s*:\s*(\d+)')
_EVENT_END = re.compile(r"(\r\n\r\n|\n\n|\r\r)")
_EVENT_ENDS = ("\n\n", "\r\n\r\n", "\r\r")
_EDGES = frozenset(" \t\r\n\"'")  # no secret has one of these in it, but for two kinds:
_OPEN = re.compile(r"[Bb]earer\s*\Z|-----BEGIN(?!(?s:.*)-----END [A-Z0-9 ]*-----)")


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
        started: `monotonic()` of the response's first byte being awaited.
        write: Called with the parts of one chunk record and whether they were altered.
    """

    def __init__(self, started: float, write: Callable[[list[Part], bool], None]) -> None:
        self._started = started
        self._write = write
        self._pending: list[Part] = []
        self._pending_size = 0
        self._wanted = FLUSH_CHARACTERS
        self._flushed = started
        self._patience = FLUSH_SECONDS
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._all: list[str] = []
        self._dropping = False

    def feed(self, data: bytes) -> None:
        """One chunk as it came from the wire, decoded from its content-encoding."""
        text = self._decoder.decode(data)
        if not text:
            return
        now = monotonic()
        self._all.append(text)
        if self._dropping:
            return
        self._pending.append((int((now - self._started) * 1e6), text))
        self._pending_size += len(text)
        if now - self._flushed >= self._patience or self._pending_size >= self._wanted:
            self._flush(now, final=False)

    def finish(self) -> str:
        """Flushes the rest and gives the whole text of the stream."""
        self._flush(monotonic(), final=True)
        return "".join(self._all)

    def _flush(self, now: float, *, final: bool) -> None:
        count = len(self._pending) if final else _safe_count(self._pending)
        self._flushed = now
        if not count:
            if self._pending_size > HELD_CHARACTERS and wants_whole_texts():
                self._drop()
                return
            # held back; look again when there is much more
            self._wanted, self._patience = 2 * self._pending_size, 2 * self._patience
            return
        parts, self._pending = self._pending[:count], self._pending[count:]
        self._pending_size = sum(len(t) for _, t in self._pending)
        self._wanted, self._patience = self._pending_size + FLUSH_CHARACTERS, FLUSH_SECONDS
        self._write(*clean_parts(parts))

    def _drop(self) -> None:
        """Gives up the rest of the chunks: a text that must be seen whole is too long to be held. The answer has it."""
        offset = self._pending[-1][0]
        self._pending, self._pending_size, self._dropping = [], 0, True
        self._write([(offset, TOO_LONG)], True)


def clean_parts(parts: list[Part]) -> tuple[list[Part], bool]:
    """The parts without secrets, and whether any had to be altered."""
    joined = "".join(t for _, t in parts)
    if redact(joined) == joined and all(redact(t) == t for t in _across(joined)):
        return parts, False
    return _rewrite(parts), True


def _across(joined: str) -> list[str]:
    """The streamed texts of these events, each put together from its deltas."""
    indexes = _INDEXES.findall(joined)
    escaped = "\\u00" in joined or "\\/" in joined
    if not escaped and not wants_whole_texts() and len(set(indexes)) < 2 and len(indexes) <= joined.count("data:"):
        return ["".join(_DELTAS.findall(joined))]  # one text: no need to read the events
    return list(_series(e for _, e in _events(joined)).values())


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
    """How many leading parts can go: up to an event's end where no text that goes on stops inside a secret."""
    texts: dict[str, str] = {}
    over: dict[str, int] = {}
    places: list[tuple[int, dict[str, tuple[int, int]]]] = []
    done = 0
    for end in range(1, len(parts)):
        if not parts[end - 1][1].endswith(_EVENT_ENDS):
            continue
        for _, value in _events("".join(t for _, t in parts[done:end])):
            _grow(texts, over, value)
        done = end
        places.append((end, {p: (len(t), over.get(p, 0)) for p, t in texts.items()}))
    for _, value in _events("".join(t for _, t in parts[done:])):
        _grow(texts, over, value)
    whole = wants_whole_texts()
    for end, lengths in reversed(places):
        if whole and any(length != start for length, start in lengths.values()):
            continue
        if all(_closed(texts[p], length, start) for p, (length, start) in lengths.items()):
            return end
    return 0


def _closed(text: str, length: int, start: int) -> bool:
    """True when no secret can stand across this place of a text; up to ``start`` it is over anyway."""
    if length == start:
        return True
    edges = text[length - 1 : length + 1]
    return any(c in _EDGES for c in edges) and not _OPEN.search(text, 0, length)


def _grow(texts: dict[str, str], over: dict[str, int], value: Any) -> None:
    """Adds an event's texts; those that an event ends are over, nothing follows on them."""
    if isinstance(value, dict) and str(value.get("type", "")).endswith(("_stop", ".done", ".completed")):
        here = _here(value, "")
        over.update({p: len(t) for p, t in texts.items() if not here or p.startswith((f"{here}.", f"{here}/"))})
        return
    for place, holder, key in _texts(value):
        texts[place] = texts.get(place, "") + holder[key]


def _rewrite(parts: list[Part]) -> list[Part]:
    """The same events, a part each; the text of a series of deltas stands redacted in its first one."""
    offset = parts[-1][0]
    events = _events("".join(t for _, t in parts))
    holders: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for _, value in events:
        for place, holder, key in _texts(value):
            holders.setdefault(place, []).append((holder, key))
    for series in holders.values():
        whole = "".join(h[k] for h, k in series)
        clean = redact(whole)
        if clean != whole:
            said = [(h, k) for h, k in series if h[k]]
            for holder, key in said:
                holder[key] = ""
            said[0][0][said[0][1]] = clean
    texts = [event if value is None else _with_data(event, value) for event, value in events]
    return [(offset, redact(t)) for t in texts if t]


def _events(text: str) -> list[Event]:
    """Events as they stand, with the blank lines behind them, and the JSON they carry (None where there is none)."""
    blocks = _EVENT_END.split(text)
    return [(e, _data_of(e)) for i in range(0, len(blocks), 2) if (e := "".join(blocks[i : i + 2]))]


def _series(values: Iterable[Any]) -> dict[str, str]:
    """The texts that events stream, by where they stand."""
    texts: dict[str, str] = {}
    for value in values:
        for place, holder, key in _texts(value):
            texts[place] = texts.get(place, "") + holder[key]
    return texts


def _data_of(event: str) -> Any:
    data = "\n".join(line[5:].removeprefix(" ") for line in _lines(event) if line.startswith("data:"))
    try:
        return json.loads(data) if data else None
    except (ValueError, RecursionError):
        return None


def _with_data(event: str, value: Any) -> str:
    head = "".join(f"{line}\n" for line in _lines(event) if line.strip() and not line.startswith("data:"))
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n"


def _here(value: dict[str, Any], place: str) -> str:
    return "/".join([place, *(str(value[i]) for i in _INDEX_KEYS if i in value)])


def _texts(value: Any, place: str = "") -> list[tuple[str, dict[str, Any], str]]:
    """Every streamed text in an event: the series it belongs to, its holder and key."""
    found: list[tuple[str, dict[str, Any], str]] = []
    if isinstance(value, dict):
        here = _here(value, place)
        for key, inner in value.items():
            if key in _TEXT_KEYS and isinstance(inner, str):
                found.append((f"{here}.{key}", value, key))
            elif isinstance(inner, (dict, list)):
                found += _texts(inner, here)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            told = isinstance(inner, dict) and any(i in inner for i in _INDEX_KEYS)
            found += _texts(inner, place if told else f"{place}/{number}")
    return found
