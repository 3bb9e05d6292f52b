"""What a replayed program's threads and forked children meet at once: one player for all, and no lock that is held for ever."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time

import pytest

from held_elsewhere import held_elsewhere
from looptape.replay.player import tape_runs
from looptape.replay.player.events import Events
from looptape.replay.player.settings import ReplaySettings
from looptape.replay.program import stops
from looptape.replay.program.child import Late
from looptape.replay.program.rerun import rerun
from looptape.replay.program.spec import Spec
from looptape.replay.program.tape import Recording
from looptape.tracer.errors import LooptapeStop
from looptape.tracer.providers import by_api
from looptape.tracer.substitute import ToolAsked
from played import Program, Turn, records, request, results, said, then, user, write


def two_calls() -> list[Turn]:
    """A turn whose two calls ran side by side."""
    body, answer = request(user("go")), said("", ("t1", "a", {"x": 1}), ("t2", "a", {"x": 2}))
    ran = {"t1": ("one", 12, 13), "t2": ("two", 12, 14)}
    return [Turn(body, answer, ran), Turn(then(body, answer, results(("t1", "one"), ("t2", "two"))), said("end"))]


def test_two_threads_that_make_the_first_call_together_have_one_player(tmp_path, monkeypatch):
    late = Late(Spec(write(tmp_path / "a.tape.jsonl", records(two_calls())), tmp_path, ReplaySettings()), Events())
    read, begun, reads = tape_runs.read, threading.Barrier(2), []

    def slowly(*given):
        reads.append(given)
        time.sleep(0.2)  # the other thread has the time to ask as well
        return read(*given)

    monkeypatch.setattr(tape_runs, "read", slowly)

    def first():
        begun.wait(60)
        late.prepare(by_api("anthropic.messages"), b"{}")

    threads = [threading.Thread(target=first) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reads) == 1


def test_a_forked_child_is_answered_whatever_other_threads_of_its_parent_were_at():
    program = Program(records(two_calls()))
    program.ask(two_calls()[0].body)
    player = program.player
    with held_elsewhere(player._lock), held_elsewhere(player._order.changed), held_elsewhere(program.events._lock):
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # a child that waits is ended
            status = 1
            try:
                reply = player.tool(ToolAsked("a", {"x": 1}, program.run(), 1, "t1"))
                reply.hold.wait()
                reply.hold.release()
                status = 0 if reply.value == "one" else 2
            finally:
                os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_same_stop_in_two_threads_is_told_once_however_they_meet(monkeypatch, capsys):
    class Slow(set):
        def __contains__(self, text):
            found = super().__contains__(text)
            time.sleep(0.2)  # the other thread has the time to look as well
            return found

    monkeypatch.setattr(stops, "_told", Slow())
    begun = threading.Barrier(2)

    def tell():
        begun.wait(60)
        stops.tell(LooptapeStop("request differs at turn 4"))

    threads = [threading.Thread(target=tell) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capsys.readouterr().err == "looptape: request differs at turn 4\n"


def test_what_a_process_left_behind_still_writes_does_not_spoil_a_replay(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "home"))
    real = os.rmdir

    def not_empty(path, **more):
        if os.path.basename(path) == "events":
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        real(path, **more)

    recording = Recording(tape_runs.read(records(two_calls())), tuple(records(two_calls())))
    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", not_empty)
        done = rerun(recording, [sys.executable, "-c", "pass"], ReplaySettings())
    assert done.code == 0
    assert not done.verdict.ok, "it asked for nothing"


@pytest.fixture(autouse=True)
def _temporary_here(tmp_path, monkeypatch):
    """What stays behind on purpose stays in the test's own folder."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
