"""What recording adds to the end of a process: from the loop's last line to the process being gone, with and without.

    python tests/bench/bench_exit.py              prints median and worst over interleaved pairs

The aim is under 100 ms. Nothing fails here; a number on a busy machine is not a verdict.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAIRS = 15
SUPPORT = Path(__file__).resolve().parents[1] / "support"
CODE = """
import sys, time
sys.path.insert(0, {support!r})
import scripted
client = scripted.anthropic_client(scripted.loop_answer(30))
if {recorded}:
    import looptape
    looptape.wrap(client)
for _ in range(3):
    scripted.run_loop(client, result=lambda path: scripted.code_like(path, 1000))
print(time.time(), flush=True)
"""


def milliseconds(home: str, *, recorded: bool) -> float:
    """Time from the last line of the program to its end."""
    code = CODE.format(support=str(SUPPORT), recorded=recorded)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LOOPTAPE_HOME": home},
        check=True,
        capture_output=True,
        text=True,
    )
    return 1000 * (time.time() - float(done.stdout))


def main() -> None:
    """Alternate the two, so that a slow minute of the machine hits both."""
    bare, ours = [], []
    with tempfile.TemporaryDirectory() as home:
        milliseconds(home, recorded=True)
        for _ in range(PAIRS):
            bare.append(milliseconds(home, recorded=False))
            ours.append(milliseconds(home, recorded=True))
    added = [b - a for a, b in zip(bare, ours, strict=True)]
    for name, times in (("exit, bare", bare), ("exit, recorded", ours), ("added by recording", added)):
        print(f"{name:20} median {statistics.median(times):6.1f} ms  worst {max(times):6.1f} ms  ({PAIRS} pairs)")
    print("aim: under 100 ms added")


if __name__ == "__main__":
    main()
