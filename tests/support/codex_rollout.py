"""Builds the lines of a Codex rollout, for tests of its import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "019a0000-0000-7000-8000-00000000aaaa"


class Rollout:
    """Lines in order, two seconds apart. Every method adds one and gives its payload."""

    def __init__(self, session: str | None = SESSION, *, begin: int = 0, **meta: Any) -> None:
        self.lines: list[str] = []
        self.second = begin
        if session is not None:
            self.meta(session, **meta)

    @property
    def now(self) -> str:
        """The time of the next line."""
        return f"2026-11-02T09:{self.second // 60:02}:{self.second % 60:02}.000Z"

    def add(self, kind: str, payload: dict[str, Any], *, step: int = 2, **beside: Any) -> dict[str, Any]:
        """A line of any type."""
        self.second += step
        self.lines.append(json.dumps({"timestamp": self.now, "type": kind, "payload": payload, **beside}))
        return payload

    def meta(self, session: str, *, step: int = 2, **more: Any) -> None:
        """The line that opens a file."""
        facts = {"id": session, "timestamp": self.now, "cwd": "/home/dev/demo", "cli_version": "0.120.0"}
        self.add("session_meta", {**facts, **more}, step=step)

    def item(self, kind: str, *, step: int = 2, **fields: Any) -> None:
        """What the model saw or said."""
        self.add("response_item", {"type": kind, **fields}, step=step)

    def event(self, kind: str, *, step: int = 2, **fields: Any) -> None:
        """What the screen showed."""
        self.add("event_msg", {"type": kind, **fields}, step=step)

    def user(self, text: str, **more: Any) -> None:
        """A user message."""
        self.item("message", role="user", content=[{"type": "input_text", "text": text}], **more)

    def says(self, text: str, **more: Any) -> None:
        """An assistant message."""
        self.item("message", role="assistant", content=[{"type": "output_text", "text": text}], **more)

    def call(self, name: str, arguments: str = '{"cmd":"ls"}', tool: str = "shell", **more: Any) -> None:
        """A function call."""
        self.item("function_call", name=tool, arguments=arguments, call_id=name, **more)

    def output(self, name: str, output: Any = "ok", **more: Any) -> None:
        """The result of a call."""
        self.item("function_call_output", call_id=name, output=output, **more)

    def counted(self, total: Any, last: Any = None, *, step: int = 2) -> None:
        """A cumulative count; both are (input, cached, output, reasoning)."""
        info = {"total_token_usage": usage(*total), "last_token_usage": usage(*(last or total))}
        self.event("token_count", info=info, step=step)

    def shown(self, kind: str, *, step: int = 2, at: dict[str, int] | None = None, **item: Any) -> None:
        """A completed item of the display log."""
        self.event("item_completed", item={"type": kind, **item}, step=step, **(at or {}))

    def record(self, used: Any, thread: Any = None, *, step: int = 2, **more: Any) -> None:
        """The usage of one response, as newer versions write it."""
        total = usage(*(thread or used))
        self.add("token_usage_record", {"usage": usage(*used), "thread_token_usage": total, **more}, step=step)

    def raw(self, line: str) -> None:
        """A line exactly as given."""
        self.lines.append(line)

    def text(self) -> str:
        """The whole file."""
        return "".join(line + "\n" for line in self.lines)

    def write(self, path: Path) -> Path:
        """Writes the file and returns its path."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text())
        return path


def usage(read: int, cached: int, written: int, reasoning: int = 0) -> dict[str, int]:
    """A usage object; ``read`` includes ``cached``, ``written`` includes ``reasoning``."""
    return {
        "input_tokens": read,
        "cached_input_tokens": cached,
        "output_tokens": written,
        "reasoning_output_tokens": reasoning,
        "total_tokens": read + written,
    }


def old_style() -> Rollout:
    """A rollout of the early client: two calls, one malformed, cumulative counters that repeat."""
    made = Rollout(model_provider="openai", originator="codex_cli_rs")
    made.add("turn_context", {"model": "gpt-demo-6", "approval_policy": "never"})
    made.event("token_count", info=None, rate_limits=None)
    made.user("<environment_context>x</environment_context>")
    made.event("user_message", message="list")
    made.item("reasoning", summary=[], encrypted_content="gAAA")
    made.call("c1", '{"command":["ls"]}')
    made.output("c1", '{"output":"a\\n","metadata":{"exit_code":0}}')
    made.counted((1000, 400, 50, 20))
    made.counted((1000, 400, 50, 20))
    made.call("c2", '{"command":["ls"')
    made.output("c2", "failed to parse function arguments")
    made.event("agent_message", message="done")
    made.says("done")
    made.counted((2500, 1400, 90, 30), (1500, 1000, 40, 10))
    return made
