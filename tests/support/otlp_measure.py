"""What survives of a run in the captures of each producer: measured against what really happened.

Run as a program it prints the table of docs/formats.md anew (`python tests/support/otlp_measure.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from looptape.tracer.importers import otlp
from looptape.tracer.importers.calls.likeness import plain
from looptape.tracer.importers.context import Context, Source
from looptape.tracer.importers.report import Notes
from looptape.tracer.store import memory_store

ASPECTS = (
    "one run", "turns", "calls", "call ids", "arguments", "results", "tool errors", "tokens", "cache reads",
    "cache writes", "reasoning", "text", "thinking", "system", "tool list", "failures",
)  # fmt: skip


@dataclass
class Capture:
    """One capture: what came out of its files, and the truth."""

    name: str
    truth: dict[str, Any]
    runs: list[Any] = field(default_factory=list)
    turns: list[Any] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)
    records: list[dict] = field(default_factory=list)

    @property
    def producer(self) -> str:
        """The folder, and the switch or generation where the scenario has one."""
        folder, scenario = self.name.split("/")
        _, _, tag = scenario.partition("-")
        return f"{folder} ({tag})" if tag else folder

    def aspects(self) -> dict[str, bool | None]:
        """True where it is as it was, False where it is not, None where the scenario does not show it."""
        want, got = self.truth["turns"], self.turns
        same = len(want) == len(got)
        calls, told = [_wanted(t) for t in want], [_told(t) for t in got]
        names = [[c["name"] for c in turn] for turn in calls] == [[c.name for c in turn] for turn in told]
        pairs = [(c, d) for a, b in zip(calls, told, strict=False) for c, d in zip(a, b, strict=False)] if names else []
        has_calls, failing = any(calls), any(c["is_error"] for turn in calls for c in turn)
        used = [t.get("usage") or {} for t in want]
        answered = [(u, t) for u, t in zip(used, got, strict=False) if u]

        def each(key: str, known: Any) -> bool | None:
            if not any(u.get(key) for u, _ in answered):
                return None
            return same and all(known(t.usage) == (u.get(key) or 0) for u, t in answered)

        return {
            "one run": len([r for r in self.runs if r.turns]) == 1 if len(want) > 1 else None,
            "turns": same,
            "calls": names if has_calls else None,
            "call ids": names and all(c["id"] == d.id for c, d in pairs) if has_calls else None,
            "arguments": names and all(c["arguments"] == d.arguments for c, d in pairs) if has_calls else None,
            "results": names and all(_same_result(c, d) for c, d in pairs if not c["is_error"] and c["answered"])
            if has_calls
            else None,
            "tool errors": names and all(d.is_error is True for c, d in pairs if c["is_error"]) if failing else None,
            "tokens": same
            and all(t.usage.context == _context(u) and t.usage.output == u["output"] for u, t in answered),
            "cache reads": each("cache_read", lambda u: u.cache_read or 0),
            "cache writes": each("cache_write", lambda u: (u.cache_write_5m or 0) + (u.cache_write_1h or 0)),
            "reasoning": each("reasoning", lambda u: u.reasoning or 0),
            "text": same and all(t.text == w["text"] for w, t in zip(want, got, strict=True) if w.get("text")),
            "thinking": same
            and all(
                (t.thinking or "").startswith(w["thinking"])
                for w, t in zip(want, got, strict=True)
                if w.get("thinking")
            )
            if any(w.get("thinking") for w in want)
            else None,
            "system": bool(self.requests)
            and "SYS-CANARY" in json.dumps([self.requests[0].system, self.requests[0].messages]),
            "tool list": bool(self.requests) and bool(self.requests[0].tools),
            "failures": (same and got[-1].status == "error") if _fails(want[-1]) else None,
        }


def captures(folder: Path) -> list[Capture]:
    """All captures of the folder, through the importer and one store."""
    found = list(_read(folder))
    with memory_store() as store:
        store.ingest(r for c in found for r in c.records)
        for capture in found:
            capture.runs = sorted((store.run(i) for i in capture.notes.runs), key=lambda r: r.started_at or 0)
            capture.turns = [t for r in capture.runs for t in store.turns(r.id)]
            capture.requests = [store.request(t.run, t.number) for t in capture.turns[:1]]
    return found


def table(found: list[Capture]) -> list[str]:
    """The lines of the table in docs/formats.md."""
    groups: dict[str, list[dict[str, bool | None]]] = {}
    for capture in found:
        groups.setdefault(capture.producer, []).append(capture.aspects())
    lines = [f"| producer | {' | '.join(ASPECTS)} |", "|---" * (len(ASPECTS) + 1) + "|"]
    for name, rows in groups.items():
        cells = []
        for aspect in ASPECTS:
            seen = [r[aspect] for r in rows if r[aspect] is not None]
            cells.append("" if not seen else "yes" if all(seen) else "no" if not any(seen) else "part")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _read(folder: Path) -> Iterator[Capture]:
    for manifest in sorted(folder.glob("*/*/MANIFEST.json")):
        place = manifest.parent
        files = tuple(f for n in ("traces.jsonl", "logs.jsonl") if (f := place / n).exists())
        capture = Capture(f"{place.parent.name}/{place.name}", _happened(json.loads(manifest.read_text())))
        capture.records = list(otlp.records(Source(str(place), files), capture.notes, Context()))
        yield capture


def _happened(manifest: dict[str, Any]) -> dict[str, Any]:
    """The script, as far as the framework came: some give up after a tool's exception or a stream's first text."""
    steps = len({h["step"] for h in manifest["http"]})
    return {**manifest["truth"], "turns": manifest["truth"]["turns"][:steps]}


def _wanted(turn: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**c, "answered": c.get("result_head") is not None} for c in turn.get("tool_calls") or []]


def _told(turn: Any) -> list[Any]:
    """Calls without what a framework adds: a prefix for the server, a last call that is the answer."""
    calls = [c for c in turn.tool_calls if c.name != "final_answer"]
    return [replace(c, name=c.name.rsplit("__", 1)[-1]) for c in calls]


def _same_result(wanted: dict[str, Any], call: Any) -> bool:
    return plain(call.result).startswith(wanted["result_head"][:40]) if call.result is not None else False


def _context(usage: dict[str, int]) -> int:
    return usage["input"] + usage["cache_read"] + usage["cache_write"]


def _fails(turn: dict[str, Any]) -> bool:
    return not turn.get("usage")


if __name__ == "__main__":
    from testdata import folder

    place = folder("otlp")
    print("\n".join(table(captures(place))) if place else "no captures here (set LOOPTAPE_TESTDATA)")
