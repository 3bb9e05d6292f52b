"""Live models against a fake server, scripts from files, retries and rate limits."""

from __future__ import annotations

import json
import threading

import pytest

from crowd import Crowd
from engine_runs import ANTHROPIC, CHAT, RESPONSES, Waits, call, calls, says, start
from fakellm import Call, FakeLLM, Scenario, Step
from looptape.replay.engine import Hooks, Policy
from looptape.replay.engine.models import limiter as limiting
from looptape.replay.engine.models.limiter import Limiter, exhausted
from looptape.replay.engine.models.live_anthropic import LiveAnthropic
from looptape.replay.engine.models.live_openai import LiveOpenAI
from looptape.replay.engine.models.protocol import ModelError
from looptape.replay.engine.models.scripted import Scripted, load
from looptape.replay.engine.waiting import Interrupted, Waiter
from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tracer.hook import instrumented

KEY = "sk-ant-" + "test-0123456789abcdefghij"
pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")  # the SDK's word on some model's age
QUICK = Policy(backoff=0.001, backoff_cap=0.002)


def search(q: str) -> str:
    """Looks something up."""
    return f"{q}: 1200"


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def steps(**more):
    return [Step(calls=[Call("search", {"q": "revenue"})], **more), Step(text="It is 84.")]


def live(server, api, name="s", model="claude-sonnet-4-5"):
    if api == ANTHROPIC:
        return LiveAnthropic(model, base_url=server.url(name))
    return LiveOpenAI(model, base_url=server.url(name) + "/v1")


@pytest.mark.parametrize("api", [ANTHROPIC, CHAT, RESPONSES])
def test_a_live_model_runs_the_loop_to_its_end(engine, api):
    with FakeLLM({"s": Scenario(steps())}) as server:
        outcome = engine.play(live(server, api), [search], begin=start(api))
        assert (outcome.reason, outcome.text, outcome.turns) == ("model", "It is 84.", 2)
        assert [e["status"] for e in server.log] == [200, 200]
    run = engine.run()
    assert [t.attempts[0].status for t in run.turns] == [200, 200]
    assert run.turns[0].request_id
    assert run.turns[0].usage.origin == "recorded"
    assert [c.result for c in run.turns[0].tool_calls] == ["revenue: 1200"]


@pytest.mark.parametrize("api", [ANTHROPIC, CHAT])
def test_where_every_client_is_recorded_the_loops_calls_are_recorded_once(engine, api):
    with instrumented(), FakeLLM({"s": Scenario(steps())}) as server:
        engine.play(live(server, api), [search], begin=start(api))
    assert len(engine.run().turns) == 2


def test_no_key_reaches_the_record(engine, tmp_path):
    with FakeLLM({"s": Scenario([Step(text=f"your key is {KEY}")])}) as server:
        engine.play(live(server, ANTHROPIC))
    for file in tmp_path.rglob("*.jsonl"):
        assert KEY not in file.read_text()


@pytest.mark.parametrize("api", [ANTHROPIC, CHAT])
def test_an_overloaded_model_is_asked_again_and_the_attempts_are_one_turn(engine, api):
    errors = [{"kind": "overloaded"}, {"kind": "rate_limit"}]
    with FakeLLM({"s": Scenario([Step(text="84", errors=errors)])}) as server:
        outcome = engine.play(live(server, api), begin=start(api))
        assert len(server.log) == 3
    assert (outcome.reason, outcome.turns) == ("model", 1)
    assert [e["attempt"] for e in engine.events("model_retry")] == [1, 2]
    (turn,) = engine.run().turns
    assert [a.status for a in turn.attempts] == [529, 429, 200]
    assert turn.attempts[1].wait_ms > 0


def test_a_refusal_for_what_was_asked_is_not_asked_again(engine):
    with FakeLLM(
        {"s": Scenario([Step(text="84", errors=[{"kind": "bad_request", "message": "no such tool"}])])}
    ) as server:
        outcome = engine.play(live(server, ANTHROPIC))
        assert len(server.log) == 1
    assert (outcome.reason, "no such tool" in outcome.detail) == ("model-error", True)


def test_retries_end_when_the_policy_says_so(engine):
    with FakeLLM({"s": Scenario([Step(errors=[{"kind": "server"}] * 9)])}) as server:
        outcome = engine.play(live(server, CHAT), policy=Policy(model_retries=2, backoff=0.001), begin=start(CHAT))
        assert len(server.log) == 3
    assert outcome.reason == "model-error"


def test_a_server_that_hangs_up_is_asked_again(engine):
    with FakeLLM({"s": Scenario([Step(text="84", errors=[{"disconnect": True}])])}) as server:
        assert engine.play(live(server, ANTHROPIC)).text == "84"
    assert [a.status for a in engine.run().turns[0].attempts] == [None, 200]


def test_a_request_for_a_long_answer_is_streamed_and_put_together(engine):
    with FakeLLM({"s": Scenario(steps())}) as server:
        outcome = engine.play(live(server, ANTHROPIC), [search], begin=start(max_tokens=64_000))
        assert (outcome.text, [e["body"].get("stream") for e in server.log]) == ("It is 84.", [True, True])


def test_too_long_a_prompt_is_told_from_other_refusals():
    with FakeLLM(
        {"s": Scenario([Step(errors=[{"kind": "too_long", "message": "prompt is too long: 9 > 8"}] * 2)])}
    ) as server:
        for api in (ANTHROPIC, CHAT):
            with pytest.raises(ModelError) as found:
                live(server, api).ask(start(api).body, api=api, turn=1, timeout=60)
            assert (found.value.too_long, found.value.transient) == (True, False)


def test_what_the_request_holds_is_sent_as_it_stands():
    with FakeLLM({"s": Scenario([Step(text="84")])}, strict=False) as server:
        body = {**start().body, "temperature": 0.25, "metadata": {"user_id": "u"}, "some_new_field": {"a": 1}}
        live(server, ANTHROPIC, model=None).ask(body, api=ANTHROPIC, turn=1, timeout=60)
        assert server.log[0]["body"] == body
        assert server.log[0]["headers"]["anthropic-version"]


def test_a_model_of_another_wire_format_is_refused_before_anything_runs(engine):
    with FakeLLM({"s": Scenario([Step(text="84")])}) as server:
        with pytest.raises(UsageError, match=r"speaks openai\.chat"):
            engine.play(live(server, ANTHROPIC), begin=start(CHAT))
        assert server.log == []
    assert engine.records("run_start") == []


def test_without_a_key_the_openai_model_says_what_to_set(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        LiveOpenAI("gpt-5")


# -- scripts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [False, True], ids=["list", "lines"])
def test_a_script_may_be_a_file(tmp_path, engine, lines):
    entries = [calls(call("search", q="a")), "84"]
    file = tmp_path / "script.json"
    file.write_text("\n".join(map(json.dumps, entries)) if lines else json.dumps(entries))
    model = load(str(file))
    assert engine.play(model, [search]).text == "84"
    assert model.spec() == {"kind": "scripted", "source": str(file)}


def test_a_script_that_is_no_json_is_refused_with_its_place(tmp_path):
    file = tmp_path / "script.json"
    file.write_text("answers: []")
    with pytest.raises(LooptapeError, match="neither a JSON list nor JSON Lines") as found:
        load(str(file))
    assert found.value.exit_code == 3


def test_a_missing_script_is_named():
    with pytest.raises(UsageError, match=r"no script nowhere\.json"):
        load("nowhere.json")


def test_a_script_may_answer_with_a_whole_body(engine):
    body = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "84"}], "usage": {"input_tokens": 3, "output_tokens": 2}}  # fmt: skip
    engine.play([body])
    assert engine.run().turns[0].response == body


def test_a_scripted_answer_claims_no_request_on_a_network(engine):
    engine.play([says("84")])
    assert engine.run().turns[0].attempts == ()


# -- limits ------------------------------------------------------------------------------------------------


def test_who_is_told_to_wait_makes_every_run_on_that_server_wait(engine):
    waits = Waits()
    shared = Limiter(clock=waits.clock)
    waiter = Waiter(waits.hooks())
    shared.refused(7.5)
    with shared.turn(waiter):
        pass
    assert waits.slept == [7.5]
    with shared.turn(waiter):
        pass
    assert waits.slept == [7.5]


def test_who_saw_that_nobody_waits_looks_again_when_another_is_refused_in_that_moment(engine, monkeypatch):
    waits = Waits()
    shared = Limiter(clock=waits.clock)
    look, refusals = shared.wait_seconds, [7.5]

    def refused_meanwhile():
        seconds = look()
        if refusals:
            shared.refused(refusals.pop())
        return seconds

    monkeypatch.setattr(shared, "wait_seconds", refused_meanwhile)
    with shared.turn(Waiter(waits.hooks())):
        assert waits.slept == [7.5]


def test_models_of_one_server_share_a_limiter_and_those_of_others_do_not():
    assert limiting.shared("openai http://a") is limiting.shared("openai http://a")
    assert limiting.shared("openai http://a") is not limiting.shared("openai http://b")


def test_a_refusal_halves_what_is_in_flight_and_good_answers_widen_it_again():
    shared = Limiter(8, clock=Waits().clock)
    shared.refused(0)
    assert shared.allowed == 4
    for _ in range(limiting.WIDEN_AFTER):
        shared.answered({})
    assert shared.allowed == 5


def test_no_more_requests_are_in_flight_than_allowed():
    shared, waiter = Limiter(2), Waiter(Hooks())
    crowd = Crowd(2)

    def ask():
        with shared.turn(waiter), crowd.inside():
            pass

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert crowd.most == 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}, 90.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1m"}, None),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2020-01-01T00:00:00Z",
            },
            0.0,
        ),
        ({}, None),
    ],
    ids=["minutes", "milliseconds", "some-left", "past", "none"],
)
def test_headers_that_say_nothing_is_left_are_obeyed(headers, seconds):
    assert exhausted(headers) == (pytest.approx(seconds) if seconds is not None else None)


def test_a_wait_for_the_limit_ends_with_the_runs_time(engine):
    waits = Waits()
    shared = Limiter(clock=waits.clock)
    shared.refused(600)
    waiter = Waiter(waits.hooks(), deadline=waits.now + 30)
    with pytest.raises(Interrupted), shared.turn(waiter):
        pass
    assert sum(waits.slept) == 30


def test_retry_after_of_the_model_is_obeyed_by_the_other_forks_too(engine):
    waits = Waits()
    shared = Limiter(clock=waits.clock)

    class Busy(Scripted):
        @property
        def limited_as(self):
            return "a server"

    model = Busy([{"error": {"status": 429, "message": "slow down", "retry_after": 20}}, says("84")])
    engine.play(model, policy=QUICK, hooks=waits.hooks(), limiter=shared)
    assert sum(waits.slept) == pytest.approx(20, abs=0.2)
    assert shared.allowed < 8


def test_a_stop_ends_a_fork_while_its_model_answers(engine):
    asked, over = threading.Event(), threading.Event()

    class Slow(Scripted):
        limited_as = "a server"

        def ask(self, body, **more):
            asked.set()
            over.wait(60)
            return super().ask(body, **more)

    hooks = Hooks()
    threading.Thread(target=lambda: (asked.wait(60), hooks.stop.set()), daemon=True).start()
    outcome = engine.play(Slow([says("late")]), hooks=hooks)
    over.set()
    assert (outcome.reason, outcome.turns) == ("user", 1)
    assert engine.run().turns[0].attempts[0].error == "stopped while the model answered"
