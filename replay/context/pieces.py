"""What a window is made of: pieces of messages, of the system text and of the tool list, each with its origin."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...tracer.store.text import loads
from ...tracer.store.windows import Sent
from ..message_parts import parts, plain_text, role
from .estimate import image_tokens, images, json_tokens, text_tokens

ORIGINS = (
    "system", "tools", "user", "assistant", "thinking", "arguments", "result", "image", "other", "unrecorded",
)  # fmt: skip
"""In the order of a table: where the tokens of a window come from."""

_ASSISTANT = ("assistant", "thinking", "arguments")
_FITS, _SLACK = 2.0, 200  # a total beyond this many times the estimate, and so many tokens, holds more than is recorded
_IMAGE_WORDS = ("image", "document", "inlineData", "inline_data", "fileData", "file")


@dataclass(slots=True, eq=False)
class Piece:
    """A part of a window from one origin.

    Attributes:
        tool: The tool of a result, of arguments or of a schema.
        estimate: Tokens by the rule of estimate.py.
        tokens: Tokens in the end: recorded, apportioned or estimated, as ``how`` says.
    """

    origin: str
    tool: str | None
    text: str
    estimate: float
    call: str | None = None
    tokens: float = 0.0
    how: str = "estimated"

    @property
    def answered(self) -> bool:
        """True for what the model itself said."""
        return self.origin in _ASSISTANT


@dataclass(slots=True, eq=False)
class Entry:
    """A message of the window (``sent``), or the system text or tool list (None), with its pieces.

    Attributes:
        since: The first turn that carried it.
    """

    sent: Sent | None
    since: int
    pieces: list[Piece]


def of_message(sent: Sent, since: int, tools: Mapping[str, str]) -> Entry:
    """A message's pieces; ``tools`` names the tool of every call id."""
    if sent.text is None:  # content was not kept: its length alone is known
        origin = {"assistant": "assistant", "user": "user", "system": "system", "tool": "result"}.get(sent.role or "")
        return Entry(sent, since, [Piece(origin or "other", None, "", (sent.length or 0) / 4)])
    message = loads(sent.text)
    who = role(message)
    found = [Piece("image", None, "", image_tokens(block)) for block in _images(sent.text, message)]
    for part in parts(message):
        if part.kind == "image":
            continue  # counted by its size
        if part.kind == "result":
            name = tools.get(part.call or "")
            found.append(Piece("result", name, part.text, text_tokens(part.text), part.call))
        elif part.kind == "call":
            said = json_tokens(part.text) + text_tokens(part.name or "")
            found.append(Piece("arguments", part.name, part.text, said, part.call))
        else:
            found.append(Piece(_origin(part.kind, who), None, part.text, text_tokens(part.text)))
    return Entry(sent, since, found)


def of_system(text: str | None, since: int) -> Entry:
    """The system text."""
    said = plain_text(loads(text)) if text else ""
    return Entry(None, since, [Piece("system", None, said, text_tokens(said))] if said else [])


def of_tools(text: str | None, since: int) -> Entry:
    """The tool list: a piece for every tool."""
    value = loads(text)
    tools = value if isinstance(value, list) else [] if value is None else [value]
    found = []
    for tool in tools:
        said = json.dumps(tool, ensure_ascii=False)
        found.append(Piece("tools", tool_name(tool), said, json_tokens(said)))
    return Entry(None, since, found)


def unrecorded(pieces: Sequence[Piece], recorded: int | None) -> list[Piece]:
    """What a first request held beyond its pieces, where neither system nor tools were recorded; nothing if it fits."""
    known = sum(p.estimate for p in pieces)
    if recorded is None or recorded <= _FITS * known + _SLACK or any(p.origin in ("system", "tools") for p in pieces):
        return []
    return [Piece("unrecorded", None, "", recorded - known)]


def tool_name(tool: Any) -> str | None:
    """The name that an offered tool has in any dialect."""
    if not isinstance(tool, dict):
        return None
    function = tool.get("function")
    name = tool.get("name") or (function.get("name") if isinstance(function, dict) else None) or tool.get("type")
    return name if isinstance(name, str) else None


def _images(text: str, message: Any) -> list[dict[str, Any]]:
    return list(images(message)) if any(f'"{word}' in text for word in _IMAGE_WORDS) else []


def _origin(kind: str, who: str) -> str:
    if kind == "thinking":
        return "thinking"
    if kind != "text":
        return "other"
    return {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}.get(who, "other")
