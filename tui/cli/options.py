"""Options and arguments that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from ...tracer.errors import UsageError
from ..safe_text import clean

if TYPE_CHECKING:
    from ...tracer.store import Filter

SORTS = ("time", "cost", "turns", "errors", "wasted", "tokens", "duration", "name")
STATUSES = ("running", "completed", "limit", "halted", "failed", "interrupted", "unknown")

_PLAIN = re.compile(r"[A-Za-z0-9_.@+-]+")  # a shell puts a completed word on the line unquoted


def run_argument(name: str = "run", *, nargs: int = 1, required: bool = True) -> Callable[[Any], Any]:
    """The RUN argument, completed by Tab from the store's newest runs."""
    shown = "RUN" if nargs == 1 else "RUN..."
    return click.argument(
        name, metavar=shown if required else f"[{shown}]", nargs=nargs, required=required, shell_complete=_complete
    )


def json_option(function: Any) -> Any:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")(function)


def project(here: Path | None = None) -> str:
    """The project of this directory, for ``last``."""
    from ...replay.reference import project_of

    return project_of(here or Path.cwd())


def filter_options(function: Any) -> Any:
    """The options that pick runs; they arrive as the keyword arguments that `asked` takes."""
    options = (
        click.option("--project", help="Only runs of this project: a folder; . is this one."),
        click.option("--model", help="Only runs that used this model; * stands for any text, as in all of these."),
        click.option("--tool", help="Only runs that called this tool."),
        click.option("--error", is_flag=True, help="Only runs with errors."),
        click.option("--since", metavar="WHEN", help="Only runs since then: 30m, 12h, 7d, 2w, 2026-11-29."),
        click.option("--text", help="Only runs with this in name, title, task, agent or id."),
        click.option("--status", type=click.Choice(STATUSES), help="Only runs that stand or ended like this."),
        click.option("--task", help="Only runs of this task."),
        click.option("--outcome", help="Only runs with this outcome, e.g. pass."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def filter_argument(function: Any) -> Any:
    """Words of the filter language (`replay.filters`) beside the options; they arrive as ``words``."""
    return click.argument("words", metavar="[FILTER]...", nargs=-1)(function)


def sort_option(function: Any) -> Any:
    """``--sort``: which runs come first."""
    option = click.option(
        "--sort",
        type=click.Choice(SORTS),
        default="time",
        show_default=True,
        help="What comes first: the newest, or the largest.",
    )
    return option(function)


def is_pair(word: str) -> bool:
    """True for a ``key:value`` of the filter language, which a reference to a run never is with these keys."""
    from ...replay.filters import KEYS, NUMBERS

    key, colon, _ = word.partition(":")
    return bool(colon) and (key in KEYS or key in NUMBERS or key.startswith("tag."))


def asked(now: int, given: dict[str, Any], words: Sequence[str] = ()) -> Filter:
    """The filter of `filter_options` and `filter_argument`, both together.

    Raises:
        UsageError: A time is none, a key is not known, or a thing is asked for twice.
    """
    from ...replay.filters import moment, parse, written

    found = parse(written(words), now)
    options = {name: given[name] for name in ("model", "tool", "text", "status", "task", "outcome")}
    options |= {"error": given["error"] or None, "since": moment(given["since"], now)}
    options = {name: value for name, value in options.items() if value is not None}
    options |= {"project": _project(given["project"])} if given["project"] is not None else {}
    for name in options:
        if getattr(found, name) is not None:
            raise UsageError("bad-filter", f"{name} is asked for twice", f"Give --{name} or {name}:, not both")
    where = _project(found.project) if found.project is not None else None
    return replace(found, **{"project": where} | options)


def _project(given: str | None) -> str | None:
    folder = Path(given).expanduser() if given is not None else None
    return project(folder) if folder is not None and folder.is_dir() else given


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        from ...tracer.store import Filter, open_store

        with open_store(drain=False, deadline=0.3) as store:
            runs = store.runs(Filter(limit=200))
    except Exception:  # a Tab key must never print an error
        return []
    known = {"last": "the newest run"}
    for run in runs:
        for word, says in ((run.name or "", f"{run.turns} turns, {run.status}"), (run.id, run.name or run.title or "")):
            if _PLAIN.fullmatch(word):
                known.setdefault(word, clean(says, limit=60))
    return [CompletionItem(k, help=v) for k, v in known.items() if k.startswith(incomplete)]
