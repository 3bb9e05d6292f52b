"""Commands that end in `-- COMMAND`: what stands behind the two dashes is the user's program, untouched."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Any

import click

from ...tracer.errors import UsageError

_WORDS = "looptape.program"


class WithProgram(click.Command):
    """A command whose arguments end at the first ``--``; the rest is the program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, with what is before the dashes."""
        own, words = args, None
        if "--" in args:
            at = args.index("--")
            own, words = args[:at], tuple(args[at + 1 :])
        ctx.meta[_WORDS] = words
        try:
            return super().parse_args(ctx, list(own))  # click eats the list
        except click.UsageError:
            if words is None:
                refuse_undashed(own, ctx.info_name or "")
            raise

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line shows the program too."""
        return [*super().collect_usage_pieces(ctx), "-- COMMAND"]


def program(verb: str) -> tuple[str, ...] | None:
    """The program's words; None where there were no dashes.

    Args:
        verb: The command as it is typed, for the cure.

    Raises:
        UsageError: There are dashes with nothing behind them.
    """
    words: Sequence[str] | None = click.get_current_context().meta.get(_WORDS)
    if words is not None and not words:
        raise UsageError("no-command", "nothing stands behind --", f"Try: looptape {verb} -- python agent.py")
    return tuple(words) if words is not None else None


def refuse_undashed(words: Sequence[str], verb: str) -> None:
    """Raises UsageError where a program's name stands among a command's own words: its dashes were forgotten.

    Args:
        words: What was typed behind the command; the first is a recording.
        verb: The command.
    """
    for at, word in enumerate(words):
        if at and word != "last" and which(word) is not None:  # many systems have a program `last`
            typed = " ".join(("looptape", verb, *(shlex.quote(w) for w in words[:at]), "--", shlex.join(words[at:])))
            raise UsageError("no-dashes", f"{word} is a program", f"Write two dashes before it: {typed}")


def per_tool(given: Sequence[str]) -> dict[str, str]:
    """``NAME=recorded``, ``NAME=live``, ``NAME=stub:TEXT`` or ``NAME=stub:@FILE`` as the player takes them.

    Raises:
        UsageError: One is none of these, or its file cannot be read.
    """
    found = {}
    for text in given:
        name, _, how = text.partition("=")
        if not name or not (how in ("recorded", "live") or how.startswith("stub:")):
            raise UsageError(
                "usage",
                f"--tool {text!r} says nothing about a tool",
                "Write NAME=recorded, NAME=live or NAME=stub:@file",
            )
        found[name] = f"stub:{_file(how[6:])}" if how.startswith("stub:@") else how
    return found


def _file(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("bad-file", f"--tool: cannot read {path} ({error})", "Name a UTF-8 text file") from None


normaliser_option = click.option(
    "--normaliser", multiple=True, metavar="MODULE:FUNCTION",
    help="A function of yours, text to text, applied before requests are compared; also [tool.looptape] normalisers.",
)  # fmt: skip


def replay_options(function: Any) -> Any:
    """The options that say how a replay is done; they arrive as the keyword arguments that `how` takes."""
    options = (
        click.option(
            "--from", "from_turn", type=click.IntRange(1), metavar="N",
            help="Turns before N are answered from the recording; from N on --model and --tools hold.",
        ),
        click.option(
            "--model", default="recorded", show_default=True, metavar="WHICH",
            help="recorded, live (as the program asks), or another model's name (live). Live needs --from.",
        ),
        click.option(
            "--tools", type=click.Choice(("recorded", "live")), default="recorded", show_default=True,
            help="live: tools known to change nothing really run from --from on; others must be named with --tool.",
        ),
        click.option(
            "--tool", multiple=True, metavar="NAME=HOW",
            help="One tool: recorded, live, stub:TEXT or stub:@FILE. May be given several times.",
        ),
        click.option(
            "--match", type=click.Choice(("normalised", "exact", "dialogue")), default="normalised", show_default=True,
            help="normalised: ids, dates and paths may differ (each use is listed). exact: nothing may. dialogue: "
            "also system text, tool descriptions and sampling.",
        ),
        click.option(
            "--on-miss", type=click.Choice(("stop", "warn", "live")), default="stop", show_default=True,
            help="A request that was not recorded: stop there, go on with the nearest recorded answer, or ask the model.",
        ),
        click.option(
            "--unwrapped", type=click.Choice(("stop", "run")), default="stop", show_default=True,
            help="run: recorded tools that are not wrapped in the program (@looptape.tool) may really run.",
        ),
        click.option("--max-turns", type=click.IntRange(1), help="Turns that may be live."),
        click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="What live turns may cost."),
        normaliser_option,
        click.option(
            "--network", type=click.Choice(("closed", "open")), default="closed", show_default=True,
            help="closed: connections off this machine are refused while nothing live is asked for.",
        ),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def how(given: dict[str, Any]) -> Any:
    """The settings of `replay_options`.

    Raises:
        UsageError: They do not go together.
    """
    from ...replay.player.settings import ReplaySettings
    from ...replay.program.spec import normalisers

    model = str(given["model"]).strip()
    if not model:
        raise UsageError("usage", "--model is empty", "Write recorded, live, or a model's name")
    return ReplaySettings(
        match=given["match"],
        on_miss=given["on_miss"],
        from_turn=given["from_turn"],
        model=model,
        tools=given["tools"],
        tool=per_tool(given["tool"]),
        unwrapped=given["unwrapped"],
        max_turns=given["max_turns"],
        max_cost_usd=given["max_cost"],
        network=given["network"],
        normalisers=normalisers(given["normaliser"]),
    )
