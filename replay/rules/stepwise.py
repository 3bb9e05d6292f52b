"""Lint of many runs in small steps: the store is held only to read a few runs, and one may stop between any two.

looking = Looking.over(store, runs, config)
while not looking.finished:
    for facts in looking.read(store):     # the next runs, in memory
        looking.judge(facts)
    step = looking.told()                 # what was found since the last time
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...tracer.model import Run
from .circles import as_report
from .config import Config
from .facts import RunFacts
from .group import Group, group_of
from .lint import Report, all_rules, judge, judge_among, report_of
from .load import Loader
from .rule import Said

if TYPE_CHECKING:
    from ...tracer.store import Store

TURNS, RUNS = 1_000, 50
"""Turns, and runs, that are read at once at most: what may stand in memory besides the findings. A longer run is alone."""
COMPARED = 2_000
"""Runs that the rules of many runs compare at most; the first ones."""


@dataclass(frozen=True, slots=True)
class Step:
    """What was found in some runs (``report``); so many are ``done`` of ``count``."""

    report: Report
    done: int
    count: int


class Looking:
    """Where a lint stands. Cycles are told too, in the shape of findings (``cycle-exact``)."""

    def __init__(self, runs: Sequence[Run], group: Group, config: Config) -> None:
        loaded = all_rules()
        self._rules: list[Any] = [rule for rule in loaded.rules if config.wants(rule.ID)]
        self._runs = tuple(runs)
        self._group = group
        self._config = config
        self._troubles = list(loaded.troubles)
        self._said: list[Said] = []
        self._read = self._waiting = self._done = self._told = 0
        self.finished = False

    @classmethod
    def over(cls, store: Store, runs: Sequence[Run], config: Config) -> Looking:
        """Begin: the light facts of all runs are read, nothing is judged yet."""
        overrides = {rule: dict(numbers) for rule, numbers in config.overrides.items()}
        return cls(runs, group_of(store, runs[:COMPARED], overrides=overrides), config)

    @property
    def titles(self) -> dict[str, str]:
        """Rule id to title."""
        return {rule.ID: rule.TITLE for rule in self._rules}

    def read(self, store: Store) -> list[RunFacts]:
        """The facts of the next runs; nothing when all were read."""
        some: list[Run] = []
        turns = 0
        for run in self._runs[self._read : self._read + RUNS]:
            turns += run.turns
            if some and turns > TURNS:
                break
            some.append(run)
        self._read += len(some)
        loader = Loader(store, group=self._group, declared=self._config.declared, overrides=self._group.overrides)
        found = list(loader.facts(some))
        self._waiting += len(found)
        return found

    def judge(self, facts: RunFacts) -> None:
        """What all rules of one run say of it."""
        self._said += judge(self._rules, facts, self._troubles)
        self._said += as_report(facts.cycles, [facts.run]).findings
        self._done += 1
        self._waiting -= 1

    def told(self) -> Step:
        """What was found since the last time; after the last run also what the rules of many runs say."""
        if self._read >= len(self._runs) and not self._waiting and not self.finished:
            self._said += judge_among(self._rules, self._group, self._runs, self._troubles)
            self.finished = True
        runs = self._runs[self._told : self._done]
        report = report_of(self._said, self._group, runs, self._rules, self._troubles)
        self._said, self._troubles, self._told = [], [], self._done
        return Step(report, self._done, len(self._runs))
