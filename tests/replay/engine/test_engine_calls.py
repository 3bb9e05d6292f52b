"""Calls are checked, timed, retried and told: each result stands with its call."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections import Counter

import pytest

from crowd import Crowd
from engine_runs import CHAT, RESPONSES, Waits, call, calls, says, start, told
from looptape.replay.engine import Policy
from looptape.replay.engine.toolbox import ToolError
from looptape.replay.engine.tools.registry import Registry


def search(q: str, limit: int = 3) -> str:
    """Looks something up."""
    return f"{q}: 1200 ({limit})"


@pytest.mark.parametrize("api", ["anthropic.messages", CHAT, RESPONSES])
def test_a_result_comes_back_with_its_call_in_every_wire_format(engine, api):
    outcome = engine.play([calls(call("search", "c1", q="revenue")), says("84")], [search], begin=start(api))
    assert (outcome.reason, outcome.status, outcome.text, outcome.turns) == ("model", "completed", "84", 2)
    run = engine.run()
    assert [c.result for c in run.turns[0].tool_calls] == ["revenue: 1200 (3)"]
    assert "c1" in json.dumps(run.requests[1].messages[-1])
    assert run.turns[0].tool_calls[0].timing == "measured"


def test_an_invalid_argument_is_told_with_its_name_and_a_retry_that_is_valid(engine):
    engine.play([calls(call("search", q=5, limit="x", extra=1)), says("ok")], [search])
    said = told(engine.run(), 1)
    assert said["error"] == "invalid_arguments"
    assert "5" in said["cause"]
    assert said["argument"] in ("q", "limit", "extra")
    assert set(said["retry"]) <= {"q", "limit"}
    assert search(**said["retry"])


def test_a_missing_argument_is_named(engine):
    engine.play([calls(call("search", limit=2)), says("ok")], [search])
    said = told(engine.run(), 1)
    assert (said["argument"], said["retry"]) == ("q", {"q": "...", "limit": 2})


def test_arguments_that_are_no_json_are_told_and_never_run(engine):
    ran = []

    def store(x: int) -> str:
        ran.append(x)
        return "stored"

    engine.play([calls({"name": "store", "arguments": '{"x": 1'}), says("ok")], [store], begin=start(CHAT))
    assert told(engine.run(), 1)["error"] == "malformed_arguments"
    assert ran == []


def test_an_argument_given_twice_is_ambiguous(engine):
    engine.play(
        [calls({"name": "search", "arguments": '{"q": "a", "q": "b"}'}), says("ok")], [search], begin=start(CHAT)
    )
    said = told(engine.run(), 1)
    assert (said["error"], said["argument"]) == ("ambiguous_call", "q")


def test_an_unknown_tool_is_told_with_the_nearest_name(engine):
    engine.play([calls(call("serach", q="a")), says("ok")], [search])
    said = told(engine.run(), 1)
    assert said["error"] == "unknown_tool"
    assert "search" in said["retry"]


def test_a_bare_name_that_two_namespaces_have_is_ambiguous_and_one_that_one_has_is_run(engine):
    tools = Registry({"web__find": search, "files__find": search, "files__read": search})
    engine.play([calls(call("find", q="a"), call("read", q="b"), call("files.read", q="c")), says("ok")], tools)
    run = engine.run()
    assert told(run, 1, 0)["error"] == "ambiguous_call"
    assert "files__find, web__find" in told(run, 1, 0)["cause"]
    assert told(run, 1, 1) == "b: 1200 (3)"
    assert told(run, 1, 2) == "c: 1200 (3)"


def test_a_schema_that_points_to_the_network_is_not_followed_and_said(engine):
    asked = []

    def answer(listener):
        with contextlib.suppress(OSError):
            while True:
                connection, address = listener.accept()
                asked.append(address)
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        port = listener.getsockname()[1]
        tools = [{"name": "search", "input_schema": {"$ref": f"http://127.0.0.1:{port}/schema.json"}}]
        outcome = engine.play([calls(call("search", q="a")), says("ok")], [search], begin=start(tools=tools))
    assert (outcome.reason, asked) == ("model", [])
    assert any("schema of search" in e["text"] for e in engine.events("note"))


def test_parallel_calls_run_together_and_a_failed_one_costs_the_others_nothing(engine):
    together = threading.Barrier(3, timeout=60)

    def meet(n: int) -> str:
        together.wait()
        if n == 1:
            raise ValueError("n may not be 1")
        return f"met {n}"

    engine.play([calls(*[call("meet", f"c{n}", n=n) for n in range(3)]), says("ok")], [meet])
    run = engine.run()
    assert [c.result if not c.is_error else "failed" for c in run.turns[0].tool_calls] == ["met 0", "failed", "met 2"]
    blocks = run.requests[1].messages[-1]["content"]
    assert [(b["tool_use_id"], b.get("is_error", False)) for b in blocks] == [
        ("c0", False),
        ("c1", True),
        ("c2", False),
    ]


def test_results_keep_the_order_of_the_calls_whatever_order_they_come_in(engine):
    gates = [threading.Event() for _ in range(4)]
    gates[3].set()

    def wait(n: int) -> str:
        assert gates[n].wait(60)
        if n:
            gates[n - 1].set()
        return f"r{n}"

    engine.play([calls(*[call("wait", f"c{n}", n=n) for n in range(4)]), says("ok")], [wait])
    blocks = engine.run().requests[1].messages[-1]["content"]
    assert [(b["tool_use_id"], b["content"]) for b in blocks] == [(f"c{n}", f"r{n}") for n in range(4)]


def test_no_more_calls_run_at_once_than_the_policy_says(engine):
    crowd = Crowd(2)

    def work(n: int) -> str:
        with crowd.inside():
            return str(n)

    engine.play([calls(*[call("work", f"c{n}", n=n) for n in range(6)]), says("ok")], [work], Policy(parallel=2))
    assert crowd.most == 2
    assert [c.result for c in engine.run().turns[0].tool_calls] == [str(n) for n in range(6)]


def test_a_call_that_does_not_end_in_time_is_left_behind_and_told(engine):
    gate = threading.Event()

    def hang() -> str:
        gate.wait(60)
        return "late"

    tools = [{"function": hang, "timeout": 0.05}]
    outcome = engine.play([calls(call("hang")), says("ok")], tools)
    gate.set()
    assert outcome.reason == "model"
    said = told(engine.run(), 1)
    assert said["error"] == "timed_out"
    assert "may still be running" in said["cause"]


def test_an_async_tool_is_awaited_and_cancelled_at_its_time_out(engine):
    import asyncio

    ended = threading.Event()

    async def quick(q: str) -> str:
        await asyncio.sleep(0)
        return q

    async def slow() -> str:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            ended.set()
            raise
        return "late"

    engine.play([calls(call("quick", q="now"), call("slow")), says("ok")], [quick, {"function": slow, "timeout": 0.05}])
    run = engine.run()
    assert told(run, 1, 0) == "now"
    assert told(run, 1, 1)["error"] == "timed_out"
    assert run.turns[0].tool_calls[1].error_class == "transient"
    assert ended.wait(60)


def failing(times: int, error: Exception, effect: str, counted: Counter, keyed: bool = False):
    """A tool that fails so often, then works."""

    def flaky(q: str) -> str:
        counted["calls"] += 1
        if counted["calls"] <= times:
            raise error
        return f"worked for {q}"

    def flaky_keyed(q: str, idempotency_key: str) -> str:
        counted[idempotency_key] += 1
        return flaky(q)

    return [{"name": "flaky", "function": flaky_keyed if keyed else flaky, "side_effect": effect}]


def test_a_transient_failure_of_a_reading_tool_is_tried_again_with_growing_jittered_waits(engine):
    counted, waits = Counter(), Waits()
    policy = Policy(backoff=1.0, call_retries=4)
    tools = failing(3, ConnectionError("reset"), "read", counted)
    engine.play([calls(call("flaky", q="a")), says("ok")], tools, policy, hooks=waits.hooks())
    assert counted["calls"] == 4
    assert [e["attempt"] for e in engine.events("tool_retry")] == [1, 2, 3]
    assert told(engine.run(), 1) == "worked for a"
    assert len(waits.slept) == 3
    assert all(base / 2 <= s <= base for base, s in zip((1, 2, 4), waits.slept, strict=True))
    assert all(base != s for base, s in zip((1, 2, 4), waits.slept, strict=True)), "not the same for all who wait"


def test_retry_after_is_waited_for_and_never_less(engine):
    counted, waits = Counter(), Waits()
    tools = failing(1, ToolError("busy", transient=True, retry_after=7.0), "read", counted)
    engine.play([calls(call("flaky", q="a")), says("ok")], tools, Policy(backoff=0.5), hooks=waits.hooks())
    assert len(waits.slept) == 1
    assert 7.0 <= waits.slept[0] < 7.2


class Refused(Exception):
    """As an HTTP library raises it."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        super().__init__(f"HTTP {status}")
        self.response = type("Response", (), {"status_code": status, "headers": headers})()


@pytest.mark.parametrize(
    ("status", "calls_made"),
    [(429, 2), (503, 2), (400, 1), (404, 1), (403, 1)],
    ids=["429", "503", "400", "404", "403"],
)
def test_http_failures_are_transient_or_permanent_by_their_status(engine, status, calls_made):
    counted, waits = Counter(), Waits()
    tools = failing(1, Refused(status, {"retry-after": "3"}), "read", counted)
    engine.play([calls(call("flaky", q="a")), says("ok")], tools, hooks=waits.hooks())
    assert counted["calls"] == calls_made
    assert (len(waits.slept) == 1 and waits.slept[0] >= 3) if calls_made == 2 else not waits.slept


def test_a_permanent_failure_is_fed_back_at_once(engine):
    counted, waits = Counter(), Waits()
    tools = failing(9, ValueError("q is no ticker"), "read", counted)
    engine.play([calls(call("flaky", q="a")), says("ok")], tools, hooks=waits.hooks())
    run = engine.run()
    assert (counted["calls"], waits.slept) == (1, [])
    assert "q is no ticker" in told(run, 1)["cause"]
    assert run.turns[0].tool_calls[0].error_class == "permanent"


@pytest.mark.parametrize("effect", ["mutate", "unknown"])
def test_a_tool_that_may_change_something_is_not_tried_again_without_a_key(engine, effect):
    counted = Counter()
    tools = failing(1, ConnectionError("reset"), effect, counted)
    engine.play([calls(call("flaky", q="a")), says("ok")], tools, hooks=Waits().hooks())
    assert counted["calls"] == 1
    said = told(engine.run(), 1)
    assert "not tried again" in said["retry"]


def test_with_an_idempotency_key_it_is_tried_again_with_the_same_key(engine):
    counted = Counter()
    tools = failing(2, ConnectionError("reset"), "mutate", counted, keyed=True)
    script = [calls(call("flaky", "c1", q="a")), calls(call("flaky", "c2", q="a")), says("ok")]
    outcome = engine.play(script, tools, hooks=Waits().hooks())
    del counted["calls"]
    assert dict(counted) == {f"{outcome.run}-1-c1": 3, f"{outcome.run}-2-c2": 1}, (
        "told by the call, so also after a resume"
    )
    assert "idempotency_key" not in json.dumps(engine.run().requests[0].tools)


def test_a_tools_error_is_short_and_holds_no_traceback_no_markup_no_control_codes_no_secret(engine):
    key = "sk-ant-" + "api03-abcdefghijklmnopqrstuvwxyz0123456789"

    def broken() -> str:
        trace = "Traceback (most recent call last):\n" + '  File "/srv/app/db.py", line 4, in q\n    run(x)\n' * 40
        raise RuntimeError(f"{trace}\x1b[31m<html><b>db</b></html> key={key} " + "x" * 3000)

    engine.play([calls(call("broken")), says("ok")], [broken])
    text = engine.run().turns[0].tool_calls[0].result
    assert len(text) < 700
    for bad in ("Traceback", 'File "', "\x1b", "\\u001b", "<html>", key):
        assert bad not in text


def test_calls_without_ids_get_some_and_it_is_said(engine):
    message = {"role": "assistant", "content": None, "tool_calls": [
        {"type": "function", "function": {"name": "search", "arguments": '{"q": "a"}'}},
        {"id": "", "type": "function", "function": {"name": "search", "arguments": '{"q": "b"}'}}]}  # fmt: skip
    body = {"id": "r1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    engine.play([body, says("ok")], [search], begin=start(CHAT))
    assert engine.events("call_ids_made") == [{"ids": ["call_1_1", "call_1_2"]}]
    told_ids = [(m["tool_call_id"], m["content"]) for m in engine.run().requests[1].messages if m["role"] == "tool"]
    assert told_ids == [("call_1_1", "a: 1200 (3)"), ("call_1_2", "b: 1200 (3)")]


def test_a_call_that_was_cut_never_runs(engine):
    ran = []

    def store(x: str) -> str:
        ran.append(x)
        return "stored"

    body = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "max_tokens",
            "content": [{"type": "tool_use", "id": "c1", "name": "store", "partial_json": '{"x": "a', "incomplete": True}]}  # fmt: skip
    outcome = engine.play([body], [store])
    assert (outcome.reason, outcome.status, ran) == ("model-limit", "limit", [])


def test_a_tool_that_asks_a_model_itself_is_recorded_inside_its_call(engine):
    import looptape

    def ask(q: str) -> str:
        with looptape.run("helper") as inner, inner.turn() as turn:
            turn.request(q)
            turn.response("yes", stop_reason="end_turn")
        return "asked"

    engine.play([calls(call("ask", "c1", q="a")), says("ok")], [ask])
    child = next(r for r in engine.runs() if r.name == "helper")
    assert (child.parent.kind, child.parent.call, child.parent.turn) == ("sub-agent", "c1", 1)
