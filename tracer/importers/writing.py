"""Values as the JSON text of a blob: compact, letters as they are, as fast as this interpreter can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..json_text import encoder


def writer(**options: Any) -> Callable[[Any], str]:
    """A function that gives a value's compact JSON text with letters as they are (no ``\\u`` for what is not ASCII).

    The interpreter escapes to ASCII in half the time. For a value that is ASCII that text is the same to the
    last character, unless there is a ``\\u`` in it (for DEL, which one writes as it is and the other does not).

    Args:
        options: For `json.JSONEncoder` (``default``, ``check_circular``).
    """
    ascii_only = encoder(ensure_ascii=True, separators=(",", ":"), **options)
    as_it_is = encoder(ensure_ascii=False, separators=(",", ":"), **options)

    def dumps(value: Any) -> str:
        text = ascii_only(value)
        return as_it_is(value) if "\\u" in text else text

    return dumps
