"""What a guard knew comes back: in the same process, after a kill, from the store, in the built-in loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

import looptape
from guarded import Counted, acts, circling
from looptape.replay.guard import memory
from looptape.tracer.store import open_store, sync
from recorded import recording
from testdata import REPOSITORY


@pytest.fixture
def home(tmp_path, monkeypatch):
    with recording(tmp_path) as home:
        monkeypatch.setenv("LOOPTAPE_HOME", str(home.path))
        yield home


def some_turns(turns, guard, prompt="Find the revenue.", **options):
    """A run of so many turns of a circle."""
    model, tool = circling(), Counted()
    client, messages = model.client(), [{"role": "user", "content": prompt}]
    with looptape.run("nightly", guard=guard, **options) as run:
        for _ in range(turns):
            answer = client.messages.create(model="claude-test-1", max_tokens=100, messages=messages)
            messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]})
            call = answer.content[-1]
            result = {"type": "tool_result", "tool_use_id": call.id, "content": tool.tool(**call.input)}
            messages.append({"role": "user", "content": [result]})
    return run, model, tool


def test_a_resumed_loop_is_still_a_loop(home):
    first, *_ = some_turns(4, looptape.Guard(cycles="stop"))

    with pytest.raises(looptape.LoopStopped) as stopped:
        some_turns(20, looptape.Guard(cycles="stop"), resume=first.id)

    assert stopped.value.finding["first_turn"] == 1
    assert stopped.value.finding["laps"] == 7
    before, after = home.runs()
    assert (after.parent.run, after.parent.kind, len(after.turns)) == (before.id, "resume", 3)
    assert after.session == before.session


def test_without_resume_it_begins_anew(home):
    some_turns(4, looptape.Guard(cycles="stop"))
    some_turns(4, looptape.Guard(cycles="stop"))

    assert acts(home, "stop") == []


def test_limits_go_on_counting(home):
    first, *_ = some_turns(4, looptape.Guard(turns=6, tokens=10_000))

    with pytest.raises(looptape.LoopStopped) as stopped:
        some_turns(20, looptape.Guard(turns=6, tokens=10_000), resume=first.id)

    assert str(stopped.value) == "turns: 6 of 6"


def test_it_comes_back_from_the_store_by_name(home):
    some_turns(4, looptape.Guard(turns=6))
    home.end()
    sync(home.path)
    for file in (home.path / "done").glob("*"):
        file.unlink()
    from looptape.tracer import process
    from looptape.tracer.journal import Journal
    from looptape.tracer.recorder import Recorder

    process.replace(Recorder(Journal(home.path)))
    with pytest.raises(looptape.LoopStopped) as stopped:
        some_turns(20, looptape.Guard(turns=6), resume="nightly")

    assert str(stopped.value) == "turns: 6 of 6"


@pytest.mark.parametrize("moment", ["looked at", "opened"])
def test_a_journal_that_is_drained_in_the_moment_in_which_it_is_read_is_found_where_it_went(home, monkeypatch, moment):
    run, *_ = some_turns(4, looptape.Guard(turns=6))
    home.end()
    known = memory.find(run.id)
    name = {"looked at": "_written", "opened": "_opened"}[moment]
    real = getattr(memory, name)

    def drained_before(file, where):
        (home.path / "done").mkdir(exist_ok=True)
        if file.exists():
            file.rename(home.path / "done" / file.name)
        return real(file, where)

    monkeypatch.setattr(memory, name, drained_before)
    assert known is not None
    assert memory.find(run.id) == known


def test_a_journal_that_is_listed_at_both_its_places_counts_once(home, monkeypatch):
    run, *_ = some_turns(4, looptape.Guard(turns=6))
    home.end()
    known = memory.find(run.id)
    (journal,) = (home.path / "journal").glob("*.jsonl")
    (home.path / "done").mkdir()
    (home.path / "done" / journal.name).write_bytes(journal.read_bytes())
    assert memory.find(run.id) == known


def test_a_chain_of_resumed_runs_keeps_it_all(home):
    guard = looptape.Guard(cycles="stop")
    first, *_ = some_turns(3, looptape.Guard(cycles="stop"))
    second, *_ = some_turns(2, looptape.Guard(cycles="stop"), resume=first.id)

    with pytest.raises(looptape.LoopStopped) as stopped:
        some_turns(20, guard, resume=second.id)

    assert (stopped.value.finding["first_turn"], stopped.value.finding["laps"]) == (1, 7)


def test_another_task_in_a_resumed_run_is_a_persons_word(home):
    first, *_ = some_turns(4, looptape.Guard(cycles="stop"))

    with pytest.raises(looptape.LoopStopped) as stopped:
        some_turns(20, looptape.Guard(cycles="stop"), prompt="Look again, please.", resume=first.id)

    assert stopped.value.finding["first_turn"] == 5


def test_a_run_that_nobody_knows_is_said_and_begins_anew(home, capfd):
    run, *_ = some_turns(2, looptape.Guard(turns=6), resume="no such run")

    assert "no run 'no such run' was found to resume" in capfd.readouterr().err
    assert home.run().parent is None
    assert run.id


def test_entered_again_the_same_run_goes_on(home):
    run = looptape.run("again", guard=looptape.Guard(turns=3))
    for _ in range(3):
        with run, run.turn() as turn:
            turn.request("question", model="local")
            turn.response("more", stop_reason=None)
    with pytest.raises(looptape.LoopStopped), run, run.turn() as turn:
        turn.request("question", model="local")


KILLED = """
    import os, signal, sys
    import looptape
    from guarded import Counted, circling, drive

    model, tool = circling(), Counted()
    def search(**given):
        if len(model.requests) == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return tool.tool(**given)
    with looptape.run("nightly", guard=looptape.Guard(cycles="stop")):
        drive(model.client(), {"search": search})
"""


def test_a_kill_loses_no_more_than_the_turn_it_came_in(home):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "tests" / "support")}
    program = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED)], env=environment, cwd=os.getcwd(), capture_output=True
    )
    assert program.returncode == -signal.SIGKILL, program.stderr.decode()

    with pytest.raises(looptape.LoopStopped) as stopped:
        some_turns(20, looptape.Guard(cycles="stop"), resume="last")

    assert (stopped.value.finding["first_turn"], stopped.value.finding["laps"]) == (1, 7)
    home.end()
    with open_store(home.path) as store:
        killed, resumed = sorted(store.runs(), key=lambda r: r.started_at)
        assert (killed.status, killed.turns, resumed.turns) == ("interrupted", 5, 3)
        assert resumed.parent.run == killed.id


def test_what_is_saved_for_later_is_no_noise_in_the_transcript(home):
    from looptape.replay.recording import load

    some_turns(4, looptape.Guard())
    home.end()
    with open_store(home.path) as store:
        (run,) = store.runs()
        recording = load(store, run)

    shown = [e.kind for t in recording.turns for e in recording.events_at(t.number)]
    assert shown == ["guard"]
    assert sum(e.kind == "guard_state" for e in recording.events) == 4
