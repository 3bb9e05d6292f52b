"""Images, documents and other blobs in messages: named with type and size, never shown as text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..format import octets, size

LONG = 200
"""Characters from which a run of base64 letters is taken for a blob."""

_URI = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w=-]+)*;base64,(?P<data>[A-Za-z0-9+/_=-]{64,})")
_LETTERS = re.compile(r"[A-Za-z0-9+/_-]{200,}={0,2}\s*")
_KINDS = frozenset(
    {"image", "document", "input_image", "image_url", "file", "input_file", "input_audio", "audio", "video", "container_upload"}
)  # fmt: skip
_MAGIC = (
    ("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"),
    ("JVBERi0", "application/pdf"), ("UEsDB", "application/zip"), ("H4sI", "application/gzip"), ("T2dnUw", "audio/ogg"),
)  # fmt: skip


def media(block: Mapping[str, Any]) -> str | None:
    """What stands for a block that is no text: ``image image/png, 12 kB``; None for all other blocks."""
    kind = block.get("type")
    inline = next(
        (block[k] for k in ("inlineData", "inline_data", "fileData") if isinstance(block.get(k), Mapping)), None
    )
    if inline is not None:
        return _named(
            "blob", inline.get("mimeType") or inline.get("mime_type"), inline.get("data"), inline.get("fileUri")
        )
    if not isinstance(kind, str) or kind not in _KINDS:
        return None
    for key in ("source", "image_url", "input_audio", "file", "audio"):
        inner = block.get(key)
        if isinstance(inner, str) and key != "source":
            return _of_url(kind, inner)
        if isinstance(inner, Mapping):
            return _of_inner(kind, inner)
    data = block.get("data") or block.get("file_data")
    if isinstance(data, str):
        return _named(kind, block.get("mimeType") or block.get("media_type"), data, None)
    return _named(kind, None, None, _first(block, "url", "file_id", "filename"))


def without_blobs(value: Any) -> Any:
    """The decoded JSON value with what is base64 in it named instead."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [without_blobs(v) for v in value]
    if isinstance(value, dict):
        return {k: without_blobs(v) for k, v in value.items()}
    return value


def plain(text: str, seen: int | None = None) -> str:
    """A text with the blobs in it named: data URIs, and what is base64 as a whole.

    Args:
        seen: Only so many characters of the beginning are going to be shown: no blob is looked for behind them.
    """
    if len(text) < 64:
        return text
    if "base64," in text[:seen]:
        text = _URI.sub(lambda m: f"[{_named('', m['type'], m['data'], None)}]", text)
    return f"[{_named('', None, text, None)}]" if _is_base64(text) else text


def _of_url(kind: str, url: str) -> str:
    found = _URI.match(url)
    return _named(kind, found["type"], found["data"], None) if found else _named(kind, None, None, url)


def _of_inner(kind: str, inner: Mapping[str, Any]) -> str:
    url = inner.get("url") or inner.get("file_data")
    if isinstance(url, str) and url.startswith("data:"):
        return _of_url(kind, url)
    data = inner.get("data")
    if isinstance(data, str) and inner.get("type") == "text":
        return f"{kind} {inner.get('media_type') or 'text'}, {size(len(data.encode('utf-8', 'replace')))}"
    told = inner.get("media_type") or inner.get("format")
    return _named(kind, told, data, _first(inner, "url", "file_id", "filename", "id"))


def _named(kind: str, told: object, data: object, place: object) -> str:
    kind = kind.removeprefix("input_").removesuffix("_url")
    what = told if isinstance(told, str) else _guessed(data) if isinstance(data, str) else ""
    name = " ".join(w for w in (kind, what) if w) or "base64"
    if isinstance(data, str):
        letters = len(data) - data.count("\n") - data.count("=")
        return f"{name}, {size(letters * 3 // 4)}"
    return f"{name}, {place}" if isinstance(place, str) and place else name


def _guessed(data: str) -> str:
    return next((kind for begin, kind in _MAGIC if data.startswith(begin)), "")


def _is_base64(text: str) -> bool:
    """True for a long text of base64 letters only, of all their kinds: no prose, no padding of one letter."""
    if len(text) < LONG or not _LETTERS.fullmatch(text[:4000].replace("\n", "")):
        return False
    begin = text[:2000]
    mixed = any(c.islower() for c in begin) and any(c.isupper() for c in begin) and any(c.isdigit() for c in begin)
    varied = bool(_guessed(text)) or (mixed and len(set(begin)) > 20)
    return varied and (len(text) <= 4000 or bool(_LETTERS.fullmatch(text.replace("\n", ""))))


def _first(block: Mapping[str, Any], *names: str) -> str | None:
    return next((str(block[n]) for n in names if isinstance(block.get(n), str)), None)


def octets_of(value: Any) -> int:
    """How many bytes a decoded JSON value has as text."""
    try:
        return octets(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return octets(str(value))
