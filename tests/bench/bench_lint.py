"""Lint of 1,000 runs of 20 turns with all rules: CPU seconds, and where they go.

    python tests/bench/bench_lint.py             median of three rounds, for healthy runs and for runs that loop
    python tests/bench/bench_lint.py --profile   the dearest functions instead

Nothing fails here; a number on a busy machine is not a verdict.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import turn_tapes
from looptape.replay.rules import lint
from looptape.tracer.store import Filter, Store, memory_store
from rule_runs import call, recording_of, turn, work

RUNS, TURNS, ROUNDS = 1_000, 20, 3


def store_of(kind: str) -> Store:
    """A store in memory with so many runs that do new work each turn, or go round in circles."""
    same = turn(call("find_order", {"number": "A-1"}, "Error: no such order", error=True))
    turns = [*(work(TURNS - 1) if kind == "work" else [same] * (TURNS - 1)), turn(text="Done.")]
    store = memory_store()
    records = []
    for number in range(RUNS):
        records += turn_tapes.records(recording_of(*turns, id=f"{number:016x}", name=f"job {number % 5}"))
    store.ingest(records)
    return store


def main() -> None:
    """Prints one line for each kind of run."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--profile", action="store_true")
    profile = asked.parse_args().profile
    for kind in ("work", "loop"):
        store = store_of(kind)
        runs = store.runs(Filter(limit=0))
        if profile:
            profiler = cProfile.Profile()
            profiler.runcall(lint, store, runs)
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(25)
            continue
        taken, found = [], 0
        for _ in range(ROUNDS):
            before = time.process_time()
            found = len(lint(store, runs).findings)
            taken.append(time.process_time() - before)
        seconds = statistics.median(taken)
        print(
            f"{kind}: {RUNS:,} runs of {TURNS} turns: {seconds:.1f} s CPU, {1e6 * seconds / RUNS / TURNS:.0f} µs a turn, {found:,} findings"
        )


if __name__ == "__main__":
    main()
