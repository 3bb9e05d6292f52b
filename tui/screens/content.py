"""Message contents (decoded JSON of any provider) as blocks to read. Odd data is shown as it is, never refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..format import size
from ..widgets.cells import Span
from ..widgets.document import Block, Body, Head
from ..widgets.json_text import compact, pretty, pretty_text

_TEXT_KEYS = ("text", "thinking", "refusal", "output")


def text_of(value: Any) -> str:
    """The text of a content: strings as they are, text blocks joined, everything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_block_text(b) for b in value)
    return compact(value)


def blocks(value: Any, *, indent: int = 2, role: str = "text", most: int = 0, raw: bool = False) -> list[Block]:
    """A content as blocks. ``most``: lines shown of each text; ``raw``: the JSON as it is."""
    if value is None:
        return []
    if raw and not isinstance(value, str):
        return [Body(compact(value), role, indent, "json", most)]
    if isinstance(value, str):
        text, syntax = (value, "") if raw else pretty_text(value)
        return [Body(text, role, indent, syntax, most)]
    if isinstance(value, list) and value and all(isinstance(b, Mapping) for b in value):
        return [made for block in value for made in _block(block, indent, role, most)]
    return [Body(pretty(value), role, indent, "json", most)]


def json_block(value: Any, *, indent: int = 2, most: int = 0, raw: bool = False) -> Block:
    """A decoded JSON value, indented or in one line."""
    return Body(compact(value) if raw else pretty(value), "text", indent, "json", most)


def arguments(raw_text: str, *, indent: int = 2, most: int = 0, raw: bool = False) -> Block:
    """The arguments of a call, as written or indented."""
    text, syntax = (raw_text, "json") if raw else pretty_text(raw_text)
    return Body(text, "text", indent, syntax, most)


def _block(block: Mapping[str, Any], indent: int, role: str, most: int) -> list[Block]:
    kind = str(block.get("type", ""))
    if kind in ("text", "input_text", "output_text") and isinstance(block.get("text"), str):
        text, syntax = pretty_text(block["text"])
        return [Body(text, role, indent, syntax, most)]
    if kind == "thinking":
        return [Head((("thinking", "dim"),), indent), Body(str(block.get("thinking", "")), "dim", indent, "", most)]
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use", "function_call"):
        call = block.get("input", block.get("arguments"))
        head = Head(
            (("call ", "dim"), (str(block.get("name")), "strong"), (f"  {block.get('id') or ''}", "faint")), indent
        )
        return [head, *blocks(call, indent=indent + 2, most=most)]
    if kind == "tool_result":
        bad = block.get("is_error") is True
        spans: list[Span] = [("result ", "dim"), (str(block.get("tool_use_id", "")), "faint")]
        if bad:
            spans.append(("  ✗ error", "bad_strong"))
        return [Head(tuple(spans), indent), *blocks(block.get("content"), indent=indent + 2, role=role, most=most)]
    if kind in ("image", "document", "input_image", "image_url", "file"):
        return [Head(((f"[{_media(block)}]", "dim"),), indent)]
    return [Body(pretty(block), role, indent, "json", most)]


def _media(block: Mapping[str, Any]) -> str:
    source = block.get("source")
    kind = block.get("type")
    if isinstance(source, Mapping):
        data = source.get("data")
        octets = len(data) * 3 // 4 if isinstance(data, str) else 0
        what = f"{kind} {source.get('media_type') or source.get('type') or ''}".strip()
        return f"{what}, {size(octets)}" if octets else what
    return f"{kind}, {size(len(compact(block)))} of JSON"


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping):
        for key in _TEXT_KEYS:
            if isinstance(block.get(key), str):
                return str(block[key])
        if block.get("type") in ("image", "document"):
            return f"[{_media(block)}]"
    return compact(block)
