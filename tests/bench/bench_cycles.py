"""The cycle detector's CPU time a turn, at 100, 1,000 and 10,000 turns, for work and for a loop. Aim: under 1 ms at 1,000.

python tests/bench/bench_cycles.py
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import scripted
from looptape.replay.cycles import CallSeen, CycleDetector, TurnSeen

LENGTHS = (100, 1_000, 10_000)
ROUNDS = 3


def turns(count: int, kind: str) -> list[TurnSeen]:
    """A run of 4 KB results, every one new (``work``), or of a lap of three calls over and over (``loop``)."""
    texts = [scripted.code_like(f"{kind}/{n}", 4096) for n in range(200 if kind == "work" else 3)]
    found = []
    for number in range(1, count + 1):
        text = texts[number % len(texts)]
        if kind == "work":
            text = f"{text}\n# part {number} of the whole\n"
        name = ("read_file", "grep", "bash")[number % 3]
        arguments = {"path": f"src/m{number if kind == 'work' else number % 3}.py", "command": "cat x"}
        found.append(TurnSeen(number, calls=(CallSeen(name, arguments, text),), text="Let me look at the next part."))
    return found


def measure(count: int, kind: str) -> tuple[float, float]:
    """Mean and 99th percentile of milliseconds a turn, median of the rounds."""
    given = turns(count, kind)
    means, tails = [], []
    for _ in range(ROUNDS if count < 10_000 else 1):
        detector, taken = CycleDetector(), []
        for one in given:
            before = time.thread_time()
            detector.feed(one)
            taken.append(1000 * (time.thread_time() - before))
        means.append(sum(taken) / count)
        tails.append(sorted(taken)[int(count * 0.99) - 1])
    return statistics.median(means), statistics.median(tails)


if __name__ == "__main__":
    print("cycle detector, CPU ms a turn (4 KB results)")
    for kind in ("work", "loop"):
        for count in LENGTHS:
            mean, tail = measure(count, kind)
            print(f"  {kind:5} {count:6,} turns   mean {mean:.3f}   p99 {tail:.3f}")
