"""The options of `looptape fork`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ...tracer.errors import UsageError

_CONTEXTS = ("stop", "drop", "summarise", "offload")


def fork_options(function: Any) -> Any:
    """All of them; they arrive as keyword arguments of the option's name."""
    options = (
        click.option("--edit", multiple=True, metavar="PATH=VALUE",
                     help="Change something, by its path as printed: messages[3].content, system, model, temperature, "
                     "tools.NAME.description, turn[7].calls[1].result, turn[7].response.text; @FILE reads the value."),
        click.option("--system", metavar="TEXT|@FILE", help="Another system prompt."),
        click.option("--drop-turns", metavar="2-4", help="Take these turns out of what the model sees."),
        click.option("--model", default="recorded", show_default=True, metavar="WHO",
                     help="recorded, anthropic, openai or openai:BASE_URL, scripted:FILE, or a model's name (live)."),
        click.option("--base-url", metavar="URL", help="The server of a live model."),
        click.option("--tools", type=click.Choice(["recorded", "live"]), default="recorded", show_default=True,
                     help="Where results come from; live runs what --tools-from and --mcp give."),
        click.option("--tools-from", multiple=True, metavar="MODULE:TOOLS", help="Live tools of a Python module."),
        click.option("--mcp", multiple=True, metavar="COMMAND", help="Live tools of an MCP server that this starts."),
        click.option("--tool", multiple=True, metavar="NAME=HOW", help="One tool: recorded, live, stub:TEXT, stub:@FILE, or error:TEXT."),
        click.option("--seen-tools", is_flag=True,
                     help="Offer tools whose definitions are not in the recording, derived from the arguments seen."),
        click.option("--max-turns", type=click.IntRange(1), help="Turns of its own at most (50)."),
        click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Cost of its own at most."),
        click.option("--max-seconds", type=click.FloatRange(0, min_open=True), help="Seconds at most (1800)."),
        click.option("--context", type=click.Choice(_CONTEXTS), default="stop", show_default=True,
                     help="When the request is over the window: stop, drop stale results, summarise, or offload bulk to files."),
        click.option("--window", type=click.IntRange(1000), metavar="TOKENS", help="The model's window, where it is known."),
        click.option("--check", metavar="COMMAND", help="Judges the last text (on its stdin): exit 0 is a pass."),
        click.option("--samples", type=click.IntRange(1), default=1, metavar="K", help="Run the fork K times, tell the spread."),
        click.option("--dry-run", is_flag=True, help="Show the diff and what is lacking; run nothing."),
        click.option("--yes", is_flag=True, help="Run what is live without asking."),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def named_tools(given: Sequence[str]) -> dict[str, str]:
    """``NAME=HOW`` of each ``--tool``. Raises UsageError without ``=``."""
    named: dict[str, str] = {}
    for text in given:
        name, equals, how = text.partition("=")
        if not equals or not name:
            raise UsageError(
                "bad-tool", f"--tool {text} has no =", "Say NAME=recorded, NAME=live, NAME=stub:TEXT or NAME=error:TEXT"
            )
        named[name] = how
    return named
