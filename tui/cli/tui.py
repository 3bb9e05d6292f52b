"""`looptape tui`: the terminal screen."""

from __future__ import annotations

import click

from ...replay import reference
from ...tracer import paths
from ...tracer.errors import UsageError
from .. import report
from .options import run_argument
from .reading import found


@click.command("tui")
@run_argument(required=False)
def command(run: str | None) -> int:
    """Open the terminal screen, at a run if one is named."""
    if not report.is_terminal():
        plain = f"looptape show {run}" if run else "looptape runs"
        raise UsageError("no-terminal", "the screen needs a terminal", f"Without one: {plain}")
    return open_screen(run)


def open_screen(run: str | None = None) -> int:
    """Opens the Textual app; a reference is looked up first, so that a wrong one is said plainly."""
    turn = None
    if run is not None:
        path = reference.parse(run).path
        with found(run) as one:
            if path is not None:
                from ..app import run_app

                return run_app(paths.home(), path.name, turn=one.first, tape=one)
            run, turn = one.run.id, one.first
    from ..app import run_app

    return run_app(paths.home(), run, turn=turn)
