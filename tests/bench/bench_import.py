"""How long `import looptape` takes: minimum and median over fresh interpreters, beside a bare start of Python.

The aim is under 25 ms. Nothing fails here; a number on a busy machine is not a verdict.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 20


def seconds(code: str) -> float:
    """Wall-clock time of one fresh interpreter that runs `code`."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main() -> None:
    """Alternate the two, so that a slow minute of the machine hits both."""
    seconds("import looptape")  # writes the .pyc files
    bare, ours = [], []
    for _ in range(RUNS):
        bare.append(seconds("pass"))
        ours.append(seconds("import looptape"))
    for name, times in (("bare start of Python", bare), ("with import looptape", ours)):
        print(f"{name}  min {min(times) * 1e3:6.1f} ms  median {statistics.median(times) * 1e3:6.1f} ms  ({RUNS} runs)")
    added = min(ours) - min(bare), statistics.median(ours) - statistics.median(bare)
    print(f"added by the import   min {added[0] * 1e3:6.1f} ms  median {added[1] * 1e3:6.1f} ms  (aim: under 25 ms)")


if __name__ == "__main__":
    main()
