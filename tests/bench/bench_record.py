"""What recording adds to a loop: main-thread CPU a turn (early and late), and what a run costs on disk.

    python tests/bench/bench_record.py            prints min and median over interleaved rounds

The bare loop and the recorded one run in turn in one process against the same scripted transport.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import itertools

import scripted

TURNS = 200
ROUNDS = 10


def loop_cpu(client, number: int) -> list[float]:
    """Main-thread CPU milliseconds of each turn of a loop whose results no other run has."""
    results = {f"src/m{i}.py": scripted.code_like(f"{number}/src/m{i}.py") for i in range(TURNS)}
    marks = [time.thread_time()]
    scripted.run_loop(client, on_turn=lambda _: marks.append(time.thread_time()), result=results.get)
    return [1000 * (b - a) for a, b in itertools.pairwise(marks)]


def growing(rounds: int) -> None:
    """The 200-turn loop with 4 KB results and a growing history."""
    import looptape

    early, late, whole = [], [], []
    for number in range(rounds):
        bare = loop_cpu(scripted.anthropic_client(scripted.loop_answer(TURNS)), number)
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(TURNS)))
        with looptape.run(f"bench-{number}"):
            recorded = loop_cpu(client, number)
        added = [r - b for r, b in zip(recorded, bare, strict=True)]
        early.append(statistics.median(added[5:25]))
        late.append(statistics.median(added[-21:-1]))
        whole.append(statistics.mean(added[2:]))
    for title, figures in (("turns 6-25", early), ("turns 180-200", late), ("whole run", whole)):
        print(f"  added CPU ms a turn, {title:14} min {min(figures):.3f}  median {statistics.median(figures):.3f}")


def steady(rounds: int) -> None:
    """A history of 20 messages and 30 KB that is sent with one new message a turn."""
    import looptape

    history = []
    for i in range(10):
        history.append({"role": "user", "content": scripted.code_like(f"u{i}", 2000)})
        history.append({"role": "assistant", "content": scripted.code_like(f"a{i}", 1000)})

    def cpu(client) -> float:
        times = []
        for turn in range(60):
            messages = [*history, {"role": "user", "content": f"question {turn}"}]
            start = time.thread_time()
            client.messages.create(
                model="claude-test-1", max_tokens=100, system=scripted.SYSTEM, tools=scripted.TOOLS, messages=messages
            )
            times.append(1000 * (time.thread_time() - start))
        return statistics.median(times[5:])

    figures = []
    for number in range(rounds):
        bare = cpu(scripted.anthropic_client(scripted.loop_answer(0)))
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(0)))
        with looptape.run(f"steady-{number}"):
            figures.append(cpu(client) - bare)
    print(f"  added CPU ms a turn, 20 messages 30 KB  min {min(figures):.3f}  median {statistics.median(figures):.3f}")


def disk(home: Path) -> None:
    """Store size a run after drain and checkpoint."""
    from looptape.tracer import store

    journal = sum(p.stat().st_size for p in (home / "journal").glob("*"))
    store.sync(home)
    size = (home / "store.duckdb").stat().st_size
    with store.open_store(home) as opened:
        runs = len(opened.runs(store.Filter(limit=0)))
    print(
        f"  journal {journal / 1e6:.2f} MB, store {size / 1e6:.2f} MB for {runs} runs: {size / 1e6 / max(1, runs):.2f} MB a run"
    )


def main() -> None:
    """Runs all three and prints."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOOPTAPE_HOME"] = folder
        print(f"recording: {ROUNDS} interleaved rounds of {TURNS} turns, 4 KB results")
        growing(ROUNDS)
        from looptape.tracer import process

        process.recorder().at_exit()
        process.replace(None)
        disk(Path(folder))
        steady(ROUNDS)


if __name__ == "__main__":
    main()
