"""What a newcomer does in the first minutes, with the command as it is installed: demo, runs, show, sql."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.smoke
def test_the_installed_command_plays_the_demo_and_shows_what_it_recorded(tmp_path: Path) -> None:
    def looptape(*arguments: str, home: str = "home/demo") -> str:
        command = [str(Path(sys.executable).parent / "looptape"), *arguments]
        done = subprocess.run(
            command,
            env={**os.environ, "LOOPTAPE_HOME": str(tmp_path / home)},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = looptape("demo", "--no-tui", home="home")
    assert f"export LOOPTAPE_HOME={tmp_path / 'home' / 'demo'}" in told
    assert "looptape show" in told
    runs = json.loads(looptape("runs", "--json"))["runs"]
    assert {"completed", "limit", "interrupted", "failed"} <= {run["status"] for run in runs}
    shown = json.loads(looptape("show", "revenue", "--json"))
    assert [call["name"] for turn in shown["turns"] for call in turn["tool_calls"]] == ["search", "calculator"]
    (counted,) = json.loads(looptape("sql", "select count(*) as n from turns", "--format", "json"))["rows"]
    assert counted["n"] == sum(run["turns"] for run in runs)
