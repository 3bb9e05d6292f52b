"""A recording process is killed, its disk is full, its folder cannot be written: nothing acknowledged is lost, nothing disturbed."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import acknowledged
import long_tape
import looptape
import scripted
from fakellm import FakeLLM, Scenario, Step
from looptape.tracer.store import Filter, open_store, sync
from recorded import recording

KILLS = int(os.environ.get("LOOPTAPE_TEST_KILLS", "8"))
CALLS = """
import scripted
run_tool = looptape.tools(lambda name, arguments: scripted.code_like(arguments["path"], 500))
client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(10**6)))
with looptape.run("loop"):
    scripted.run_loop(client, on_turn=lambda turn: say(f"turn {turn}"), result=lambda path: run_tool("read_file", {"path": path}))
"""
STREAM = """
import anthropic
streams.FLUSH_SECONDS = 0.02
client = looptape.wrap(anthropic.Anthropic(base_url=os.environ["SERVER"], api_key="test"))
with client.messages.stream(model="m", max_tokens=99, messages=[{"role": "user", "content": "go"}]) as stream:
    for text in stream.text_stream:
        say(text.strip())
"""
TORN = """
import httpx2
_real, _left = os.write, int(os.environ["WRITES"])
class _Os:
    def __getattr__(self, name):
        return getattr(os, name)
    def write(self, fd, data):
        global _left
        _left -= 1
        if _left == 0:
            _real(fd, data[: int(len(data) * float(os.environ["PART"]))])
            os.kill(os.getpid(), signal.SIGKILL)
        return _real(fd, data)
journal.os = _Os()

def answer(request):
    content = [{"type": "text", "text": "so it goes"}]
    return httpx2.Response(200, json={"id": "msg_1", "role": "assistant", "content": content, "stop_reason": "pause_turn"})
client = looptape.wrap(httpx2.Client(transport=httpx2.MockTransport(answer)))
messages = []
while True:
    messages.append({"role": "user", "content": f"message {len(messages)}"})
    client.post("http://localhost/v1/messages", json={"model": "m", "max_tokens": 9, "messages": messages})
"""


def killed(agent: subprocess.Popen[str], after: float) -> None:
    """Kills an agent so many seconds after its first word."""
    assert agent.stdout is not None
    assert agent.stdout.readline(), agent.communicate()[1]
    time.sleep(after)
    agent.send_signal(signal.SIGKILL)
    agent.communicate()


def check(home, runs):
    """Everything acknowledged is there, once; what was open is interrupted."""
    assert len(acknowledged.acknowledged(home)) > 2 * runs
    assert acknowledged.missing(home) == []
    assert long_tape.doubles(home) == []
    with open_store(home) as store:
        found = store.runs(Filter(limit=0, include_empty=True))
        assert len(found) == runs
        assert {r.status for r in found} == {"interrupted"}
        assert all("without a word" in (r.reason or "") for r in found)
        assert not [t for r in found for t in store.turns(r.id) if t.status == "open"]


def test_nothing_acknowledged_is_lost_when_loops_are_killed_at_random_moments(tmp_path):
    pick = random.Random(1)
    kills = max(1, KILLS // 4)
    agents = [acknowledged.start(tmp_path / "home", CALLS) for _ in range(kills)]
    for number, agent in enumerate(agents):
        killed(agent, pick.random() * 0.3)
        if number % 2:
            sync(tmp_path / "home")  # while the others write
    check(tmp_path / "home", kills)


def test_nothing_acknowledged_is_lost_when_processes_are_killed_during_a_stream(tmp_path):
    pick = random.Random(2)
    home, kills = tmp_path / "home", max(1, KILLS // 4)
    # none comes to its end before its agent is killed, and one is frozen in the middle
    steps = [Step(text="so many words in this " * 300, chunk_delay=0.004, pause_after=700) for _ in range(kills)]
    steps[0].pause_after = 200
    with FakeLLM({f"s{i}": Scenario([s]) for i, s in enumerate(steps)}) as server:
        agents = [acknowledged.start(home, STREAM, SERVER=server.url(f"s{i}")) for i in range(kills)]
        assert steps[0].reached.wait(60)
        for agent in agents:
            killed(agent, pick.random() * 0.2)
    check(home, kills)
    told = [r for r in acknowledged.acknowledged(home) if r["kind"] == "chunk"]
    assert told
    with open_store(home) as store:
        for run in store.runs(Filter()):
            assert store.turns(run.id)[0].status == "interrupted"
            mine = "".join(t for r in told if r["run"] == run.id for _, t in r["parts"])
            assert "".join(t for _, t in store.wire(run.id, 1).chunks) == mine


def test_nothing_acknowledged_is_lost_when_processes_are_killed_between_the_halves_of_a_write(tmp_path):
    pick = random.Random(3)
    kills = max(1, KILLS - 2 * (KILLS // 4))
    for _ in range(kills):
        # the first write is the head, the third the first turn
        agent = acknowledged.start(tmp_path / "home", TORN, WRITES=str(pick.randint(4, 60)), PART=str(pick.random()))
        _, err = agent.communicate(timeout=60)
        assert (agent.returncode, err) == (-signal.SIGKILL, "")
    check(tmp_path / "home", kills)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 400 KB."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a full disk is a small tmpfs that the test mounts")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k,mode=700", "tmpfs", disk], check=False).returncode:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=False)


def test_on_a_full_disk_the_loop_goes_on_and_the_run_says_what_is_missing(small_disk, tmp_path, capfd):
    ballast = small_disk / "ballast"

    def after(turn):
        if turn == 8:
            with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
                while file.write(bytes(512)):
                    pass
        if turn == 30:
            ballast.unlink()

    with recording(small_disk) as home, acknowledged.noting(tmp_path / "copy"):
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(40)))
        with looptape.run("full"):
            messages = scripted.run_loop(client, on_turn=after, result=lambda path: scripted.code_like(path, 6000))
        home.end()
    assert len(messages) == 82
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith("looptape: records could not be written to ")
    assert "your program is not affected" in err
    copy = tmp_path / "copy"
    shutil.copytree(home.path, copy)  # DuckDB needs more room than 400 KB
    assert acknowledged.missing(copy) == []
    assert long_tape.doubles(copy) == []
    told = acknowledged.acknowledged(copy)
    starts, ends = ({r["turn"] for r in told if r["kind"] == kind} for kind in ("turn_start", "turn_end"))
    lost = 41 - len(starts & ends)
    assert 5 < lost < 33
    with open_store(copy) as store:
        run = store.runs(Filter())[0]
        assert {t.number for t in store.turns(run.id)} >= starts | ends
        assert [w for w in run.warnings if "could not be stored" in w] == [f"{lost} turns could not be stored"]
        assert len(store.request(run.id, 41).messages) == 81
        assert run.status == "completed"


@pytest.mark.parametrize("what", ["a file in the way", "a folder that cannot be made", "a folder that is read-only"])
def test_where_nothing_can_be_stored_one_line_is_said_and_the_loop_goes_on(tmp_path, what, request, capfd):
    folder = tmp_path
    if what == "a file in the way":
        (tmp_path / "looptape-home").write_text("not a folder")
    elif what == "a folder that cannot be made":
        folder = Path("/proc/none")
    else:
        folder = request.getfixturevalue("small_disk")
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    with recording(folder) as home:
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(2)))
        assert len(scripted.run_loop(client)) == 6
        home.end()
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith(f"looptape: records could not be written to {home.path / 'journal'} (")


def test_a_journal_that_is_deleted_while_it_is_written_is_begun_anew(tmp_path, capfd):
    with recording(tmp_path) as home:
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(6)))
        with looptape.run("swept away", tags={"kept": "yes"}):
            scripted.run_loop(client, on_turn=lambda turn: shutil.rmtree(home.path) if turn == 3 else None)
        run = home.run()
    assert capfd.readouterr().err.count("\n") == 1
    assert (run.name, run.status, dict(run.tags)) == ("swept away", "completed", {"kept": "yes"})
    assert len(run.requests[-1].messages) == 13
    assert run.warnings == ("1 turn could not be stored",)
