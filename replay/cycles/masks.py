"""Texts without what changes from call to call by itself: times, ids, addresses; and how alike two texts are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from zlib import crc32

_VOLATILE = re.compile(
    r"\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # uuid
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"  # a moment
    r"|\d\d?:\d\d(?::\d\d(?:[.,]\d+)?\b| ?[ap]\.?m\b)"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +(?:\d\d? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*(?: +\d\d?)?(?: \d{4})?"
    r"|1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?\b"  # seconds or milliseconds since the epoch
    r"|0x[0-9a-f]+\b"
    r"|(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b"  # a hash
    r"|(?:req|msg|toolu|call|chatcmpl|resp|run|job|trace|span|session|sess|evt)_[A-Za-z0-9]{6,}\b"
    r"|\d+(?:\.\d+)? ?(?:ms|µs|us|ns|s|sec|secs|seconds|min|minutes)\b"  # how long it took
    r"|pid[ =:]*\d+"
    r"|(?:request|trace|correlation)[ _-]?id[ =:\"']*[\w-]+"
    r"|ref=\w+)"  # an element of a page, numbered anew each time it is looked at
    r"|/(?:tmp|var/folders)/[\w./-]+"
    r"|\"\w*(?:uptime|elapsed|duration|latency|time_?stamp|took|server_?time|response_?time|as_?of)\w*\": ?[\d.]+",
    re.IGNORECASE,
)
_UNIT = r"m(?:s|in(?:utes)?)\b|[µun]s\b|s(?:ec(?:ond)?s?)?\b"
_MAYBE = re.compile(rf"[0-9](?:[:xa-fA-F]|-[0-9]|{_UNIT}| (?:{_UNIT}|[aApP]\.?[mM]\b)|[0-9][0-9]{{5}})")
"""Every branch begins with a character or a set of some, so that it is quickly looked for."""
_NAMES = ("tmp/", "/var/f", "pid", "PID", "ref=", "equest", "race", "orrelation", "req_", "msg_", "toolu_", "call_", "chatcmpl_", "resp_",
          "run_", "job_", "span_", "sess", "evt_", "uptime", "elapsed", "uration", "atency", "took", "ime_", "imestamp", "ime\"", "as_of",
          "asof", "asOf")  # fmt: skip
"""One of these stands in every volatile part: they are quickly looked for, `_VOLATILE` is not."""
_LINE_NUMBER = re.compile(r"(?<=[:(,])\d+(?=[:),\s]|$)|(?i:\blines? )\d+|#\d+|\bcol(?:umn)? \d+")
_QUOTED = re.compile(r"`[^`\n]{0,200}`|'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”")
_PATH = re.compile(
    r"(?:[A-Za-z]:)?(?:[\w.~@-]*/)+[\w.@-]*|\b[\w-]+\.(?:py|js|ts|tsx|go|rs|c|h|cpp|java|rb|json|yaml|yml|toml|md|txt|sh|html|css)\b"
)
_IDENTIFIER = re.compile(r"\b(?=\w*\d)\w+\b")
_WORD = re.compile(r"\w+")
_SIGNS = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD_OR_SIGN = re.compile(rf"[{_SIGNS}]|[^\W{_SIGNS}]+")
"""Chinese and Japanese put no spaces between words: each sign is one."""
_THING = re.compile(
    r"\w+://[^\s\"'<>]+|(?:[\w.~@-]*/)+[\w.@-]*[\w@-]|\b[\w-]+\.[A-Za-z]\w{0,4}\b|\b(?=\w*\d)(?=\w*[A-Za-z])\w{3,}\b|\b\d{3,}\b"
)

WHOLE = 8 << 10
"""Longer texts are masked at their two ends only; what lies between is compared as it is."""
EDGE = 3 << 10


def digest(text: str) -> int:
    """64 bits of a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def mask(text: str) -> str:
    """The text with its volatile parts out. They stand within a line: lines that hold none are not searched for them."""
    names = [name for name in _NAMES if name in text]
    if not names and _MAYBE.search(text) is None:
        return text
    if "\n" not in text:
        return _VOLATILE.sub("~", text)
    return "\n".join([_VOLATILE.sub("~", line) if _holds(line, names) else line for line in text.split("\n")])


def _holds(line: str, names: list[str]) -> bool:
    for name in names:
        if name in line:
            return True
    return _MAYBE.search(line) is not None


@dataclass(frozen=True, slots=True)
class Masked:
    """A result without its volatile parts: what tells it from others, and each of its lines that says something."""

    digest: int
    lines: tuple[int, ...]


def masked(text: str) -> Masked:
    """Reads a result once. A long one is masked at its two ends only; its middle is compared as it is."""
    if len(text) <= WHOLE:
        plain = mask(text.strip())
        return Masked(digest(plain), _line_keys(plain))
    # cut at line ends, so that no token is halved
    head = text.rfind("\n", 0, EDGE) + 1 or EDGE
    tail = text.find("\n", len(text) - EDGE) + 1 or len(text) - EDGE
    first, last = mask(text[:head]), mask(text[tail:])
    middle = text[head:tail]
    lines = _line_keys(f"{first}{middle[: 40 << 10]}\n{last}")
    return Masked(digest(f"{first}\x00{digest(middle)}\x00{last}"), lines)


def _line_keys(text: str, limit: int = 600) -> tuple[int, ...]:
    return tuple([word_key(s) for line in text.split("\n", limit)[:limit] if (s := line.strip())])


def word_key(word: str) -> int:
    """A word or line as a number that is the same in every process; short, for it is one of many."""
    data = word.encode("utf-8", "surrogatepass")
    return crc32(data) << 8 | len(data) & 0xFF


def shape_of_error(text: str) -> str:
    """What kind of error a text tells: its telling lines without names, paths, numbers, quoted words."""
    lines = [line.strip() for line in text[: 4 << 10].splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)] or lines
    if any(line.startswith("Traceback") for line in lines[:3]):
        telling = lines[-1:]
    said = " ".join(telling[:2])[:400]
    said = _PATH.sub("/", _QUOTED.sub("''", mask(said)))
    said = _IDENTIFIER.sub("0", said)
    return " ".join(_WORD.findall(said.lower()))[:160]


_TELLING = re.compile(
    r"error|fail|exception|denied|refused|invalid|not found|no such|cannot|can't|unable|unknown", re.IGNORECASE
)


def error_text_key(text: str) -> int:
    """Equal for the same error after edits: volatile parts and line numbers, which edits move, are out."""
    return digest(_LINE_NUMBER.sub("0", mask(text[: 16 << 10])))


def words(text: str, limit: int = 400) -> frozenset[int]:
    """The words of a text as small numbers, for `alike`."""
    plain = mask(text[: 6 << 10]).lower()
    found = (_WORD if plain.isascii() else _WORD_OR_SIGN).findall(plain)
    return frozenset([word_key(w) for w in found[:limit]])


def things(text: str) -> frozenset[int]:
    """The files, addresses and numbered names that a text is about; counts below a hundred are none."""
    return frozenset([word_key(w) for w in _THING.findall(text[: 6 << 10])])


def alike(left: frozenset[int], right: frozenset[int]) -> float:
    """Dice's coefficient of two sets of words: 1 for the same, 0 for nothing in common."""
    if not left or not right:
        return 1.0 if left == right else 0.0
    return 2 * len(left & right) / (len(left) + len(right))


def joined(parts: Iterable[str]) -> str:
    """Parts of a key as one text; the separator stands in none of them."""
    return "\x1f".join(parts)
