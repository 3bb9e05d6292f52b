"""What the list of runs asks of a store: the order of all of them, and whole lines only around where one looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...tracer.errors import LooptapeError
from .views import RunsView, RunsWanted

if TYPE_CHECKING:
    from ...replay.listing import Line
    from ...replay.rules.config import Config
    from ...tracer.store import Store
    from ..memory import Memory

FIRST = 200
"""Keys of the first look: more than any screen has lines."""
SORTS = (
    "time", "name", "status", "turns", "calls", "errors", "cycles", "wasted", "findings", "input", "cache", "output", "cost",
    "duration", "context", "task", "outcome", "project", "model", "source",
)  # fmt: skip
"""Orders of the store that the list offers."""
AROUND = 80
"""Lines read above and below the place one looks at."""


def remembered(memory: Memory, *, first: int = 0) -> RunsWanted:
    """What was wanted when the list was shown last; a filter that is wrong by now is left out."""
    sort, grouping = memory.get("runs.sort", ["time", False]), memory.get("runs.group", "lineage")
    text = memory.get("runs.filter", "")
    return RunsWanted(
        filter="" if wrong(text) else text,
        sort=str(sort[0]) if sort and sort[0] in SORTS else "time",
        backwards=len(sort) > 1 and sort[1] is True,
        grouping=grouping if grouping in ("list", "lineage", "project") else "lineage",
        folded=frozenset(str(key) for key in memory.get("fold.projects", [])),
        at=memory.get("runs.selected") or None,
        first=first,
    )


def remember(memory: Memory, wanted: RunsWanted) -> None:
    """Keep it for the next time."""
    memory.put("runs.sort", [wanted.sort, wanted.backwards])
    memory.put("runs.group", wanted.grouping)
    memory.put("runs.filter", wanted.filter)
    memory.put("fold.projects", sorted(wanted.folded))


def wrong(text: str) -> str:
    """What is wrong with a filter, in a line; empty when nothing is."""
    if not text.strip():
        return ""
    from ...replay.filters import parse

    try:
        parse(text)
    except LooptapeError as error:
        return str(error)
    return ""


def read(store: Store, wanted: RunsWanted) -> RunsView:
    """The list as it stands now.

    Raises:
        UsageError: The filter's text is wrong.
    """
    from ...replay.filters import parse
    from ...replay.listing import lines, listing

    given = replace(parse(wanted.filter), sort=wanted.sort, backwards=wanted.backwards)
    found = listing(store, given, wanted.grouping, wanted.folded, first=wanted.first)
    return RunsView(found, lines(store, _near(found.keys, wanted.at)))


def around(store: Store, keys: Sequence[str]) -> dict[str, Line]:
    """The lines of these keys; those of projects are none."""
    from ...replay.listing import HEAD, lines

    return lines(store, [key for key in keys if not key.startswith(HEAD)])


def with_errors(store: Store, filter_text: str) -> frozenset[str]:
    """The runs of a filter that have errors."""
    from ...replay.filters import parse

    given = parse(filter_text)
    return frozenset() if given.error is False else frozenset(store.ids(replace(given, error=True)))


def look(store: Store, keys: Sequence[str]) -> tuple[int, int]:
    """Finds cycles, findings and contexts of these runs, for a moment; how many were looked at, how many are left."""
    from ...replay.listing import facts

    return facts.look(store, keys, _config())


def look_all(store: Store, wanted: RunsWanted) -> tuple[int, int]:
    """The same of all runs of a filter, as far as its question or the order needs it."""
    from ...replay.analytics.wasted import keep_cycles
    from ...replay.filters import parse
    from ...replay.listing import facts

    given = replace(parse(wanted.filter), cycle=None)
    if wanted.sort in ("findings", "context"):
        return facts.look(store, store.ids(given), _config())
    done: list[str] = []
    left = keep_cycles(store, given, seconds=0.5, tell=done.append)
    return len(done), left


def _config() -> Config:
    """The linter's settings of this directory; those that are wrong are `looptape lint`'s to say."""
    from ...replay.rules.config import Config, read_config
    from ...replay.rules.lint import all_rules

    try:
        return read_config(all_rules().rules)
    except LooptapeError:
        return Config()


def _near(keys: Sequence[str], at: str | None) -> list[str]:
    """The first keys, and those around the one looked at."""
    from ...replay.listing import HEAD

    try:
        place = keys.index(at) if at is not None else 0
    except ValueError:
        place = 0
    some = dict.fromkeys((*keys[:AROUND], *keys[max(0, place - AROUND) : place + AROUND]))
    return [key for key in some if not key.startswith(HEAD)]
