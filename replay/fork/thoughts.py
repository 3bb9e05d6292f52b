"""Thinking that cannot be sent again as it is: unsigned, altered, or only a summary. It is taken out and named."""

from __future__ import annotations

from collections import Counter
from typing import Any

_THINKING = ("thinking", "redacted_thinking")


def sendable(api: str, messages: list[Any]) -> tuple[list[Any], Counter[str]]:
    """The messages without such thinking, and how many parts went, by the reason."""
    gone: Counter[str] = Counter()
    if api == "anthropic.messages":
        made = [_anthropic(m, gone) for m in messages]
        return [m for m in made if m is not None], gone
    if api == "openai.responses":
        return [m for m in messages if not _hidden(m, gone)], gone
    return messages, gone


def _anthropic(message: Any, gone: Counter[str]) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return message
    kept = []
    for block in content:
        reason = _why(block)
        if reason:
            gone[reason] += 1
        else:
            kept.append(block)
    if len(kept) == len(content):
        return message
    return {**message, "content": kept} if kept else None


def _why(block: Any) -> str | None:
    if not isinstance(block, dict) or block.get("type") not in _THINKING:
        return None
    if block["type"] == "redacted_thinking":
        return None if isinstance(block.get("data"), str) and block["data"] else "without its data"
    signature = block.get("signature")
    if not isinstance(signature, str) or not signature:
        return "without a signature"
    if "[redacted:" in signature or "[redacted:" in str(block.get("thinking")):
        return "altered where a secret was removed"
    return "of a cut answer" if block.get("incomplete") is True else None


def _hidden(item: Any, gone: Counter[str]) -> bool:
    """A reasoning item that only the server could read: without its encrypted content it means nothing elsewhere."""
    if not isinstance(item, dict) or item.get("type") != "reasoning" or item.get("encrypted_content"):
        return False
    gone["without its encrypted content"] += 1
    return True
