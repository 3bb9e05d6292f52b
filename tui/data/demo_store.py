"""Where the demo's store lies, and how the screen has it made: by the command, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ...tracer import paths
from ...tracer.errors import LooptapeError

MARK = "made-by-looptape-demo"


def place(home: Path | None = None) -> Path:
    """Beside the user's own store; the same place when the user looks at the demo just now."""
    home = home or paths.home()
    return home if (home / MARK).is_file() else home / "demo"


def make(home: Path) -> Path:
    """Has ``looptape demo`` make its store anew beside the one under ``home``; gives the place. Takes some seconds.

    Raises:
        LooptapeError: The command failed; its last line says why.
    """
    command = [sys.executable, "-m", "looptape.tui.cli", "demo", "--no-tui"]
    env = {**os.environ, "LOOPTAPE_HOME": str(home), "NO_COLOR": "1"}
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"]
        raise LooptapeError("demo", f"the demo could not be made: {said[-1]}", "looptape demo --no-tui does the same")
    return place(home)
