"""Real Claude Code sessions: every count that was made of them by other means is reproduced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from imported import read
from looptape.tracer.importers.claude import claude_code
from testdata import folder, require


def _files() -> list[dict[str, Any]]:
    place = folder("corpus")
    if place is None:
        return []
    files = json.loads((place / "MANIFEST.json").read_text())["files"]
    return [f for f in files if f["format"] == "claude_code"]


def test_the_corpus_is_here() -> None:
    require("corpus")
    assert _files()


@pytest.mark.parametrize("entry", _files(), ids=lambda entry: Path(entry["file"]).stem)
def test_counts_are_those_of_the_manifest(entry: dict[str, Any]) -> None:
    got = read(claude_code, require("corpus") / entry["file"])
    counts, turns = got.notes.counts, got.turns().values()
    start = got.of("run_start")[-1]

    def total(*names: str) -> int:
        return sum(turn["usage"][name] or 0 for turn in turns for name in names)

    found = {
        "physical_lines": counts["lines"],
        "json_objects": counts["objects"],
        "lines_holding_two_objects": counts["lines_of_two_objects"],
        "unreadable": len(got.notes.skipped),
        "turns": got.notes.turns,
        "assistant_lines": counts["assistant_lines"],
        "synthetic_assistant_lines": counts["synthetic_lines"],
        "user_prompts": counts["prompts"],
        "tool_calls": got.notes.tool_calls,
        "tool_results": counts["tool_results"],
        "tool_errors": counts["tool_errors"],
        "tool_calls_without_result": counts["calls_without_result"],
        "turns_with_parallel_calls": counts["parallel_turns"],
        "compactions": counts["compactions"],
        "api_error_lines": counts["api_errors"],
        "models": sorted({turn["model"] for turn in turns}),
        "versions": sorted(start["versions"]["claude-code"].split(", ")),
        "tokens": {
            "input_tokens": total("input"),
            "output_tokens": total("output"),
            "cache_creation_input_tokens": total("cache_write_5m", "cache_write_1h"),
            "cache_read_input_tokens": total("cache_read"),
        },
    }
    assert found == {name: entry["counts"][name] for name in found}
    assert len(turns) == got.notes.turns
    assert not got.notes.unknown
