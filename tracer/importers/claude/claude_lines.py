"""What single lines of a Claude Code session say: pure functions, no state."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

MAX_COUNT = 1 << 53
TITLE_LENGTH = 200

# kinds of lines that hold nothing of the conversation; what is not named anywhere is counted as unknown
NOISE = frozenset({"file-history-snapshot", "queue-operation", "pr-link"})
QUIET_SYSTEM = ("stop_hook_summary", "turn_duration", "local_command", "informational")
BLOCKS = frozenset(
    {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use", "mcp_tool_result",
     "image", "document"}
)  # fmt: skip

SYNTHETIC = "<synthetic>"
_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_HOUSEKEEPING = frozenset({"/clear", "/exit", "/quit", "/model", "/login", "/logout", "/compact", "/config", "/resume"})
_INTERRUPTED = "[Request interrupted by user"
_NOT_SAID = (_INTERRUPTED, "<local-command-stdout>", "<local-command-stderr>", "<local-command-caveat>")
_DENIED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "User rejected tool use",
)
_CANCELLED = ("<tool_use_error>Sibling tool call errored", "Sibling tool call errored", _INTERRUPTED)
_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_UNRELIABLE = ((2, 1, 12), (2, 1, 29))
_EARLY = 2000
# fields that hold no object stand before the type: nothing of a message can be taken for it
_NOISE = re.compile(
    rb'\{(?:"\w+":(?:null|true|false|"[^"\\]*"),)*"type":"progress",'
    rb'"data":\{"type":"(?:bash_progress|hook_progress|mcp_progress|query_update|search_results_received)"'
)
# no text has more characters a token than this; with it a recorded count is proved too low
_CHARACTERS_A_TOKEN = 20
_SMALL_CHANGE = 60


def text_of(content: Any) -> str:
    """The text of a message's or a result's content."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(b["text"] for b in content if isinstance(b, dict) and isinstance(b.get("text"), str))


def assistant_message(line: dict[str, Any], sane: Callable[[dict[str, Any]], Any]) -> dict[str, Any] | None:
    """The message of an assistant line with id, model, content list and sane usage; None when it has no id."""
    message = line.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("id"), str) or not message["id"]:
        return None
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    found = {**message, "content": content if isinstance(content, list) else []}
    for name in ("model", "stop_reason", "stop_sequence"):
        if not isinstance(found.get(name), str):
            found[name] = None
    found["usage"] = sane(message["usage"]) if isinstance(message.get("usage"), dict) else None
    return found


def unknown_blocks(content: list[Any]) -> Iterator[str]:
    """Types of the blocks that this importer has never met; they are kept as they are."""
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str):
            yield "block without a type"
        elif kind not in BLOCKS and not kind.endswith("_tool_result"):
            yield f"block {kind[:60]}"


def error_class(text: str) -> str | None:
    """``denied`` for a person's refusal, ``cancelled`` for the victims of another call, None when unknown."""
    if text.startswith(_DENIED):
        return "denied"
    return "cancelled" if text.startswith(_CANCELLED) else None


def is_interruption(text: str) -> bool:
    """True for the line that says that the person stopped the model."""
    return text.startswith(_INTERRUPTED)


def is_said(text: str) -> bool:
    """True when a person wrote this; False for what the client puts in their place."""
    return not text.startswith(_NOT_SAID)


def title_of(text: str) -> tuple[str, bool] | None:
    """A prompt as a title, and whether it is worth one (a bare ``/clear`` is not); None without text."""
    command = _COMMAND.search(text)
    if command:
        arguments = _ARGUMENTS.search(text)
        name = " ".join(command[1].split())
        return title_line(f"{name} {arguments[1] if arguments else ''}"), name not in _HOUSEKEEPING
    if not is_said(text) or not text.strip():
        return None
    return title_line(text), True


def counts_early(version: Any) -> bool:
    """True for versions of the client that store the output tokens of the first moment."""
    return isinstance(version, str) and _counts_early(version)


def too_few_tokens(tokens: Any, content: list[Any]) -> bool:
    """True when an answer is longer than its recorded output tokens can be."""
    return isinstance(tokens, int) and _characters(content) > tokens * _CHARACTERS_A_TOKEN + _SMALL_CHANGE


@lru_cache(maxsize=64)
def _counts_early(version: str) -> bool:
    parts = _VERSION.match(version)
    return parts is not None and _UNRELIABLE[0] <= (int(parts[1]), int(parts[2]), int(parts[3])) <= _UNRELIABLE[1]


def _characters(content: list[Any]) -> int:
    total = 0
    for block in content:
        if isinstance(block, dict):
            for name in ("text", "thinking"):
                value = block.get(name)
                total += len(value) if isinstance(value, str) else 0
            given = block.get("input")
            if isinstance(given, dict):
                total += sum(len(v) for v in given.values() if isinstance(v, str))
    return total


def sane(value: Any) -> Any:
    """Usage without counts that no column holds: they are no counts."""
    if isinstance(value, dict):
        return {k: v if type(v) is int and 0 <= v <= MAX_COUNT else sane(v) for k, v in value.items()}
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= MAX_COUNT else None
    return value


def is_noise(raw: bytes) -> bool:
    """True for a line of progress that tells nothing of the conversation: known by its first fields, never decoded.

    A line that may hold more than one object is none.
    """
    return (
        raw.find(b'"type":"progress"', 0, _EARLY) > 0
        and _NOISE.match(raw) is not None
        and raw.endswith(b"}\n")
        and b"}{" not in raw
    )


def title_line(text: str) -> str:
    """A text as one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
