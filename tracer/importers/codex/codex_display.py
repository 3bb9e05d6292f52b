"""How a command went, as the display log of a Codex rollout tells, and the call it was where no item has it."""

from __future__ import annotations

from typing import Any

from ...canonical import canonical
from ...providers.answer import text_of
from . import codex_lines as said

COMMANDS = {"CommandExecution": "command_execution", "FileChange": "file_change", "McpToolCall": "mcp_tool_call"}
WORDS = {"UserMessage": "user", "AgentMessage": "assistant", "Reasoning": "reasoning"}
LEGACY_WORDS = {"user_message": "user", "agent_message": "assistant", "agent_reasoning": "reasoning"}
LEGACY_COMMANDS = ("exec_command_end", "patch_apply_end", "mcp_tool_call_end")
_LAST_MS = 2**43


def facts(item: dict[str, Any], payload: dict[str, Any], at: int | None) -> dict[str, Any]:
    """How a command went: exit code, status, time."""
    code = item.get("exit_code")
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    status, took = text_of(item.get("status")), said.milliseconds(item.get("duration"))
    begun, ended = said.count(payload.get("started_at_ms")), said.count(payload.get("completed_at_ms"))
    end = ended * 1000 if ended is not None and ended < _LAST_MS else at
    start = begun * 1000 if begun is not None and begun < _LAST_MS else None
    if start is None and end is not None and took is not None and 0 <= took * 1000 <= end:
        start = end - round(took * 1000)
    if start is not None and end is not None and start > end:
        start = None
    failed = code != 0 if code is not None else None
    if failed is None and (status in ("failed", "declined") or item.get("success") is False):
        failed = True
    found = {
        "exit_code": code,
        "status": status,
        "duration_ms": took,
        "started_at": start,
        "ended_at": end if start is not None else None,
        "is_error": failed,
    }
    return {k: v for k, v in found.items() if v is not None}


def made(kind: str, name: str, item: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A call and its result out of a display item, for files that have no others."""
    if kind == "McpToolCall":
        tool, given = text_of(item.get("tool")) or COMMANDS[kind], item.get("arguments")
        output = item.get("result") if item.get("result") is not None else item.get("error")
    else:
        tool = COMMANDS[kind]
        given = {k: item[k] for k in ("command", "cwd", "changes") if item.get(k) is not None}
        output = item.get("aggregated_output")
    raw = given if isinstance(given, str) else canonical(given if given is not None else {})
    call = {"type": "function_call", "name": tool, "arguments": raw, "call_id": name}
    return call, {"type": "function_call_output", "call_id": name, "output": output}
