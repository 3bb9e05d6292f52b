"""The rule that docs/lint.md shows, as a distribution of its own: installed, found by its entry point, obeyed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import small_tape
from testdata import REPOSITORY

PROJECT = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n\n[project]\nname = "house-rules"\nversion = "1.0"\n\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed a package made of the page's two blocks, word by word."""
    folder = tmp_path_factory.mktemp("house")
    text = (REPOSITORY / "docs" / "lint.md").read_text("utf-8").partition("## A rule of your own")[2]
    package = folder / "source" / "house_rules"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "mail.py").write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], "utf-8")
    entry = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0]
    (package.parent / "pyproject.toml").write_text(PROJECT + entry, "utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    where = ["--no-build-isolation", "--target", str(folder / "site"), str(package.parent)]
    subprocess.run([*pip, *where], check=True, capture_output=True, text=True)
    return folder / "site"


def lint(site: Path, tape: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, which sees the installed package; tape and store lie in one folder."""
    env = {**os.environ, "PYTHONPATH": str(site), "LOOPTAPE_HOME": str(tape.parent / "home")}
    command = [sys.executable, "-m", "looptape.tui.cli", "lint", str(tape), *options]
    return subprocess.run(command, cwd=tape.parent, env=env, capture_output=True, text=True)


def mails(path: Path) -> Path:
    return small_tape.write(
        path / "mail.jsonl", small_tape.records(tool="send_mail", arguments={"to": "vale"}, result="sent")
    )


def test_an_installed_rule_finds_what_it_is_for(site: Path, tmp_path: Path) -> None:
    ran = lint(site, mails(tmp_path), "--select", "HOUSE1", "--json")
    told = json.loads(ran.stdout)
    (one,) = told["findings"]
    assert (one["rule"], one["severity"], one["message"]) == (
        "HOUSE1", "error", "1 mails were sent before the customer was looked up",
    )  # fmt: skip
    assert (told["rules"], told["warnings"], ran.returncode) == (
        {"HOUSE1": "Mail without a look at the customer"},
        [],
        1,
    )


def test_settings_change_its_number_and_it_stands_in_sarif(site: Path, tmp_path: Path) -> None:
    tape = mails(tmp_path)
    log = json.loads(lint(site, tape, "--select", "HOUSE1", "--format", "sarif").stdout)
    assert [r["ruleId"] for r in log["runs"][0]["results"]] == ["HOUSE1"]
    (tmp_path / "looptape.toml").write_text("[lint]\nHOUSE1 = { mails = 3 }\n")
    ran = lint(site, tape, "--select", "HOUSE1", "--json")
    assert (json.loads(ran.stdout)["findings"], ran.returncode) == ([], 0)
