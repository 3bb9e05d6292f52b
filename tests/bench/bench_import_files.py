"""Session files into the store: MB/s of one process with redaction on, and how much memory a very large file takes.

    python tests/bench/bench_import_files.py             median of three interleaved rounds, after memory
    python tests/bench/bench_import_files.py --sizes 50 1000   memory for a file of 1 GB as well (needs the room)
    python tests/bench/bench_import_files.py --profile   where the time goes instead

The aims: 40 MB/s for the importer, memory that does not grow with the file, one line of 100 MB named and passed
over, and of a followed session only what is new to be read. Nothing fails here; a number on a busy machine is not a
verdict.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from claude_session import SessionLines, call, tokens
from looptape.tracer.importers.claude import claude_code
from looptape.tracer.importers.context import Context, Source
from looptape.tracer.importers.report import Notes
from testdata import folder as folder_of

MB = 1_000_000
ROUNDS = 3
CHILD = """
import resource, sys
from pathlib import Path
from looptape.tracer.importers.claude import claude_code
from looptape.tracer.importers.context import Context, Source
from looptape.tracer.importers.report import Notes
notes = Notes()
for _ in claude_code.records(Source("bench", (Path(sys.argv[1]),)), notes, Context()):
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, notes.turns, notes.skipped[:1])
"""


def code(seed: int, length: int) -> str:
    """Text as files and commands give it: indented lines, quotes, backslashes; one in eight has more than ASCII."""
    chance = random.Random(seed)
    words = [
        *["=", ".", "(", ")", "#"],
        *["return", "value", "self", "items", "path", "for", "name", "in", "if", "not", "raise", "def"],
    ]
    words += ['"text"', "'x'", "\\n", "None", "else"]
    words += [] if seed % 8 else ["über", "→"]
    lines: list[str] = []
    size = 0
    while size < length:
        line = " " * 4 * chance.randrange(4) + " ".join(chance.choices(words, k=10)) + f" {chance.randrange(10**6)}"
        lines.append(line)
        size += len(line) + 1
    return "\n".join(lines)[:length]


def turn(lines: SessionLines, number: int, texts: list[str]) -> None:
    """One turn as recent clients write it: an answer over three lines, progress, the result twice over."""
    name, tool = f"msg_{number:08}", f"toolu_{number:08}"
    usage = tokens(8, 900, 40_000 + number, 900)
    text, other = texts[number % len(texts)], texts[(number * 7 + 3) % len(texts)]
    if number % 25 == 0:
        lines.user(f"task {number}: {other[:300]}")
    if number % 40 == 0:
        lines.add("file-history-snapshot", messageId=f"m{number}", snapshot={"trackedFileBackups": {}})
    think = {"type": "thinking", "thinking": f"{number} {other[:900]}", "signature": "c2ln" * 120}
    lines.answer(name, think, usage=usage)
    lines.answer(name, f"Looking at part {number}. {other[900:1300]}", usage=usage)
    if number % 4 == 1:
        path, old, new = f"src/m{number}.py", f"{number} {text[:900]}", f"{number} {text[:1200]}"
        lines.answer(
            name, call(tool, "Edit", file_path=path, old_string=old, new_string=new), usage=usage, stop="tool_use"
        )
        returned = {
            "filePath": path,
            "oldString": old,
            "newString": new,
            "originalFile": text * 2,
            "userModified": False,
        }
        lines.result(tool, f"The file {path} has been updated:\n{new}", toolUseResult=returned)
        return
    lines.answer(name, call(tool, command=f"sed -n 1,200p src/m{number}.py"), usage=usage, stop="tool_use")
    if number % 4 == 2:
        for step in range(3):
            data = {"type": "bash_progress", "output": text[:1500], "elapsedTimeSeconds": step}
            lines.add("progress", data=data, toolUseID=f"bash-{step}", parentToolUseID=tool)
    result = f"{number}\n{text}"
    lines.result(tool, result, toolUseResult={"stdout": result, "stderr": "", "interrupted": False, "isImage": False})


def session(size: int) -> Iterator[bytes]:
    """Lines of one session of about so many bytes."""
    texts = [code(seed, 1500 + 137 * seed % 6000) for seed in range(64)]
    lines = SessionLines()
    number = written = 0
    while written < size:
        number += 1
        turn(lines, number, texts)
        # clients write letters as they are, not as escapes
        made = (json.dumps(json.loads(li), ensure_ascii=False) if "\\u" in li else li for li in lines.lines)
        part = "".join(f"{line}\n" for line in made).encode()
        lines.lines.clear()
        lines._second %= 3000  # times of one hour are enough
        written += len(part)
        yield part


def write(path: Path, size: int, *, long_line: int = 0) -> int:
    """A session file; ``long_line``: bytes of one line in its middle. Gives the file's size."""
    with path.open("wb") as file:
        for part in session(size):
            file.write(part)
            if long_line and file.tell() > size // 2:
                file.write(b'{"type":"user","message":{"role":"user","content":"')
                for _ in range(long_line // MB):
                    file.write(b"x" * MB)
                file.write(b'"}}\n')
                long_line = 0
    return path.stat().st_size


def records_only(path: Path) -> Notes:
    """The importer alone."""
    notes = Notes()
    for _ in claude_code.records(Source(str(path), (path,)), notes, Context()):
        pass
    return notes


def into_store(path: Path) -> None:
    """The importer and the store, in memory."""
    from looptape.tracer.importers import import_path
    from looptape.tracer.store import memory_store

    with memory_store() as store:
        import_path(store, path)


def corpus() -> list[Path]:
    """Real sessions, where they are at hand."""
    place = folder_of("corpus")
    return sorted((place / "claude_code").glob("*.jsonl")) if place is not None else []


def following(folder: Path, size: int, rounds: int) -> None:
    """A session of which 10 KB are new: reading alone, and with a store on disk."""
    from looptape.tracer.importers.follow import import_growth
    from looptape.tracer.importers.growth import Growth
    from looptape.tracer.store import memory_store

    path = folder / "followed.jsonl"
    size = write(path, size)
    data = path.read_bytes()
    begin = data.rfind(b"\n", 0, size - 20_000 * rounds) + 1
    path.write_bytes(data[:begin])
    reading, storing = [], []
    with memory_store() as store:
        mark = import_growth(store, path, None)[1]
        for _ in range(rounds):
            end = data.find(b"\n", begin + 10_000) + 1
            with path.open("ab") as file:
                file.write(data[begin:end])
            begin = end
            source = Source(str(path), (path,), growth=Growth(mark))
            start = time.perf_counter()
            assert mark is not None
            assert mark.fits(path)
            for _record in claude_code.records(source, Notes(), Context()):
                pass
            reading.append(time.perf_counter() - start)
            start = time.perf_counter()
            mark = import_growth(store, path, mark)[1]
            storing.append(time.perf_counter() - start)
    took = statistics.median(reading) * 1e3, statistics.median(storing) * 1e3
    print(
        f"10 KB more of a session of {size / MB:.0f} MB: read in {took[0]:.1f} ms, in the store after {took[1]:.0f} ms"
    )


def decoding(path: Path) -> None:
    """What cannot be had for less with this interpreter: every line decoded once."""
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


def speed(folder: Path, size: int, rounds: int) -> None:
    """Interleaved rounds of the three; prints medians."""
    path = folder / "session.jsonl"
    size = write(path, size)
    ways: dict[str, Callable[[Path], object]] = {
        "json.loads alone": decoding,
        "records only": records_only,
        "into the store": into_store,
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.process_time()
            way(path)
            took[name].append(time.process_time() - start)
    notes = records_only(path)
    print(
        f"Claude Code session of {size / MB:.0f} MB, {notes.counts['lines']} lines, {notes.turns} turns (per CPU second)"
    )
    for name, times in took.items():
        rates = [size / MB / t for t in times]
        print(f"  {name:18} median {statistics.median(rates):6.1f} MB/s  max {max(rates):6.1f} MB/s")
    print("  aim: 40 MB/s for the importer (records only), redaction on")
    real = corpus()
    if real:
        octets = sum(path.stat().st_size for path in real)
        rates = []
        for _ in range(2 * rounds):
            start = time.process_time()
            for path in real:
                records_only(path)
            rates.append(octets / MB / (time.process_time() - start))
        print(
            f"  {len(real)} real sessions, records only: median {statistics.median(rates):.1f} MB/s  max {max(rates):.1f}"
        )


def peak(path: Path) -> str:
    """Peak memory of a fresh process that imports the file, and what it found."""
    done = subprocess.run([sys.executable, "-c", CHILD, str(path)], check=True, capture_output=True, text=True)
    rss, turns, skipped = done.stdout.split(maxsplit=2)
    return f"{int(rss) / 1000:6.0f} MB  ({turns} turns, skipped {skipped.strip()})"


def memory(folder: Path, sizes: list[int]) -> None:
    """Peak memory by file size, and for one line of 100 MB."""
    path = folder / "large.jsonl"
    print("peak memory of the importer (a fresh process; aim: the same for each size)")
    for size in sizes:
        write(path, size * MB)
        print(f"  {size:5} MB file          {peak(path)}")
    write(path, 20 * MB, long_line=100 * MB)
    print(f"  one line of 100 MB     {peak(path)}")
    path.unlink()


def main() -> None:
    """Memory, then speed; or a profile."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--mb", type=int, default=60, help="size of the session for the speed")
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument(
        "--sizes", type=int, nargs="*", default=[50, 200, 400], help="MB, for the memory; 1000 is 1 GB"
    )
    options.add_argument("--profile", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.profile:
            write(folder / "session.jsonl", given.mb * MB)
            profile = cProfile.Profile()
            profile.runcall(records_only, folder / "session.jsonl")
            pstats.Stats(profile).sort_stats("tottime").print_stats(30)
            return
        memory(folder, given.sizes)  # first: a child's peak begins with the size of its parent
        speed(folder, given.mb * MB, given.rounds)
        following(folder, given.mb * MB, 5)


if __name__ == "__main__":
    main()
