"""The manual API: loops over any provider, ReAct text loops, tools by hand."""

import pytest

import looptape
from recorded import recording


@pytest.fixture
def home(tmp_path):
    with recording(tmp_path) as home:
        yield home


def test_a_react_loop_is_recorded_whole(home):
    """No native tool calls: the loop reads "Action: search[...]" out of the text itself."""
    answers = ["Thought: look\nAction: search[revenue]", "Thought: compute\nAction: calc[412*0.07]", "Final: 28.84"]
    messages = [{"role": "user", "content": "7% of revenue?"}]
    with looptape.run("react", agent="react") as run:
        for said in answers:
            with run.turn() as turn:
                turn.request(messages, model="local-model", temperature=0)
                final = said.startswith("Final")
                turn.response(said, stop_reason="stop" if final else None, usage={"input": 50, "output": 9})
                messages.append({"role": "assistant", "content": said})
                if final:
                    break
                name, _, argument = said.rpartition("Action: ")[2].partition("[")
                with turn.tool(name, {"q": argument.rstrip("]")}) as tool:
                    tool.result(f"result of {name}", is_error=name == "calc")
                messages.append({"role": "user", "content": f"Observation: result of {name}"})
    seen = home.run()
    assert (seen.name, seen.agent, seen.status) == ("react", "react", "completed")
    assert [t.text for t in seen.turns] == answers
    assert [[(c.name, c.arguments, c.result, c.is_error) for c in t.tool_calls] for t in seen.turns] == [
        [("search", {"q": "revenue"}, "result of search", False)],
        [("calc", {"q": "412*0.07"}, "result of calc", True)],
        [],
    ]
    assert {c.timing for t in seen.turns for c in t.tool_calls} == {"measured"}
    assert [len(r.messages) for r in seen.requests] == [1, 3, 5]
    assert (seen.usage.input, seen.usage.output) == (150, 27)
    assert seen.turns[0].request_model == "local-model"
    assert seen.requests[0].params["temperature"] == 0


def test_native_calls_of_another_provider_bind_by_id(home):
    calls = [{"id": "c1", "name": "get", "arguments": {"k": 1}}, {"id": "c2", "name": "get", "arguments": {"k": 1}}]
    with looptape.run("bedrock") as run, run.turn() as turn:
        turn.request("question", model="m", system="be brief", tools=[{"name": "get"}])
        turn.response(None, tool_calls=calls, stop_reason="tool_use")
        for call in calls:
            with turn.tool(call) as tool:
                tool.result({"value": call["id"]})
    seen = home.run()
    assert [(c.id, c.result) for c in seen.turns[0].tool_calls] == [("c1", {"value": "c1"}), ("c2", {"value": "c2"})]
    assert seen.requests[0].system == "be brief"
    assert seen.status == "limit"


def test_a_wrapped_tool_inside_a_text_loop_belongs_to_the_last_turn(home):
    @looptape.tool(side_effect="read", loop_key=lambda q: q.lower())
    def search(q):
        return f"found {q}"

    with looptape.run("react") as run, run.turn() as turn:
        turn.request("question")
        turn.response("Action: search[Revenue]")
        assert search("Revenue") == "found Revenue"
    (call,) = home.run().turns[0].tool_calls
    assert (call.name, call.arguments, call.result) == ("search", {"q": "Revenue"}, "found Revenue")
    assert (call.side_effect, call.loop_key) == ("read", "revenue")


def test_a_failing_model_call_and_a_failing_tool_are_told_apart(home):
    def model_fails():
        with looptape.run("model fails") as run, run.turn() as turn:
            turn.request("question")
            raise RuntimeError("model is gone")

    with pytest.raises(RuntimeError):
        model_fails()
    with looptape.run("tool fails") as run, run.turn() as turn:
        turn.request("question")
        turn.response("Action: x[]")
        with pytest.raises(TimeoutError), turn.tool("x"):
            raise TimeoutError("slow")
    model, tool = home.runs()
    assert (model.status, model.turns[0].status, model.turns[0].error) == ("failed", "error", "model is gone")
    assert (tool.turns[0].status, tool.turns[0].tool_calls[0].error_class) == ("ok", "transient")


def test_odd_values_never_reach_the_loop_as_errors(home):
    circle = {}
    circle["self"] = circle

    class Evil:
        def __repr__(self):
            raise ValueError("no repr")

    @looptape.tool
    def tool(value):
        return Evil()

    with looptape.run("odd") as run, run.turn() as turn:
        turn.request([{"role": "user", "content": [circle, Evil(), float("nan"), 2**80, "\ud83e", "nul \x00"]}])
        turn.response("x", usage={"output": 1})
        assert isinstance(tool(circle), Evil)
        with turn.tool("by hand", {"value": Evil()}) as by_hand:
            by_hand.result(Evil())
    seen = home.run()
    content = seen.requests[0].messages[0]["content"]
    assert content[3:] == [2**80, "\ud83e", "nul \x00"]
    assert len(seen.turns[0].tool_calls) == 2


def test_tags_can_be_added_and_outcomes_given_later(home):
    with looptape.run("tagged", tags={"a": "1"}) as run:
        run.tag(b="2")
    run.outcome("fail", "wrong figure", score=0.2)
    seen = home.run()
    assert seen.tags == {"a": "1", "b": "2"}
    assert seen.outcome == {"verdict": "fail", "note": "wrong figure", "score": 0.2}
    assert (seen.status, seen.reason) == ("completed", "no turns")


def test_a_deliberate_stop_halts_the_run(home):
    with pytest.raises(looptape.LooptapeStop), looptape.run("stopped"):
        raise looptape.LooptapeStop("enough")
    with pytest.raises(KeyboardInterrupt), looptape.run("interrupted"):
        raise KeyboardInterrupt
    assert [(r.status, r.reason) for r in home.runs()] == [
        ("halted", "LooptapeStop: enough"),
        ("halted", "KeyboardInterrupt"),
    ]


def test_turns_of_several_agents_say_whose_they_are(home):
    with looptape.run("team", agent="lead") as run:
        for agent in ("planner", None):
            with run.turn(agent=agent) as turn:
                turn.request(f"asked by {agent}")
                turn.response("ok")
    assert [t.agent for t in home.run().turns] == ["planner", "lead"]
