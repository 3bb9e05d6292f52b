"""`looptape.replaying()` in this process: what it answers, what it leaves as it was, and that nothing is ever live unasked."""

import os
import random
import threading
import time

import pytest

import looptape
from fakellm import Call, FakeLLM, Scenario, Step
from looptape.replay.player import order
from looptape.replay.player.stops import ReplayMismatch
from looptape.tracer import hook, process, substitute
from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tracer.store import Filter, open_store
from looptape.tracer.tape import blob, header, line

httpx2 = pytest.importorskip("httpx2")
BODY = {"model": "acme-large-1", "max_tokens": 100, "messages": [{"role": "user", "content": "Review case 0001"}]}


def ask(client, url, **more):
    reply = client.post(f"{url}/v1/messages", json={**BODY, **more})
    reply.raise_for_status()
    return reply.json()["content"]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(hook._wanted, "always", 0)  # another test may have called instrument()
    former = process.replace(None)
    yield tmp_path / "home"
    if process.recorder() is not None:
        process.recorder().at_exit()
    process.replace(former)


@pytest.fixture
def server():
    with FakeLLM({"a": Scenario([Step(text="hello")])}) as running:
        yield running


def recorded(home, server, name="one"):
    """Records one call through a wrapped client; the answer's blocks."""
    with looptape.run(name), httpx2.Client() as client:
        said = ask(looptape.wrap(client), server.url("a"))
    process.recorder().at_exit()
    process.replace(None)
    server.log.clear()
    return said


def runs(home):
    with open_store(home) as store:
        return sorted(store.runs(Filter(limit=0, include_empty=True)), key=lambda r: r.started_at)


def test_any_client_of_the_process_is_answered_and_afterwards_none(home, server):
    said = recorded(home, server)
    with httpx2.Client() as early:
        with looptape.replaying("one") as tape:
            assert ask(early, server.url("a")) == said
            with httpx2.Client() as late, pytest.raises(ReplayMismatch):
                ask(late, server.url("a"))  # once more is once too often
        assert server.log == []
        assert tape.verdict.served.model == 1
        assert substitute.installed() is None
        assert ask(early, server.url("a")) == said  # live again
        assert len(server.log) == 1
    sources = [r.source for r in runs(home)]
    assert sources == [
        "sdk",
        "replay",
        "replay",
    ]  # the one that missed is a run too; the last call was not even recorded


def test_the_new_run_knows_its_parent_and_is_named_by_the_tape(home, server):
    recorded(home, server)
    with looptape.replaying("one") as tape, httpx2.Client() as client:
        ask(client, server.url("a"))
    process.recorder().at_exit()
    old, new = runs(home)
    assert (tape.run, tape.runs) == (new.id, (new.id,))
    assert (new.source, new.parent.run, new.parent.turn, new.parent.kind) == ("replay", old.id, 1, "fork")
    assert new.cost_usd in (None, 0)


def test_into_another_store_leaves_this_one_alone(home, server, tmp_path):
    recorded(home, server)
    with looptape.replaying("one", into=tmp_path / "other") as tape, httpx2.Client() as client:
        ask(client, server.url("a"))
    assert [r.id for r in runs(tmp_path / "other")] == [tape.run]
    assert len(runs(home)) == 1


@pytest.mark.parametrize("setting", ["LOOPTAPE", "LOOPTAPE_CONTENT"])
def test_with_recording_off_it_replays_and_keeps_nothing(home, server, monkeypatch, setting):
    said = recorded(home, server)
    monkeypatch.setenv(setting, "off" if setting == "LOOPTAPE" else "none")
    with looptape.replaying("one") as tape, httpx2.Client() as client:
        assert ask(client, server.url("a")) == said
    assert tape.verdict.ok, tape.verdict.lines()
    assert os.environ[setting] in ("off", "none")
    assert server.log == []
    assert len(runs(home)) == 1


def test_a_miss_names_path_values_nearest_and_how_to_record_again(home, server):
    recorded(home, server)
    with pytest.raises(ReplayMismatch) as caught, looptape.replaying("one") as tape, httpx2.Client() as client:
        ask(client, server.url("a"), messages=[{"role": "user", "content": "Review case 0002"}])
    miss = caught.value
    assert (miss.turn, miss.path) == (1, "$.messages[0].content")
    assert ("0001" in miss.recorded, "0002" in miss.got) == (True, True)
    assert miss.nearest
    for part in ("messages[0].content", "0001", "0002", "looptape record"):
        assert part in str(miss)
    assert not isinstance(miss, Exception)  # an SDK would retry it and call it a connection error
    assert tape.verdict.diverged["path"] == "$.messages[0].content"
    assert server.log == []


def test_a_program_that_asks_nothing_has_a_bad_verdict(home, server):
    recorded(home, server)
    with looptape.replaying("one") as tape:
        pass
    assert not tape.verdict.ok
    assert tape.verdict.unconsumed.model == 1
    assert tape.run is None


def test_the_network_is_closed_in_the_block_and_open_after_it(home, server):
    recorded(home, server)
    with looptape.replaying("one") as tape, httpx2.Client(trust_env=False) as client:
        ask(client, server.url("a"))
        with pytest.raises(httpx2.ConnectError, match="closed to the network"):
            client.get("http://203.0.113.7/")
    assert tape.verdict.ok
    with looptape.replaying("one", from_turn=1, model="live") as tape, httpx2.Client() as client:
        ask(client, server.url("a"))
    assert len(server.log) == 1
    assert tape.verdict.live.model == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "empty"),
        (line(header()), ""),
        (b'{"kind": "header", "format": "looptape", "version": 99}\n', "version"),
        (line(header()) + line(blob("x"))[:-9], "line 2"),
    ],
    ids=["empty", "only a header", "newer version", "truncated"],
)
def test_an_unusable_recording_opens_nothing(home, tmp_path, text, says):
    (tmp_path / "t.tape.jsonl").write_bytes(text)
    entered = []
    with (
        pytest.raises(LooptapeError, match="cannot be replayed") as caught,
        looptape.replaying(tmp_path / "t.tape.jsonl"),
    ):
        entered.append(1)
    assert (caught.value.exit_code, entered) == (3, [])
    assert says in str(caught.value)
    assert substitute.installed() is None


def test_an_unknown_recording_opens_nothing(home, tmp_path):
    for name in ("nowhere", tmp_path / "nowhere.tape.jsonl"):
        with pytest.raises(UsageError), looptape.replaying(name):
            raise AssertionError


def test_a_tape_is_replayed_once(home, server):
    recorded(home, server)
    tape = looptape.replaying("one")
    with tape, httpx2.Client() as client:
        ask(client, server.url("a"))
    with pytest.raises(UsageError, match="is over"), tape:
        pass


def parallel_tape(folder):
    """Two calls of `a` and one of `b` in one turn; `b` was done first, then `a` with 1, then `a` with 2."""
    calls = [("t1", "a", {"x": 1}, "ra", 2), ("t2", "b", {"x": 1}, "rb", 1), ("t3", "a", {"x": 2}, "ra2", 3)]
    from looptape.tracer.journal import Journal
    from looptape.tracer.recorder import Recorder

    recorder = Recorder(Journal(folder))
    former = process.replace(recorder)
    release = {i: threading.Event() for i in range(1, 5)}

    def body(name):
        def tool(x):
            mine = next(c for c in calls if c[1] == name and c[2]["x"] == x)
            assert release[mine[4]].wait(60)
            release[mine[4] + 1].set()
            return mine[3]

        tool.__name__ = name
        return tool

    release[1].set()

    steps = [Step(calls=[Call(name, args, call) for call, name, args, _, _ in calls]), Step(text="done")]
    with FakeLLM({"a": Scenario(steps)}) as server:
        loop(server.url("a"), {n: looptape.tool(body(n)) for n in "ab"})
    recorder.at_exit()
    process.replace(former)


def loop(url, tools, pause=lambda: None):
    """The parallel loop under threads; the whole conversation."""
    messages = [{"role": "user", "content": "go"}]
    with looptape.run("parallel"), httpx2.Client() as client:
        looptape.wrap(client)
        while True:
            said = ask(client, url, messages=messages)
            messages.append({"role": "assistant", "content": said})
            calls = [b for b in said if b["type"] == "tool_use"]
            if not calls:
                return messages
            results, done = {}, []

            def work(call, results=results, done=done):
                pause()
                results[call["id"]] = tools[call["name"]](**call["input"])
                done.append(call["id"])

            threads = [threading.Thread(target=work, args=(c,)) for c in calls]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            content = [{"type": "tool_result", "tool_use_id": c["id"], "content": results[c["id"]]} for c in calls]
            messages += [{"role": "user", "content": content}]


def test_parallel_calls_pair_the_same_in_every_repeat_under_threads(home, tmp_path, monkeypatch):
    monkeypatch.setattr(order, "PATIENCE", 60.0)  # no pause of a busy machine is taken for a call that never comes
    parallel_tape(home)
    bodies = []

    def never(name):
        def tool(x):
            bodies.append(name)

        tool.__name__ = name
        return looptape.tool(tool)

    chance = random.Random(3)
    found = set()
    for number in range(15):
        with looptape.replaying("parallel", into=tmp_path / str(number)) as tape:
            messages = loop(
                "http://127.0.0.1:9", {n: never(n) for n in "ab"}, lambda: time.sleep(chance.random() / 200)
            )
        assert tape.verdict.ok, tape.verdict.lines()
        results = tuple((r["tool_use_id"], r["content"]) for r in messages[2]["content"])
        found.add((results, tape.verdict.digest))
    assert len(found) == 1
    assert found.pop()[0] == (("t1", "ra"), ("t2", "rb"), ("t3", "ra2"))
    assert bodies == []


def test_a_forked_process_is_not_given_what_its_parent_was_given(home, tmp_path):
    def ask_twice(url, again):
        with looptape.run("twice"), httpx2.Client() as client:
            first = ask(client, url)[0]["text"]
            return first, again(lambda: ask(client, url)[0]["text"])

    def forked(work):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, work().encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with os.fdopen(reading) as said:
            return said.read()

    looptape.instrument()
    with FakeLLM({"a": Scenario([Step(text="one"), Step(text="two")])}) as server:
        assert ask_twice(server.url("a"), lambda work: work()) == ("one", "two")
        process.recorder().at_exit()
        process.replace(None)
        server.log.clear()
        with looptape.replaying("twice", into=tmp_path / "new") as tape:
            assert ask_twice(server.url("a"), forked) == ("one", "two")
        assert server.log == []
    assert tape.verdict.ok, tape.verdict.lines()
    assert tape.verdict.served.model == 2
