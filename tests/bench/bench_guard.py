"""What a guard adds to a turn, in CPU time of the loop's own thread: everything it is told, asks and writes. Aim: under 1 ms.

python tests/bench/bench_guard.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import looptape
import scripted
from recorded import recording

LENGTHS = (100, 1_000)
TEXTS = [scripted.code_like(f"guard/{n}", 4096) for n in range(50)]


@looptape.tool
def read(path: str) -> str:
    """4 KB that were not seen before."""
    return f"# {path}\n{TEXTS[hash(path) % len(TEXTS)]}"


def loop(turns: int, guard: looptape.Guard | None) -> float:
    """Milliseconds of CPU a turn of a loop by hand, with one tool call each."""
    with looptape.run("bench", guard=guard) as run:
        before = time.thread_time()
        for number in range(turns):
            with run.turn() as turn:
                turn.request(f"step {number}", model="local")
                call = {"id": f"c{number}", "name": "read", "arguments": {"path": f"src/m{number}.py"}}
                turn.response("Next.", tool_calls=[call], usage={"input": 900, "output": 60})
            read(f"src/m{number}.py")
        return 1000 * (time.thread_time() - before) / turns


if __name__ == "__main__":
    print("a guard, CPU ms a turn (4 KB results, every one new)")
    for count in LENGTHS:
        with tempfile.TemporaryDirectory() as folder, recording(Path(folder)):
            plain = loop(count, None)
            guarded = loop(count, looptape.Guard(turns=10**6, tokens=10**9, cycles="stop"))
        print(f"  {count:6,} turns   without {plain:.3f}   with {guarded:.3f}   adds {guarded - plain:.3f}")
