"""A run that was interrupted goes on where its record ends: nothing twice, nothing forgotten."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from engine_runs import call, calls, says, start
from looptape.replay.engine import Hooks, Policy, run
from looptape.replay.engine.models.scripted import Scripted
from looptape.replay.engine.resume import resume
from looptape.replay.engine.tools.registry import Registry
from looptape.tracer import process
from looptape.tracer.errors import UsageError
from looptape.tracer.journal import Journal
from looptape.tracer.recorder import Recorder
from looptape.tracer.store import open_store

SCRIPT = [calls(call("note", f"c{i}", text=f"step {i}")) for i in range(1, 5)] + [says("all noted")]


def noting(into: Path, effect: str = "unknown"):
    """A tool that leaves a line in a file."""

    def note(text: str) -> str:
        with open(into, "a") as lines:
            lines.write(text + "\n")
        return f"noted {text}"

    return Registry([{"function": note, "side_effect": effect}])


class Place:
    """A store directory that several processes' worth of recorders write to, one after another."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.notes = home / "notes.txt"

    def record(self, work):
        """Runs work with a fresh recorder, as a process would."""
        recorder = Recorder(Journal(self.home))
        former = process.replace(recorder)
        try:
            return work()
        finally:
            recorder.at_exit()
            process.replace(former)

    def begin(self, policy: Policy, script=SCRIPT, tools=None, **more):
        return self.record(lambda: run(start(), Scripted(script), tools or noting(self.notes), policy, **more))

    def go_on(self, run_id: str, **more):
        def work():
            with open_store(self.home) as store:
                return resume(store, run_id, **more)

        return self.record(work)

    def run(self, run_id: str):
        with open_store(self.home) as store:
            found = store.run(run_id)
            turns = store.turns(run_id)
            return found, turns, [store.request(run_id, t.number) for t in turns]

    def noted(self):
        return self.notes.read_text().split("\n")[:-1] if self.notes.exists() else []


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    return Place(tmp_path)


def test_a_run_that_met_its_limit_goes_on_as_the_same_run(place):
    first = place.begin(Policy(max_turns=2))
    assert place.noted() == ["step 1", "step 2"]
    second = place.go_on(first.run, policy=Policy(max_turns=9), tools=noting(place.notes))
    assert (second.run, second.reason, second.text) == (first.run, "model", "all noted")
    assert place.noted() == [f"step {i}" for i in range(1, 5)]
    found, turns, requests = place.run(first.run)
    assert (found.status, [t.number for t in turns]) == ("completed", [1, 2, 3, 4, 5])
    assert [t.tool_calls[0].result for t in turns[:4]] == [f"noted step {i}" for i in range(1, 5)]
    assert len(requests[-1].messages) == 9
    assert found.parent.run == "a" * 16


def test_limits_go_on_counting(place):
    first = place.begin(Policy(max_turns=2, max_cost_usd=1.0))
    second = place.go_on(first.run, policy=Policy(max_turns=3, max_cost_usd=1.0), tools=noting(place.notes))
    assert (second.reason, second.turns, second.tokens) == ("turns", 3, 45)
    assert second.cost_usd == pytest.approx(3 * (10 * 3 + 5 * 15) / 1e6)


def test_without_other_settings_those_of_its_beginning_hold(place):
    stop = Hooks()

    def guard(turn):
        if turn.number == 2:
            stop.stop.set()

    (place.home / "script.json").write_text(json.dumps(SCRIPT))
    (place.home / "kept_tools.py").write_text(
        f"def note(text: str) -> str:\n    open({str(place.notes)!r}, 'a').write(text + chr(10))\n    return text\nTOOLS = [note]\n"
    )
    sys.path.insert(0, str(place.home))
    try:
        from looptape.replay.engine.models import scripted
        from looptape.replay.engine.tools import registry

        hooks = Hooks(stop=stop.stop, observer=guard)
        model, tools = scripted.load(str(place.home / "script.json")), registry.load("kept_tools:TOOLS")
        first = place.record(lambda: run(start(), model, tools, Policy(max_turns=4), hooks=hooks))
        assert (first.reason, first.turns) == ("user", 2)
        second = place.go_on(first.run)
        assert (second.reason, second.turns) == ("turns", 4)
        assert place.noted() == [f"step {i}" for i in range(1, 5)]
    finally:
        sys.path.remove(str(place.home))


def test_an_open_turn_is_asked_again(place):
    first = place.begin(Policy(), script=[SCRIPT[0], {"error": {"status": 400, "message": "bad"}}])
    assert first.reason == "model-error"
    second = place.go_on(first.run, model=Scripted([says("never"), says("ok")]), tools=noting(place.notes))
    assert (second.text, second.reason) == ("ok", "model")
    _, turns, requests = place.run(first.run)
    assert [t.status for t in turns] == ["ok", "error", "ok"]
    assert requests[1].messages == requests[2].messages
    assert place.noted() == ["step 1"]


PROGRAM = """
    import os, signal, sys, threading
    sys.path[:0] = {path!r}
    from engine_runs import call, calls, says, start
    from looptape.replay.engine import Policy, run
    from looptape.replay.engine.models.scripted import Scripted
    from looptape.replay.engine.tools.registry import Registry

    def work(text: str) -> str:
        open({notes!r}, "a").write(text + chr(10))
        if text == "step 3":
            os.kill(os.getpid(), signal.SIGKILL)
        return "did " + text

    def quick(text: str) -> str:
        return "had " + text

    tools = Registry([{{"function": work, "side_effect": {effect!r}}}, {{"function": quick, "side_effect": "read"}}])
    script = [calls(call("work", f"c{{i}}", text=f"step {{i}}")) for i in (1, 2)]
    script += [calls(call("quick", "q3", text="x"), call("work", "c3", text="step 3"))]
    run(start(), Scripted(script), tools, Policy(parallel=1))
"""


@pytest.mark.parametrize(("effect", "runs_again"), [("read", True), ("mutate", False)])
def test_after_a_kill_nothing_that_may_change_something_is_done_twice(place, effect, runs_again):
    paths = [str(Path(__file__).parents[2] / "support")]
    program = textwrap.dedent(PROGRAM).format(path=paths, notes=str(place.notes), effect=effect)
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "LOOPTAPE_HOME": str(place.home)}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    with open_store(place.home) as store:
        (found,) = [r for r in store.runs() if r.source == "fork"]
    assert found.status == "interrupted"

    def work(text: str) -> str:
        with open(place.notes, "a") as lines:
            lines.write(f"again {text}\n")
        return f"did {text}"

    tools = Registry([{"function": work, "side_effect": effect}, {"name": "quick", "function": lambda text: "never"}])
    script = Scripted([*SCRIPT[:3], says("finished")])
    outcome = place.go_on(found.id, model=script, tools=tools)
    assert (outcome.reason, outcome.text) == ("model", "finished")
    assert place.noted() == ["step 1", "step 2", "step 3", *(["again step 3"] if runs_again else [])]
    _, _, requests = place.run(found.id)
    blocks = {b["tool_use_id"]: b["content"] for b in requests[-1].messages[-1]["content"]}
    assert blocks["q3"] == "had x"
    assert blocks["c3"] == "did step 3" if runs_again else "may have done its work" in blocks["c3"]


def test_recorded_tools_keep_their_count_over_a_resume(place):
    from engine_runs import PARENT
    from looptape.replay.engine.tools.recorded import RecordedTools
    from looptape.tracer.model import ToolCall, Turn

    box = RecordedTools(
        [Turn(PARENT, n, tool_calls=(ToolCall(f"r{n}", "look", "{}", {}, result=f"R{n}"),)) for n in (1, 2, 3)]
    )
    script = [calls(call("look", f"c{n}")) for n in (1, 2)] + [says("ok")]
    first = place.begin(Policy(max_turns=1), script=script, tools=box)
    place.go_on(first.run, model=Scripted(script), tools=box, policy=Policy())
    _, turns, _ = place.run(first.run)
    assert [t.tool_calls[0].result for t in turns[:2]] == ["R1", "R2"]


def test_a_complete_run_is_not_resumed(place):
    first = place.begin(Policy(), script=[says("84")])
    with pytest.raises(UsageError, match=f"run {first.run} is complete"):
        place.go_on(first.run)


def test_a_run_of_another_program_is_not_resumed(place):
    import looptape

    def program():
        with looptape.run("agent") as made, made.turn() as turn:
            turn.request("hi")
            turn.response([{"type": "tool_use", "id": "t", "name": "n", "input": {}}], stop_reason="tool_use")
        return made.id

    other = place.record(program)
    with pytest.raises(UsageError, match="not made by the built-in loop"):
        place.go_on(other)


def test_a_model_given_in_code_has_to_be_given_again(place):
    first = place.begin(Policy(max_turns=1), script=lambda body: SCRIPT[0])
    with pytest.raises(UsageError, match="cannot be made again"):
        place.go_on(first.run, tools=noting(place.notes))
