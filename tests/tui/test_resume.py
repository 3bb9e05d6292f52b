"""O: how a session goes on in its own tool, said safely, and what stands in its way."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from claude_session import SESSION, SessionLines, call
from looptape.tracer.canonical import stable_id
from looptape.tracer.importers import import_path
from looptape.tracer.model import Run
from looptape.tracer.store import open_store
from looptape.tui.data.source import StoreSource
from looptape.tui.outside.resume import Resume, of_run, resume_of
from timed_tape import RUN, Asked, records, store
from tui_driver import Seat, drive
from tui_fakes import HOSTILE

UUID = "0b9d1a52-7c4e-4a57-9a0f-33c7f1f4e8aa"
OPENCODE = "ses_f34a1dc63ffe0cCnMWOTpjumbx"


def run_of(source: str, session: str | None, project: str | None = "/home/kim/shop") -> Run:
    return Run(id=stable_id(source, session or ""), source=source, session=session, project=project, turns=7)


@pytest.mark.parametrize(
    ("source", "session", "command"),
    [
        ("claude-code", UUID, f"cd /home/kim/shop && claude --resume {UUID}"),
        ("codex", UUID, f"cd /home/kim/shop && codex resume {UUID}"),
        ("gemini-cli", UUID, f"cd /home/kim/shop && gemini --resume {UUID}"),
        ("opencode", OPENCODE, f"cd /home/kim/shop && opencode --session {OPENCODE}"),
    ],
    ids=["claude-code", "codex", "gemini-cli", "opencode"],
)
def test_each_tool_is_asked_in_its_own_words(source: str, session: str, command: str) -> None:
    assert of_run(run_of(source, session)).text == command


@pytest.mark.parametrize("source", ["sdk", "otlp", "inspect", "swe-agent", "claude-bodies"])
def test_a_run_that_no_tool_resumes_says_what_goes_on_instead(source: str) -> None:
    found = of_run(run_of(source, "whatever"), turn=7)
    assert found.command == ()
    assert f"looptape fork {run_of(source, 'whatever').id}:7" in found.notes[0]
    assert source in found.notes[0]


HOSTILE_IDS = (
    "--dangerously-skip-permissions",
    f"{UUID}; rm -rf ~",
    f"{UUID}\n",
    "$(id)",
    "",
    UUID.upper(),
    "٣" * 36,
    *HOSTILE,
)


@pytest.mark.parametrize("session", HOSTILE_IDS, ids=range(len(HOSTILE_IDS)))
@pytest.mark.parametrize("source", ["claude-code", "codex", "gemini-cli", "opencode"])
def test_an_id_of_another_form_makes_no_command(source: str, session: str) -> None:
    assert of_run(run_of(source, session)).command == ()


def test_an_id_that_a_copied_session_only_repeats_makes_no_command() -> None:
    copied = replace(run_of("codex", UUID), id=stable_id("codex", "another"))
    assert of_run(copied).command == ()
    assert "copied from" in of_run(copied).notes[0]


@pytest.mark.parametrize(
    "name", ["it's; touch HACKED", "$(touch HACKED)", "`touch HACKED`", "-x && touch HACKED", 'a "b" *']
)
def test_a_shell_takes_the_folder_as_one_word(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    text = of_run(run_of("claude-code", UUID, str(folder))).text
    assert shlex.split(text) == ["cd", str(folder), "&&", "claude", "--resume", UUID]
    said = subprocess.run(
        ["sh", "-c", text.replace(f"claude --resume {UUID}", "pwd")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == str(folder)
    assert not list(tmp_path.rglob("HACKED"))


ODD_FOLDERS = (
    "relative/path",
    "C:\\work\\proj",
    "~/x",
    "/a\nb",
    "/a\u202eb",
    "/\x1b]52;c;ZXZpbA==\x07",
    "/nul\x00",
    "/a\ud83eb",
)


@pytest.mark.parametrize("folder", ODD_FOLDERS, ids=range(len(ODD_FOLDERS)))
def test_an_odd_folder_is_said_but_not_entered(folder: str) -> None:
    found = of_run(run_of("claude-code", UUID, folder))
    assert found.text == f"claude --resume {UUID}"
    assert "run it where the session was" in found.notes[0]
    assert found.notes[0].isprintable()


def session_with_agent(folder: Path, cwd: Path) -> Path:
    """A session whose Task call ran a sub-agent with a file of its own."""
    main = SessionLines()
    main.user("find it", cwd=str(cwd))
    main.answer("m1", call("c1", "Task", description="look", prompt="look"), cwd=str(cwd))
    main.result("c1", "found", cwd=str(cwd), toolUseResult={"agentId": "a1"})
    main.answer("m2", "there", cwd=str(cwd))
    path = main.write(folder / "projects" / "-x" / f"{SESSION}.jsonl")
    agent = SessionLines()
    agent.user("look", isSidechain=True, agentId="a1", cwd=str(cwd / "deeper"))
    agent.answer("n1", "found", isSidechain=True, agentId="a1", cwd=str(cwd / "deeper"))
    agent.write(folder / "projects" / "-x" / SESSION / "subagents" / "agent-a1.jsonl")
    (folder / "projects" / "-x" / SESSION / "subagents" / "agent-a1.meta.json").write_text(
        json.dumps({"toolUseId": "c1"})
    )
    return path.parent


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with Claude Code, one session with a sub-agent, and a store that took it in."""
    work, tools = tmp_path / "work it", tmp_path / "bin"
    work.mkdir()
    tools.mkdir()
    program = tools / "claude"
    program.write_text(f'#!/bin/sh\npwd > "{tmp_path}/ran"\necho "$@" >> "{tmp_path}/ran"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    with open_store(tmp_path / "home") as opened:
        import_path(opened, session_with_agent(tmp_path / "claude", work))
    return tmp_path


def runs(folder: Path) -> list[Run]:
    with open_store(folder / "home") as opened:
        return sorted(opened.runs(), key=lambda r: r.parent is not None)


def asked(folder: Path, run: Run) -> Resume:
    with open_store(folder / "home") as opened:
        return resume_of(opened, run, os.environ)


def test_a_session_is_resumed_where_it_was(claude: Path) -> None:
    found = asked(claude, runs(claude)[0])
    assert found.text == f"cd '{claude}/work it' && claude --resume {SESSION}"
    assert (found.obstacle, found.notes) == (None, ())


def test_of_a_sub_agent_the_session_that_called_it_is_resumed(claude: Path) -> None:
    main, agent = runs(claude)
    assert agent.parent is not None
    found = asked(claude, agent)
    assert found.text == asked(claude, main).text
    assert "the session that called it" in found.notes[0]


def test_what_stands_in_the_way_is_said(claude: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = runs(claude)[0]
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(claude / "elsewhere"))
    assert "no such session here" in asked(claude, main).notes[0]
    monkeypatch.setenv("PATH", "/nowhere")
    assert asked(claude, main).obstacle == "claude is not on PATH"
    (claude / "work it").rmdir()
    assert asked(claude, main).obstacle == "its folder is not on this machine"


def test_big_o_shows_the_command_and_copies_it(claude: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []

    async def steps(seat: Seat) -> None:
        monkeypatch.setattr(type(seat.app.screen), "copy", lambda _page, text, what="": copied.append(text))
        await seat.press("O")
        assert f"claude --resume {SESSION}" in seat.text
        assert "run it here; claude has the terminal until it ends" in seat.text
        await seat.press("y")
        assert copied == [f"cd '{claude}/work it' && claude --resume {SESSION}"]
        await seat.press("O", "s")
        shown = "".join(line.strip(" │┃▌›") for line in seat.lines)  # a long folder takes a second line
        assert f"claude --resume{SESSION}" in shown.replace(" ", "").replace("claude--resume", "claude --resume")
        await seat.press("escape")
        assert len(copied) == 1

    drive(StoreSource(claude / "home"), steps, run=runs(claude)[0].id, size=(160, 40))


def test_running_it_hands_the_words_to_the_tool_without_a_shell(claude: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import nullcontext

    async def steps(seat: Seat) -> None:
        monkeypatch.setattr(type(seat.app), "suspend", lambda _app: nullcontext())
        await seat.press("O", "r")
        assert (claude / "ran").read_text().splitlines() == [f"{claude}/work it", f"--resume {SESSION}"]

    drive(StoreSource(claude / "home"), steps, run=runs(claude)[0].id)


def test_without_the_tool_the_menu_says_so_and_copying_comes_first(
    claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    async def steps(seat: Seat) -> None:
        await seat.press("O")
        assert "claude is not on PATH" in seat.text
        await seat.press("r")
        assert "claude is not on PATH; the command is cd" in seat.text
        assert not (claude / "ran").exists()

    drive(StoreSource(claude / "home"), steps, run=runs(claude)[0].id, size=(160, 40))


def test_of_a_recorded_program_it_says_how_to_run_on(tmp_path: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("O")
        assert f"looptape fork {RUN}:2, runs on from a turn" in seat.text

    drive(StoreSource(store(tmp_path, records([Asked(0, 1), Asked(2, 3)]))), steps, run=RUN, size=(160, 40))


def test_a_folder_that_its_tool_removes_while_it_is_looked_through_is_no_trouble(
    claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, real = runs(claude)[0], Path.glob

    def removed(folder: Path, pattern: str) -> Iterator[Path]:
        if folder.name == "projects":
            raise FileNotFoundError(folder)
        return real(folder, pattern)

    monkeypatch.setattr(Path, "glob", removed)
    assert "no such session here" in asked(claude, main).notes[0]
