"""Loops that record their turns by hand: answered from the recording, or stopped before anything runs."""

import pytest

import looptape
from looptape.replay.player.stops import ReplayMismatch, UnwrappedTools
from looptape.tracer.hand_served import NotTaken
from looptape.tracer.store import open_store
from played import forget_wrapped
from recorded import recording


class Agent:
    """Asks a model of its own; ``asked`` and ``ran`` say what really happened."""

    def __init__(self, wrapped=True, takes=True):
        self.asked, self.ran, self.takes = [], [], takes

        def search(q):
            self.ran.append(q)
            return {"found": q}

        self.search = looptape.tool(search) if wrapped else search

    def model(self, messages):
        self.asked.append(len(messages))
        if len(messages) > 4:
            raise TimeoutError("the model is busy")
        return {
            "content": [{"type": "tool_use", "id": f"c{len(messages)}", "name": "search", "input": {"q": "x"}}],
            "stop_reason": "tool_use",
            "usage": {"input": 5, "output": 2},
        }

    def loop(self, prompt="hi"):
        messages = [{"role": "user", "content": prompt}]
        with looptape.run("hand") as run:
            while True:
                with run.turn() as turn:
                    turn.request(messages, model="own-1", temperature=0)
                    answer = (turn.served if self.takes else None) or self.model(messages)
                    turn.response(answer["content"], stop_reason=answer["stop_reason"], usage=answer["usage"])
                    messages.append({"role": "assistant", "content": answer["content"]})
                    (call,) = answer["content"]
                    with turn.tool(call) as tool:
                        found = self.search(**call["input"])
                        tool.result(found)
                    block = {"type": "tool_result", "tool_use_id": call["id"], "content": str(found)}
                    messages.append({"role": "user", "content": [block]})


@pytest.fixture
def home(tmp_path, monkeypatch):
    forget_wrapped(monkeypatch)
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "looptape-home"))
    with recording(tmp_path):
        agent = Agent()
        with pytest.raises(TimeoutError, match="busy"):
            agent.loop()
        assert (agent.asked, agent.ran) == ([1, 3, 5], ["x", "x"])
    return tmp_path / "looptape-home"


def recorded(home):
    with open_store(home) as store:
        (run,) = store.runs()
        return run.id


def test_model_and_tools_are_answered_and_the_failure_comes_again(home):
    agent = Agent()
    with looptape.replaying(recorded(home), into=home) as tape, pytest.raises(TimeoutError, match="busy"):
        agent.loop()
    assert tape.verdict.ok, tape.verdict
    assert (agent.asked, agent.ran) == ([], [])
    assert (tape.verdict.served.model, tape.verdict.served.tools) == (3, 2)
    with open_store(home) as store:
        turns = store.turns(tape.run)
    assert [t.inherited for t in turns] == [True] * 3


def test_another_prompt_is_a_miss(home):
    with looptape.replaying(recorded(home), into=home), pytest.raises(ReplayMismatch, match="messages"):
        Agent().loop("ho")


def test_tools_that_are_not_wrapped_stop_it_before_anything_runs(home, monkeypatch):
    known, agent = recorded(home), Agent(wrapped=False)
    forget_wrapped(monkeypatch)
    with looptape.replaying(known, into=home), pytest.raises(UnwrappedTools, match="search"):
        agent.loop()
    assert (agent.asked, agent.ran) == ([], [])


def test_a_program_that_asks_its_model_all_the_same_is_stopped_at_its_first_turn(home):
    agent = Agent(takes=False)
    with looptape.replaying(recorded(home), into=home), pytest.raises(NotTaken, match=r"turn\.served or"):
        agent.loop()
    assert (agent.asked, agent.ran) == ([1], [])


def test_while_recording_nothing_is_served(home):
    with recording(home), looptape.run() as run, run.turn() as turn:
        turn.request("hi", model="own-1")
        assert turn.served is None
