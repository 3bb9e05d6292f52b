"""JSON encoders and decoders that are made once: for small values the making costs more than the work."""

from __future__ import annotations

import json
from collections.abc import Callable
from json import encoder as _standard
from typing import Any


def encoder(**options: Any) -> Callable[[Any], str]:
    """`json.JSONEncoder(**options).encode`, whose work the interpreter else prepares anew for each value.

    Args:
        options: Of `json.JSONEncoder`, without ``indent``.
    """
    made = json.JSONEncoder(**options)
    slow = made.encode
    escaped = _standard.encode_basestring_ascii if made.ensure_ascii else _standard.encode_basestring
    between = made.key_separator, made.item_separator
    try:
        make = _standard.c_make_encoder  # type: ignore[attr-defined]  # not in typeshed
        pieces = make(None, made.default, escaped, None, *between, made.sort_keys, made.skipkeys, made.allow_nan)
    except (AttributeError, TypeError):  # an interpreter without it, or that makes it in another way
        return slow
    join = "".join

    def encode(value: Any) -> str:
        try:
            return join(pieces(value, 0))
        except RecursionError:  # also for what holds itself, which the other one tells apart
            return slow(value)

    return encode


def decoder(**options: Any) -> Callable[[str], Any]:
    """`json.JSONDecoder(**options).decode`, without its search for white space where none is around the value.

    Args:
        options: Of `json.JSONDecoder`.
    """
    made = json.JSONDecoder(**options)
    scan, slow = made.scan_once, made.decode  # type: ignore[attr-defined]  # not in typeshed

    def decode(text: str) -> Any:
        try:
            value, end = scan(text, 0)
        except StopIteration:  # white space, or no JSON: said by the other one
            return slow(text)
        return value if end == len(text) else slow(text)

    return decode
