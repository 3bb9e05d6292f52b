"""Every command has help and a docs row, loads alone, and refuses what it does not know in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import small_tape
from looptape.tracer import settings
from looptape.tracer.store import open_store
from looptape.tui import cli
from looptape.tui.cli.group import cli as group
from testdata import REPOSITORY

NAMES = [c.name for c in cli.COMMANDS]


def command(name: str) -> click.Command:
    found = group.get_command(click.Context(group), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_for_itself_and_its_options(name: str) -> None:
    one = command(name)
    assert one.name == name
    assert one.help
    assert len(one.help) > 15
    for param in one.params:
        assert not isinstance(param, click.Option) or param.help, param.name


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_a_docs_row_with_an_example(name: str) -> None:
    text = (REPOSITORY / "docs" / "commands.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith(f"| `looptape {name}` |")]
    assert len(rows) == 1
    assert f"looptape {name}" in rows[0].split("|")[3]


def test_the_docs_name_every_setting_and_no_command_that_does_not_exist() -> None:
    text = (REPOSITORY / "docs" / "commands.md").read_text()
    for one in settings.SETTINGS:
        assert f"| `{one.name}` | `{one.env}` |" in text
    rows = [line for line in text.splitlines() if line.startswith("| `looptape ")]
    assert {r.split("`")[1].removeprefix("looptape ") for r in rows} == set(NAMES)


HEAVY = ("duckdb", "textual", "rich", "anthropic", "openai", "opentelemetry", "genai_prices")


@pytest.mark.parametrize("arguments", [["runs", "--help"], ["--help"], ["record", "--help"], ["version"]])
def test_starting_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from looptape.tui.cli import main\n"
        "try: main(sys.argv[1:])\n"
        f"finally: sys.stderr.write(repr([m for m in {HEAVY!r} if m in sys.modules]))"
    )
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert ran.stderr == "[]"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["rusn"], "looptape: there is no command 'rusn', did you mean 'runs'? See looptape --help"),
        (
            ["runs", "--nope"],
            "looptape: No such option '--nope'. (Did you mean one of: '--model', '--since'?). See looptape runs --help",
        ),
        (["show", ""], "looptape: the reference is empty. Name a run, e.g. last"),
        (["show", "x:0"], "looptape: 'x:0' names no turns. Turns are numbered from 1: RUN:7 or RUN:7-9"),
        (["runs", "--since", "yesterday"], "looptape: 'yesterday' is no time. Use 30m, 12h, 7d, 2w or 2026-11-29"),
        (
            ["import"],
            "looptape: nothing to import was named. Give a file or folder, - for stdin, --claude-code or --codex",
        ),
        (["record"], "looptape: no program was named. Try: looptape record -- python agent.py"),
        (
            ["replay", "last", "sh", "a.sh"],
            "looptape: sh is a program. Write two dashes before it: looptape replay last -- sh a.sh",
        ),
        (
            ["replay", "last", "sh", "-c", "echo"],
            "looptape: sh is a program. Write two dashes before it: looptape replay last -- sh -c echo",
        ),
        (
            ["stable", "last", "sh", "a.sh"],
            "looptape: sh is a program. Write two dashes before it: looptape stable last -- sh a.sh",
        ),
        (["sql", "select 1", "--format", "parquet"], "looptape: parquet needs a file. Add -o FILE"),
        (["tui"], "looptape: the screen needs a terminal. Without one: looptape runs, or: looptape tui --web"),
        (["export"], "looptape: no run was named. Try: looptape export last"),
        (["export", "--all"], "looptape: --all writes one file a run. Name a folder: -o FOLDER"),
    ],
)
def test_wrong_usage_is_exit_2_with_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", line + "\n")


def test_completion_prints_a_script_for_each_shell(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        if shell == "bash" and sys.platform == "darwin":
            continue  # the system's bash is too old for click's script
        with pytest.raises(SystemExit) as ended:
            cli.main(["completion", shell])
        assert ended.value.code == 0
    assert "_LOOPTAPE_COMPLETE" in capsys.readouterr().out


def test_tab_completes_runs_and_never_offers_what_a_shell_would_run(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records("aaaa000000000001", name="revenue"))
        store.ingest(small_tape.records("bbbb000000000002", name="$(touch x)\x1b[2J"))
    env = os.environ | {"LOOPTAPE_HOME": str(tmp_path), "_LOOPTAPE_COMPLETE": "bash_complete", "COMP_CWORD": "2"}

    def offered(words: str) -> list[str]:
        command = [sys.executable, "-m", "looptape.tui.cli"]
        ran = subprocess.run(command, env=env | {"COMP_WORDS": words}, capture_output=True, text=True, check=False)
        assert ran.stderr == ""
        return [line.split(",")[1] for line in ran.stdout.splitlines()]

    assert sorted(offered("looptape show ")) == ["aaaa000000000001", "bbbb000000000002", "last", "revenue"]
    assert offered("looptape show rev") == ["revenue"]


def test_a_closed_stdout_is_no_crash(tmp_path: Path) -> None:
    command = f"{sys.executable} -m looptape.tui.cli version >&-"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
