"""The list of runs as an answer of the store: order, lineage, projects, totals, and the facts kept beside runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import run_rows
from looptape.replay.filters import parse
from looptape.replay.listing import HEAD, Facts, lines, listing
from looptape.replay.listing import facts as looking
from looptape.replay.rules.config import Config
from looptape.sample_traces import demo
from looptape.tracer.errors import UsageError
from looptape.tracer.importers import import_path
from looptape.tracer.model import Parent, Run, Usage
from looptape.tracer.store import Filter, Store, memory_store
from looptape.tracer.store.filters import SORTS

MINUTE = 60_000_000


def run(name: str, minutes: int, **more: object) -> Run:
    return replace(
        Run(id=name, name=name, turns=3, started_at=minutes * MINUTE, ended_at=(minutes + 1) * MINUTE), **more
    )  # type: ignore[arg-type]


RUNS = (
    run(
        "cheap",
        5,
        cost_usd=0.1,
        project="/a",
        errors=2,
        models=("m",),
        usage=Usage(input=100, cache_read=300, output=9),
    ),
    run("dear", 4, cost_usd=7.0, project="/b", status="running", task="refunds"),
    run("free", 3, project="/a", outcome={"verdict": "fail"}, unpriced_turns=3),
    run("child", 6, cost_usd=0.2, parent=Parent("dear", 2)),
    run("grandchild", 7, parent=Parent("child", 1, kind="sub-agent")),
)


@pytest.fixture
def store() -> Iterator[Store]:
    with run_rows.store_of(RUNS) as made:
        yield made


def test_a_list_holds_every_run_in_order_with_the_sums_of_all(store: Store) -> None:
    found = listing(store, Filter())
    assert found.keys == ["grandchild", "child", "cheap", "dear", "free"]
    # the grandchild has no cost and no turn without a price: it spent nothing of its own
    assert (found.every.runs, found.every.cost_usd, found.every.unpriced, found.every.running) == (5, 7.3, 1, 1)
    assert (found.every.newest, found.every.tasks, found.every.outcomes) == ("grandchild", 1, 1)


def test_a_filter_narrows_keys_and_sums_and_leaves_those_of_all(store: Store) -> None:
    found = listing(store, parse("error:yes"))
    assert found.keys == ["cheap"]
    assert (found.shown.runs, found.shown.context, found.shown.cached, found.every.runs) == (1, 400, 300, 5)


def test_children_stand_below_their_parents_however_deep(store: Store) -> None:
    found = listing(store, Filter(), "lineage")
    assert found.keys == ["cheap", "dear", "child", "grandchild", "free"]
    assert found.depths == {"child": 1, "grandchild": 2}
    without = listing(store, parse("project:/a"), "lineage")
    assert without.keys == ["cheap", "free"]


def test_parents_in_a_circle_lose_no_run() -> None:
    runs = [
        run("a", 1, parent=Parent("b")),
        run("b", 2, parent=Parent("a")),
        run("c", 3, parent=Parent("c")),
        run("d", 4),
    ]
    with run_rows.store_of(runs) as store:
        assert sorted(listing(store, Filter(), "lineage").keys) == ["a", "b", "c", "d"]


def test_by_project_each_has_its_sums_and_a_folded_one_only_its_line(store: Store) -> None:
    found = listing(store, Filter(), "project")
    assert found.keys == [HEAD, "grandchild", "child", HEAD + "/a", "cheap", "free", HEAD + "/b", "dear"]
    assert (found.projects[HEAD + "/a"].runs, found.projects[HEAD + "/a"].errors) == (2, 2)
    folded = listing(store, Filter(), "project", frozenset({HEAD + "/a"}))
    assert folded.keys == [HEAD, "grandchild", "child", HEAD + "/a", HEAD + "/b", "dear"]


def test_a_first_look_gives_some_keys_and_the_sums_of_all(store: Store) -> None:
    found = listing(store, Filter(), "lineage", first=2)
    assert found.keys == ["child", "grandchild"]
    assert found.every.runs == 5


@pytest.mark.parametrize("sort", SORTS)
def test_every_order_goes_both_ways_and_what_has_no_value_comes_last(store: Store, sort: str) -> None:
    forth = store.ids(Filter(sort=sort, limit=0))
    back = store.ids(Filter(sort=sort, limit=0, backwards=True))
    assert sorted(forth) == sorted(back) == sorted(r.id for r in RUNS)
    if sort == "cost":
        assert (forth, back) == (
            ["dear", "child", "cheap", "grandchild", "free"],
            ["cheap", "child", "dear", "grandchild", "free"],
        )


def test_an_order_that_is_none_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="cannot be sorted"):
        listing(store, Filter(sort="beauty"))


def test_only_runs_that_are_asked_for_are_read_whole(store: Store) -> None:
    found = lines(store, ["dear", "nobody"])
    assert list(found) == ["dear"]
    assert found["dear"].run.task == "refunds"
    assert found["dear"].facts == Facts()


@pytest.fixture
def samples() -> Iterator[Store]:
    with memory_store() as made:
        for tape in demo.tapes():
            import_path(made, tape)
        yield made


def test_facts_are_found_once_and_kept(samples: Store) -> None:
    ids = samples.ids(Filter(limit=0))
    done, left = looking.look(samples, ids, seconds=60)
    assert (done, left) == (len(ids), 0)
    assert looking.look(samples, ids, seconds=60) == (0, 0)
    named = {r.name: looking.kept(samples, [r.id])[r.id] for r in samples.runs(Filter(limit=0))}
    circling = named["where-is-my-parcel"]
    assert circling.cycles
    assert circling.findings
    assert circling.worst == "error"
    assert circling.context
    assert 0 < len(circling.bars) <= looking.BARS
    assert max(circling.bars) == circling.context
    assert {f.cycles for f in named.values()} > {0}


def test_other_settings_of_the_linter_find_anew(samples: Store) -> None:
    ids = samples.ids(Filter(name="where-is-my-parcel", limit=1))
    config = Config(ignore=("L", "T"))
    assert looking.look(samples, ids, config, seconds=60)[0] == 1
    assert looking.kept(samples, ids)[ids[0]].findings == 0
    assert looking.look(samples, ids, seconds=60)[0] == 1


def test_a_run_that_went_on_is_looked_at_again_and_shows_what_was_known_meanwhile(samples: Store) -> None:
    ids = samples.ids(Filter(name="where-is-my-parcel", limit=1))
    looking.look(samples, ids, seconds=60)
    samples.write(lambda con: con.execute("update base.runs set last_at = last_at + 1 where id = ?", ids))
    assert looking.kept(samples, ids)[ids[0]].cycles
    assert looking.look(samples, ids, seconds=60) == (1, 0)


def test_a_window_that_no_list_says_is_not_made_up(samples: Store) -> None:
    ids = samples.ids(Filter(name="where-is-my-parcel", limit=1))
    samples.write(
        lambda con: con.execute("update base.turns set model = 'own-model', request_model = null where run = ?", ids)
    )
    samples.write(lambda con: con.execute("delete from base.derived"))
    looking.look(samples, ids, seconds=60)
    found = looking.kept(samples, ids)[ids[0]]
    assert found.context
    assert found.window is None


def test_very_long_runs_stay_unknown(tmp_path: Path) -> None:
    with run_rows.store_of([run("long", 1, turns=looking.LONG_TURNS + 1)]) as store:
        assert looking.look(store, ["long"], seconds=60) == (0, 0)
        assert lines(store, ["long"])["long"].facts == Facts()
