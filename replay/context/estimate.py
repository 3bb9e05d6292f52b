"""How many tokens a text, a piece of JSON or an image may be, where nobody counted them: simple rules, said in the docs."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator
from typing import Any

RULE = "4 ASCII characters a token (3 in JSON), every other character one; images by their size, width x height / 750"

PROSE, JSON = 4.0, 3.0  # ASCII characters a token
IMAGE = 1500.0  # of an image whose size cannot be read
_PIXELS, _MOST = 750, 1600.0
_HEAD = 1 << 16  # characters of base64 in which the size must stand


def text_tokens(text: str, per_token: float = PROSE) -> float:
    """Tokens of a text by the rule; never 0 for a text that is not empty."""
    if text.isascii():
        return len(text) / per_token
    plain = len(text.encode("ascii", "ignore"))
    return plain / per_token + (len(text) - plain)


def json_tokens(text: str) -> float:
    """Tokens of JSON text: its signs make more of them."""
    return text_tokens(text, JSON)


def images(message: Any) -> Iterator[dict[str, Any]]:
    """Every block of a message that is an image or a document, at any depth."""
    stack = [message]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(reversed(value))
        elif isinstance(value, dict):
            if _is_image(value):
                yield value
            else:
                stack.extend(v for v in reversed(list(value.values())) if isinstance(v, (dict, list)))


def image_tokens(block: dict[str, Any]) -> float:
    """Tokens of an image by its width and height; `IMAGE` where they cannot be read."""
    size = _size(_data(block))
    return IMAGE if size is None else max(1.0, min(_MOST, math.ceil(size[0] * size[1] / _PIXELS)))


def _is_image(block: dict[str, Any]) -> bool:
    kind = block.get("type")
    if isinstance(kind, str):
        return kind in ("image", "image_url", "input_image", "document", "input_file", "file")
    return "inlineData" in block or "inline_data" in block or "fileData" in block


def _data(block: dict[str, Any]) -> str:
    """The base64 text of an image, empty where it is only named."""
    for name in ("source", "image_url", "inlineData", "inline_data"):
        inner = block.get(name)
        if isinstance(inner, dict):
            inner = inner.get("data") or inner.get("url")
        if isinstance(inner, str):
            return inner.partition("base64,")[2] if inner.startswith("data:") else inner
    return ""


def _size(data: str) -> tuple[int, int] | None:
    """Width and height out of the head of a PNG, GIF or JPEG in base64."""
    try:
        head = base64.b64decode(data[:_HEAD][: len(data[:_HEAD]) // 4 * 4])
    except (binascii.Error, ValueError):
        return None
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack(">II", head[16:24])
        if head[:4] == b"GIF8":
            return struct.unpack("<HH", head[6:10])
        return _jpeg(head) if head.startswith(b"\xff\xd8") else None
    except (struct.error, IndexError):
        return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    place = 2
    while place + 9 < len(head):
        marker = head[place + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[place + 5 : place + 9])
            return width, height
        place += 2 + struct.unpack(">H", head[place + 2 : place + 4])[0]
    return None
