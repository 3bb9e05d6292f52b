"""`looptape completion`: the script that makes Tab complete commands and runs."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from ...tracer.errors import UsageError
from .. import report

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def command(shell: str | None) -> None:
    """Print the completion script of a shell (default: yours), e.g. eval "$(looptape completion bash)"."""
    name = shell or Path(os.environ.get("SHELL", "")).name
    maker = get_completion_class(name)
    if name not in SHELLS or maker is None:
        raise UsageError("no-shell", f"cannot tell your shell from SHELL={name!r}", f"Name it: {', '.join(SHELLS)}")
    from .group import cli

    report.exact(maker(cli, {}, "looptape", "_LOOPTAPE_COMPLETE").source())
