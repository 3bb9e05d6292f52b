"""Lint in steps: the same findings as at once, a few runs at a time, and what they wasted together."""

from __future__ import annotations

from pathlib import Path

import pytest

import turn_tapes
from looptape.replay.cycles import Waste
from looptape.replay.rules import Finding, lint
from looptape.replay.rules.config import Config
from looptape.replay.rules.pages import about
from looptape.replay.rules.stepwise import Looking
from looptape.replay.rules.together import together
from looptape.tracer.errors import UsageError
from looptape.tracer.store import Filter, Store, open_store
from rule_runs import call, recording_of, turn, work

LOOP = [turn(call("find_order", {"number": "A-1"}, "Error: no such order", error=True)) for _ in range(12)]


def filled(folder: Path, count: int) -> None:
    with open_store(folder) as store:
        for number in range(count):
            one = recording_of(*work(2), *LOOP, turn(text="No."), id=f"{number:016x}", name="orders")
            store.ingest(turn_tapes.records(one))


def looked(store: Store) -> list[Finding]:
    found: list[Finding] = []
    looking = Looking.over(store, store.runs(Filter(limit=0)), Config())
    while not looking.finished:
        for facts in looking.read(store):
            looking.judge(facts)
        step = looking.told()
        found += step.report.findings
    assert step.done == step.count
    return found


def test_in_steps_it_finds_what_it_finds_at_once_and_cycles_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("looptape.replay.rules.stepwise.TURNS", 31)
    filled(tmp_path, 5)
    with open_store(tmp_path) as store:
        at_once = lint(store, store.runs(Filter(limit=0))).findings
        found = looked(store)
    cycles = [f for f in found if f.rule.startswith("cycle-")]
    assert len(cycles) == 5
    rest = [f for f in found if not f.rule.startswith("cycle-")]
    assert sorted(rest, key=repr) == sorted(at_once, key=repr)


def test_no_runs_are_no_endless_search(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        looking = Looking.over(store, [], Config())
        assert looking.read(store) == []
        assert looking.told().count == 0
        assert looking.finished


def finding(run: str, first: int, last: int, turns: int, usd: float | None, tokens: int | None = None) -> Finding:
    return Finding("L05", "error", run, first, last, "again", wasted=Waste(turns, tokens, usd))


def test_the_same_turns_count_once_and_only_the_heaviest_of_them() -> None:
    found = [finding("a", 3, 9, 5, 0.5, 100), finding("a", 8, 12, 6, 0.7, 90), finding("a", 20, 21, 1, None, 7)]
    assert together(found) == Waste(7, 97, 0.7)
    assert together([*found, finding("b", 3, 9, 2, 0.25)]) == Waste(9, 97, 0.95)


def test_a_finding_that_means_no_turn_means_all_of_them() -> None:
    assert together([finding("a", 0, 0, 4, 0.4), finding("a", 8, 12, 6, 0.7)]).turns == 6


def test_what_nobody_knows_stays_not_known() -> None:
    assert together([]) == Waste()
    assert together([finding("a", 1, 2, 2, None)]) == Waste(2)


def test_a_kind_of_cycle_has_a_page_and_an_unknown_rule_has_none() -> None:
    assert about("cycle-exact").startswith("# Cycle: the same call with the same result")
    assert about("L05").startswith("# L05")
    with pytest.raises(UsageError):
        about("cycle-unheard-of")
