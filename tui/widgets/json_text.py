"""JSON for reading: indented where it is JSON, and lightly coloured line by line. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

from .cells import Span, Spans

LARGEST = 2_000_000
"""Characters up to which a text is parsed to be indented; beyond it is shown as it is."""

_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?P<string>"(?:[^"\\]|\\.)*"?)|(?P<number>-?\b\d[\d.eE+-]*\b|\b(?:true|false|null)\b)|(?P<mark>[{}\[\],:])'
)
_ROLES = {"key": "key", "string": "text", "number": "number", "mark": "dim"}


def pretty(value: Any) -> str:
    """A decoded JSON value, indented. Small lists and objects stay on one line."""
    try:
        return _folded(value, 0)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def pretty_text(text: str) -> tuple[str, str]:
    """A text and its syntax: indented and ``json`` where it holds a JSON object or list, else itself and nothing."""
    value = readable(text)
    return (text, "") if value is None else (pretty(value), "json")


def readable(text: str) -> dict[str, Any] | list[Any] | None:
    """The JSON object or list that a text is; None for every other text, and for one that is too large to parse."""
    if text[:64].lstrip()[:1] not in ("{", "[") or len(text) > LARGEST:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def compact(value: Any) -> str:
    """A decoded JSON value in one line."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def coloured(line: str, plain: str = "text") -> Spans:
    """The line as spans: keys, values and marks told apart. Works on any part of a JSON text."""
    spans: list[Span] = []
    at = 0
    for match in _TOKEN.finditer(line):
        if match.start() > at:
            spans.append((line[at : match.start()], plain))
        spans.append((match.group(), _ROLES[match.lastgroup or "string"]))
        at = match.end()
    if at < len(line):
        spans.append((line[at:], plain))
    return tuple(spans)


def _folded(value: Any, depth: int) -> str:
    if not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, ensure_ascii=False)
    if _small(value):
        flat = json.dumps(value, ensure_ascii=False)
        if len(flat) + 2 * depth <= 72:
            return flat
    pad = "  " * (depth + 1)
    if isinstance(value, dict):
        items = [f"{pad}{json.dumps(str(k), ensure_ascii=False)}: {_folded(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(items) + "\n" + "  " * depth + "}"
    return "[\n" + ",\n".join(pad + _folded(v, depth + 1) for v in value) + "\n" + "  " * depth + "]"


def _small(value: Any) -> bool:
    """Few members, none of them nested deeper than one more level."""
    items = value.values() if isinstance(value, dict) else value
    return len(value) <= 8 and not any(isinstance(v, (dict, list)) and v for v in items)
