"""Canonical JSON and hashes: the one answer to "is it the same?"."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from .json_text import encoder

_encode = encoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """BLAKE2b-16 of a text, 32 hex digits. Lone surrogates are allowed and distinguished."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces, so that equal values give equal text.

    Whole floats compare equal to integers (providers rewrite ``3.0`` as ``3``).
    Anything JSON cannot hold becomes its type name, never an exception.
    """
    try:
        return _encode(_plain(value, 0))
    except (TypeError, ValueError, RecursionError):
        return json.dumps(f"<{type(value).__name__}>")


def same(left: Any, right: Any) -> bool:
    """True when two decoded JSON values mean the same call or message."""
    return canonical(left) == canonical(right)


def stable_id(*parts: str) -> str:
    """A run id (16 hex) that is the same for the same parts, for imports."""
    return blake2b("\x1f".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        return int(value) if value.is_integer() else value
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if depth > 200:
        return "<deep>"
    if isinstance(value, dict):
        return {k if isinstance(k, str) else str(k): _plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v, depth + 1) for v in value]
    return f"<{type(value).__name__}>"
