"""Request bodies against the one before: which messages are kept, which are new. Cost follows what is new.

A growing conversation is sent whole every turn. Comparing bytes with the body before costs a memory
compare; only what follows the common part is decoded, parsed, hashed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

_decoder = json.JSONDecoder()
_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Body:
    """A request body taken apart.

    Attributes:
        whole: Its bytes. The messages lie between ``head`` and the last of ``ends``.
        head: Where the first message begins.
        ends: Where each message ends.
        rest: The decoded body without its message list.
    """

    whole: bytes
    head: int
    ends: tuple[int, ...]
    rest: dict[str, Any]

    @property
    def end(self) -> int:
        """Where the last message ends."""
        return self.ends[-1] if self.ends else self.head

    def upto(self, end: int) -> memoryview:
        """Its beginning, not copied."""
        return memoryview(self.whole)[:end]

    @property
    def tail(self) -> bytes:
        """What follows the last message, from the closing bracket on."""
        return self.whole[self.end :]


@dataclass(frozen=True, slots=True)
class Advance:
    """A body compared with an earlier one: ``keep`` leading messages are the same bytes, ``texts`` are new
    (``values``: the same, decoded)."""

    body: Body
    keep: int
    texts: tuple[str, ...]
    values: tuple[Any, ...]
    same_rest: bool


class NotAList(ValueError):
    """The body has no message list at its key (or is no JSON object)."""


def extends(body: bytes, earlier: Body) -> bool:
    """True when the earlier messages stand unchanged at the head of this body and others follow."""
    end = earlier.end
    # most bodies that do not extend it differ near the end: look there before comparing all
    start = max(0, end - 64)
    return body[start : end + 1] == earlier.whole[start:end] + b"," and body.startswith(earlier.upto(end))


def advance(body: bytes, key: str, earlier: Body | None, *, extended: bool = False) -> Advance:
    """Takes a body apart with the help of an earlier one.

    Args:
        body: UTF-8 JSON of the request.
        key: Where its message list stands (``messages``, ``input``).
        earlier: The body to compare with, None for a first request.
        extended: True when `extends` has already said so.

    Raises:
        NotAList: When there is no list at ``key``.
        ValueError: When the body is no JSON.
    """
    if earlier is not None and earlier.ends:
        keep = len(earlier.ends) if extended else _common(body, earlier)
        if keep:
            try:
                return _continue(body, key, earlier, keep)
            except (ValueError, IndexError):
                pass  # an odd body: take it apart as a whole
    return _whole(body, key)


def _common(body: bytes, earlier: Body) -> int:
    """How many leading messages of the earlier body stand unchanged in this one (steps back from the end)."""
    count, step = len(earlier.ends), 1
    while count > 0:
        end = earlier.ends[count - 1]
        # the byte after must end a message: {"a":1} is no prefix of {"a":1}x
        if body[end : end + 1] in (b",", b"]", b" ", b"\n") and body.startswith(earlier.upto(end)):
            return count
        count -= step
        step *= 2
    return 0


def _continue(body: bytes, key: str, earlier: Body, keep: int) -> Advance:
    start, tail = earlier.ends[keep - 1], earlier.tail
    if body.endswith(tail):
        text = _text(body[start : len(body) - len(tail)])
        texts, values, ends, position = _items(text, 0, start, first=False)
        if position == len(text):
            fresh = Body(body, earlier.head, earlier.ends[:keep] + ends, earlier.rest)
            return Advance(fresh, keep, texts, values, same_rest=True)
    text = _text(body[start:])
    texts, values, ends, position = _items(text, 0, start, first=False)
    rest = _decoder.decode(_text(body[: earlier.head]) + text[position:].lstrip(_SPACE))
    rest.pop(key, None)
    return Advance(Body(body, earlier.head, earlier.ends[:keep] + ends, rest), keep, texts, values, same_rest=False)


def _whole(body: bytes, key: str) -> Advance:
    text = _text(body)
    opening = _find_list(text, key)
    head = len(_bytes(text[:opening]))
    texts, values, ends, position = _items(text, opening, head, first=True)
    rest = _decoder.decode(text[:opening] + text[position:].lstrip(_SPACE))
    rest.pop(key, None)
    return Advance(Body(body, head, ends, rest), 0, texts, values, same_rest=False)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _find_list(text: str, key: str) -> int:
    """Offset just behind the opening bracket of the list at a top-level key."""
    position = _skip(text, 0)
    if text[position : position + 1] != "{":
        raise NotAList("the body is not a JSON object")
    position = _skip(text, position + 1)
    while text[position : position + 1] == '"':
        name, position = _decoder.raw_decode(text, position)
        position = _skip(text, position)
        if text[position : position + 1] != ":":
            raise ValueError(f"no colon at character {position}")
        position = _skip(text, position + 1)
        if name == key:
            if text[position : position + 1] != "[":
                raise NotAList(f"{key} is not a list")
            return position + 1
        _, position = _decoder.raw_decode(text, position)
        position = _skip(text, position)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
    raise NotAList(f"no {key}")


def _items(
    text: str, position: int, base: int, *, first: bool
) -> tuple[tuple[str, ...], tuple[Any, ...], tuple[int, ...], int]:
    """The list items from ``position`` on: exact texts, values, byte offsets of their ends, and where the list closes."""
    texts: list[str] = []
    values: list[Any] = []
    ends: list[int] = []
    offset, seen, ascii_only = base, position, text.isascii()
    while True:
        position = _skip(text, position)
        mark = text[position : position + 1]
        if mark in ("]", ""):
            return tuple(texts), tuple(values), tuple(ends), position
        if not first or texts:
            if mark != ",":
                raise ValueError(f"no comma at character {position}")
            position = _skip(text, position + 1)
        value, end = _decoder.raw_decode(text, position)
        texts.append(text[position:end])
        values.append(value)
        offset += end - seen if ascii_only else len(_bytes(text[seen:end]))
        ends.append(offset)
        seen = position = end


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position
