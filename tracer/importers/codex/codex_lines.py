"""What single items of a Codex rollout mean: who speaks, what was counted, how a command ended. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ...model import Usage
from ...providers.answer import mapping, objects, text_of

MAX_COUNT = 2**53
TITLE_LENGTH = 120

CALLS = frozenset(
    {
        "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call",
        "tool_search_call", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
        "mcp_call",
    }
)  # fmt: skip
# items that stand for earlier ones, as the server or the client shortened the history
_SHORTENED = frozenset({"compaction", "compaction_summary", "context_compaction"})
_QUIET = frozenset({"ghost_snapshot"})

# Events that say nothing that the items do not say, or nothing about the loop.
_QUIET_EVENTS = frozenset(
    {
        "task_started", "turn_started", "agent_message_delta", "agent_reasoning_delta", "agent_reasoning_section_break",
        "agent_reasoning_raw_content", "session_configured", "item_started", "exec_command_begin",
        "exec_command_output_delta", "patch_apply_begin", "mcp_tool_call_begin", "web_search_begin", "web_search_end",
        "turn_diff", "plan_update", "context_compacted", "background_event", "get_history_entry_response",
        "mcp_list_tools_response", "shutdown_complete", "exec_approval_request", "apply_patch_approval_request",
        "entered_review_mode", "exited_review_mode", "view_image_tool_call", "image_generation_begin",
        "image_generation_end", "thread_settings_applied", "token_usage_updated",
    }
)  # fmt: skip

_INJECTED = (
    "<environment_context", "<user_instructions", "# AGENTS.md instructions", "<INSTRUCTIONS>", "<turn_aborted",
    "<user_shell_command", "<skill>", "<permissions instructions", "<collaboration_mode", "<subagent_notification",
    "<apps_instructions", "<personality_spec", "<model_switch", "<hook_prompt", "<user_action", "<recommended_",
)  # fmt: skip
_EXIT = re.compile(r"(?:Process exited with code|Exit code:|exit code) (-?\d{1,10})\b")
_FAILED = ("failed to parse", "unsupported call", "execution error", "exec_command failed")
_DENIED = ("exec command rejected by user", "patch rejected by user", "rejected by user")


def kind_of(item: dict[str, Any]) -> str | None:
    """``said`` by the model, ``heard`` by it, ``result``, ``quiet``; None for what nobody here knows."""
    kind = item.get("type")
    if not isinstance(kind, str):
        return None
    if kind == "message":
        role = item.get("role")
        return "said" if role == "assistant" else "heard" if role in ("user", "developer", "system") else None
    if kind == "reasoning" or kind in CALLS:
        return "said"
    if kind.endswith("_output") and text_of(item.get("call_id")):
        return "result"
    return "heard" if kind in _SHORTENED else "quiet" if kind in _QUIET else None


def is_quiet(event: str) -> bool:
    """True for display events that are known and say nothing more."""
    return event in _QUIET_EVENTS or event.startswith("collab_")


def words(item: dict[str, Any]) -> list[str]:
    """The texts of a message or a reasoning item, part by part; type names in any casing."""
    found = []
    for key in ("content", "summary", "summary_text", "raw_content"):
        value = item.get(key)
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            text = part if isinstance(part, str) else mapping(part).get("text")
            if isinstance(text, str) and text.strip():
                found.append(text)
    return found


def role_of(item: dict[str, Any]) -> str:
    """Who speaks in an item that has words."""
    return "reasoning" if item.get("type") == "reasoning" else str(item.get("role"))


def is_prompt(item: dict[str, Any]) -> bool:
    """True for a person's word; False for what the client puts before the model in their name."""
    if item.get("role") != "user":
        return False
    passed = mapping(item.get("internal_chat_message_metadata_passthrough"))
    kinds = passed.get("content_item_kinds")
    if isinstance(kinds, list) and kinds and not any(k == "unknown" or str(k).startswith("user.") for k in kinds):
        return False
    texts = words(item)
    return not texts or not all(text.lstrip().startswith(_INJECTED) for text in texts)


def title_of(item: dict[str, Any]) -> str | None:
    """The first line of a prompt that was said, of bounded length."""
    text = next((t for t in words(item) if not t.lstrip().startswith(_INJECTED)), "")
    line = " ".join(text.split())
    return (line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…") or None


def message(role: str, texts: list[str], name: str | None = None) -> dict[str, Any]:
    """An item made from a display event, for rollouts that keep the words nowhere else."""
    if role == "reasoning":
        found: dict[str, Any] = {"type": "reasoning", "summary": [{"type": "summary_text", "text": t} for t in texts]}
    else:
        part = "output_text" if role == "assistant" else "input_text"
        found = {"type": "message", "role": role, "content": [{"type": part, "text": t} for t in texts]}
    return {**found, "id": name} if name else found


def count(value: Any) -> int | None:
    """A token count that a column can hold, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT else None


def usage(raw: Any) -> Usage:
    """Codex counts in disjoint buckets: input holds cached tokens, output holds reasoning."""
    if not isinstance(raw, dict):
        return Usage()
    total, read = count(raw.get("input_tokens")), count(raw.get("cached_input_tokens"))
    write, output = count(raw.get("cache_write_input_tokens")), count(raw.get("output_tokens"))
    return Usage(
        input=None if total is None else max(0, total - (read or 0) - (write or 0)),
        cache_read=read,
        cache_write_5m=write,  # one price here
        output=output,
        reasoning=count(raw.get("reasoning_output_tokens")),
        origin="recorded",
        raw=raw,
    )


def tokens(raw: Any) -> int:
    """Tokens read and written together."""
    counts = mapping(raw)
    return (count(counts.get("input_tokens")) or 0) + (count(counts.get("output_tokens")) or 0)


def same_counts(raw: Any) -> tuple[int | None, ...]:
    """What two usage objects must share to be the same count."""
    names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
    return tuple(count(mapping(raw).get(name)) for name in names)


def difference(later: dict[str, Any], earlier: dict[str, Any] | None) -> dict[str, Any]:
    """What was added between two cumulative counts."""
    before = earlier or {}
    found = {}
    for name, value in later.items():
        if (number := count(value)) is not None:
            found[name] = max(0, number - (count(before.get(name)) or 0))
    return found


def failure(item: dict[str, Any]) -> tuple[int | None, bool | None, str | None]:
    """Exit code, is it an error, and its class, as the result itself tells; None where it does not."""
    output = item.get("output")
    if isinstance(output, dict):
        success = output.get("success")
        failed = not success if isinstance(success, bool) else None
        code, said, kind = _failure_of_text(next(iter(words(output)), ""))
        return code, failed if said is None else said, kind
    return _failure_of_text(output if isinstance(output, str) else next(iter(words({"content": output})), ""))


def _failure_of_text(text: str) -> tuple[int | None, bool | None, str | None]:
    if text.startswith("{") and '"exit_code"' in text:
        code = _exit_code(text)
        if code is not None:
            return code, code != 0, None
    head = text[:400]
    if head.startswith(_DENIED):
        return None, True, "denied"
    if head.startswith("aborted"):
        return None, True, "cancelled"
    if found := _EXIT.search(head.partition("\nOutput:")[0]):
        code = int(found[1])
        return code, code != 0, None
    return (None, True, None) if head.startswith(_FAILED) else (None, None, None)


def _exit_code(text: str) -> int | None:
    try:
        value = mapping(mapping(json.loads(text)).get("metadata")).get("exit_code")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def milliseconds(duration: Any) -> float | None:
    """A duration in seconds and nanoseconds as milliseconds."""
    seconds, nanos = mapping(duration).get("secs"), mapping(duration).get("nanos")
    known = [v for v in (seconds, nanos) if isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**40]
    if len(known) < 2:
        return None
    return known[0] * 1000 + known[1] / 1_000_000


def spawned(item: dict[str, Any]) -> Iterator[str]:
    """Ids of the threads that the result of a spawning call names."""
    output = item.get("output")
    text = output if isinstance(output, str) else mapping(output).get("content")
    if not isinstance(text, str) or len(text) > 10_000:
        return
    for value in [mapping(_loaded(text)), *objects(mapping(_loaded(text)).get("agents"))]:
        for key in ("agent_id", "thread_id", "id"):
            if name := text_of(value.get(key)):
                yield name


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
