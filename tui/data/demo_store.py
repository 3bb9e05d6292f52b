"""Where the demo's store lies, and how the screen has it made: by the command, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ...tracer import paths
from ...tracer.errors import LooptapeError

MARK = "made-by-looptape-demo"


def place(home: Path | None = None) -> Path:
    """Beside the user's own store; the same place when the user looks at the demo just now."""
    home = home or paths.home()
    return home if (home / MARK).is_file() else home / "demo"


def make(home: Path, stopped: Callable[[], bool] = lambda: False) -> Path:
    """Has ``looptape demo`` make its store anew beside the one under ``home``; gives the place. Takes some seconds.

    Args:
        stopped: Asked again and again; True ends the command, which then has failed.

    Raises:
        LooptapeError: The command failed; its last line says why.
    """
    command = [sys.executable, "-m", "looptape.tui.cli", "demo", "--no-tui"]
    env = {**os.environ, "LOOPTAPE_HOME": str(home), "NO_COLOR": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, errors="replace"
    ) as made:
        while True:
            try:
                _, told = made.communicate(timeout=0.1)
                break
            except subprocess.TimeoutExpired:
                if stopped():  # the screen is gone: it does not wait for what nobody will look at
                    made.terminate()
    if made.returncode:
        said = [line for line in told.splitlines() if line.strip()] or ["it said nothing"]
        raise LooptapeError("demo", f"the demo could not be made: {said[-1]}", "looptape demo --no-tui does the same")
    return place(home)
