"""Texts on their way into DuckDB and back, exactly; and what JSON texts say about themselves.

DuckDB refuses lone surrogates, which tool output often holds. They are kept reversibly: a lone surrogate
U+D83E is written as the noncharacter U+FDD0 followed by its four hex digits, and a U+FDD0 that was there
before as U+FDD0 ``FDD0``. All other text is stored as it is, so that it can be searched.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from typing import Any

from ..json_text import decoder, encoder

MARK = "\ufdd0"
_AWKWARD = re.compile("[\ud800-\udfff\ufdd0]")
_MARKED = re.compile(MARK + "([0-9A-F]{4})")
_ESCAPED_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]"
)
_STEP = re.compile(r"\.([A-Za-z_$][\w$-]*)|\[(\d+)\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})


def encode(text: str) -> str:
    """The text as DuckDB takes it (see the head of this file)."""
    if text.isascii() or not _AWKWARD.search(text):
        return text
    return _AWKWARD.sub(lambda found: f"{MARK}{ord(found[0]):04X}", text)


def decode(text: str) -> str:
    """The text as it was before `encode`."""
    if text.isascii() or MARK not in text:
        return text
    return _MARKED.sub(lambda found: chr(int(found[1], 16)), text)


_encode = encoder(ensure_ascii=False, separators=(",", ":"))
_decode = decoder()


def dumps(value: Any) -> str:
    """JSON text of a decoded value, readable, nothing lost that JSON in Python can say."""
    return _encode(value)


def loads(text: str | None) -> Any:
    """The decoded value; the text itself where it is no JSON or too deep to decode."""
    if text is None:
        return None
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return text


class _Watcher(threading.local):
    """A decoder that notes what is odd; one for each thread, made once since that costs more than a small text."""

    def __init__(self) -> None:
        self.odd: set[str] = set()
        self.decode = decoder(object_pairs_hook=self._pairs, parse_int=self._integer, parse_constant=self._constant)

    def _pairs(self, items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            self.odd.add("duplicate_key")
        return found

    def _integer(self, digits: str) -> int:
        if len(digits) < 19:
            return int(digits)
        if len(digits) > 30 or not -(2**63) <= int(digits) < 2**63:
            self.odd.add("big_number")
            return 0
        return int(digits)

    def _constant(self, _: str) -> None:
        self.odd.add("nan")


_watcher = _Watcher()


def facts(text: str) -> tuple[str | None, str | None, Any]:
    """Role (or type) of a JSON text, what is odd about it as words joined by commas, else None, and its value.

    The words: surrogate, nul, nan, duplicate_key, big_number, deep, not_json. The value is what `loads` gives;
    None where something is odd.
    """
    odd = _watcher.odd
    odd.clear()
    value: Any = None
    try:
        value = _watcher.decode(text)
    except RecursionError:
        odd.add("deep")
    except ValueError:
        odd.add("not_json")
    odd.update(_odd_characters(text))
    role = (value.get("role") or value.get("type")) if isinstance(value, dict) else None
    role = role if isinstance(role, str) else None
    return (role, ",".join(sorted(odd)), None) if odd else (role, None, value)


def _odd_characters(text: str) -> Iterator[str]:
    if "\x00" in text or "\\u0000" in text:
        yield "nul"
    if (not text.isascii() and _AWKWARD.search(text)) or ("\\u" in text and _ESCAPED_SURROGATE.search(text)):
        yield "surrogate"


def at_path(value: Any, path: str) -> Any:
    """The part of a decoded value that a JSONPath of names and indexes points to; None when there is none."""
    position = 1 if path.startswith("$") else 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return None
        position = step.end()
        if step[2] is not None:
            index = int(step[2])
            if not isinstance(value, list) or index >= len(value):
                return None
            value = value[index]
        else:
            key = step[1] if step[1] is not None else json.loads(f'"{step[3]}"')
            if not isinstance(value, dict) or key not in value:
                return None
            value = value[key]
    return value


def result_text(value: Any) -> str | None:
    """A tool result as the text it amounts to: a string, text blocks joined, else its JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(_is_text(block) for block in value):
        return "".join(block["text"] for block in value)
    return dumps(value)


def same_result(returned: Any, seen: Any) -> bool:
    """True when the model saw what the tool returned (a value that was dumped as JSON counts as the same)."""
    left, right = result_text(returned), result_text(seen)
    if left == right:
        return True
    if isinstance(returned, str) or not isinstance(right, str):
        return False
    return bool(loads(right) == returned)


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _TEXT_TYPES and isinstance(block.get("text"), str)
