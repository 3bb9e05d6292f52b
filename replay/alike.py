"""What of a message a model reads: its substance, without cache marks, ids and signatures, whatever its spelling."""

from __future__ import annotations

from typing import Any

from ..tracer.canonical import canonical, digest
from ..tracer.store.text import loads

MARK = "cache_control"
IDS = frozenset({"id", "tool_use_id", "tool_call_id", "call_id"})
_UNREAD = frozenset({MARK, "signature", "encrypted_content"})
_DATA = frozenset({"input", "arguments", "args", "input_schema", "parameters", "response"})
_TEXTS = frozenset({"text", "input_text", "output_text"})


def substance(value: Any, *, ids: bool = False) -> Any:
    """A decoded message, system or tool list as the model reads it.

    Cache marks, signatures and (unless ``ids``) the ids of calls and answers are left out; a text is the same as one
    block of that text. What stands inside arguments and schemas stays as it is.
    """
    left_out = _UNREAD if ids else _UNREAD | IDS
    return _walk(value, left_out, 0)


def key(text: str | None, fallback: str = "") -> str:
    """Equal for texts of equal substance; ``fallback`` (a hash) stands for content that was not kept."""
    return fallback if text is None else digest(canonical(substance(loads(text))))


def cached_key(text: str | None, fallback: str = "") -> str:
    """The same with ids, which a prompt cache reads too."""
    return fallback if text is None else digest(canonical(substance(loads(text), ids=True)))


def _walk(value: Any, left_out: frozenset[str], depth: int) -> Any:
    if depth > 100:
        return value
    if isinstance(value, list):
        return [_walk(v, left_out, depth + 1) for v in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, member in value.items():
        if name in left_out:
            continue
        if name in _DATA:
            found[name] = member
        elif name in ("content", "output"):
            found[name] = _content(_walk(member, left_out, depth + 1))
        else:
            found[name] = _walk(member, left_out, depth + 1)
    return found


def _content(value: Any) -> Any:
    """One block of nothing but text is that text."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        block = value[0]
        if set(block) == {"type", "text"} and block["type"] in _TEXTS:
            return block["text"]
    return value
