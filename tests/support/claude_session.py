"""Builds the lines of a Claude Code session, for tests of its import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "00000000-0000-4000-8000-00000000aaaa"


class SessionLines:
    """Lines in order, two seconds apart. Every method adds one and returns it."""

    def __init__(self, session: str = SESSION, version: str = "2.1.280") -> None:
        self.session = session
        self.version = version
        self.lines: list[str] = []
        self._second = 0

    def add(self, kind: str, **fields: Any) -> dict[str, Any]:
        """A line of any kind; fields that are None are left out."""
        self._second += 2
        line = {
            "type": kind,
            "uuid": f"u{self._second:06}",
            "sessionId": self.session,
            "timestamp": f"2026-11-02T09:{self._second // 60:02}:{self._second % 60:02}.000Z",
            "cwd": "/home/dev/demo",
            "version": self.version,
            "gitBranch": "main",
            "isSidechain": False,
            **fields,
        }
        line = {k: v for k, v in line.items() if v is not None}
        self.lines.append(json.dumps(line))
        return line

    def user(self, content: Any, **fields: Any) -> dict[str, Any]:
        """A person's word, or whatever stands in its place."""
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def result(self, call: str, content: Any = "ok", *, error: bool = False, **fields: Any) -> dict[str, Any]:
        """The result of a call."""
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        return self.user([{**block, "is_error": True} if error else block], **fields)

    def answer(self, name: str, *blocks: Any, usage: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        """One line of the answer with this message id. Strings are text blocks."""
        message = {
            "id": name,
            "type": "message",
            "role": "assistant",
            "model": fields.pop("model", "acme-large-1"),
            "content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks],
            "stop_reason": fields.pop("stop", None),
            "usage": usage or tokens(1, 1),
        }
        return self.add("assistant", message=message, requestId=f"req_{name}", **fields)

    def raw(self, text: str) -> None:
        """A line exactly as given."""
        self.lines.append(text)

    def text(self, *, newline: bool = True) -> str:
        """The whole file."""
        return "\n".join(self.lines) + ("\n" if newline and self.lines else "")

    def write(self, path: Path, *, newline: bool = True) -> Path:
        """Writes the file and returns its path."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(newline=newline))
        return path


def tokens(fresh: int, output: int, read: int = 0, written: int = 0, **more: Any) -> dict[str, Any]:
    """A usage object."""
    return {
        "input_tokens": fresh,
        "output_tokens": output,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        **more,
    }


def call(name: str, tool: str = "Bash", **arguments: Any) -> dict[str, Any]:
    """A tool_use block."""
    return {"type": "tool_use", "id": name, "name": tool, "input": arguments}
