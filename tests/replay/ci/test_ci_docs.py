"""docs/ci.md: its snippets are valid, and their commands run against a recorded sample and do what the page says."""

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plugin_project import AGENT, server
from testdata import REPOSITORY

yaml = pytest.importorskip("yaml")
PAGE = (REPOSITORY / "docs/ci.md").read_text("utf-8")


def snippets(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def steps():
    """The steps of every workflow snippet."""
    found = []
    for text in snippets("yaml"):
        given = yaml.safe_load(text)
        found += given["jobs"]["replay"]["steps"] if isinstance(given, dict) else given
    return found


COMMANDS = [s["run"] for s in steps() if "run" in s and not s["run"].startswith("pip ")]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The page's own test and program, recorded by the page's own command."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "tests").mkdir()
    (folder / "helpers.py").write_text(AGENT)
    (folder / "agent.py").write_text("from helpers import answer\nprint(answer('What is the revenue?'))\n")
    (folder / "tests/test_agent.py").write_text("from helpers import answer\n" + snippets("python")[0])
    (folder / ".gitattributes").write_text(snippets("gitattributes")[0])
    record = re.search(r"^\$ (pytest --looptape=record \S+)", PAGE, re.MULTILINE)[1]
    with server() as running:
        key = "sk-ant-" + "test-0123456789"
        code, said = shell(folder, record, ANTHROPIC_BASE_URL=running.url("a"), ANTHROPIC_API_KEY=key)
    assert code == 0, said
    (folder / "tapes").mkdir()
    shutil.copy(folder / "tests/tapes/test_agent/test_revenue.tape.jsonl", folder / "tapes/revenue.tape.jsonl")
    code, said = shell(folder, "looptape budget tapes/*.tape.jsonl --file budget.json --update")
    assert code == 0, said
    return folder


def shell(folder, command, **environment):
    """A command of the page in a shell, without a model server; a key is none where it has to be."""
    free = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("ANTHROPIC", "OPENAI", "LOOPTAPE", "PYTEST", "FAKE", "GITHUB"))
    }
    given = {
        **free, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "LOOPTAPE_HOME": str(folder / "home"),
        "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1",  # a changed file of the same size and second is new
        "ANTHROPIC_API_KEY": "none", "PYTEST_ADDOPTS": "-p no:hypothesispytest",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), **environment,
    }  # fmt: skip
    ran = subprocess.run(command, shell=True, cwd=folder, env=given, capture_output=True, text=True, timeout=120)
    return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def first_run(project):
    """Exit code and output of a command of the page on the project as it was recorded, run once."""
    return functools.cache(lambda command: shell(project, command))


@pytest.mark.parametrize("command", COMMANDS, ids=[c.partition(" -")[0] for c in COMMANDS])
def test_a_command_of_the_page_holds_for_the_recording_and_fails_when_the_program_changes(project, first_run, command):
    code, said = first_run(command)
    assert code == 0, said
    if command.startswith("looptape budget"):
        budget = project / "budget.json"
        whole = budget.read_text()
        budget.write_text(whole.replace('"turns": 3', '"turns": 2'))
    else:
        agent = project / "helpers.py"
        whole = agent.read_text()
        agent.write_text(whole.replace('"max_tokens": 100', '"max_tokens": 200'))
    try:
        code, said = shell(project, command)
    finally:
        (budget if command.startswith("looptape budget") else agent).write_text(whole)
    assert code == 1, said


def test_the_page_of_the_step_and_the_junit_file_are_written(project, first_run):
    gate = next(c for c in COMMANDS if c.startswith("looptape replay"))
    assert first_run(gate)[0] == 0
    assert "1 of 1 recordings hold" in (project / "summary.md").read_text()
    assert (project / "replay.xml").read_text().startswith("<?xml")


def test_git_takes_the_attributes_for_a_tape(project):
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    ran = subprocess.run(
        ["git", "check-attr", "text", "eol", "linguist-generated", "--", "tests/tapes/test_agent/test_revenue.tape.jsonl"],
        cwd=project, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert [line.rpartition(": ")[2] for line in ran.stdout.splitlines()] == ["set", "lf", "true"]


def test_the_page_names_every_option_of_the_marker_and_every_mode():
    from looptape.replay.plugin import MODES, OPTIONS

    assert all(f"| `{mode}` |" in PAGE for mode in MODES)
    assert all(f"`{name}" in PAGE for name in OPTIONS)
