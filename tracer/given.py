"""What a caller gave for names, tags, limits: made into what records hold. What cannot be used is left out, never an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from .model import Limits
from .redaction import redact

_LIMITS = tuple(f.name for f in fields(Limits))


def text(value: Any) -> str | None:
    """A value as a short text; None stays None, and so does what will not be printed."""
    if value is None or type(value) is str:
        return value
    try:
        return str(value)
    except Exception:  # its own trouble must not become the agent's
        return None


def number(value: Any) -> int | float | None:
    """A finite number, also of a Decimal or a numeral; None for what is none."""
    if value is None or isinstance(value, bool):
        return None
    if type(value) is int:
        return value
    try:
        found = float(value)
    except Exception:
        return None
    if found != found or abs(found) == float("inf"):
        return None
    return int(found) if found.is_integer() and not isinstance(value, float) else found


def tags(value: Any) -> dict[str, str]:
    """Tags as texts by name, redacted; without those that have no text."""
    try:
        items = list(dict(value or {}).items())
    except Exception:  # no mapping at all
        return {}
    found = ((text(name), text(said)) for name, said in items)
    return {name: redact(said) for name, said in found if name is not None and said is not None}


def limits(value: Any) -> dict[str, int | float]:
    """The caps that are set, by name, from `Limits` or a mapping with its names."""
    if not value:
        return {}
    try:
        said = {n: getattr(value, n) for n in _LIMITS} if isinstance(value, Limits) else dict(value)
        return {name: cap for name in _LIMITS if (cap := number(said.get(name))) is not None}
    except Exception:  # no mapping at all
        return {}


def listed(value: Any) -> list[Any]:
    """Several values, or the one that was given in place of a list."""
    if value is None:
        return []
    if isinstance(value, (str, bytes, Mapping)) or callable(value):
        return [value]
    try:
        return list(value)
    except Exception:  # not iterable
        return [value]
