"""The screen from outside: the real program on a pseudo-terminal, beside what it is held to.

    python tests/bench/bench_tui.py                  100,000 runs, one of 30,000 turns, a result of 20 MB
    python tests/bench/bench_tui.py --runs 1000 --turns 2000 --result 2
    python tests/bench/bench_tui.py --home FOLDER    keeps the store there, or looks at the one that is there

A time ends when the octets have come that put the words on the screen. The program starts as an installed one does,
its modules compiled (pip does that), whatever PYTHONDONTWRITEBYTECODE says here. Keys and the large result are timed
once the run's screen rests. Nothing fails here: medians are printed beside the aims. Where other programs keep the cores busy, all of it is slower.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import big_store
import long_tape
import small_tape
from looptape.tracer.importers import import_path
from looptape.tracer.store import open_store
from looptape.tracer.tape import Record, header, line
from pty_terminal import LOOPTAPE, Terminal, terminal
from terminal_grid import Grid

LONG, LARGE = "b" * 16, "c" * 16
SIZE = (120, 40)
KEYS = 60
MOVES = (b"j", b"j", b"\x1b[6~", b"k", b"G", b"k", b"\x1b[5~", b"j", b"g", b"j")
"""Down, a screen down, up, to the end, a screen up, to the start: each of them changes what stands there."""


def main() -> None:
    """Makes the store, then measures and prints."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--runs", type=int, default=100_000)
    asked.add_argument("--turns", type=int, default=30_000)
    asked.add_argument("--result", type=int, default=20, help="MB")
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--home", type=Path)
    given = asked.parse_args()
    with store_folder(given.home) as home, tempfile.TemporaryDirectory() as compiled:
        os.environ |= {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        if not (home / "store.duckdb").exists():
            made = fill(home, given)
            print(f"store made in {made:.0f} s")
        count = count_runs(home)
        print(f"{count:,} runs; medians of {given.rounds}; terminal {SIZE[0]}x{SIZE[1]}")
        rounds = range(given.rounds)
        open_large(home)  # compiles what is looked at below
        began = [start(home) for _ in rounds]
        for what, aim, unit, values in zip(
            STARTED, ("", "700 ms", "", ""), ("ms", "ms", "ms", "MB"), zip(*began, strict=True), strict=True
        ):
            row(what, list(values), aim, unit)
        look_at_long(home, rounds)
        row(f"a result of {given.result} MB opens", [open_large(home) for _ in rounds], "300 ms")


STARTED = ("shell to the first frame", "shell to the first painted list", "  processor time of it", "  memory then")


def start(home: Path) -> tuple[float, float, float, float]:
    """From the start of the program: ms to its first frame, ms to rows in it, ms of processor and MB by then."""
    with terminal([*LOOPTAPE, "tui"], *SIZE, {"LOOPTAPE_HOME": str(home)}) as screen:
        until(screen, lambda grid: "looptape" in grid.lines[0])
        frame = ms(screen.started)
        until(screen, shows_rows)
        whole = ms(screen.started)
        used, memory = processor(screen.pid), resident(screen.pid)
        leave(screen)
    return frame, whole, used, memory


def look_at_long(home: Path, rounds: range) -> None:
    """Opening the long run, then keys in it, then what it all weighs."""
    opened, settled, keys, peak = [], [], [], []
    for _ in rounds:
        with terminal([*LOOPTAPE, "tui"], *SIZE, {"LOOPTAPE_HOME": str(home)}) as screen:
            until(screen, shows_rows)
            screen.rest(2)
            opened.append(timed(screen, b"\r", in_a_run))
            began = time.perf_counter()
            until(screen, has_turns)
            settled.append(opened[-1] + ms(began))
            settle(screen)
            for _ in range(KEYS // len(MOVES)):
                keys += [took for key in MOVES if (took := burst(screen, key))]
            screen.rest(1)
            peak.append(resident(screen.pid))
            leave(screen)
    row("a run of 30,000 turns: first paint", opened, "300 ms")
    row("  its turns stand there", settled, "")
    row("  key to paint, median", keys, "")
    keys.sort()
    row("  key to paint, 95th percentile", [keys[int(len(keys) * 0.95)]], "30 ms")
    row("  memory after it", peak, "300 MB", "MB")


def open_large(home: Path) -> float:
    """ms from Enter on a turn to its whole result's first lines."""
    with terminal([*LOOPTAPE, "tui", f"{LARGE}:1"], *SIZE, {"LOOPTAPE_HOME": str(home)}) as screen:
        until(screen, has_turns)
        settle(screen)
        took = timed(screen, b"\r", shows_result)
        leave(screen)
    return took


def timed(screen: Terminal, key: bytes, stands: Callable[[Grid], object]) -> float:
    """ms from a key to when that stands."""
    began = time.perf_counter()
    screen.send(key)
    until(screen, stands)
    return ms(began)


def until(screen: Terminal, stands: Callable[[Grid], object]) -> None:
    """Wait until that stands on the screen; without it there is nothing to measure."""
    if not screen.wait(stands, 60):
        raise SystemExit(f"it did not come; the screen:\n{screen.grid.text}")


def burst(screen: Terminal, key: bytes) -> float:
    """ms from a key to the last octet of the paint that answers it; what is read for it later comes later."""
    before, began = len(screen.seen), time.perf_counter()
    screen.send(key)
    end = began
    while time.perf_counter() - began < 2 and (len(screen.seen) == before or time.perf_counter() - end < 0.004):
        seen = len(screen.seen)
        screen.read(0.002)
        if len(screen.seen) > seen:
            end = time.perf_counter()
    screen.rest(0.15)
    return 1000 * (end - began)  # 0: nothing came


def settle(screen: Terminal) -> None:
    """Read until the program rests: what it asks of a run in the background (why, cycles, findings) is answered."""
    before, end = -1000.0, time.perf_counter() + 15
    while time.perf_counter() < end and processor(screen.pid) - before > 40:
        before = processor(screen.pid)
        screen.rest(1)


def shows_rows(grid: Grid) -> bool:
    """The list of runs with rows in it."""
    return " runs" in grid.lines[0] and any(text.startswith("▌") for text in grid.lines)


def in_a_run(grid: Grid) -> bool:
    """The frame of a run, read or not."""
    return " runs" not in grid.lines[0] and "v view" in grid.text


def shows_result(grid: Grid) -> bool:
    """The turn whole, with the head of the result in it."""
    return "1 conversation" in grid.text and any(re.match(r".{0,20}row 000", text) for text in grid.lines)


def has_turns(grid: Grid) -> bool:
    """A run with its turns."""
    return any(re.match(r"▌\s*\d", text) for text in grid.lines)


def leave(screen: Terminal) -> None:
    """Quit, as a user does."""
    screen.send(b"\x11")
    screen.status()


def resident(pid: int) -> float:
    """MB of memory that a process holds now."""
    return float(_ps(pid, "rss")) / 1024


def processor(pid: int) -> float:
    """ms of all threads of a process so far; whole seconds where only ps tells."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.exists():
        fields = stat.read_text().rpartition(")")[2].split()
        return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    minutes, _, seconds = _ps(pid, "time").rpartition(":")
    return 1000 * (60 * float(minutes.rpartition(":")[2] or 0) + float(seconds))


def _ps(pid: int, what: str) -> str:
    return subprocess.run(
        ["ps", "-o", f"{what}=", "-p", str(pid)], capture_output=True, text=True, check=True
    ).stdout.strip()


def row(what: str, values: list[float], aim: str, unit: str = "ms") -> None:
    """One line: the median, the least and the most, the aim."""
    spread = f"({min(values):.0f} to {max(values):.0f})" if len(values) > 1 else ""
    print(f"{what:40} {statistics.median(values):7.0f} {unit}  {spread:20}{f'aim {aim}' if aim else ''}", flush=True)


def ms(since: float) -> float:
    return 1000 * (time.perf_counter() - since)


def fill(home: Path, given: argparse.Namespace) -> float:
    """The long list, the long run and the large result; the seconds that it took."""
    took = big_store.make_list(home, given.runs)
    began = time.perf_counter()
    rows = "\n".join(
        f"row {n:06} of a table: " + f"{n * 2654435761 % 10**9:09} " * 49 for n in range(given.result << 11)
    )
    with open_store(home) as store, tempfile.TemporaryDirectory() as folder:
        tapes = (
            (later(record) for record in long_tape.records(LONG, given.turns)),
            small_tape.records(LARGE, name="large", result=rows[: given.result << 20]),
        )
        for number, records in enumerate(tapes):
            file = Path(folder) / f"{number}.jsonl"
            with file.open("wb") as out:
                out.writelines(line(record) for record in (header(), *records))
            import_path(store, file)
    return took + time.perf_counter() - began


def later(record: Record) -> Record:
    """A year later, so that it stands first in the list."""
    return {**record, "at": record["at"] + 365 * 86_400_000_000} if "at" in record else record


def count_runs(home: Path) -> int:
    """How many runs are in the store."""
    with open_store(home) as store:
        return int(store.rows("select count(*) as n from base.runs")[0]["n"])


@contextmanager
def store_folder(kept: Path | None) -> Iterator[Path]:
    """The folder that was named, else one that goes away."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


if __name__ == "__main__":
    main()
