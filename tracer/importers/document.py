"""A file that is one JSON value: decoded whole with secrets removed, and glimpsed at from its head for recognition."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from .. import redaction
from .context import Source
from .reading import _decoder, _redacted, warn_of_losses
from .report import Notes

# a string (maybe cut by the end of the text), or what opens, closes or divides
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*(?:"|\\?\Z)|[{}\[\],]', re.DOTALL)
_CUT_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")
_CLOSERS = {"{": "}", "[": "]"}
_LOOKED_AT = 1 << 18
_MAX_SECONDS = 1e11


def document(source: Source, notes: Notes) -> Any:
    """The file's one JSON value without secrets; None when it is none, with the line and the reason noted.

    Raises:
        LooptapeError: The file is larger than a document may be.
    """
    raw = source.whole()
    text = raw.decode("utf-8", "replace").lstrip("\ufeff").strip()
    warn_of_losses(text, raw, notes)
    notes.counts["lines"] += text.count("\n") + 1
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        cut = "; the file is cut short" if error.pos >= len(text) - 1 else ""
        notes.skip(error.lineno, f"not JSON ({error.msg} at column {error.colno}){cut}")
        return None
    except (ValueError, RecursionError) as error:
        notes.skip(1, "nested too deeply" if isinstance(error, RecursionError) else f"not JSON ({str(error)[:120]})")
        return None
    clean = redaction.redact(text)
    if clean == text:
        return value
    pairs = zip(text.split("\n"), clean.split("\n"), strict=False)
    notes.counts["lines_with_secrets"] += sum(a != b for a, b in pairs) or 1
    return _redacted(value)


def glimpse(head: bytes) -> Any:
    """What a JSON text begins with, as a value of which the end may be missing; None when it is no list or object.

    The value is shared between the recognisers that look at it: nobody may change it.
    """
    return _glimpse(head[:_LOOKED_AT])  # the head of a file without lines may be its whole


@functools.lru_cache(maxsize=8)
def _glimpse(head: bytes) -> Any:
    text = head.decode("utf-8", "replace").lstrip("\ufeff").lstrip()
    if text[:1] not in ("{", "["):
        return None
    for tried in _closed_texts(text):
        try:
            return _decoder.decode(tried)
        except (ValueError, RecursionError):
            continue
    return None


def _closed_texts(text: str) -> tuple[str, str]:
    """The text with all that is open closed: with a string that its end cuts, and without (it may be a key)."""
    stack, end, closers, cut = "", 0, "", ""
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark in ("{", "["):
            stack += mark
            end, closers = match.end(), stack
        elif mark in ("}", "]"):
            if not stack:
                break
            stack = stack[:-1]
            end, closers = match.end(), stack
            if not stack:
                break
        elif mark == ",":
            end, closers = match.start(), stack
        elif match.end() == len(text):
            cut = _CUT_ESCAPE.sub(r"\1", text) + '"' + _closed(stack)
    return cut, text[:end] + _closed(closers)


def _closed(stack: str) -> str:
    """What ends the lists and objects that are open."""
    return "".join(_CLOSERS[c] for c in reversed(stack))


def seconds(value: Any) -> int | None:
    """Seconds since the epoch as microseconds; None when it is no plausible time."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < _MAX_SECONDS:
        return None
    return round(value * 1_000_000)


def money(value: Any) -> float | None:
    """An amount as the file has it, None when it is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        return None
    return float(value)


def text(value: Any) -> str | None:
    """The value if it is a text that is not empty."""
    return value if isinstance(value, str) and value else None
