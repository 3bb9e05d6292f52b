"""What an import says is in a file: tools, models, tokens, secrets removed, what a replay will lack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import small_tape
from claude_session import SessionLines, call, tokens
from commandline import looptape
from looptape.tracer.importers import FileReport, import_path
from looptape.tracer.importers.summary import Summary
from looptape.tracer.store import Store, memory_store

KEY = "sk-ant-" + "api03-" + "Ab1" * 20
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as kept:
        yield kept


def session(name: str = "00000000-0000-4000-8000-00000000bbbb") -> SessionLines:
    lines = SessionLines(name)
    lines.user(f"use {KEY} and {TOKEN}")
    lines.answer("m1", "I look", call("t1", command="ls"), call("t2", command="cat"), usage=tokens(2, 50, 100))
    lines.result("t1", f"a.txt {KEY}")
    lines.answer("m2", "One file.", usage=tokens(3, 20, 150))
    return lines


def test_a_report_counts_tools_models_tokens_and_removed_secrets(store: Store, tmp_path: Path) -> None:
    path = session().write(tmp_path / "s.jsonl")
    (report,) = import_path(store, path)
    (run,) = store.runs()
    assert report.tools == {"Bash": 2}
    assert sum(report.models.values()) == run.turns == 2
    assert {n: report.tokens[n] for n in ("input", "cache_read", "output")} == {
        n: getattr(run.usage, n) for n in ("input", "cache_read", "output")
    }
    assert report.secrets == {"anthropic-key": 2, "github-token": 1}
    assert report.missing[:3] == ("tool definitions", "system prompt", "request parameters")
    assert "results of 1 of 2 calls" in report.missing
    (again,) = import_path(store, path)
    assert again == report


def test_what_no_turn_tells_is_not_zero() -> None:
    records = [
        {"kind": "turn_start", "run": "r", "turn": 1},
        {"kind": "turn_end", "run": "r", "turn": 1, "usage": {"input": 4, "output": None}, "calls": []},
    ]
    facts = _facts(*records)
    assert facts.tokens["input"] == 4
    assert facts.tokens["output"] is None
    assert _facts().tokens["input"] is None
    assert _facts().missing == ()


def test_a_turn_that_is_told_twice_counts_once_and_an_inherited_one_not_at_all() -> None:
    end = {
        "kind": "turn_end", "run": "r", "turn": 1, "model": "m",
        "usage": {"input": 4}, "calls": [{"id": "c", "name": "ls"}],
    }  # fmt: skip
    facts = _facts(end, {**end, "usage": {"input": 5}})
    assert (facts.tokens["input"], facts.tools, facts.models) == (5, {"ls": 1}, {"m": 1})
    facts = _facts({"kind": "turn_start", "run": "r", "turn": 1, "inherited": True}, end)
    assert (facts.tokens["input"], facts.tools, facts.models) == (None, {}, {})


def test_a_whole_recording_lacks_nothing() -> None:
    whole = _whole()
    assert _facts(*whole).missing == ()
    assert _facts(*whole[:-1]).missing == ("results",)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ({"type": "thinking", "thinking": "hm", "signature": ""}, ("signatures of thinking",)),
        ({"type": "thinking", "thinking": "hm", "signature": "EqQB"}, ()),
        ({"type": "text", "text": '{"type":"thinking"}'}, ()),
        (None, ("texts (1), recorded without content",)),
    ],
)
def test_thinking_without_a_signature_and_texts_that_are_not_there(text: object, missing: tuple[str, ...]) -> None:
    blob: dict[str, object] = {"kind": "blob", "hash": "b"}
    if text is not None:
        blob["text"] = json.dumps({"role": "assistant", "content": [text]})
    assert _facts(blob, *_whole()).missing == missing


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_message_is_a_system_prompt(role: str) -> None:
    whole = [{k: v for k, v in r.items() if k != "system"} for r in _whole()]
    assert _facts(*whole).missing == ("system prompt",)
    first, last = {"role": role, "content": "x" * 5000}, {"content": "x" * 5000, "role": role}
    for message in (first, last):
        assert _facts({"kind": "blob", "hash": "s", "text": json.dumps(message)}, *whole).missing == ()


def test_a_request_seen_as_it_was_sent_lacks_no_system_prompt() -> None:
    whole = [{k: v for k, v in r.items() if k != "system"} for r in _whole()]
    assert _facts(*whole).missing == ("system prompt",)
    sent = [{**r, "url": "https://api.anthropic.com/v1/messages"} if r["kind"] == "turn_start" else r for r in whole]
    assert _facts(*sent).missing == ()


def test_a_text_that_comes_again_holds_the_same_secret() -> None:
    blob = {"kind": "blob", "hash": "b", "text": '"[redacted:jwt] and [redacted:jwt]"'}
    assert _facts(blob, blob).secrets == {"jwt": 2}
    assert _facts(blob, {**blob, "hash": "c"}).secrets == {"jwt": 2}
    assert _facts(blob, {**blob, "text": blob["text"] + " "}).secrets == {"jwt": 4}


def test_a_few_files_are_told_one_by_one_and_many_in_sums(tmp_path: Path) -> None:
    one = looptape("import", str(session().write(tmp_path / "s.jsonl")))
    (content,) = [row for row in one.err.splitlines() if "tools:" in row]
    assert "tools: Bash 2" in content
    assert "tokens: 5 in, 250 from cache" in content
    assert "70 out" in content
    assert "secrets removed: anthropic-key 2, github-token 1" in content
    assert "missing for a replay: tool definitions, system prompt, request parameters" in one.err
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(6):
        session(f"00000000-0000-4000-8000-00000000000{number}").write(folder / f"{number}.jsonl")
    many = looptape("import", str(folder))
    assert len(many.out.splitlines()) == 6
    (content,) = [row for row in many.err.splitlines() if "tools:" in row]
    assert "tools: Bash 12" in content
    assert "tokens: 30 in" in content
    assert "results (6 files)" in many.err


def test_json_holds_all_of_it(tmp_path: Path) -> None:
    path = small_tape.write(tmp_path / "t.jsonl", small_tape.records())
    (file,) = looptape("import", str(path), "--json").json["files"]
    assert file["tools"] == {"search": 1}
    assert file["models"] == {"claude-sonnet-4-5": 2}
    assert set(file["tokens"]) == {"input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning"}
    assert (file["secrets"], isinstance(file["missing"], list)) == ({}, True)


def _whole() -> list[dict[str, object]]:
    return [
        {"kind": "turn_start", "run": "r", "turn": 1, "tools": "t", "params": "p", "system": "s"},
        {"kind": "turn_end", "run": "r", "turn": 1, "usage": {"input": 4}, "calls": [{"id": "c", "name": "ls"}]},
        {"kind": "call_seen", "run": "r", "turn": 1, "call": "c"},
    ]


def _facts(*records: dict[str, object]) -> FileReport:
    summary = Summary()
    assert list(summary.follow(iter(records))) == list(records)
    return FileReport("-", "tape", **summary.facts())


def test_secrets_are_counted_wherever_they_stood_and_the_same_text_once() -> None:
    said = json.dumps({"role": "user", "content": "use [redacted:a-key]"})
    call = {"id": "c", "name": "sh", "arguments_raw": '{"cmd": "x [redacted:b-key]"}'}
    records = [
        {"kind": "run_start", "run": "r", "title": "use [redacted:a-key]"},
        {"kind": "blob", "hash": "1", "text": said},
        {"kind": "blob", "hash": "2", "text": json.dumps({"content": [{"text": "use [redacted:a-key]"}, {"input": {"cmd": "x [redacted:b-key]"}}]})},
        {"kind": "turn_end", "run": "r", "turn": 1, "calls": [call], "error": "401 for [redacted:c-key]"},
        {"kind": "call_end", "run": "r", "turn": 1, "call": "c", "result": {"out": ["[redacted:b-key] [redacted:b-key]"]}},
        {"kind": "event", "run": "r", "event": "shell", "detail": {"output": "[redacted:d-key] and [not json"}},
        {"kind": "call_seen", "run": "r", "turn": 1, "call": "c", "returned": "[redacted:d-key] {"},
    ]  # fmt: skip
    assert _facts(*records).secrets == {"b-key": 3, "d-key": 2, "a-key": 1, "c-key": 1}
