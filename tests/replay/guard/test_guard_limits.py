"""Each limit of a guard ends the loop before the next model call goes out; the run says which and how."""

from __future__ import annotations

import pytest

import looptape
from guarded import Counted, Model, acts, answer_of, drive
from looptape.replay.guard import limits as guard_limits
from recorded import recording
from scripted import anthropic_client


@pytest.fixture
def home(tmp_path):
    with recording(tmp_path) as home:
        yield home


def busy(turns=30):
    """A model that works: another call each turn."""
    return Model(lambda turn, body: [("search", {"query": f"part {turn}"})] if turn <= turns else "Done.")


def news():
    return Counted(lambda n, given: f"Line {n}: {n * 7919}")


def stopped_by(guard, model, tool):
    """Runs the loop to the stop; gives what was raised."""
    with pytest.raises(looptape.LoopStopped) as stopped, looptape.run("limited", guard=guard):
        drive(model.client(), {"search": tool.tool})
    return stopped.value


CAPS = {
    "turns": (looptape.Guard(turns=4), 4),
    "tokens": (looptape.Guard(tokens=450), 5),
    "cost": (looptape.Guard(cost_usd=0.0017), 4),
}


@pytest.mark.parametrize("reason", CAPS)
def test_a_cap_ends_the_run_as_a_limit(home, reason):
    guard, turns = CAPS[reason]
    model = busy()
    client = looptape.wrap(anthropic_client(lambda body: model(body) | {"model": "claude-sonnet-4-5"}))
    with pytest.raises(looptape.LoopStopped) as stopped, looptape.run("limited", guard=guard):
        drive(client, {"search": news().tool})

    assert stopped.value.reason == reason
    assert len(model.requests) == turns
    run = home.run()
    assert (run.status, run.reason) == ("limit", str(stopped.value))
    assert run.reason.startswith(f"{reason}: ")
    assert len(run.turns) == turns, "the call that was not made is no turn"


def test_time_is_looked_at_before_each_call(home, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(guard_limits, "monotonic", lambda: clock[0])

    def later(n, given):
        clock[0] += 3
        return f"line {n}"

    model = busy()
    guard = looptape.Guard(seconds=10)
    monkeypatch.setattr(guard_limits.Spent, "__init__", _from_zero(guard_limits.Spent.__init__))
    stopped = stopped_by(guard, model, Counted(later))

    assert str(stopped) == "seconds: 12.0 s of 10 are over"
    assert len(model.requests) == 4
    assert home.run().status == "limit"


def _from_zero(original):
    def init(self, caps):
        original(self, caps, since=0.0)

    return init


def test_every_call_failed_in_so_many_turns(home):
    model = busy()
    tool = Counted(lambda n, given: RuntimeError(f"{['disk full', 'no route', 'bad header'][n % 3]} at {given}"))

    stopped = stopped_by(looptape.Guard(consecutive_errors=4), model, tool)

    assert stopped.reason == "consecutive-errors"
    assert len(model.requests) == 4
    run = home.run()
    assert (run.status, run.limits) == ("halted", {"consecutive_errors": 4})


def test_one_success_between_begins_the_count_anew(home):
    model = busy(9)
    tool = Counted(lambda n, given: f"found {n}" if n % 3 == 0 else OSError(f"gone {n}"))

    with looptape.run("x", guard=looptape.Guard(consecutive_errors=3)):
        drive(model.client(), {"search": tool.tool})

    assert home.run().status == "completed"


def test_the_same_kind_of_error_whatever_the_arguments(home):
    model = busy()
    tool = Counted(lambda n, given: ValueError(f"unknown column {given['query']!r} in table 'q{n}'"))

    stopped = stopped_by(looptape.Guard(same_error=3), model, tool)

    assert stopped.reason == "same-error"
    assert "search failed in the same way in 3 turns in a row" in str(stopped)
    assert len(model.requests) == 3
    assert home.run().status == "halted"


def test_errors_of_tools_that_are_not_wrapped_count_too(home):
    model = busy()

    def search(query):
        raise ValueError(f"unknown column {query!r}")

    with pytest.raises(looptape.LoopStopped), looptape.run("x", guard=looptape.Guard(consecutive_errors=3)):
        drive(model.client(), {"search": search})

    assert len(model.requests) == 3


def test_the_limits_are_recorded_with_the_runs_own(home):
    guard = looptape.Guard(turns=9, cost_usd=1.5)
    with looptape.run("x", limits=looptape.Limits(seconds=60, turns=20), guard=guard):
        drive(busy(2).client(), {"search": news().tool})

    assert home.run().limits == {"turns": 9, "seconds": 60, "cost_usd": 1.5}


def test_a_run_that_ends_by_itself_at_its_last_turn_is_complete(home):
    with looptape.run("x", guard=looptape.Guard(turns=3)):
        drive(busy(2).client(), {"search": news().tool})

    assert home.run().status == "completed"


def test_a_price_that_nobody_knows_is_said_and_the_other_limits_hold(home, capfd):
    model = busy()

    stopped = stopped_by(looptape.Guard(cost_usd=0.001, turns=5), model, news())

    assert stopped.reason == "turns"
    assert "the guard's cost limit cannot count it" in capfd.readouterr().err


def test_a_retry_of_the_sdk_is_no_second_turn(home, monkeypatch):
    from looptape.replay.cycles import CycleDetector

    fed, feed = [], CycleDetector.feed
    monkeypatch.setattr(CycleDetector, "feed", lambda self, turn: fed.append(turn) or feed(self, turn))
    import anthropic
    import httpx2

    model, sent = busy(2), []

    def respond(request):
        import json

        sent.append(1)
        if len(sent) % 2:
            return httpx2.Response(529, json={"type": "error", "error": {"type": "overloaded_error", "message": "no"}})
        return httpx2.Response(200, json=model(json.loads(request.content)))

    http = anthropic.DefaultHttpxClient(transport=httpx2.MockTransport(respond))
    client = looptape.wrap(anthropic.Anthropic(api_key="sk-ant-" + "0" * 20, http_client=http))
    client._calculate_retry_timeout = lambda *a, **k: 0.001
    with looptape.run("x", guard=looptape.Guard(turns=3)):
        drive(client, {"search": news().tool})

    assert len(sent) == 6
    assert [t.user for t in fed] == ["Find the revenue.", None, None]
    assert home.run().status == "completed"


def test_a_loop_by_hand_is_stopped_too(home):
    turns = []

    def step(run):
        with run.turn() as turn:
            turn.request(f"step {len(turns)}", model="local")
            turns.append(1)
            turn.response("Action: look")

    with looptape.run("react", guard=looptape.Guard(turns=3)) as run:
        for _ in range(3):
            step(run)
        with pytest.raises(looptape.LoopStopped):
            step(run)

    assert len(turns) == 3
    assert home.run().status == "limit"


BAD = {
    "turns": {"turns": 0},
    "a word": {"seconds": "ten"},
    "a flag": {"tokens": True},
    "rung": {"cycles": "kill"},
    "goal": {"goal": "make test"},
    "on_goal_failed": {"on_goal_failed": "shrug"},
    "declared": {"declared": {"peek": "sleep"}},
}


@pytest.mark.parametrize("kind", BAD)
def test_a_guard_that_makes_no_sense_is_refused_where_it_is_made(kind):
    with pytest.raises(looptape.LooptapeError):
        looptape.Guard(**BAD[kind])


def test_what_is_no_guard_is_refused():
    with pytest.raises(looptape.LooptapeError, match="is no guard"):
        looptape.run("x", guard=True)


def test_with_recording_off_it_says_that_it_cannot_watch(tmp_path, monkeypatch, capfd):
    from looptape.tracer import quiet

    quiet.forget()
    monkeypatch.setenv("LOOPTAPE", "off")
    model = busy(5)
    with looptape.run("x", guard=looptape.Guard(turns=2, goal=lambda text: "add a sum")) as run:
        drive(looptape.wrap(anthropic_client(model)), {"search": lambda query: query})
        assert run.done("all done") == "[looptape guard] The goal is not reached: add a sum. Go on."

    assert len(model.requests) == 6
    assert capfd.readouterr().err.count("the guard cannot watch") == 1


def test_without_content_the_guard_works_and_writes_none(tmp_path):
    from guarded import circling
    from looptape.tracer import process
    from looptape.tracer.journal import Journal
    from looptape.tracer.recorder import Recorder

    with recording(tmp_path) as home:
        home.recorder = Recorder(Journal(home.path, content=False))
        process.replace(home.recorder)
        with pytest.raises(looptape.LoopStopped), looptape.run("x", guard=looptape.Guard(cycles="stop")):
            drive(circling(given={"query": "secretplan"}).client(), {"search": Counted("the sealed letter").tool})

        text = "".join(f.read_text() for f in (home.path / "journal").glob("*.jsonl"))
    assert '"guard"' in text
    assert "secretplan" not in text
    assert "sealed" not in text


def test_the_guards_own_trouble_never_reaches_the_agent(home, monkeypatch, capfd):
    from looptape.replay.guard.scope import Scope

    monkeypatch.setattr(Scope, "asking", lambda *a: 1 / 0)
    monkeypatch.setattr(Scope, "answered", lambda *a: 1 / 0)
    monkeypatch.setattr(Scope, "ended", lambda *a: 1 / 0)
    monkeypatch.setattr(Scope, "standing", lambda *a: 1 / 0)
    with looptape.run("x", guard=looptape.Guard(cycles="stop", turns=50)):
        assert drive(busy(4).client(), {"search": news().tool}) == "Done."

    assert home.run().status == "completed"
    assert "your program is not affected" in capfd.readouterr().err


def test_answer_of_makes_what_the_sdk_reads():
    assert answer_of({"messages": [], "model": "m"}, [("a", {})])["stop_reason"] == "tool_use"


def test_where_the_limits_come_from_is_recorded(home):
    from looptape.replay.guard import LearnedLimits

    limits = LearnedLimits(turns=3, n=42, said="turns from 42 finished runs")
    stopped = stopped_by(looptape.Guard(limits=limits), busy(), news())

    assert str(stopped) == "turns: 3 of 3"
    assert acts(home, "limits") == [{"rung": "limits", "text": "turns from 42 finished runs"}]
