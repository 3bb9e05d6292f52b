"""import --claude-code and --codex: which folders are looked at, and what is said of files that do not come in."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from claude_session import SessionLines
from commandline import looptape
from looptape.tracer import paths
from looptape.tracer.errors import LooptapeError
from looptape.tracer.store import open_store
from looptape.tui.cli import sync
from looptape.tui.data import sessions
from people import newcomer


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    newcomer(tmp_path, monkeypatch)
    return Path.home()


def session(config: Path, number: int) -> Path:
    """A session of one answer among those of a configuration folder."""
    lines = SessionLines(f"{number:08}-0000-4000-8000-000000000000")
    lines.user(f"question {number}")
    lines.answer(f"m{number}", "done", stop="end_turn")
    return lines.write(config / "projects" / "-work" / f"{lines.session}.jsonl")


def titles() -> set[str]:
    return {run["title"] for run in looptape("runs", "--json").json["runs"]}


def test_every_folder_of_a_list_is_taken_and_one_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(tmp_path / "one", 1)
    session(tmp_path / "the other", 2)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{tmp_path}/one, {tmp_path}/the other ,{tmp_path}/gone,")
    ran = looptape("import", "--claude-code")
    assert (ran.code, titles()) == (0, {"question 1", "question 2"})
    assert f"CLAUDE_CONFIG_DIR names {tmp_path}/gone, but there is no folder {tmp_path}/gone/projects" in ran.err


@pytest.mark.parametrize(
    ("option", "variable", "below"),
    [("--claude-code", "CLAUDE_CONFIG_DIR", "projects"), ("--codex", "CODEX_HOME", "sessions")],
)
def test_without_sessions_the_folders_are_named_that_were_looked_at(
    option: str, variable: str, below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "gone"))
    ran = looptape("import", option)
    assert ran.code == 2
    assert f"sessions in {tmp_path}/gone/{below}" in ran.err
    assert "~" not in ran.err


def test_when_nothing_is_new_that_is_said(people: Path) -> None:
    session(people / ".claude", 1)
    assert "nothing new" not in looptape("import", "--claude-code").err
    ran = looptape("import", "--claude-code")
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing new in 1 folder kept in step\n")


def test_strict_holds_for_sessions_too_and_without_it_they_come_in(people: Path) -> None:
    path = session(people / ".claude", 1)
    with path.open("a") as file:
        file.write('{"type":"zebra"}\n')
    session(people / ".claude", 2)
    ran = looptape("import", "--claude-code", "--strict")
    assert ran.code == 3
    assert f"{path}: unknown kinds: zebra (1)" in ran.err
    assert ran.out.count("1 run, 1 turn") == 1
    ran = looptape("import", "--claude-code")
    assert (ran.code, titles()) == (0, {"question 1", "question 2"})


def test_a_damaged_session_is_named_by_import_and_sync(people: Path) -> None:
    whole = session(people / ".claude", 1)
    damaged = whole.with_name("damaged.jsonl")
    damaged.write_bytes(gzip.compress(whole.read_bytes())[:-20])
    whole.with_name("other.jsonl").write_text('{"nothing": "of ours"}\n')
    ran = looptape("import", "--claude-code")
    assert (ran.code, titles()) == (3, {"question 1"})
    assert f"{damaged}: the compressed file is damaged" in ran.err
    assert "1 file of no known format passed over: other.jsonl" in ran.err
    damaged.write_bytes(damaged.read_bytes()[:-1])
    ran = looptape("sync")
    assert ran.out == "moved 0 records, 0 runs, 0 turns\n"
    assert f"{damaged}: the compressed file is damaged" in ran.err


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_a_session_that_could_not_be_read_comes_in_when_it_can(people: Path) -> None:
    path = session(people / ".claude", 1)
    path.chmod(0)
    ran = looptape("import", "--claude-code")
    assert (ran.code, f"{path}: Permission denied" in ran.err) == (3, True)
    path.chmod(0o600)
    assert titles() == {"question 1"}


def test_a_pipe_among_the_sessions_is_not_waited_for(people: Path) -> None:
    path = session(people / ".claude", 1)
    os.mkfifo(path.with_name("pipe.jsonl"))
    assert looptape("import", "--claude-code").code == 0
    assert titles() == {"question 1"}


def test_a_format_for_no_file_is_refused(people: Path) -> None:
    session(people / ".claude", 1)
    ran = looptape("import", "--claude-code", "--format", "codex")
    assert (ran.code, "--format is for files that are named" in ran.err) == (2, True)


def test_a_closed_input_and_a_link_to_nothing_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to("nowhere")
    ran = looptape("import", str(tmp_path / "link.jsonl"))
    assert (ran.code, "link.jsonl: a link to what is not there (nowhere)" in ran.err) == (2, True)
    command = ["/bin/sh", "-c", 'exec "$0" -P -m looptape.tui.cli import - <&-', sys.executable]
    closed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (closed.returncode, "standard input is closed" in closed.stderr) == (2, True)


def test_a_folder_that_is_remembered_while_another_is_read_stays_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(tmp_path / "one", 1)
    sessions.remember(tmp_path / "one")
    with open_store(paths.home()) as store:
        sessions.in_step(store, lambda _: sessions.remember(tmp_path / "two"), everything=True)
        assert sessions.remembered() == [tmp_path / "one", tmp_path / "two"]
        assert sessions.in_step(store, lambda _: None, everything=True) == []  # where it was read to is kept too


def test_what_cannot_be_remembered_is_read_again_and_costs_no_command(tmp_path: Path) -> None:
    session(tmp_path / "one", 1)
    sessions.remember(tmp_path / "one")
    (paths.home() / "folders.new").mkdir()
    for _ in range(2):
        ran = looptape("sync")
        assert (ran.code, titles()) == (0, {"question 1"})


def test_what_is_remembered_already_is_not_written_again(tmp_path: Path) -> None:
    session(tmp_path / "one", 1)
    sessions.remember(tmp_path / "one")
    before = (paths.home() / "folders.json").stat()
    sessions.remember(tmp_path / "one")
    after = (paths.home() / "folders.json").stat()  # when it was read last may well be another second
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (before.st_ino, before.st_mtime_ns, before.st_size)


def test_watching_goes_on_when_the_store_could_not_be_written_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    real, rounds = sync._once, [0]

    def once() -> Any:
        rounds[0] += 1
        if rounds[0] in (2, 3):
            raise LooptapeError("store-held", "another process holds the store")
        if rounds[0] == 5:
            raise KeyboardInterrupt
        return real()

    monkeypatch.setattr(sync, "_once", once)
    monkeypatch.setattr(sync, "PAUSE", 0.01)
    ran = looptape("sync", "--watch")
    assert (ran.code, rounds[0]) == (130, 5)
    assert ran.err.count("another process holds the store") == 1
