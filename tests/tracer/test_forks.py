"""Forked children and processes side by side: each writes its own journal, nobody speaks for another, nothing is there twice."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import signal
import threading
from contextlib import contextmanager

import pytest

import long_tape
import looptape
import scripted
from acknowledged import start
from held_elsewhere import held_elsewhere
from looptape.tracer import clock, paths, process, recorder, redaction, tape
from looptape.tracer.live import OpenRun, where
from looptape.tracer.store import Filter, open_store, sync
from recorded import recording


@pytest.fixture(scope="module", autouse=True)
def _sdk():
    scripted.anthropic_client(scripted.loop_answer(0))  # import it once, before anything forks


@contextmanager
def forked():
    """Runs the block in a forked child, whose end is the block's; the parent passes over it. Yields True in the child."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            yield True
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    yield False
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def client(turns=2):
    return looptape.wrap(scripted.anthropic_client(scripted.loop_answer(turns)))


def by_parent(home):
    """Runs of a store: those without a parent, those with."""
    with open_store(home.path) as store:
        runs = store.runs(Filter(limit=0, include_empty=True))
        return [r for r in runs if r.parent is None], [r for r in runs if r.parent is not None]


def journals(home):
    return sorted(paths.journal_dir(home.path).glob("*.jsonl"))


def test_a_child_that_goes_on_in_its_parents_run_is_a_child_run_in_a_journal_of_its_own(tmp_path):
    with recording(tmp_path) as home:
        agent = client()
        with looptape.run("parent", session="s") as run:
            scripted.run_loop(agent)
            mine = journals(home)[0]
            before = mine.read_bytes()
            with forked() as child:
                if child:
                    scripted.run_loop(agent)
                    run.tag(who="child")
                    run.__exit__(None, None, None)
                    where.set(None)
                    home.recorder.at_exit()
            assert mine.read_bytes() == before
            scripted.run_loop(agent)
            run.outcome("pass")
        home.end()
        other = next(j for j in journals(home) if j != mine)
        told = [r for _, r in tape.read_lines(other.read_bytes().splitlines(keepends=True))]
        assert run.id not in {r.get("run") for r in told}
    roots, children = by_parent(home)
    assert [(r.name, r.status, r.turns, r.session) for r in roots] == [("parent", "completed", 6, "s")]
    assert [(r.name, r.status, r.turns, r.session) for r in children] == [("parent", "completed", 3, "s")]
    assert (children[0].parent.run, children[0].parent.turn) == (roots[0].id, 3)
    assert (dict(roots[0].tags), dict(children[0].tags)) == ({}, {"who": "child"})
    assert roots[0].outcome == {"verdict": "pass"}
    assert long_tape.doubles(home.path) == []
    with open_store(home.path) as store:
        assert len(store.request(children[0].id, 3).messages) == 5


def test_turns_by_hand_of_a_child_belong_to_its_child_run(tmp_path):
    def by_hand(run, text):
        with run.turn() as turn:
            turn.request([{"role": "user", "content": text}], model="m")
            turn.response("yes", stop_reason="end_turn")

    with recording(tmp_path) as home:
        with looptape.run("by hand") as run:
            by_hand(run, "one")
            with forked() as child:
                if child:
                    by_hand(run, "two")
            by_hand(run, "three")
        home.end()
    roots, children = by_parent(home)
    with open_store(home.path) as store:
        said = {
            r.turns: [store.request(r.id, n + 1).messages[0]["content"] for n in range(r.turns)]
            for r in (*roots, *children)
        }
    assert said == {2: ["one", "three"], 1: ["two"]}
    assert children[0].status == "interrupted"  # os._exit: it ended without a word


def test_a_child_says_nothing_about_a_stream_a_turn_or_a_tool_that_its_parent_has_open(tmp_path):
    import httpx2

    def answer(request):
        body = (
            b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","content":[],"usage":{}}}\n\n'
        )

        class Slow(httpx2.SyncByteStream):
            def __iter__(self):
                yield body
                yield b'event: message_stop\ndata: {"type":"message_stop"}\n\n'

        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Slow())

    with recording(tmp_path) as home:
        http = looptape.wrap(httpx2.Client(transport=httpx2.MockTransport(answer)))
        inside = {}

        @looptape.tool
        def forking():
            inside["child"] = os.fork()
            return "done"

        body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        with looptape.run("open") as run, http.stream("POST", "http://localhost/v1/messages", json=body) as response:
            chunks = response.iter_raw()
            next(chunks)
            with forked() as child:
                if child:
                    response.close()  # the copy of the stream is given up here
            list(chunks)
            with run.turn() as turn:
                turn.request("by hand", model="m")
                with forked() as child:
                    if child:
                        turn.failed(RuntimeError("not mine to say"))
                turn.response("fine", stop_reason="end_turn")
            forking()
            if inside["child"] == 0:
                os._exit(0)
            os.waitpid(inside["child"], 0)
        home.end()
        writers = {file: [r for _, r in tape.read_lines(file.read_bytes().splitlines(True))] for file in journals(home)}
        assert len(writers) == 1
    roots, children = by_parent(home)
    assert (len(roots), len(children)) == (1, 0)
    with open_store(home.path) as store:
        assert [(t.status, t.error) for t in store.turns(roots[0].id)] == [("ok", None), ("ok", None)]
        assert [c.state for t in store.turns(roots[0].id) for c in t.tool_calls] == ["done"]


def _work(number):
    messages = scripted.run_loop(client(number))
    return len(messages)


def test_a_pool_of_forked_workers_records_each_loop_once(tmp_path):
    with recording(tmp_path) as home:
        with looptape.run("pool"):
            scripted.run_loop(client(1))
            context = multiprocessing.get_context("fork")
            with context.Pool(2) as pool:
                assert pool.map(_work, [1, 2, 3, 4], chunksize=1) == [4, 6, 8, 10]
        home.end()
    roots, children = by_parent(home)
    assert [(r.name, r.turns, r.status) for r in roots] == [("pool", 2, "completed")]
    assert sum(r.turns for r in children) == 2 + 3 + 4 + 5
    assert {r.parent.run for r in children} == {roots[0].id}
    assert long_tape.doubles(home.path) == []


def test_two_processes_record_at_once_into_one_store(tmp_path):
    code = """
import scripted
with looptape.run("side by side"):
    scripted.run_loop(looptape.wrap(scripted.anthropic_client(scripted.loop_answer(6))), on_turn=lambda turn: say("turn"))
"""
    agents = [start(tmp_path / "home", code) for _ in range(2)]
    for agent in agents:
        assert agent.stdout.readline() == "turn\n"
    sync(tmp_path / "home")
    for agent in agents:
        _, err = agent.communicate(timeout=60)
        assert (agent.returncode, err) == (0, "")
    with open_store(tmp_path / "home") as store:
        runs = store.runs(Filter())
        assert [(r.turns, r.status) for r in runs] == [(7, "completed")] * 2
    assert long_tape.doubles(tmp_path / "home") == []


def test_a_dead_parents_journal_is_free_while_its_child_lives(tmp_path):
    code = """
import httpx2
def answer(request):
    return httpx2.Response(200, json={"id": "msg_1", "role": "assistant", "content": [], "stop_reason": "end_turn"})
client = looptape.wrap(httpx2.Client(transport=httpx2.MockTransport(answer)))
ask = lambda: client.post("http://localhost/v1/messages", json={"model": "m", "max_tokens": 9, "messages": []})
ask()
child = os.fork()
if child == 0:
    ask()
    say(str(os.getpid()))
    signal.pause()
signal.pause()
"""
    agent = start(tmp_path / "home", code)
    child = int(agent.stdout.readline())
    try:
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        free = []
        for file in paths.journal_dir(tmp_path / "home").iterdir():
            with open(file, "rb") as opened:
                owner = next(r for _, r in tape.read_lines(opened))["pid"]
                try:
                    fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    free.append(owner)
                except OSError:
                    pass
        assert free == [agent.pid]
    finally:
        os.kill(child, signal.SIGKILL)
        agent.communicate()


def loop_of_a_child():
    scripted.run_loop(client())


def test_threads_of_a_child_that_go_on_in_its_parents_run_at_once_have_one_child_run(tmp_path, monkeypatch):
    with recording(tmp_path) as home:
        begun, both = threading.Event(), threading.Barrier(2)

        def new_id():
            begun.set()
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.5)  # the other thread comes by here where nobody keeps it out
            return clock.new_id()

        monkeypatch.setattr(recorder, "new_id", new_id)
        parents = OpenRun(id="a" * 16, explicit=False, pid=os.getpid() + 1)
        found = []
        first = threading.Thread(target=lambda: found.append(home.recorder.adopt(parents)))
        first.start()
        assert begun.wait(60)
        found.append(home.recorder.adopt(parents))
        first.join()
        starts = [r for r in home.records() if r["kind"] == "run_start"]
    assert found[0] is found[1]
    assert len(starts) == 1


def test_a_multiprocessing_child_that_ends_well_says_so(tmp_path):
    context = multiprocessing.get_context("fork")
    with recording(tmp_path) as home:
        with looptape.run("parent"):
            child = context.Process(target=loop_of_a_child)
            child.start()
            child.join(60)
        assert child.exitcode == 0
        home.end()
        _, (run,) = by_parent(home)
    assert (run.status, run.reason, run.turns) == ("completed", "end_turn", 3)


@pytest.mark.parametrize("lock", ["redaction", "span processor", "process"])
def test_a_child_does_not_wait_for_a_lock_that_another_thread_held_at_the_fork(lock):
    processor = looptape.SpanProcessor()
    held = {"redaction": redaction._lock, "span processor": processor._lock, "process": process._lock}[lock]
    with held_elsewhere(held):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a child that waits is ended
            with held:
                os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
