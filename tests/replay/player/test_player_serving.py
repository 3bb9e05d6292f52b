"""Model calls and tools are answered from the recording, in order, each once."""

import pytest

from looptape.replay.player.stops import ReplayMismatch, UnwrappedTools
from looptape.tracer import substitute
from played import START, Program, Turn, forget_wrapped, records, request, results, said, then, user

POP = {"queue": "q"}


def popping(turns: int = 3) -> list[Turn]:
    """A loop that makes the same call again and again, with another result each time."""
    body, found = request(user("empty the queue")), []
    for number in range(1, turns + 1):
        call = f"toolu_{number}"
        answer = said(f"step {number}", (call, "pop_next", POP), message=f"msg_{number}")
        value = "ABC"[number - 1]
        found.append(Turn(body, answer, {call: (value, number * 10 + 2, number * 10 + 3)}))
        body = then(body, answer, results((call, value)))
    return [*found, Turn(body, said("done", message="msg_last"))]


def play(program: Program, turns: list[Turn]) -> None:
    """The recorded loop as it was."""
    for number, turn in enumerate(turns, 1):
        assert program.ask(turn.body) == turn.response
        for call in turn.ran:
            block = next(b for b in turn.response["content"] if b.get("id") == call)
            assert program.tool(block["name"], block["input"], call, turn=number) == turn.ran[call][0]


def test_a_recorded_loop_is_served_whole_and_the_verdict_is_ok():
    turns = popping()
    program = Program(records(turns))
    play(program, turns)
    verdict = program.verdict()
    assert verdict.ok, verdict
    assert (verdict.recorded.model, verdict.recorded.tools) == (4, 3)
    assert verdict.served == verdict.recorded
    assert not verdict.unconsumed
    assert not verdict.normalised
    assert verdict.diverged is None


def test_the_digest_is_the_same_in_every_repeat_and_another_for_other_answers():
    digests = []
    for turns in (popping(), popping(), popping(2)):
        program = Program(records(turns))
        play(program, turns)
        digests.append(program.verdict().digest)
    assert digests[0] == digests[1] != digests[2]


def test_repeats_of_a_call_get_the_recorded_results_in_order_and_never_one_twice():  # rpl-01
    program = Program(records(popping()))
    assert [program.tool("pop_next", POP) for _ in range(3)] == ["A", "B", "C"]
    with pytest.raises(ReplayMismatch) as caught:
        program.tool("pop_next", POP)
    assert "comes 4 times" in str(caught.value)
    assert "has 3 of it" in str(caught.value)
    assert "--tool pop_next=live" in str(caught.value), "the cure where the loop goes on otherwise"
    assert caught.value.exit_code == 1
    assert not program.verdict().ok


def test_a_program_that_ends_after_one_turn_of_many_is_not_ok():
    turns = popping()
    program = Program(records(turns))
    program.ask(turns[0].body)
    verdict = program.verdict()
    assert not verdict.ok
    assert (verdict.served.model, verdict.unconsumed.model, verdict.unconsumed.tools) == (1, 3, 3)


def test_a_program_that_calls_no_model_is_not_ok():
    verdict = Program(records(popping())).verdict()
    assert not verdict.ok
    assert any("no model call was answered" in note for note in verdict.notes)


def test_a_failed_attempt_is_served_before_the_one_that_worked():
    attempts = [{"status": 529, "body": '{"error": {"type": "overloaded_error"}}'}, {"status": 200}]
    turn = Turn(request(user("hi")), said("hello"), attempts=attempts)
    program = Program(records([turn]))
    assert program.ask(turn.body)["error"]["type"] == "overloaded_error"
    assert program.verdict().unconsumed.model == 1
    assert program.ask(turn.body, attempt=2)["content"][0]["text"] == "hello"
    assert program.verdict().ok


def test_another_attempt_than_recorded_is_a_miss():
    turn = Turn(request(user("hi")), None, attempts=[{"status": 429, "body": "{}"}])
    program = Program(records([turn]))
    program.ask(turn.body)
    with pytest.raises(ReplayMismatch, match="was sent 2 times; the recording has 1 attempt"):
        program.ask(turn.body, attempt=2)


def test_a_retry_belongs_to_the_run_whose_attempt_failed():
    body = request(user("same question"))
    first = records([Turn(body, said("one"), attempts=[{"status": 529, "body": "{}"}, {"status": 200}])])
    second = records([Turn(body, said("two"))], run="b" * 16)
    program = Program([*first, *second])
    program.ask(body, run="x")
    assert program.ask(body, run="y")["content"][0]["text"] == "two"
    assert program.ask(body, run="x", attempt=2)["content"][0]["text"] == "one"
    assert program.verdict().ok


def test_parallel_calls_pair_by_their_id_whatever_the_order_of_asking():
    answer = said("", ("t1", "a", {"x": 1}), ("t2", "a", {"x": 1}))
    program = Program(records([Turn(request(user("go")), answer, {"t1": ("first", 12, 13), "t2": ("second", 14, 15)})]))
    program.ask(request(user("go")))
    assert program.tool("a", {"x": 1}, "t2") == "second"
    assert program.tool("a", {"x": 1.0}, "t1") == "first"


def test_a_tool_that_raised_raises_the_same_class_again():
    answer = said("", ("t1", "a", {}), ("t2", "b", {}))
    raised = {"t1": ("builtins.FileNotFoundError", "no such file: x"), "t2": ("gone_module.QuotaError", "enough")}
    program = Program(
        records([Turn(request(user("go")), answer, {"t1": (None, 12, 13), "t2": (None, 14, 15)}, raised)])
    )
    program.ask(request(user("go")))
    with pytest.raises(FileNotFoundError, match="no such file: x"):
        program.tool("a", {}, "t1")
    with pytest.raises(RuntimeError, match="enough") as caught:
        program.tool("b", {}, "t2")
    assert type(caught.value).__name__ == "QuotaError"


def test_a_result_that_was_only_seen_is_served_as_the_model_saw_it():
    turns = popping(1)
    tape = [r for r in records(turns) if r["kind"] not in ("call_start", "call_end")]
    message = next(r for r in tape if r["kind"] == "turn_start" and r["turn"] == 2)["append"][-1]
    seen = {
        "kind": "call_seen",
        "run": tape[0]["run"],
        "turn": 1,
        "call": "toolu_1",
        "message": message,
        "path": "$.content[0].content",
    }
    program = Program([*tape, seen])
    program.ask(turns[0].body)
    assert program.tool("pop_next", POP, "toolu_1") == "A"


def test_a_server_held_conversation_is_answered_by_its_whole_list():
    api = "openai.responses"
    body = {"model": "m", "input": [user("hi"), user("more")], "previous_response_id": "resp_1"}
    answer = {
        "id": "resp_2",
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "yes"}]}],
    }
    program = Program(records([Turn(body, answer)], api=api))
    assert program.ask({**body, "previous_response_id": "resp_other"}, api=api)["id"] == "resp_2"
    assert program.verdict().ok


def test_tools_that_are_not_wrapped_stop_it_before_turn_one_and_are_listed(monkeypatch):
    forget_wrapped(monkeypatch)
    turns = popping()
    program = Program(records(turns), unwrapped="stop")
    with pytest.raises(UnwrappedTools) as caught:
        program.ask(turns[0].body)
    assert caught.value.names == ("pop_next",)
    assert caught.value.exit_code == 2
    assert program.verdict().served.model == 0
    substitute.register("pop_next")
    assert program.ask(turns[0].body) == turns[0].response


def test_unwrapped_tools_that_really_ran_are_counted_and_do_not_spoil_the_verdict(monkeypatch):
    forget_wrapped(monkeypatch)
    turns = popping()
    program = Program(records(turns), unwrapped="run")
    for turn in turns:
        program.ask(turn.body)
    verdict = program.verdict()
    assert verdict.ok, verdict
    assert verdict.bypassed == 3
    assert not verdict.unconsumed


def test_a_sub_agent_inside_a_served_call_is_not_asked_for():
    answer = said("", ("t1", "delegate", {"task": "x"}))
    root = [Turn(request(user("go")), answer, {"t1": ("child says 7", 12, 19)})]
    root.append(Turn(then(root[0].body, answer, results(("t1", "child says 7"))), said("7")))
    parent = {"run": "a" * 16, "turn": 1, "call": "t1", "kind": "sub-agent"}
    child = records([Turn(request(user("x")), said("7"), at=(13, 18))], run="c" * 16, parent=parent)
    program = Program([*records(root), *child])
    play(program, root)
    verdict = program.verdict()
    assert verdict.ok, verdict
    assert verdict.served.model == verdict.recorded.model == 3
    assert any("1 model call of sub-agents" in note for note in verdict.notes)


def test_a_new_run_is_a_replay_and_knows_its_parent():
    program = Program(records(popping()), from_turn=3)
    run = program.run()
    assert run.source == "replay"
    assert run.parent == {"run": "a" * 16, "turn": 3, "call": None, "kind": "fork"}
    assert START
