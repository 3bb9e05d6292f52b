"""Runs a program with recording on and no edit: through a sitecustomize, or a loopback proxy.

This folder is put on the program's PYTHONPATH; besides its `__init__` it may hold nothing but the
sitecustomize (which takes the folder off the path again), so that it shadows no module of the program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from .. import unseen
from ..command import Command, understand
from ..errors import UsageError

MARK = "LOOPTAPE_RECORD"
"""Set in the program's environment; the sitecustomize does nothing without it."""

# `_looptape_injected` is set by our sitecustomize: that it ran is what has to be known
_PROBE = "import sys, looptape.tracer.wrap; sys.exit(not hasattr(sys, '_looptape_injected'))"
_SECONDS = 30


def launch(argv: Sequence[str], *, proxy: bool = False) -> int:
    """Runs a command with recording on and gives its exit code.

    A Python program that can import looptape is recorded in its own process, which replaces this one
    (so its signals, stdin and exit code are its own and this function does not return). Anything
    else is recorded by a loopback proxy; why is said on stderr.

    Args:
        argv: The command and its arguments.
        proxy: Use the proxy in any case.

    Raises:
        UsageError: When there is no such command, or it cannot be started.
    """
    command = command_of(argv)
    environment = injected(os.environ)
    reason = "asked for with --proxy" if proxy else why_not_inside(command, environment)
    with started(command):
        if reason is None:
            sys.stdout.flush()
            sys.stderr.flush()
            environment[unseen.FIRST] = str(os.getpid())
            os.execve(command.program, list(argv), environment)  # noqa: S606 - the program takes our place
        from ..proxy import run_behind_proxy

        # what a shell script or a launcher starts may well be a Python that records itself, and says so to the proxy
        launcher = command.python is None and not proxy
        since = time.time_ns()
        code = run_behind_proxy(command, reason, environment if launcher else os.environ)
        unseen.tell(since, unseen.BEHIND)
        return code


def command_of(argv: Sequence[str], verb: str = "record") -> Command:
    """A command line, its program found.

    Raises:
        UsageError: There is no such command. ``verb`` is the command of ours that the cure names.
    """
    if not argv:
        raise UsageError(
            "no-command", "nothing to run", f"Write the command after --: looptape {verb} -- python agent.py"
        )
    program = shutil.which(argv[0])
    if program is None:
        raise _missing(argv[0], verb)
    return understand(program, argv)


@contextmanager
def started(command: Command) -> Iterator[None]:
    """Starts a program in its block: an OSError there becomes a UsageError that names the command."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            "no-command",
            f"{command.argv[0]} cannot be started: {error.strerror or error}",
            "Does its first line name a program?",
        ) from None


def injected(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which Python programs, and those they start, record themselves."""
    folder = str(Path(__file__).resolve().parent)
    others = environment.get("PYTHONPATH", "")
    # an empty entry means the working directory: what stands there already stays as it is
    path = [folder, *(p for p in others.split(os.pathsep) if p != folder)] if others else [folder]
    return {**environment, "PYTHONPATH": os.pathsep.join(path), MARK: "1"}


def why_not_inside(command: Command, environment: Mapping[str, str]) -> str | None:
    """Why a command cannot record itself, None when it can. Asks the interpreter, with the program's own options."""
    if command.python is None:
        return f"{Path(command.program).name} is no Python program"
    if command.shadow is not None:
        return f"{command.shadow} has the name of looptape"
    try:
        with tempfile.TemporaryDirectory() as elsewhere:  # -c would find modules in the working directory
            probe = subprocess.run(
                [command.python, *command.isolation, "-c", _PROBE],
                env=dict(environment),
                cwd=elsewhere,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired):
        return f"{command.python} did not answer"
    if probe.returncode == 0:
        return None
    if command.isolation:
        return f"its options {' '.join(command.isolation)} switch PYTHONPATH or site off"
    return f"{command.python} cannot import looptape"


def _missing(name: str, verb: str) -> UsageError:
    cure = "Check the spelling or give its path"
    if Path(name).is_file():
        cure = f"Is it a program's text? Try: looptape {verb} -- python {name}"
    return UsageError("no-command", f"{name}: no such command", cure)
