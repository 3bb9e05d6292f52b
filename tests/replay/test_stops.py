"""A deliberate stop reaches the person as its own lines, once, wherever it was raised; other errors are as always."""

import subprocess
import sys

import pytest

HEAD = """
import asyncio, sys, threading
from looptape.replay.program import stops
from looptape.tracer.errors import LooptapeStop
stops.install()
def stop(): raise LooptapeStop("request differs at turn 4\\n  path      messages[2].content")
async def stop_later(): stop()
"""
WAYS = {
    "main": "stop()",
    "thread": "t = threading.Thread(target=stop); t.start(); t.join(); sys.exit(1)",
    "pool": "import concurrent.futures as f\nwith f.ThreadPoolExecutor() as p: p.submit(stop).result()",
    "two threads": "ts = [threading.Thread(target=stop) for _ in range(2)]\n"
    "for t in ts: t.start()\nfor t in ts: t.join()\nsys.exit(1)",
    "coroutine": "asyncio.run(stop_later())",
    "gather": "async def main(): await asyncio.gather(stop_later(), stop_later())\nasyncio.run(main())",
    "task group": "async def main():\n  async with asyncio.TaskGroup() as g:\n    g.create_task(stop_later()); "
    "g.create_task(stop_later())\nasyncio.run(main())",
    "task nobody awaits": "async def main():\n  t = asyncio.create_task(stop_later()); await asyncio.sleep(0.01); del t\n"
    "asyncio.run(main()); sys.exit(1)",
    "swallowed by except Exception": "try: stop()\nexcept Exception: print('swallowed')",
}


def ran(code):
    return subprocess.run([sys.executable, "-c", HEAD + code], capture_output=True, text=True, check=False, timeout=30)


@pytest.mark.parametrize("way", WAYS)
def test_a_stop_is_a_few_lines_and_no_traceback(way):
    done = ran(WAYS[way])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "looptape: request differs at turn 4\n  path      messages[2].content\n"


@pytest.mark.parametrize(
    "code",
    [
        "1 / 0",
        "t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join(); sys.exit(1)",
        "async def bad(): 1 / 0\n"
        "async def main():\n  async with asyncio.TaskGroup() as g:\n    g.create_task(bad()); g.create_task(stop_later())\n"
        "asyncio.run(main())",
        "async def bad(): 1 / 0\n"
        "async def main():\n  t = asyncio.create_task(bad()); await asyncio.sleep(0.01); del t\n"
        "asyncio.run(main()); sys.exit(1)",
    ],
    ids=["main", "thread", "group with a stop", "task nobody awaits"],
)
def test_another_error_keeps_its_traceback(code):
    done = ran(code)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError" in done.stderr
