"""A file that grows is read on from where it was left, and the store is as if it had been imported whole."""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_session import SESSION, SessionLines, call, tokens
from codex_rollout import Rollout, old_style
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import follow, import_path, marks
from looptape.tracer.importers.follow import import_growth, unread
from looptape.tracer.importers.growth import Mark
from looptape.tracer.store import Store, memory_store
from testdata import require


def claude() -> SessionLines:
    """Answers over several lines, parallel calls, a late result, a sub-agent, compaction, trouble."""
    made = SessionLines()
    made.add("file-history-snapshot", messageId="m1", snapshot={})
    made.user("list the files, key sk-ant-" + "a1B2" * 6)
    made.answer("m1", {"type": "thinking", "thinking": "hm " * 200, "signature": "c2ln"}, usage=tokens(5, 1))
    made.answer("m1", "I look.", usage=tokens(5, 2))
    made.answer("m1", call("c1"), call("c2", command="pwd"), usage=tokens(5, 400), stop="tool_use")
    made.result("c1", "a.py", toolUseResult={"stdout": "a.py", "stderr": ""})
    made.add("progress", data={"type": "bash_progress", "output": "x"}, toolUseID="b1", parentToolUseID="c2")
    made.result("c2", "/home", error=True)
    made.answer("m2", "A sub-agent may know.", call("t1", "Task", prompt="find it", description="Find"))
    for kind, content in (("user", "find it"), ("assistant", [{"type": "text", "text": "found"}])):
        inner = {"role": kind, "content": content, **({"id": "s1", "model": "acme-large-1"} if kind != "user" else {})}
        data = {"type": "agent_progress", "agentId": "ag1", "message": {"type": kind, "message": inner}}
        made.add("progress", data=data, parentToolUseID="t1")
    made.result("t1", "found", toolUseResult={"agentId": "ag1", "totalTokens": 9})
    made.add("system", subtype="api_error", error={"message": "busy"}, retryInMs=10, retryAttempt=1, maxRetries=3)
    made.answer("m3", call("c3", command="sleep 9"))
    made.user("never mind: ü")
    made.answer("m4", "All right.", usage=tokens(7, 9))
    made.result("c3", "late")
    made.add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9})
    made.user("what was said so far", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    made.user("go on")
    made.answer("m5", "Done.", usage=tokens(3, 4), stop="end_turn")
    return made


def codex_new() -> Rollout:
    made = Rollout(cli_version="0.153.4")
    made.add("turn_context", {"model": "gpt-demo-6"})
    made.user("list")
    for number in (1, 2, 3):
        made.says(f"I look {number}")
        made.call(f"c{number}")
        usage = {"input_tokens": 100 * number, "cached_input_tokens": 50, "output_tokens": 10, "total_tokens": 110}
        made.add("token_usage_record", {"response_id": f"resp_{number}", "usage": usage})
        made.output(f"c{number}", "Process exited with code 0")
        made.event("item_completed", item={"type": "CommandExecution", "id": f"c{number}", "exit_code": 0})
    made.user("and now?")
    made.says("Nothing.")
    made.add("token_usage_record", {"response_id": "resp_9", "usage": {"input_tokens": 9, "output_tokens": 1}})
    made.event("task_complete")
    return made


MADE: dict[str, Callable[[], str]] = {
    "claude": lambda: claude().text(),
    "codex-old": lambda: "\n".join(old_style().lines) + "\n",
    "codex-new": lambda: "\n".join(codex_new().lines) + "\n",
}


def content(store: Store) -> list[Any]:
    """All that can be asked of a store, in order."""
    found: list[Any] = []
    for run in sorted(store.runs(), key=lambda r: r.id):
        turns = store.turns(run.id)
        found += [run, turns, sorted(map(repr, store.events(run.id)))]
        found += [store.request(run.id, turn.number) for turn in turns]
    return found


def whole(path: Path) -> list[Any]:
    """What a store holds that took the file in at once."""
    with memory_store() as store:
        import_path(store, path)
        return content(store)


def grown(path: Path, data: bytes, cuts: list[int]) -> tuple[list[Any], list[Mark | None]]:
    """What a store holds that followed the file as it grew, and the marks."""
    mark: Mark | None = None
    given = []
    path.write_bytes(b"")
    with memory_store() as store:
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            with path.open("ab") as file:
                file.write(data[begin:end])
            mark = step(store, path, mark)
            given.append(mark)
        return content(store), given


def step(store: Store, path: Path, mark: Mark | None) -> Mark | None:
    """Takes in what is new; a file whose first line is cut is of no use yet."""
    try:
        reports, mark = import_growth(store, path, mark)
    except LooptapeError as error:
        if error.slug in ("unknown-format", "nothing-readable"):
            return None
        raise
    assert not [w for r in reports for w in r.warnings if "differs" in w]
    return mark


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """By the name of a format: where its file lies, what is in it, and what a store holds that took it in at once."""

    @functools.cache
    def made(name: str) -> tuple[Path, bytes, list[Any]]:
        path = tmp_path_factory.mktemp(name) / f"{SESSION}.jsonl"
        text = MADE[name]().encode()
        path.write_bytes(text)
        return path, text, whole(path)

    return made


@pytest.mark.parametrize("name", MADE)
@given(st.data())
@settings(max_examples=5, deadline=None)
def test_growth_in_any_steps_gives_what_the_whole_file_gives(name, session, data):
    path, text, at_once = session(name)
    cuts = sorted(data.draw(st.lists(st.integers(1, len(text) - 1), max_size=3, unique=True)))
    got, _ = grown(path, text, cuts)

    assert got == at_once


@pytest.mark.parametrize("name", MADE)
def test_growth_line_by_line_gives_what_the_whole_file_gives(name, tmp_path):
    text = MADE[name]().encode()
    path = tmp_path / f"{SESSION}.jsonl"
    cuts = [i + 1 for i, octet in enumerate(text[:-1]) if octet == ord("\n")]
    got, given = grown(path, text, cuts)

    assert got == whole(path)
    assert [m.lines for m in given[1:] if m] == list(range(2, len(cuts) + 2))


def test_a_real_session_that_grows_gives_what_the_whole_file_gives(tmp_path):
    text = (require("corpus") / "claude_code" / "e0-32154c0b18-0.jsonl").read_bytes()
    path = tmp_path / "session.jsonl"
    got, _ = grown(path, text, [20_000, 20_001, 47_000, 80_000])

    assert got == whole(path)


def begun(path: Path, name: str = "claude", lines: int = 12) -> tuple[Store, Mark, list[str]]:
    """A store that took in the first lines of a file, the mark, and the lines that are missing."""
    text = MADE[name]().splitlines(keepends=True)
    path.write_text("".join(text[:lines]))
    store = memory_store()
    mark = step(store, path, None)
    assert mark is not None
    return store, mark, text[lines:]


@pytest.mark.parametrize("name", MADE)
def test_only_what_is_new_is_read(name, tmp_path):
    path = tmp_path / f"{SESSION}.jsonl"
    store, mark, rest = begun(path, name)
    with store, path.open("a") as file:
        file.write(rest[0])
        file.flush()
        assert unread(path, mark) == len(rest[0].encode())
        (report,), after = import_growth(store, path, mark)

        assert (report.counts["lines"], report.counts["objects"]) == (1, 1)
        assert after is not None
        assert (after.lines, after.offset) == (13, path.stat().st_size)


def again(path: Path, change: Callable[[Path], None], mark_of: Callable[[Mark], Mark] = lambda m: m) -> int:
    """Lines that are read after a change; the store must be as if the file had been imported whole both times."""
    store, mark, _ = begun(path)
    change(path)
    with store, memory_store() as other:
        (report,), _ = import_growth(store, path, mark_of(mark))
        path.write_text("".join(MADE["claude"]().splitlines(keepends=True)[:12]))
        import_path(other, path)
        change(path)
        import_path(other, path)
        assert content(store) == content(other)
    return report.counts["lines"]


def cut(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:6]))


def rewritten(path: Path) -> None:
    path.write_text(path.read_text().replace("I look.", "I saw. ") + claude().lines[-1] + "\n")


def put_in_its_place(path: Path) -> None:
    new = path.with_suffix(".new")
    new.write_text(path.read_text() + claude().lines[-1] + "\n")
    new.replace(path)


def longer(path: Path) -> None:
    with path.open("a") as file:
        file.write(claude().lines[-1] + "\n")


@pytest.mark.parametrize(("change", "lines"), [(cut, 6), (rewritten, 13), (put_in_its_place, 13), (longer, 1)])
def test_a_file_that_is_no_longer_the_same_is_read_whole(change, lines, tmp_path):
    assert again(tmp_path / f"{SESSION}.jsonl", change) == lines


@pytest.mark.parametrize("change", [cut, rewritten, put_in_its_place])
def test_a_file_that_changes_between_the_look_at_it_and_its_reading_is_read_whole(change, tmp_path, monkeypatch):
    path = tmp_path / f"{SESSION}.jsonl"
    store, mark, _ = begun(path)
    real = follow._holds

    def changed(*asked: Any) -> bool:
        change(path)
        return real(*asked)

    monkeypatch.setattr(follow, "_holds", changed)
    with store:
        (report,), after = import_growth(store, path, mark)
    assert report.counts["lines"] == len(path.read_text().splitlines())
    assert after is not None
    assert after.fits(path)


class Hostile:
    """What a pickle can do to those who trust it."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('trusted')",)


@pytest.mark.parametrize(
    "change",
    [{"state": b"\x80\x05"}, {"state": pickle.dumps(Hostile())}, {"stamp": "0.0.1"}, {"runs": {"a" * 16: 3}}],
    ids=["damaged", "hostile", "of-another-version", "of-another-store"],
)
def test_a_mark_that_is_of_no_use_is_not_used(change, tmp_path):
    assert again(tmp_path / f"{SESSION}.jsonl", longer, lambda mark: replace(mark, **change)) == 13


def test_an_empty_store_gets_the_whole_file(tmp_path):
    path = tmp_path / f"{SESSION}.jsonl"
    store, mark, _ = begun(path)
    store.close()
    with memory_store() as new:
        step(new, path, mark)
        assert content(new) == whole(path)


def test_a_fork_that_shows_its_own_name_late_becomes_a_session_of_its_own(tmp_path):
    own = "00000000-0000-4000-8000-00000000bbbb"
    path = tmp_path / f"{own}.jsonl"
    store, mark, _ = begun(path)
    with store, path.open("a") as file:
        line = SessionLines(own)
        line.user("and on")
        file.write(line.text())
        file.flush()
        step(store, path, mark)
        assert {r.session for r in store.runs()} == {SESSION, own}


def test_a_sub_agent_whose_file_came_first_is_linked_when_its_call_has_a_result(tmp_path):
    main, agent = SessionLines(), SessionLines()
    main.user("find it")
    main.answer("m1", call("t1", "Task", prompt="find it"))
    path = main.write(tmp_path / f"{SESSION}.jsonl")
    agent.user("find it", agentId="ag1", isSidechain=True)
    agent.answer("s1", "found", agentId="ag1", isSidechain=True)
    other = agent.write(tmp_path / SESSION / "subagents" / "agent-ag1.jsonl")
    with memory_store() as store, memory_store() as at_once:
        mark = step(store, path, None)
        step(store, other, None)
        main.result("t1", "found", toolUseResult={"agentId": "ag1"})
        main.write(path)
        step(store, path, mark)
        step(store, other, None)
        import_path(at_once, tmp_path)

        assert content(store) == content(at_once)
        assert [r.parent.call for r in store.runs() if r.parent] == ["t1"]


def test_a_mark_is_kept_in_a_private_file_and_read_back(tmp_path):
    path, home = tmp_path / f"{SESSION}.jsonl", tmp_path / "home"
    store, mark, _ = begun(path)
    store.close()
    marks.save(path, mark, home)

    assert marks.load(path, home) == mark
    assert [oct(p.stat().st_mode & 0o777) for p in (home / "followed", *(home / "followed").iterdir())] == [
        "0o700",
        "0o600",
    ]
    marks.save(path, None, home)
    assert marks.load(path, home) is None


def test_two_that_save_the_same_mark_at_once_leave_a_whole_one(tmp_path, monkeypatch):
    path, home = tmp_path / f"{SESSION}.jsonl", tmp_path / "home"
    store, mark, _ = begun(path)
    store.close()
    real = os.replace

    def both(source, target):
        monkeypatch.setattr(os, "replace", real)
        marks.save(path, replace(mark, lines=1), home)
        os.replace(source, target)

    monkeypatch.setattr(os, "replace", both)
    marks.save(path, mark, home)
    assert marks.load(path, home) == mark
    assert len(list((home / "followed").iterdir())) == 1
