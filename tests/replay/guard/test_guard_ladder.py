"""The guard's ladder for cycles: note, notice, stub, block, stop; each acts where it may and is recorded."""

from __future__ import annotations

import json

import pytest

import looptape
from guarded import Counted, Model, acts, circling, drive
from recorded import recording

MARK = "[looptape guard]"


@pytest.fixture
def home(tmp_path):
    with recording(tmp_path) as home:
        yield home


def circle(cycles, tool=None, model=None):
    """Lets a model circle under a guard; gives the model and the tool."""
    model, tool = model or circling(), tool or Counted()
    with looptape.run("circle", guard=looptape.Guard(cycles=cycles)):
        drive(model.client(), {"search": tool.tool})
    return model, tool


def test_a_loop_that_circles_is_stopped_with_one_line(home):
    model, tool = circling(), Counted()

    with pytest.raises(looptape.LoopStopped) as stopped, looptape.run("x", guard=looptape.Guard(cycles="stop")):
        drive(model.client(), {"search": tool.tool})

    assert stopped.value.reason == "cycle"
    assert "search" in str(stopped.value)
    assert stopped.value.finding["first_turn"] == 1
    assert 5 <= len(model.requests) <= 8
    run = home.run()
    assert (run.status, run.reason.partition(":")[0]) == ("halted", "cycle")
    assert len(run.turns) == len(model.requests)


def test_by_default_it_only_notes(home):
    model, tool = circle("note")

    assert tool.ran == 30
    assert all(MARK not in r for r in model.results())
    assert [d["level"] for d in acts(home, "note")] == ["warn", "intervene", "stop"]
    assert {d["rung"] for d in acts(home)} == {"note"}
    assert home.run().status == "completed"


def test_a_healthy_loop_hears_nothing(home):
    model = Model(lambda turn, body: [("search", {"query": f"part {turn}"})] if turn < 12 else "Done.")
    tool = Counted(lambda n, given: f"Line {n} about {given['query']}: {n * 7919}")

    circle("stop", tool, model)

    assert tool.ran == 11
    assert acts(home) == []


def test_the_third_time_the_model_is_told_what_repeats_and_what_was_not_tried(home):
    model, tool = circle("notice")

    first, second, third = model.results()[:3]
    assert MARK not in first + second
    assert third.startswith("Nothing about that here.\n\n[looptape guard] Turns 1 to 3")
    assert "Not tried so far: read_file" in third
    assert tool.ran == 30
    assert sum(MARK in r for r in model.results()) == 1, "one corrective message only"


def test_the_record_shows_what_the_tool_gave_and_what_the_model_saw(home):
    circle("notice")

    (told,) = acts(home, "notice")
    given = [r for r in home.records() if r["kind"] == "call_end" and r["turn"] == 3]
    third = home.run().turns[2].tool_calls[0]
    assert given[0]["result"] == "Nothing about that here."
    assert MARK in third.result
    assert told["text"] in third.result


def test_our_own_notices_do_not_count_as_news(home):
    from looptape.replay.cycles import CycleDetector, seen_of

    circle("notice")

    detector = CycleDetector()
    for turn in home.run().turns:
        detector.feed(seen_of(turn))
    (found,) = detector.findings()
    assert (found.kind, found.first_turn, found.laps) == ("exact", 1, 30)


def test_a_payload_that_the_model_has_already_becomes_a_line(home):
    long = "\n".join(f"row {n} {n * 7919}" for n in range(200))
    model, _ = circle("notice", Counted(long))

    results = model.results()
    assert results[0] == results[1] == long
    assert results[2].startswith(f"[looptape guard] the same {len(long)} characters as in the result of turn 2")
    assert "Turns 1 to 3" in results[2]
    given = [r["result"] for r in home.records() if r["kind"] == "call_end"]
    assert set(given) == {long}


def test_after_a_compaction_nothing_is_taken_for_known(home):
    """The payload was said, but it is not in the context any more."""
    long = "\n".join(f"row {n} {n * 7919}" for n in range(200))
    model, tool, kept = circling(), Counted(long), []
    client = model.client()
    with looptape.run("x", guard=looptape.Guard(cycles="notice")):
        messages = [{"role": "user", "content": "Find the revenue."}]
        for turn in range(1, 7):
            answer = client.messages.create(model="claude-test-1", max_tokens=100, messages=messages)
            messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]})
            call = answer.content[-1]
            kept.append(tool.tool(**call.input))
            messages.append(
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": kept[-1]}]}
            )
            if turn == 3:
                messages = [messages[0], *messages[-2:]]
                messages[-1]["content"][0]["content"] = "(summary)"

    assert kept[2].startswith("[looptape guard] the same")
    assert kept[3].startswith("row 0 0\n")


def test_a_result_that_changes_is_never_replaced(home):
    rows = [f"row {n} {n * 7919}" for n in range(200)]
    model, _ = circle("notice", Counted(lambda n, given: "\n".join(rows) + f"\nnew {n}"))

    assert all("not repeated" not in r for r in model.results())
    assert model.results()[29].startswith("row 0 0\n")


def test_a_blocked_tool_does_not_run_and_its_call_is_answered(home):
    model, tool = circle("block")

    assert tool.ran == 5
    results = model.results()
    assert len(results) == 30
    assert results[5].startswith("[looptape guard] search was not run: it would only repeat")
    assert "since turn 1" in results[5]
    assert "Not tried so far: read_file" in results[5]
    sixth = home.run().turns[5].tool_calls[0]
    assert (sixth.error_class, sixth.origin, sixth.state) == ("denied", "stub", "done")
    assert sixth.result == results[5]


def test_another_call_is_not_blocked(home):
    def plan(turn, body):
        if turn == 7:
            return [("search", {"query": "annual report"})]
        return [("search", {"query": "revenue"})] if turn < 7 else "Found."

    model = Model(plan)
    circle("block", Counted(lambda n, given: f"about {given['query']}"), model)

    assert model.results()[5].startswith(MARK)
    assert model.results()[6] == "about annual report"


def test_a_model_that_ignores_the_block_is_stopped(home):
    model, tool = circling(), Counted()

    with pytest.raises(looptape.LoopStopped), looptape.run("x", guard=looptape.Guard(cycles="stop")):
        drive(model.client(), {"search": tool.tool})

    assert tool.ran == 5
    assert len(model.requests) == 7
    assert [d["rung"] for d in acts(home) if d["rung"] != "note"] == ["notice", "block", "block", "stop"]


SHAPES = {
    "an object as text": (json.dumps({"rows": []}), lambda r: json.loads(r)["rows"] == []),
    "blocks": ([{"type": "text", "text": "none"}], lambda r: r[0]["text"] == "none"),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_structured_results_keep_their_shape(home, kind):
    result, whole = SHAPES[kind]
    model, _ = circle("notice", Counted(lambda n, given: json.loads(json.dumps(result))))

    third = model.results()[2]
    assert MARK in json.dumps(third)
    assert whole(third)


@pytest.mark.parametrize("result", [{"rows": []}, [1, 2], None, 3, '["a"]'], ids=repr)
def test_what_cannot_be_added_to_stays_as_it_is(home, result):
    got = []
    tool = Counted(result).tool
    model = circling(turns=8)

    def adapter(**given):
        got.append(tool(**given))
        return json.dumps(got[-1])

    with looptape.run("x", guard=looptape.Guard(cycles="block")):
        drive(model.client(), {"search": adapter})

    assert got == [result] * 8
    assert {d["rung"] for d in acts(home)} == {"note", "cannot-block"}


def test_a_tool_that_raises_is_blocked_by_raising(home):
    model = circling(turns=8)
    tool = Counted(lambda n, given: ValueError("no such table: revenue"))

    circle("block", tool, model)

    assert model.results()[4] == "no such table: revenue"
    assert model.results()[5].startswith("[looptape guard] search was not run")


def test_a_notice_that_an_error_could_not_carry_comes_with_the_next_result(home):
    def plan(turn, body):
        return [("search" if turn < 4 else "read_file", {"query": "revenue"})] if turn < 5 else "Done."

    model = Model(plan)
    search = Counted(lambda n, given: ValueError("no such table: revenue"))
    read = Counted("Revenue: 412", name="read_file")
    with looptape.run("x", guard=looptape.Guard(cycles="notice")):
        drive(model.client(), {"search": search.tool, "read_file": read.tool})

    assert MARK not in model.results()[2]
    assert model.results()[3].startswith("Revenue: 412\n\n[looptape guard] Turns 1 to 3")


def test_tools_that_are_not_wrapped_are_noted_and_stopped_only(home):
    model = circling()
    ran = []

    def search(query):
        ran.append(query)
        return "Nothing about that here."

    with pytest.raises(looptape.LoopStopped), looptape.run("x", guard=looptape.Guard(cycles="stop")):
        drive(model.client(), {"search": search})

    assert len(ran) == 7
    assert all(MARK not in r for r in model.results())
    assert {d["rung"] for d in acts(home)} == {"note", "stop"}


def test_a_dispatcher_is_told_and_blocked_like_a_tool(home):
    ran = []

    @looptape.tools
    def run_tool(name, arguments):
        ran.append(name)
        return "Nothing about that here."

    model = circling(turns=8)
    with looptape.run("x", guard=looptape.Guard(cycles="block")):
        drive(model.client(), {"search": lambda **given: run_tool("search", given)})

    assert len(ran) == 5
    assert MARK in model.results()[2]
    assert model.results()[5].startswith("[looptape guard] search was not run")


def test_what_the_author_declares_holds(home):
    model = circling(name="peek", turns=8)
    tool = Counted("empty queue", name="peek")
    with looptape.run("x", guard=looptape.Guard(cycles="stop", declared={"peek": "poll"})):
        drive(model.client(), {"peek": tool.tool})

    assert acts(home) == []


def test_what_the_tool_declares_holds(home):
    model = circling(name="peek", turns=8)
    tool = Counted("empty queue", name="peek", side_effect="poll")
    with looptape.run("x", guard=looptape.Guard(cycles="stop")):
        drive(model.client(), {"peek": tool.tool})

    assert acts(home) == []


def test_two_runs_have_two_histories(home):
    model, tool = circling(turns=40), Counted()
    client = model.client()
    with looptape.run("x", guard=looptape.Guard(cycles="stop")), pytest.raises(looptape.LoopStopped):
        drive(client, {"search": tool.tool})
    before = len(model.requests)
    with looptape.run("y", guard=looptape.Guard(cycles="stop")), pytest.raises(looptape.LoopStopped):
        drive(client, {"search": tool.tool})

    assert len(model.requests) == 2 * before, "a guard's history is its run's own"


def test_a_stopped_loop_that_catches_it_ends_as_stopped(home):
    model, tool = circling(), Counted()
    with looptape.run("x", guard=looptape.Guard(cycles="stop")):
        try:
            drive(model.client(), {"search": tool.tool})
        except looptape.LoopStopped:
            pass

    run = home.run()
    assert run.status == "halted"
    assert run.reason.startswith("cycle: ")
