"""`looptape record -- COMMAND`: runs any program with recording on."""

from __future__ import annotations

import click

from ...tracer.errors import UsageError


@click.command("record", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--proxy", is_flag=True, help="Record through the loopback proxy, also where the program could do it itself."
)
@click.argument("program", metavar="-- COMMAND", nargs=-1, type=click.UNPROCESSED)
def command(proxy: bool, program: tuple[str, ...]) -> int:
    """Run a program with recording on; ends with the program's exit code."""
    if not program or program[0].startswith("-"):
        what = f"there is no option {program[0]!r}" if program else "no program was named"
        raise UsageError("usage", what, "Try: looptape record -- python agent.py")
    from ...tracer.inject import launch

    return launch(list(program), proxy=proxy)
