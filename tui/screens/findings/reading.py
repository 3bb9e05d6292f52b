"""What the screen of findings asks of the store, step by step, and what it is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.message import Message

from ....replay.filters import parse, ready
from ....replay.rules.chosen import family
from ....replay.rules.config import read_config
from ....replay.rules.lint import all_rules
from ....replay.rules.stepwise import Looking, Step
from ....tracer.model import Run
from ...data.source import Source
from ...place import Scope

if TYPE_CHECKING:
    from ....tracer.store import Store


EVERY = 0.4
"""Seconds between two messages of what was found."""


class Begun(Message):
    """The runs are known; nothing was judged yet."""

    def __init__(self, runs: Sequence[Run], titles: Mapping[str, str]) -> None:
        super().__init__()
        self.runs = tuple(runs)
        self.titles = titles


class Stepped(Message):
    """Some more runs were looked at."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step


class Ended(Message):
    """All runs were looked at, or it was stopped."""

    def __init__(self, *, stopped: bool) -> None:
        super().__init__()
        self.stopped = stopped


def look(source: Source, scope: Scope, post: Callable[[Message], object], stopped: Callable[[], bool]) -> Ended:
    """Looks at the runs of a scope, a few at a time; others may read between.

    Args:
        post: Is given every message as soon as it is there.
        stopped: True when no further step is wanted.

    Raises:
        LooptapeError: The filter or the settings say something that cannot be.
    """
    config = read_config(all_rules().rules)
    runs = source.ask(lambda store: chosen(store, scope, source.now()))
    looking = source.ask(lambda store: Looking.over(store, runs, config))
    post(Begun(runs, looking.titles))
    last = time.monotonic()
    while not looking.finished and not stopped():
        for facts in source.ask(looking.read):
            if stopped():
                break
            looking.judge(facts)
            if time.monotonic() - last > EVERY:
                post(Stepped(looking.told()))
                last = time.monotonic()
        post(Stepped(looking.told()))
    return Ended(stopped=not looking.finished)


def chosen(store: Store, scope: Scope, now: int) -> list[Run]:
    """The runs of a scope: those named with their sub-agents, else those of the filter, the newest first."""
    if scope.runs:
        found = {run.id: run for named in scope.runs for run in family(store, store.run(named))}
        return list(found.values())
    wanted = replace(parse(scope.filter, now), limit=0)
    ready(store, wanted)
    return list(store.runs(wanted))
