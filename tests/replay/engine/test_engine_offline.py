"""A recorded run is replayed without its program: every next request is made anew and held against the record."""

from __future__ import annotations

import copy
import json
import threading

import pytest

import small_tape
from engine_runs import CHAT, RESPONSES, call, calls, says, start
from fakellm import Call, FakeLLM, Scenario, Step
from looptape.replay.engine.offline import replay_recorded, replay_run
from looptape.replay.player import tape_runs
from looptape.replay.player.settings import ReplaySettings
from looptape.tracer.errors import UsageError
from looptape.tracer.store import memory_store
from looptape.tracer.tape import blob
from testdata import REPOSITORY

TAPES = sorted((REPOSITORY / "sample_traces").glob("*.jsonl"))
OFFLINE = ReplaySettings()


def search(q: str) -> str:
    """Looks something up."""
    return f"{q}: 1200"


def replayed(records, settings=OFFLINE):
    """Id of the new run and verdict of records."""
    return replay_recorded(tape_runs.read(list(records)), settings)


def changed(records, what, change):
    """Records in which the text of one blob is another; everything that names it names the new one."""
    made = copy.deepcopy(list(records))
    (old,) = [r for r in made if r["kind"] == "blob" and what in r["text"]]
    new = blob(change(old["text"]))
    text = json.dumps(made).replace(old["hash"], new["hash"])
    return [new if r["kind"] == "blob" and r["hash"] == new["hash"] else r for r in json.loads(text)]


@pytest.mark.parametrize("tape", TAPES, ids=lambda p: p.name.partition(".")[0])
def test_every_sample_trace_comes_out_as_recorded(engine, tape):
    recorded = tape_runs.read(tape)
    run, verdict = replay_recorded(recorded, OFFLINE)
    assert verdict.ok, verdict.lines()
    assert verdict.served == verdict.recorded
    assert not verdict.unconsumed
    assert verdict.network_requests == 0
    replays = engine.runs()
    assert run in {r.id for r in replays}
    assert {r.source for r in replays} == {"replay"}
    assert all(t.inherited for r in replays for t in r.turns if t.status == "ok"), "nothing costs a second time"
    assert next(r for r in replays if r.id == run).parent.run == recorded.roots[0].id


def test_a_stored_run_is_replayed_by_its_id(engine):
    store = memory_store()
    store.ingest(small_tape.records())
    run, verdict = replay_run(store, small_tape.RUN, OFFLINE)
    assert verdict.ok
    assert (verdict.served.model, verdict.served.tools) == (2, 1)
    assert run != small_tape.RUN


def test_two_replays_have_the_same_digest(engine):
    assert replayed(small_tape.records())[1].digest == replayed(small_tape.records())[1].digest


@pytest.mark.parametrize(
    ("what", "old", "new", "path"),
    [
        ('"tool_result"', "revenue: 1200", "revenue: 9999", "$.messages[2].content"),
        ('{"role": "assistant"', "I look it up.", "I guess.", "$.messages[1].content"),
        ('{"role": "assistant"', '{"q": "revenue"}', '{"q": "profit"}', "$.messages[1].content"),
    ],
    ids=["result", "words", "arguments"],
)
def test_a_message_that_no_answer_and_no_result_explains_is_the_divergence(engine, what, old, new, path):
    records = small_tape.records()
    # the tool was wrapped: what it gave is known beside what the model was told
    place = {"run": small_tape.RUN, "turn": 1, "call": "c1"}
    at = next(i for i, r in enumerate(records) if r["kind"] == "turn_end") + 1
    records[at:at] = [
        {"kind": "call_start", **place, "name": "search", "at": small_tape.START, "origin": "live"},
        {"kind": "call_end", **place, "at": small_tape.START, "is_error": False, "result": "revenue: 1200", "state": "done"},
    ]  # fmt: skip
    assert replayed(records)[1].ok
    _, verdict = replayed(changed(records, what, lambda text: text.replace(old, new)))
    assert not verdict.ok
    assert verdict.diverged["turn"] == 2
    assert verdict.diverged["path"].startswith(path)


def test_a_dropped_message_is_the_divergence(engine):
    records = small_tape.records()
    second = next(r for r in records if r["kind"] == "turn_start" and r["turn"] == 2)
    second["append"] = second["append"][1:]
    _, verdict = replayed(records)
    assert not verdict.ok
    assert verdict.diverged["turn"] == 2


def test_words_of_the_user_between_two_turns_are_the_recordings(engine):
    records = small_tape.records()
    more = blob(json.dumps({"role": "user", "content": "And 8%?"}))
    answer = next(r for r in records if r["kind"] == "turn_end" and r["turn"] == 2)
    said = json.loads(next(r["text"] for r in records if r.get("hash") == answer["response"]))["content"]
    echo = blob(json.dumps({"role": "assistant", "content": said}))
    second = next(r for r in records if r["kind"] == "turn_start" and r["turn"] == 2)
    third = {**second, "turn": 3, "base": 2, "keep": 3, "append": [echo["hash"], more["hash"]], "user_turn": True}
    end = {**answer, "turn": 3}
    _, verdict = replayed([*records[:-1], echo, more, third, end, records[-1]])
    assert verdict.ok, verdict.lines()
    assert verdict.served.model == 3


@pytest.mark.parametrize("api", ["anthropic.messages", CHAT, RESPONSES])
def test_runs_of_the_loop_itself_are_replayed(engine, api):
    script = [calls(call("search", "c1", q="a"), call("search", "c2", q=5), call("nothing", "c3")), says("84")]
    outcome = engine.play(script, [search], begin=start(api))
    store = memory_store()
    engine.home.end()
    store.ingest(engine.home.records())
    engine.home.recorder = type(engine.home.recorder)(type(engine.home.recorder.journal)(engine.home.path))
    _, verdict = replay_recorded(tape_runs.read(_exported(store, outcome.run)), OFFLINE, recorder=engine.home.recorder)
    assert verdict.ok, verdict.lines()


def _exported(store, run):
    from looptape.tracer.store.export import records_of

    return list(records_of(store, run))


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_parallel_calls_of_a_real_client_are_replayed_without_a_request(engine, stream):
    import anthropic

    import looptape

    scenario = Scenario([Step(calls=[Call("search", {"q": n}) for n in "abc"]), Step(text="done")])
    with FakeLLM({"s": scenario}) as server:
        client = looptape.wrap(anthropic.Anthropic(base_url=server.url("s"), api_key="test"))
        messages = [{"role": "user", "content": "go"}]
        tools = [{"name": "search", "input_schema": {"type": "object"}}]
        while True:
            asked = {"model": "claude-test-1", "max_tokens": 100, "messages": messages, "tools": tools}
            if stream:
                with client.messages.stream(**asked) as events:
                    answer = events.get_final_message()
            else:
                answer = client.messages.create(**asked)
            messages.append({"role": "assistant", "content": answer.content})
            results = [{"type": "tool_result", "tool_use_id": b.id, "content": b.input["q"] * 3}
                       for b in answer.content if b.type == "tool_use"]  # fmt: skip
            if not results:
                break
            messages.append({"role": "user", "content": results})
        asked_for = len(server.log)
        engine.home.end()
        recorded = tape_runs.read(engine.home.records())
        _, verdict = replay_recorded(recorded, OFFLINE)
        assert verdict.ok, verdict.lines()
        assert (verdict.served.model, verdict.served.tools, len(server.log)) == (2, 3, asked_for)


@pytest.mark.parametrize(
    "settings",
    [ReplaySettings(model="live"), ReplaySettings(tools="live"), ReplaySettings(from_turn=2), ReplaySettings(on_miss="live"),
     ReplaySettings(tool={"search": "live"})],
    ids=["model", "tools", "from", "miss", "tool"],
)  # fmt: skip
def test_what_is_live_needs_a_fork_and_is_refused_before_anything_runs(engine, settings):
    with pytest.raises(UsageError, match="replayed whole"):
        replayed(small_tape.records(), settings)
    assert engine.records("run_start") == []


def test_nobody_stands_in_for_the_model_afterwards(engine):
    from looptape.tracer import substitute

    before = set(threading.enumerate())
    replayed(small_tape.records())
    assert substitute.installed() is None
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()
