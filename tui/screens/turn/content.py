"""Message contents (decoded JSON of any provider) as blocks to read. Odd data is shown as it is, never refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....replay.message_parts import parts
from ...format import counted
from ...told.media import media, plain, without_blobs
from ...widgets.blocks import Block, Body, Head
from ...widgets.cells import Span, Spans
from ...widgets.json_text import compact, pretty, pretty_text, readable

_TEXT_KEYS = ("text", "thinking", "refusal", "output")
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "function_call", "custom_tool_call"})
_PREVIEW = 160
_SEEN = 100_000
"""Characters of which the first lines of a text are surely a part."""


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
    if raw:
        return [Body(value if isinstance(value, str) else compact(value), role, indent, "json", most)]
    if isinstance(value, str):
        return [words(value, indent=indent, role=role, most=most)]
    if isinstance(value, list) and value and all(isinstance(b, Mapping) for b in value):
        return [made for block in value for made in _block(block, indent, role, most)]
    return [Body(pretty(without_blobs(value)), role, indent, "json", most)]


def words(text: str, *, indent: int = 2, role: str = "text", most: int = 0) -> Body:
    """A text: indented where it is JSON; blobs in it are named."""
    found = readable(text)
    if found is not None:
        return Body(pretty(without_blobs(found)), role, indent, "json", most)
    return Body(plain(text, _SEEN if most else None), role, indent, "", most)


def message_blocks(
    message: Any, *, indent: int = 2, role: str = "text", most: int = 0, raw: bool = False
) -> list[Block]:
    """A message of any provider, without its speaker."""
    if raw or not isinstance(message, Mapping):
        return blocks(message, indent=indent, role=role, most=most, raw=raw)
    if message.get("not_recorded"):
        length = message.get("length")
        size = f", {length:,} characters" if isinstance(length, int) else ""
        return [Head(((f"not recorded{size}: only its hash is kept", "dim"),), indent)]
    if isinstance(message.get("parts"), list):
        return blocks(message["parts"], indent=indent, role=role, most=most)
    if "content" not in message:
        return _block(message, indent, role, most)
    out = _thought(message, indent, most) + blocks(message["content"], indent=indent, role=role, most=most)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        inner = call.get("function") or call.get("custom") if isinstance(call, Mapping) else None
        if isinstance(inner, Mapping):
            out += _call({**inner, "id": call.get("id")}, indent, most)
        else:
            out.append(json_block(call, indent=indent, most=most))
    return out


def preview(message: Any) -> Spans:
    """What a message says, on one line: its words, calls and results."""
    spans: list[Span] = []
    for part in parts(message)[:6]:
        if spans:
            spans.append(("  ", "dim"))
        text = " ".join(plain(part.text[: 4 * _PREVIEW]).split())[:_PREVIEW]
        if part.kind == "call":
            spans += [("→ ", "accent"), (part.name or "?", "text"), (f" {text}", "dim")]
        elif part.kind == "result":
            spans += [("✗ " if part.is_error else "= ", "bad_strong" if part.is_error else "dim"), (text, "dim")]
        elif part.kind == "thinking":
            spans.append((f"~ {text}", "faint"))
        else:
            spans.append((text, "dim"))
    return tuple(spans)


def amount(text: str) -> str:
    """``45,001 lines, 19,878,889 characters``."""
    return f"{counted(text.count(chr(10)) + 1, 'line')}, {counted(len(text), 'character')}"


def json_block(value: Any, *, indent: int = 2, most: int = 0, raw: bool = False) -> Block:
    """A decoded JSON value, indented or in one line."""
    return Body(compact(value) if raw else pretty(without_blobs(value)), "text", indent, "json", most)


def arguments(raw_text: str, *, indent: int = 2, most: int = 0, raw: bool = False) -> Block:
    """The arguments of a call, as written or indented."""
    text, syntax = (raw_text, "json") if raw else pretty_text(raw_text)
    return Body(text, "text", indent, syntax, most)


def _block(block: Mapping[str, Any], indent: int, role: str, most: int) -> list[Block]:
    kind = str(block.get("type", ""))
    named = media(block)
    if named is not None:
        return [Head(((f"[{named}]", "dim"),), indent)]
    said = next((block[k] for k in ("text", "refusal") if isinstance(block.get(k), str)), None)
    if said is not None and block.get("thought") is not True:
        return [words(said, indent=indent, role=role, most=most)]
    if kind in ("thinking", "redacted_thinking", "reasoning") or block.get("thought") is True:
        return _thinking(block, indent, most)
    if kind in _CALLS:
        return _call(block, indent, most)
    for key in ("functionCall", "function_call"):
        if isinstance(block.get(key), Mapping):
            return _call(block[key], indent, most)
    if kind.endswith(("tool_result", "_call_output")):
        spans: list[Span] = [("result ", "dim"), (str(block.get("tool_use_id") or block.get("call_id") or ""), "faint")]
        if block.get("is_error") is True:
            spans.append(("  ✗ error", "bad_strong"))
        content = block.get("output") if "output" in block else block.get("content")
        return [Head(tuple(spans), indent), *blocks(content, indent=indent + 2, role=role, most=most)]
    return [Body(pretty(without_blobs(dict(block))), role, indent, "json", most)]


def _call(block: Mapping[str, Any], indent: int, most: int) -> list[Block]:
    asked = next((block[k] for k in ("input", "arguments", "args") if k in block), None)
    shown = str(block.get("id") or block.get("call_id") or "")
    head = Head((("→ ", "accent"), (str(block.get("name")), "strong"), (f"  {shown}", "faint")), indent)
    return [head, *blocks(asked, indent=indent + 2, most=most)]


def _thinking(block: Mapping[str, Any], indent: int, most: int) -> list[Block]:
    text = next((block[k] for k in ("thinking", "text") if isinstance(block.get(k), str)), None)
    summary = block.get("summary") or block.get("content")
    if text is None and isinstance(summary, list):
        text = text_of(summary)
    facts = [f"signed, {len(sign):,} characters"] if isinstance(sign := block.get("signature"), str) and sign else []
    if not text:
        hidden = block.get("data") or block.get("encrypted_content")
        facts.insert(
            0, f"hidden by the provider, {len(hidden):,} characters" if isinstance(hidden, str) else "no words"
        )
    head = Head((("thinking", "dim"), ("  " + ", ".join(facts) if facts else "", "faint")), indent)
    return [head, *([Body(text, "dim", indent + 2, "", most)] if text else [])]


def _thought(message: Mapping[str, Any], indent: int, most: int) -> list[Block]:
    text = next((message[k] for k in ("reasoning_content", "reasoning") if isinstance(message.get(k), str)), None)
    return [Head((("thinking", "dim"),), indent), Body(text, "dim", indent + 2, "", most)] if text else []


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping):
        for key in _TEXT_KEYS:
            if isinstance(block.get(key), str):
                return str(block[key])
        if (named := media(block)) is not None:
            return f"[{named}]"
    return compact(block)
