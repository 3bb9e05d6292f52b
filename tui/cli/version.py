"""`looptape version`."""

from __future__ import annotations

import click

from .. import report


@click.command("version")
def command() -> None:
    """Print the version."""
    from ... import __version__

    report.out(f"looptape {__version__}")
