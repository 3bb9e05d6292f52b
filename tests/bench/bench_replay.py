"""What a replay of 200 turns costs against the bare loop: CPU of the whole loop, and a turn early and late.

    python tests/bench/bench_replay.py            prints min and median over interleaved rounds

Both run in one process over the real SDK: the bare loop against a transport in memory, the replay from its tape. The
transport of the replayed client raises: no request may reach it.
"""

import itertools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import scripted

TURNS = 200
ROUNDS = 7
RESULTS = {f"src/m{i}.py": scripted.code_like(f"src/m{i}.py") for i in range(TURNS)}


def loop_cpu(client, result) -> list[float]:
    """Main-thread CPU milliseconds of each turn."""
    marks = [time.thread_time()]
    scripted.run_loop(client, on_turn=lambda _: marks.append(time.thread_time()), result=result)
    return [1000 * (b - a) for a, b in itertools.pairwise(marks)]


def forbidden(body: dict) -> dict:
    """The answer of a server that must not be asked."""
    raise AssertionError("a request reached the transport")


def main() -> None:
    """Records once, then measures bare and replayed in turn."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOOPTAPE_HOME"] = folder
        run = record()
        whole, early, late, start, bare_ms, opened = [], [], [], [], [], []
        for number in range(ROUNDS):
            bare = loop_cpu(scripted.anthropic_client(scripted.loop_answer(TURNS)), RESULTS.get)
            begun = time.thread_time()
            replayed, entering = replay(run, Path(folder) / str(number))
            opened.append(1000 * entering)
            whole.append((time.thread_time() - begun) * 1000 / sum(bare))
            start.append(sum(replayed) / sum(bare))
            bare_ms.append(sum(bare))
            early.append(statistics.median(replayed[5:25]) - statistics.median(bare[5:25]))
            late.append(statistics.median(replayed[-21:-1]) - statistics.median(bare[-21:-1]))
        print(
            f"replay of {TURNS + 1} turns, 4 KB results, {ROUNDS} interleaved rounds; bare loop {statistics.median(bare_ms):.0f} ms CPU"
        )
        for title, figures in (
            ("times the bare loop's CPU, loop", start),
            ("the same with opening and verdict", whole),
            ("added ms a turn, turns 6-25", early),
            ("added ms a turn, turns 180-200", late),
            ("opening the recording, ms", opened),
        ):
            print(f"  {title:36} min {min(figures):7.3f}  median {statistics.median(figures):7.3f}")


def record() -> str:
    """One recorded run; its id."""
    import looptape
    from looptape.tracer import process

    client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(TURNS)))
    read = looptape.tools(lambda name, arguments: RESULTS[arguments["path"]])
    with looptape.run("bench") as run:
        tools = itertools.cycle(("read_file", "search", "run_cmd"))
        scripted.run_loop(client, result=lambda path: read(next(tools), {"path": path}))
    process.recorder().at_exit()
    process.replace(None)
    return run.id


def replay(run: str, into: Path) -> tuple[list[float], float]:
    """CPU milliseconds of each turn, and CPU seconds until the block was entered."""
    import looptape

    tools = itertools.cycle(("read_file", "search", "run_cmd"))
    read = looptape.tools(lambda name, arguments: forbidden(arguments))
    begun = time.thread_time()
    with looptape.replaying(run, into=into) as tape:
        entered = time.thread_time() - begun
        client = looptape.wrap(scripted.anthropic_client(forbidden))
        with looptape.run("bench"):
            times = loop_cpu(client, lambda path: read(next(tools), {"path": path}))
    assert tape.verdict.ok, tape.verdict.lines()
    assert tape.verdict.served.as_json() == {"model": TURNS + 1, "tools": TURNS}, tape.verdict.served
    return times, entered


if __name__ == "__main__":
    main()
