"""What an import has to say: the report of a file, and the notes from which it is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_NOTED = 1000


@dataclass(frozen=True, slots=True)
class FileReport:
    """What came out of one file.

    Attributes:
        path: As given; ``-`` for standard input.
        format: Name of the format, ``empty`` for a file of 0 bytes, None when nobody knew it.
        runs: Ids of the runs in it, sub-agents included.
        turns, tool_calls: Of the runs that the file is about; those of sub-agents found inside a
            session are ``sub_agent_turns`` and ``sub_agent_calls`` of ``counts``.
        skipped: ``{"line": int, "reason": str}`` for each line that could not be read (at most 1,000).
        unknown: Record and block kinds that the importer does not know, with their counts.
        warnings: What a reader of the figures must know.
        counts: More about the content by name (``lines``, ``prompts``, ``tool_errors``, ...).
        tools, models: Calls by tool, most used first; turns by model. Like the three that follow, of the runs and
            sub-agents together, without the turns that a fork inherited.
        tokens: Sums by bucket, disjoint; None where no turn tells.
        secrets: Placeholders of removed secrets by type, a text that comes again counted once.
        missing: What a replay of these runs will lack.
        error, cure: Why nothing of the file was imported and what to do; None when it was.
    """

    path: str
    format: str | None
    runs: tuple[str, ...] = ()
    turns: int = 0
    tool_calls: int = 0
    skipped: tuple[Mapping[str, Any], ...] = ()
    unknown: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    tools: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, int] = field(default_factory=dict)
    tokens: Mapping[str, int | None] = field(default_factory=dict)
    secrets: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    error: str | None = None
    cure: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The entry of ``files`` in the JSON of ``import``."""
        found: dict[str, Any] = {
            "path": self.path,
            "format": self.format,
            "runs": list(self.runs),
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "skipped": [dict(s) for s in self.skipped],
            "unknown": dict(self.unknown),
            "warnings": list(self.warnings),
            "counts": dict(self.counts),
            "tools": dict(self.tools),
            "models": dict(self.models),
            "tokens": dict(self.tokens),
            "secrets": dict(self.secrets),
            "missing": list(self.missing),
        }
        if self.error is not None:
            found["error"] = self.error
            found["cure"] = self.cure
        return found


class Notes:
    """What is noticed while a file is read."""

    def __init__(self) -> None:
        self.runs: dict[str, None] = {}
        self.turns = 0
        self.tool_calls = 0
        self.traces: set[str] | None = None  # set: the store puts its runs together, of these traces
        self.line = 0  # the one being read, where the importer reads lines that are records
        self.skipped: list[dict[str, Any]] = []
        self.unknown: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.warnings: dict[str, None] = {}

    def skip(self, line: int, reason: str) -> None:
        """A line that cannot be used."""
        self.counts["skipped"] += 1
        if len(self.skipped) < MAX_NOTED:
            self.skipped.append({"line": line, "reason": reason})

    def warn(self, text: str) -> None:
        """Something that a reader of the figures must know; said once."""
        self.warnings[text] = None

    def strange(self, kind: str) -> None:
        """A record or block kind that nobody here knows."""
        if len(self.unknown) >= MAX_NOTED and kind not in self.unknown:
            kind = "(others)"
        self.unknown[kind] += 1

    def report(self, path: str, name: str) -> FileReport:
        """The notes as a report."""
        return FileReport(
            path=path,
            format=name,
            runs=tuple(self.runs),
            turns=self.turns,
            tool_calls=self.tool_calls,
            skipped=tuple(self.skipped),
            unknown=dict(self.unknown),
            warnings=tuple(self.warnings),
            counts={k: v for k, v in sorted(self.counts.items()) if v},
        )
