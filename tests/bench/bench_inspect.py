"""Inspect logs with one very large sample: peak memory of a fresh process, and MB/s.

    python tests/bench/bench_inspect.py                  samples of 50 and 200 MB, as .json and as .eval
    python tests/bench/bench_inspect.py --sizes 500

The aim: the same memory for each size, because a sample is read event by event.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import inspect_logs as logs

TURN_BYTES = 1 << 20  # half of it an attachment, half the provider's own request
READ = """
import resource, sys
from pathlib import Path
from looptape.tracer.importers.context import Context, Source
from looptape.tracer.importers.inspect import inspect_ai
from looptape.tracer.importers.report import Notes
notes = Notes()
for _ in inspect_ai.records(Source("bench", (Path(sys.argv[1]),)), notes, Context()):
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, notes.turns, notes.skipped[:1])
"""


def write(out: IO[bytes], turns: int) -> None:
    """A sample whose messages lie in a pool, as newer logs have them."""
    words = " ".join(f"{n:x}" for n in range(100_000, 100_000 + TURN_BYTES // 12))
    head = {"id": 1, "epoch": 1, "uuid": "BIG", "input": "go"}
    out.write(json.dumps(head).encode()[:-1] + b',"events":[')
    for turn in range(turns):
        answer = logs.output(logs.said(f"step {turn}", logs.call(turn, cmd=f"cat {turn}")), "tool_calls")
        asked = {"request": {"raw": f"{turn} {words}"}}
        model = logs.model(turn * 10, [], answer, input_refs=[[0, 1 + 2 * turn]], tools=[], call=asked)
        tool = logs.tool(turn * 10 + 6, turn, f"attachment://{turn:032x}")
        out.write((b"," if turn else b"") + json.dumps(model).encode() + b"," + json.dumps(tool).encode())
    out.write(b'],"message_pool":[{"role":"user","content":"go","source":"input"}')
    for turn in range(turns):
        said = logs.said(f"step {turn}", logs.call(turn, cmd=f"cat {turn}"))
        result = {"role": "tool", "content": f"attachment://{turn:032x}", "tool_call_id": f"c{turn}"}
        out.write(b"," + json.dumps(said).encode() + b"," + json.dumps(result).encode())
    out.write(b'],"attachments":{')
    for turn in range(turns):
        out.write((b"," if turn else b"") + f'"{turn:032x}":"{turn} {words}"'.encode())
    out.write(b"}}")


def made(folder: Path, size: int) -> list[Path]:
    """The same log in both forms."""
    head = json.dumps(logs.header(version=3)).encode()
    plain, packed = folder / f"{size}.json", folder / f"{size}.eval"
    with plain.open("wb") as out:
        out.write(head[:-1] + b',"samples":[')
        write(out, size)
        out.write(b"]}")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.json", head)
        with archive.open("samples/1_epoch_1.json", "w", force_zip64=True) as member:
            write(io.BufferedWriter(member), size)  # type: ignore[type-var]
    return [plain, packed]


def main() -> None:
    """Prints a line a file."""
    options = argparse.ArgumentParser()
    options.add_argument("--sizes", type=int, nargs="*", default=[50, 200], help="MB of the sample")
    with tempfile.TemporaryDirectory() as folder:
        for size in options.parse_args().sizes:
            for path in made(Path(folder), size):
                begun = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-c", READ, str(path)], check=True, capture_output=True, text=True
                )
                rss, turns, skipped = done.stdout.split(maxsplit=2)
                pace = size / (time.perf_counter() - begun)
                print(
                    f"{path.name:10} {int(rss) / 1000:6.0f} MB peak  {pace:5.1f} MB/s  ({turns} turns, {skipped.strip()})"
                )
                path.unlink()


if __name__ == "__main__":
    main()
