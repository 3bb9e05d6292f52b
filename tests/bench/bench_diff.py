"""diff of two runs of 1,000 turns, context of a run of 500, whole and step by step. Aims: under 1 s and under 200 ms.

    python tests/bench/bench_diff.py

Results are 4 KB of text like code. The runs of `diff` are the same but for one inserted turn, other in every result, or
other in everything; reading them out of the store is counted.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import conversation_tape as talk
import long_tape
from looptape.replay.context import context
from looptape.replay.diff import diff, side
from looptape.tracer.store import Store, memory_store

ROUNDS, TURNS, WINDOW, SIZE = 5, 1_000, 500, 4_000


def conversation(count: int, kind: str) -> list[talk.Said]:
    """A loop of as many turns; ``kind`` makes its texts."""
    steps = []
    for n in range(1, count):
        name, arguments = ("read_file", "grep", "bash")[n % 3], {"path": f"src/{kind}_{n}.py"}
        steps.append(([talk.text(f"step {n}"), talk.call(name, f"t{n}", **arguments)],
                      [talk.result(f"t{n}", long_tape.source_text(f"{kind}{n}", SIZE))]))  # fmt: skip
    turns = talk.grown([*steps, ([talk.text("done")], [])])
    for n, turn in enumerate(turns):
        turn.usage = {"input": 10, "cache_read": 1200 * n, "cache_write_5m": 1200, "output": 60}
    return turns


def inserted(turns: list[talk.Said]) -> list[talk.Said]:
    """The same run with one turn more in its middle."""
    extra = [talk.assistant(talk.call("ls", "extra", path=".")), talk.result("extra", "a b c")]
    middle = len(turns) // 2
    head = turns[: middle + 1]
    place = len(turns[middle].messages)
    tail = [talk.Said([*t.messages[:place], *extra, *t.messages[place:]], t.answer, t.usage) for t in turns[middle:]]
    head[-1] = talk.Said(turns[middle].messages, [talk.call("ls", "extra", path=".")], turns[middle].usage)
    return [*head, *tail]


def measured(work: Callable[[], Any]) -> str:
    """Minimum and median of wall and CPU time."""
    walls, used = [], []
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(1000 * (time.perf_counter() - wall))
        used.append(1000 * (time.process_time() - cpu))
    return (
        f"wall min {min(walls):6.0f} median {statistics.median(walls):6.0f} ms   "
        f"CPU min {min(used):6.0f} median {statistics.median(used):6.0f} ms"
    )


def both(store: Store, a: str, b: str) -> None:
    """One comparison with its reading."""
    diff(side(store, store.run(a)), side(store, store.run(b)))


if __name__ == "__main__":
    store = memory_store()
    base, other = conversation(TURNS, "base"), conversation(TURNS, "other")
    for run, turns in (("a", base), ("b", inserted(base)), ("c", other), ("d", conversation(WINDOW, "base"))):
        store.ingest(talk.records(turns, run * 16))
    print(f"diff of two runs of {TURNS:,} turns")
    for what, run in (("itself", "a"), ("one turn inserted", "b"), ("all different", "c")):
        print(f"  {what:18} {measured(lambda run=run: both(store, 'a' * 16, run * 16))}")
    print(f"context of turn {WINDOW} of {WINDOW}")
    print(f"  {'':18} {measured(lambda: context(store, 'd' * 16, WINDOW))}")
