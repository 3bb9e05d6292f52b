"""Is the goal reached? The user's function or command is asked, and its verdict kept."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

from .policy import Goal
from .tools.telling import clean
from .waiting import POLL

MAX_NOTE = 400


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a goal check said; ``note``: why not, or what the check itself failed with."""

    passed: bool
    note: str | None = None


def by_function(goal: Goal, text: str, run: str) -> Judgement:
    """What a function says; one that raises has not passed."""
    try:
        return judged(goal(text, run))
    except Exception as error:  # the user's check may fail in its own way
        return judged(error)


def judged(said: object) -> Judgement:
    """What a check's answer, or its exception, means."""
    if isinstance(said, Exception):
        return Judgement(False, clean(f"the check itself failed: {type(said).__name__}: {said}", MAX_NOTE))
    if isinstance(said, str):
        return Judgement(False, clean(said, MAX_NOTE))
    return Judgement(said is None or bool(said))


def by_command(command: str, text: str, run: str, timeout: float, stop: threading.Event | None = None) -> Judgement:
    """What a shell command says by its exit status: the text comes on its standard input, the run in LOOPTAPE_RUN."""
    environment = {**os.environ, "LOOPTAPE_RUN": run}
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=environment, text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.append(process.communicate(text)[0]), daemon=True)
    reader.start()
    end = time.monotonic() + timeout
    try:
        while reader.is_alive():
            reader.join(POLL)
            if time.monotonic() > end:
                return Judgement(False, f"the check gave no answer in {timeout:g} s")
            if stop is not None and stop.is_set():
                return Judgement(False, "the check was stopped")
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has just ended; macOS says the second
                os.killpg(process.pid, signal.SIGKILL)
    note = clean("".join(said)[-4000:], MAX_NOTE)
    if process.returncode == 0:
        return Judgement(True, note or None)
    return Judgement(False, note or f"the check ended with exit status {process.returncode}")
