"""The click group: loads a command's module only when that command is asked for."""

from __future__ import annotations

import difflib
import importlib
import os
from typing import Any

import click

from . import COMMANDS

_WITHOUT_STORE = ("info", "version", "completion", "doctor")


class LazyGroup(click.Group):
    """A group that knows its commands by name and one line, and imports a module only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of COMMANDS."""
        return [c.name for c in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, None when there is none of that name."""
        found = next((c for c in COMMANDS if c.name == cmd_name), None)
        if found is None:
            return None
        command: click.Command = importlib.import_module(found.module).command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """A closed pipe goes on without its number: for that click would end with 1, the report ends quietly."""
        ctx.meta["asks_help"] = not {"-h", "--help"}.isdisjoint(ctx.args)  # gone when the command is at work
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise BrokenPipeError from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in ``--help``, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(c.name, c.says) for c in COMMANDS])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest command named when there is none."""
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            close = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            ctx.fail(f"there is no command {args[0]!r}" + (f", did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, help="Print the version.")
@click.pass_context
def cli(ctx: click.Context, version: bool) -> Any:
    """Record every turn of an agent loop, and see what it did, where it circled and what that cost.

    Without a command: the terminal screen; in a pipe: the list of runs.

    RUN is an id, a unique beginning of one, a name (the newest wins), last, last~2, or the path of a tape
    file. RUN:7 is turn 7, RUN:7-9 are three turns.
    """
    from ...tracer import settings

    if ctx.invoked_subcommand not in ("info", "version", "completion"):
        settings.export(settings.effective(), os.environ)
    if ctx.invoked_subcommand not in _WITHOUT_STORE and not version and not ctx.meta["asks_help"]:
        from ...tracer import paths
        from ...tracer.store import check_home

        check_home(paths.home())
    if version:
        return ctx.invoke(LazyGroup.get_command(cli, ctx, "version"))  # type: ignore[arg-type]
    if ctx.invoked_subcommand is None:
        from .bare import bare

        return bare()
    return None
