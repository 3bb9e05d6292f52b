"""`looptape fork`: shows what it would do, names what is live and what is lacking, runs, and tells how it ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import talking
from commandline import Ran, looptape
from looptape.tracer import process
from looptape.tracer.store import open_store

CALL = {"calls": [{"name": "search", "arguments": {"q": "again"}}], "usage": {"input_tokens": 7, "output_tokens": 3}}
DONE = {"text": "It is 90.", "usage": {"input_tokens": 9, "output_tokens": 4}}
TOOLS = '''
RAN = []

def search(q: str) -> str:
    """looks up"""
    RAN.append(q)
    return f"found {q}"

TOOLS = [{"name": "search", "function": search, "side_effect": "read"}]
WRITING = [{"name": "search", "function": search, "side_effect": "mutate"}]
'''


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    former = process.replace(None)
    yield talking.record(tmp_path / "home", talking.ANTHROPIC, talking.loop())
    process.replace(former)


def fork(*arguments: str) -> Ran:
    """The command, in a process of its own as far as the recorder goes."""
    process.replace(None)
    ran = looptape("fork", *arguments)
    active = process.replace(None)
    if active is not None:
        active.at_exit()
    return ran


def script(folder: Path, *entries: Any) -> str:
    (folder / "script.json").write_text(json.dumps(entries))
    return f"scripted:{folder / 'script.json'}"


def runs(folder: Path) -> int:
    with open_store(folder / "home") as store:
        return store.count()


def test_a_dry_run_shows_the_diff_and_runs_nothing(run: str, tmp_path: Path) -> None:
    ran = fork(f"{run}:3", "--system", "Be brief.", "--edit", "temperature=0", "--dry-run")
    assert ran.code == 0
    assert "-system: You look things up.\n" in ran.out
    assert "+system: Be brief.\n" in ran.out
    assert "+temperature: 0\n" in ran.out
    assert "turns 1 to 2 inherited" in ran.err
    assert runs(tmp_path) == 1


def test_dropped_turns_are_named_as_one_or_several(run: str) -> None:
    assert "inherited, without turn 1\n" in fork(f"{run}:3", "--drop-turns", "1", "--dry-run").err
    assert "inherited, without turns 1, 2\n" in fork(f"{run}:3", "--drop-turns", "1-2", "--dry-run").err


def test_a_fork_runs_to_its_end_and_shows_as_one(run: str, tmp_path: Path) -> None:
    ran = fork(f"{run}:2", "--model", script(tmp_path, CALL, DONE), "--tool", "search=stub:nothing")
    assert ran.code == 0
    first, why, text = ran.out.splitlines()[:3]
    assert first.split()[1] == "completed"
    assert f"fork of {run}:2" in first
    assert (why, text) == ("model: end_turn", "  It is 90.")
    listed = looptape("runs", "--json").json["runs"]
    child = next(r for r in listed if r["parent"])
    assert child["parent"] == {"run": run, "turn": 2, "call": None, "kind": "fork"}
    assert child["id"] == first.split()[0]
    assert f"fork of {run}:2" in looptape("show", child["id"]).out
    assert "⎇ fork @2" in looptape("runs").out


def test_without_edits_the_recording_answers_to_the_end(run: str) -> None:
    ran = fork(f"{run}:2", "--json")
    assert ran.code == 0
    outcome = ran.json["outcome"]
    assert (outcome["reason"], outcome["turns"], outcome["text"], outcome["cost_usd"]) == ("model", 3, "It is 84.", 0)


@pytest.mark.parametrize(
    ("edit", "part"),
    [
        ("system=Be brief.", "the request of turn 2 is not the recorded one (edited: system): system was 'You look things up.', is 'Be brief.'"),
        ("turn[1].calls[1].result=no", "messages[3] was 'revenue 1: 1200', is 'no'"),
        ("turn[2].calls[1].result=no", "the request of turn 3 is not the recorded one"),
        ('turn[2].calls[1].arguments={"q":"x"}', 'has no search({"q": "x"})'),
    ],
)  # fmt: skip
def test_after_an_edit_the_recording_stops_with_the_cure(run: str, edit: str, part: str) -> None:
    ran = fork(f"{run}:2", "--edit", edit)
    assert ran.code == 1
    assert part in ran.out
    assert "--model anthropic" in ran.out or "--tool search=live" in ran.out


def test_calls_of_the_inherited_turns_count_as_seen_before(run: str, tmp_path: Path) -> None:
    again = {"calls": [{"name": "search", "arguments": {"q": "revenue 1"}}]}
    ran = fork(f"{run}:3", "--model", script(tmp_path, again, DONE))
    assert ran.code == 1
    assert 'has search({"q": "revenue 1"}) once, this is call 2 of it' in ran.out


def test_an_edit_that_changes_nothing_is_answered(run: str) -> None:
    assert fork(f"{run}:2", "--edit", "system=You look things up.").code == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--model", "anthropic"), "LIVE: model claude-sonnet-4-5 (anthropic)"),
        (("--model", "claude-opus-4-8"), "LIVE: model claude-opus-4-8 (anthropic)"),
        (("--model", "openai:http://127.0.0.1:9/v1"), "(openai at http://127.0.0.1:9/v1)"),
        (("--tools-from", "fork_tools:TOOLS", "--tools", "live"), "LIVE: tools search"),
    ],
)
def test_what_is_live_is_named_and_needs_a_yes(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], named: str
) -> None:
    (tmp_path / "fork_tools.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("fork_tools", None)
    ran = fork(f"{run}:2", *arguments)
    assert ran.code == 2
    assert named in ran.err
    assert "--yes" in ran.err
    assert runs(tmp_path) == 1


def test_live_tools_run_once_they_are_named(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fork_tools.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("fork_tools", None)
    ran = fork(
        f"{run}:2",
        "--model",
        script(tmp_path, CALL, DONE),
        "--tools-from",
        "fork_tools:TOOLS",
        "--tools",
        "live",
        "--yes",
    )
    assert ran.code == 0
    assert sys.modules["fork_tools"].RAN == ["again"]
    unnamed = fork(
        f"{run}:2",
        "--model",
        script(tmp_path, CALL, DONE),
        "--tools-from",
        "fork_tools:WRITING",
        "--tools",
        "live",
        "--yes",
    )
    assert unnamed.code == 2
    assert "--tool search=live" in unnamed.err
    assert sys.modules["fork_tools"].RAN == ["again"]


def test_samples_tell_how_the_outcomes_spread(run: str, tmp_path: Path) -> None:
    check = f"{sys.executable} -c \"import sys; sys.exit('90' not in sys.stdin.read())\""
    ran = fork(f"{run}:3", "--model", script(tmp_path, DONE), "--samples", "3", "--check", check)
    assert ran.code == 0
    assert "ended by model 3x" in ran.out
    assert "check passed 3 of 3" in ran.out
    assert runs(tmp_path) == 4
    told = fork(f"{run}:3", "--model", script(tmp_path, DONE), "--samples", "2", "--check", "false", "--json")
    assert told.code == 1
    assert (told.json["spread"]["pass_rate"], told.json["spread"]["samples"]) == (0.0, 2)


def test_limits_end_it(run: str, tmp_path: Path) -> None:
    ran = fork(f"{run}:2", "--model", script(tmp_path, CALL, CALL, CALL), "--tool", "search=stub:x", "--max-turns", "2")
    assert ran.code == 0
    assert "turns: 2 of 2" in ran.out


def test_another_wire_format_for_a_model_that_speaks_only_that_is_said(run: str) -> None:
    ran = fork(f"{run}:2", "--model", "openai:http://127.0.0.1:9/v1", "--dry-run", "--json")
    assert ran.json["fork"]["api"] == "openai.chat"
    assert any("sent as openai.chat" in n for n in ran.json["fork"]["notes"])


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("RUN",), "fork begins at one turn"),
        (("RUN:9",), "has turns 1 to 4"),
        (("RUN:2-3",), "fork begins at one turn"),
        (("RUN:2", "--edit", "nope=1"), "There are: model, system"),
        (("RUN:2", "--drop-turns", "5"), "cannot be dropped"),
        (("RUN:2", "--tool", "search"), "has no ="),
        (("RUN:2", "--tool", "search=maybe"), "Say recorded, live, stub:TEXT"),
        (("RUN:2", "--tool", "search=live"), "no source has a live tool search"),
        (("RUN:2", "--tool", "serach=stub:x"), "the fork has no tool serach. There are: search"),
        (("RUN:2", "--tool", "serach=stub:x", "--dry-run"), "the fork has no tool serach"),
        (("RUN:2", "--tools", "live"), "--tools live names no source"),
        (("RUN:2", "--base-url", "http://127.0.0.1"), "asks no server"),
        (("RUN:2", "--model", "scripted:nowhere.json"), "no script"),
    ],
)
def test_what_cannot_be_is_one_line_and_runs_nothing(
    run: str, tmp_path: Path, arguments: tuple[str, ...], part: str
) -> None:
    ran = fork(*(a.replace("RUN", run) for a in arguments))
    assert ran.code == 2
    assert part in ran.err
    assert ran.out == ""
    assert runs(tmp_path) == 1


def test_with_recording_off_there_is_no_fork(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPTAPE", "off")
    ran = fork(f"{run}:2")
    assert ran.code == 2
    assert "a fork is a recorded run" in ran.err
