"""Options and arguments that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from ...tracer.errors import UsageError
from ..safe_text import clean

_PLAIN = re.compile(r"[A-Za-z0-9_.@+-]+")  # a shell puts a completed word on the line unquoted


def run_argument(name: str = "run", *, nargs: int = 1, required: bool = True) -> Callable[[Any], Any]:
    """The RUN argument, completed by Tab from the store's newest runs."""
    return click.argument(name, metavar="RUN", nargs=nargs, required=required, shell_complete=_complete)


def json_option(function: Any) -> Any:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")(function)


def project(here: Path | None = None) -> str:
    """The project of this directory, for ``last``."""
    from ...replay.reference import project_of

    return project_of(here or Path.cwd())


def since(text: str | None, now: int) -> int | None:
    """A moment in µs: ``30m``, ``12h``, ``7d``, ``2w`` ago, or an ISO date or time (local when no zone is given).

    Raises:
        UsageError: It is neither.
    """
    if not text:
        return None
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
    if text[:-1].isdecimal() and text[-1] in units:
        return now - int(text[:-1]) * units[text[-1]] * 1_000_000
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1e6)
    except (ValueError, OverflowError):
        raise UsageError("bad-time", f"{text!r} is no time", "Use 30m, 12h, 7d, 2w or 2026-11-29") from None


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
