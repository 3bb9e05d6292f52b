"""What goes live: from a turn on, by name, within caps, and never a tool that may change something unasked."""

import json

import pytest

from looptape.replay.player.events import Events
from looptape.replay.player.live import with_model
from looptape.replay.player.stops import ReplayMismatch, ReplayStopped
from looptape.tracer.model import Usage
from looptape.tracer.providers import Answer, by_api
from played import Program, Turn, records, request, results, said, then, user


def loop(length: int = 4, side_effect: str = "unknown") -> list[Turn]:
    body, found = request(user("go"), system="s"), []
    for number in range(1, length + 1):
        call = f"t{number}"
        answer = said("", (call, "look", {"n": number}), message=f"msg_{number}")
        found.append(
            Turn(body, answer, {call: (f"r{number}", number * 10 + 2, number * 10 + 3)}, side_effect=side_effect)
        )
        body = then(body, answer, results((call, f"r{number}")))
    return [*found, Turn(body, said("end"))]


def test_turns_before_n_are_served_and_the_rest_is_sent():
    turns = loop()
    program = Program(records(turns), from_turn=3, model="live")
    sent = []
    for number, turn in enumerate(turns, 1):
        sent.append(program.ask(turn.body) is None)
        if number < 3:
            program.tool("look", {"n": number}, f"t{number}")
    assert sent == [False, False, True, True, True]
    verdict = program.verdict()
    assert verdict.ok, verdict
    assert (verdict.recorded.model, verdict.live.model) == (2, 3)


def test_a_killed_run_goes_on_live_after_its_last_answered_turn():
    turns = loop(2)
    turns[2].response = None
    program = Program(records(turns, ended=False), from_turn=3, model="live")
    for turn in turns[:2]:
        assert program.ask(turn.body)
    assert program.ask(turns[2].body) is None


def test_everything_is_live_without_a_turn_to_start_from():
    assert Program(records(loop()), model="live").ask(request(user("anything"))) is None


def test_live_turns_stop_at_their_cap():
    turns = loop()
    program = Program(records(turns), from_turn=2, model="live", max_turns=2)
    for turn in turns[:3]:
        program.ask(turn.body)
    with pytest.raises(ReplayStopped, match="2 live turns"):
        program.ask(turns[3].body)
    assert not program.verdict().ok


def test_a_cap_of_one_live_turn_is_told_as_one():
    turns = loop()
    program = Program(records(turns), from_turn=1, model="live", max_turns=1)
    program.ask(turns[0].body)
    with pytest.raises(ReplayStopped, match="1 live turn was asked for"):
        program.ask(turns[1].body)


@pytest.mark.parametrize(
    ("model", "words"),
    [("claude-sonnet-4-5", "have cost"), ("acme-large-1", "is not known")],
    ids=["priced", "unpriced"],
)
def test_live_turns_stop_when_they_have_cost_too_much_or_cannot_be_priced(model, words):
    turns = loop()
    program = Program(records(turns), from_turn=2, model="live", max_cost_usd=0.01)
    for turn in turns[:2]:
        program.ask(turn.body)
    live = program.asked(turns[2].body)
    program.player.answer(live)
    live.turn.answer = Answer(model=model, usage=Usage(input=10, output=100_000))
    with pytest.raises(ReplayStopped, match=words):
        program.ask(turns[3].body)


def test_the_name_of_another_model_is_put_into_live_requests_only():
    turns = loop(2)
    program = Program(records(turns), from_turn=2, model="other-model")
    raw = json.dumps(turns[0].body).encode()
    assert program.player.prepare(by_api("anthropic.messages"), raw) is raw
    program.ask(turns[0].body)
    raw = json.dumps(turns[1].body).encode()
    prepared = program.player.prepare(by_api("anthropic.messages"), raw)
    assert json.loads(prepared) == {**turns[1].body, "model": "other-model"}
    assert prepared == raw.replace(b"acme-large-1", b"other-model")
    assert program.ask({**turns[1].body, "model": "other-model"}) is None


def test_a_model_name_elsewhere_in_the_request_stays():
    body = {**request(user('ask "model": "acme-large-1"')), "metadata": {"model": "acme-large-1"}}
    prepared = json.loads(with_model(by_api("anthropic.messages"), json.dumps(body).encode(), "other"))
    assert prepared == {**body, "model": "other"}


@pytest.mark.parametrize(
    ("side_effect", "runs"), [("read", True), ("poll", True), ("mutate", False), ("unknown", False)]
)
def test_only_tools_that_change_nothing_run_live_without_being_named(side_effect, runs):
    turns = loop(2, side_effect)
    program = Program(records(turns), tools="live")
    program.ask(turns[0].body)
    if runs:
        assert program.tool("look", {"n": 1}, "t1") is None
        assert program.verdict().live.tools == 1
    else:
        with pytest.raises(ReplayStopped, match=r"look would run live.*--tool look=live"):
            program.tool("look", {"n": 1}, "t1")


def test_a_named_tool_runs_live_and_the_others_are_served():
    turns = loop(2)
    program = Program(records(turns), tool={"look": "live"})
    program.ask(turns[0].body)
    assert program.tool("look", {"n": 1}, "t1") is None


def test_a_stub_stands_in_for_a_tool():
    turns = loop(2)
    program = Program(records(turns), tool={"look": "stub:[1, 2]"})
    program.ask(turns[0].body)
    assert program.tool("look", {"n": 1}, "t1") == "[1, 2]"  # the recorded results were texts
    assert program.verdict().live.tools == 1


def test_tools_before_the_first_live_turn_are_served_even_when_named_live():
    turns = loop(3)
    program = Program(records(turns), from_turn=2, model="live", tool={"look": "live"})
    program.ask(turns[0].body)
    assert program.tool("look", {"n": 1}, "t1", turn=1) == "r1"
    program.ask(turns[1].body)
    assert program.tool("look", {"n": 2}, "x2", turn=2) is None


def test_recorded_results_answer_the_calls_of_live_turns_and_a_new_call_is_a_miss():
    turns = loop(3)
    program = Program(records(turns), from_turn=2, model="live")
    program.ask(turns[0].body)
    program.tool("look", {"n": 1}, "t1", turn=1)
    program.ask(turns[1].body)
    assert program.tool("look", {"n": 2}, "another_id", turn=2) == "r2"
    with pytest.raises(ReplayMismatch) as caught:
        program.tool("look", {"n": 99}, "another_id_2", turn=2)
    assert caught.value.path == "look.n"
    assert caught.value.recorded == "2"


def test_a_miss_goes_live_where_that_was_asked_for_and_the_run_stays_live():
    turns = loop(2)
    program = Program(records(turns), on_miss="live")
    program.ask(turns[0].body)
    assert program.ask(request(user("other"), system="s")) is None
    assert program.ask(turns[1].body) is None
    verdict = program.verdict()
    assert not verdict.ok
    assert verdict.live.model == 2
    assert verdict.diverged["turn"] == 2


def test_caps_hold_over_all_processes_of_a_replay(tmp_path):
    turns, more = loop(), {"from_turn": 1, "model": "live", "max_turns": 2}
    one, other = (Program(records(turns), Events(tmp_path / name), **more) for name in ("1.jsonl", "2.jsonl"))
    assert one.ask(turns[0].body) is None
    assert other.ask(turns[1].body) is None
    with pytest.raises(ReplayStopped, match="2 live turns"):
        one.ask(turns[2].body)


def test_what_another_process_has_spent_counts_too(tmp_path):
    turns, more = loop(), {"from_turn": 1, "model": "live", "max_cost_usd": 0.01}
    one, other = (Program(records(turns), Events(tmp_path / name), **more) for name in ("1.jsonl", "2.jsonl"))
    live = one.asked(turns[0].body)
    one.player.answer(live)
    live.turn.answer = Answer(model="claude-sonnet-4-5", usage=Usage(input=10, output=100_000))
    one.player._caps.settle()  # as when the process ends
    with pytest.raises(ReplayStopped, match="have cost"):
        other.ask(turns[1].body)
