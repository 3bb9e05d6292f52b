"""Limits from similar past runs: their 95th percentile with a margin, told with its n; the default on any trouble."""

from __future__ import annotations

import subprocess
import sys

import pytest

import looptape
from looptape.tracer.store import open_store

DEFAULT = looptape.Limits(turns=50, seconds=600, consecutive_errors=5)


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "looptape-home"
    folder.mkdir()
    monkeypatch.setenv("LOOPTAPE_HOME", str(folder))
    return folder


def runs(home, count, task="revenue", **more):
    """Finished runs of a task: the nth has n turns of 100 tokens and takes n seconds."""
    records = []
    for n in range(1, count + 1):
        run = f"{abs(hash((task, *more.items()))) % 16**12:012x}{n:04x}"
        at = 1_700_000_000_000_000 + n * 1_000_000_000
        begun = {"kind": "run_start", "run": run, "at": at, "task": task, "name": "loop"}
        parent = {"run": "0123456789abcdef", "turn": 1, "kind": more["kind"]} if "kind" in more else None
        records.append({**begun, "source": more.get("source", "sdk"), "parent": parent})
        for turn in range(1, n + 1):
            records += [
                {"kind": "turn_start", "run": run, "turn": turn, "at": at + turn, "append": [], "keep": 0},
                {
                    "kind": "turn_end", "run": run, "turn": turn, "at": at + turn + 1, "status": "ok", "calls": [],
                    "usage": {"input": 90, "output": 10, "origin": "recorded"}, "attempts": [],
                },
            ]  # fmt: skip
        if "outcome" in more:
            records.append({"kind": "run_update", "run": run, "at": at, "outcome": {"verdict": more["outcome"]}})
        status = more.get("status", "completed")
        records.append({"kind": "run_end", "run": run, "at": at + n * 1_000_000, "status": status, "reason": "x"})
    with open_store(home) as store:
        store.ingest(records)


def test_the_95th_percentile_of_the_tasks_runs_with_a_margin(home):
    runs(home, 40)
    runs(home, 60, task="another")

    found = looptape.limits_from_history(task="revenue", default=DEFAULT)

    assert (found.n, found.turns, found.seconds, found.tokens) == (40, 57, 57.0, 5700)
    assert found.consecutive_errors == 5, "what runs do not tell is the default's"
    assert found.said == "turns, seconds, tokens from 40 finished runs of task 'revenue': p95 times 1.5"


def test_margin_and_percentile_are_the_callers(home):
    runs(home, 40)

    found = looptape.limits_from_history(task="rev*", default=DEFAULT, margin=2, percentile=50)

    assert found.turns == 40


@pytest.mark.parametrize("more", [{"status": "limit"}, {"status": "failed"}, {"outcome": "fail"}], ids=str)
def test_runs_that_did_not_end_well_are_no_example(home, more):
    runs(home, 40, **more)

    found = looptape.limits_from_history(task="revenue", default=DEFAULT)

    assert (found.n, found.turns, found.seconds) == (0, 50, 600)


@pytest.mark.parametrize(("source", "kind"), [("replay", "fork"), ("fork", "fork"), ("sdk", "resume")])
def test_runs_that_did_only_a_part_of_the_job_do_not_count(home, source, kind):
    runs(home, 20)
    runs(home, 30, source=source, kind=kind)

    assert looptape.limits_from_history(task="revenue").n == 20


def test_too_few_runs_give_the_default_and_say_so(home):
    runs(home, 19)

    found = looptape.limits_from_history(task="revenue", default=DEFAULT)

    assert (found.n, found.turns) == (0, 50)
    assert found.said == "the default: 19 finished runs of task 'revenue', 20 are needed"


def test_no_store_gives_the_default_and_makes_none(home):
    found = looptape.limits_from_history(task="revenue", default=DEFAULT)

    assert (found.n, found.turns) == (0, 50)
    assert "there is no store" in found.said
    assert list(home.iterdir()) == []


def test_a_store_that_another_process_holds_gives_the_default_without_waiting(home):
    runs(home, 40)
    holder = subprocess.Popen(
        [sys.executable, "-c", f"import duckdb,sys; c=duckdb.connect({str(home / 'store.duckdb')!r}); print(1, flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        holder.stdout.readline()
        found = looptape.limits_from_history(task="revenue", default=DEFAULT)
    finally:
        holder.communicate()

    assert (found.n, found.turns) == (0, 50)
    assert "held" in found.said


def test_without_duckdb_the_default_holds(home, monkeypatch):
    runs(home, 40)
    monkeypatch.setitem(sys.modules, "duckdb", None)

    found = looptape.limits_from_history(task="revenue", default=DEFAULT)

    assert (found.n, found.said) == (0, "the default: duckdb is not installed here")


def test_a_damaged_store_gives_the_default(home):
    (home / "store.duckdb").write_bytes(b"no database" * 1000)

    assert looptape.limits_from_history(task="revenue", default=DEFAULT).turns == 50


def test_they_are_limits_for_a_run_and_for_a_guard(home):
    runs(home, 40)
    found = looptape.limits_from_history(task="revenue", default=DEFAULT)

    assert looptape.Guard(limits=found, turns=9).given() == {
        "turns": 9, "seconds": 57.0, "tokens": 5700, "consecutive_errors": 5,
    }  # fmt: skip
    assert found.given() == {"turns": 57, "seconds": 57.0, "tokens": 5700, "consecutive_errors": 5}


def test_nonsense_is_refused():
    with pytest.raises(looptape.LooptapeError):
        looptape.limits_from_history(task="x", percentile=0)
