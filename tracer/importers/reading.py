"""Lines of foreign files into decoded, redacted JSON objects; what cannot be read is noted, never raised."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from jiter import from_json

from .. import redaction
from .hints import may_hold_secret
from .report import Notes

HEAD_BYTES = 1 << 16
MAX_LINE_BYTES = 64 << 20
_PIECE = 1 << 20
_TOGETHER = 1 << 16  # bytes that are searched for secrets at once
_LINE_COST = 100
_REMEMBERED = 4 << 20  # bytes of a head (all of its first line) whose objects are kept for the next recogniser
_CLEAN, _SUSPECT, _NOISE = "clean", "suspect", "noise"

# NaN and Infinity are no JSON and the store refuses them: they become their names
_decoder = json.JSONDecoder(parse_constant=lambda name: name)


def lines(stream: IO[bytes], limit: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes | None]]:
    """Line numbers and lines; None for a line longer than ``limit`` bytes, which is passed over."""
    number = 0
    while raw := stream.readline(_PIECE):
        number += 1
        if len(raw) == _PIECE and raw[-1:] != b"\n":
            yield number, _long_line(stream, raw, limit)
        else:
            yield number, raw if len(raw) - (raw[-1:] == b"\n") <= limit else None


def _long_line(stream: IO[bytes], begin: bytes, limit: int) -> bytes | None:
    """A line by its pieces: of one that is too long no more than the limit is ever held."""
    pieces, size, piece = [begin], len(begin), begin
    while piece[-1:] != b"\n" and (piece := stream.readline(_PIECE)):
        size += len(piece)
        if size - (piece[-1:] == b"\n") <= limit:
            pieces.append(piece)
        else:
            pieces.clear()
    return b"".join(pieces) if size - (piece[-1:] == b"\n") <= limit else None


def objects(
    numbered: Iterable[tuple[int, bytes | None]],
    notes: Notes,
    *,
    noise: Callable[[bytes], bool] | None = None,
    at_end: Callable[[], None] | None = None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and JSON object for every object of the lines, secrets removed.

    A line may hold several objects (some recorders lose a newline); an empty line is nothing;
    every other line that gives no object is noted with its reason.

    Args:
        noise: True for lines that hold an object of no interest: they are counted, not decoded.
        at_end: Called once when all whole lines are done with: before a last one that has no newline (yet).
    """
    counts = notes.counts
    for number, raw, kind in _looked_at(numbered, noise):
        if kind is _NOISE:
            counts["lines"] += 1
            counts["objects"] += 1
        elif raw is None:
            notes.skip(number, f"longer than {MAX_LINE_BYTES >> 20} MB")
        else:
            if at_end is not None and raw[-1:] != b"\n":
                at_end()
                at_end = None
            value = _only_object(raw) if kind is _CLEAN else None
            if value is None:
                yield from _objects(number, raw, kind is _SUSPECT, notes)
            else:
                counts["lines"] += 1
                counts["objects"] += 1
                yield number, value
    if at_end is not None:
        at_end()


def _only_object(raw: bytes) -> dict[str, Any] | None:
    """The object of a line that is one object and nothing else, as nearly all are; None for any other.

    None as well where jiter is stricter than the standard library (NaN, half of a surrogate pair, 200 levels).
    """
    if raw[:1] != b"{":
        return None
    try:
        value: dict[str, Any] = from_json(raw, allow_inf_nan=False)
    except ValueError:
        return None
    return value


def _objects(number: int, raw: bytes, suspect: bool, notes: Notes) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of one line."""
    text = raw.decode("utf-8", "replace").strip()
    if number == 1:
        text = text.lstrip("\ufeff").lstrip()
    if not text:
        return
    notes.counts["lines"] += 1
    secrets = False
    for value in _values(text, number, notes, tail=raw[-1:] != b"\n"):
        if suspect:
            value, changed = _cleaned(value)
            notes.counts["lines_with_secrets"] += changed and not secrets
            secrets |= changed
        if not isinstance(value, dict):
            notes.skip(number, f"not a JSON object ({_kind(value)})")
            continue
        notes.counts["objects"] += 1
        warn_of_losses(text, raw, notes)
        yield number, value


def _looked_at(
    numbered: Iterable[tuple[int, bytes | None]], noise: Callable[[bytes], bool] | None
) -> Iterator[tuple[int, bytes | None, str]]:
    """Lines, and whether each may hold a secret: asked of many at once, since most hold none."""
    part: list[tuple[int, bytes | None, str]] = []
    size = 0
    for number, raw in numbered:
        silent = raw is not None and noise is not None and noise(raw)
        part.append((number, raw, _NOISE if silent else _CLEAN))
        size += _LINE_COST if raw is None or silent else len(raw) + _LINE_COST
        if size >= _TOGETHER:
            yield from _judged(part)
            part, size = [], 0
    yield from _judged(part)


def _judged(part: list[tuple[int, bytes | None, str]]) -> Iterable[tuple[int, bytes | None, str]]:
    if not may_hold_secret(b"".join([raw for _, raw, kind in part if raw and kind is _CLEAN])):
        return part
    return [
        (number, raw, _SUSPECT if raw and kind is _CLEAN and may_hold_secret(raw) else kind)
        for number, raw, kind in part
    ]


def decode(raw: bytes, notes: Notes | None = None) -> Any:
    """One JSON value. NaN and Infinity become their names; bytes that are no UTF-8 are noted.

    Raises:
        ValueError: It is none, or nested too deeply; the text says what is wrong.
    """
    text = raw.decode("utf-8", "replace").lstrip("\ufeff").strip()
    try:
        value = _decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(_reason(error, tail=False, rest=False)) from None
    if notes is not None:
        warn_of_losses(text, raw, notes)
    return value


def warn_of_losses(text: str, raw: bytes, notes: Notes) -> None:
    """Notes that a text has replacements for bytes that are no UTF-8."""
    if "\ufffd" in text and text.count("\ufffd") > raw.count("\ufffd".encode()):
        notes.warn("not all of it is UTF-8: what is not stands as \ufffd")


def clean(raw: bytes, notes: Notes) -> Any:
    """One JSON value as `decode` gives it, secrets removed; counted in ``texts_with_secrets``."""
    value = decode(raw, notes)
    if not may_hold_secret(raw):
        return value
    cleaned, changed = _cleaned(value)
    notes.counts["texts_with_secrets"] += changed
    return cleaned


def first_objects(head: bytes) -> list[dict[str, Any]]:
    """The objects of the whole lines at the head of a file (the last line may be cut): for recognition.

    They are shared between the recognisers that look at them: nobody may change them.
    """
    return _last_asked(head) if len(head) <= _REMEMBERED else _first_objects(head)


def _first_objects(head: bytes) -> list[dict[str, Any]]:
    notes = Notes()
    numbered = enumerate(head.splitlines(keepends=True)[:200], 1)
    return [value for _, value in objects(numbered, notes)]


_last_asked = lru_cache(maxsize=1)(_first_objects)  # one recogniser after the other asks for the same


def mentions(path: Path | None, word: str) -> bool:
    """True when the head or the tail of the file holds this text."""
    if path is None or not path.is_file():
        return False
    needle = word.encode()
    with path.open("rb") as stream:
        if needle in stream.read(HEAD_BYTES):
            return True
        stream.seek(max(0, path.stat().st_size - HEAD_BYTES))
        return needle in stream.read(HEAD_BYTES)


def micros(value: Any) -> int | None:
    """An ISO 8601 time as microseconds since the epoch; None when it is none. Without a zone it is UTC."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1_000_000)
    except (ValueError, OverflowError):
        return None


def _values(text: str, number: int, notes: Notes, *, tail: bool) -> Iterator[Any]:
    position = found = 0
    while position < len(text):
        try:
            value, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            notes.skip(number, _reason(error, tail=tail, rest=found > 0))
            return
        found += 1
        notes.counts["lines_of_two_objects"] += found == 2
        yield value
        while position < len(text) and text[position].isspace():
            position += 1


def _reason(error: Exception, *, tail: bool, rest: bool) -> str:
    if tail:
        return "incomplete tail: the line ends before its object does (read again at the next import)"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    what = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)[:120]
    return f"{'what follows the object is ' if rest else ''}not JSON ({what})"


def _redacted(value: Any) -> Any:
    """A copy without secrets."""
    return _cleaned(value)[0]


def _cleaned(value: Any) -> tuple[Any, bool]:
    """A copy without secrets, and whether it had any. No recursion: what could be decoded can be cleaned."""
    # string by string: a pattern that runs over the JSON text could swallow whole fields
    holder = [value]
    todo: list[Any] = [holder]
    changed = False
    while todo:
        node = todo.pop()
        for key, child in enumerate(node) if isinstance(node, list) else node.items():
            if isinstance(child, str):
                node[key] = cleaned = redaction.redact(child)
                changed |= cleaned != child
            elif isinstance(child, list):
                node[key] = copied = list(child)
                todo.append(copied)
            elif isinstance(child, dict):
                named = {redaction.redact(k): v for k, v in child.items()}
                changed |= named.keys() != child.keys()
                node[key] = named
                todo.append(named)
    return holder[0], changed


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "no object")
