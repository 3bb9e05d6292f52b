"""A context over the window is handled by the policy that was named, and told each time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine_runs import ANTHROPIC, CHAT, call, calls, says, start
from looptape.replay.engine import Policy

APIS = [ANTHROPIC, CHAT]


def big(q: str) -> str:
    """Reads much."""
    return f"{q}: " + "x" * 8000


def counting(turns):
    """A model that calls so often, then answers; it counts four characters to a token."""

    def answer(body):
        size = sum(len(json.dumps(m)) for m in body["messages"]) // 4
        number = sum(m["role"] == "assistant" for m in body["messages"])
        usage = {"input_tokens": size, "output_tokens": 20, "prompt_tokens": size, "completion_tokens": 20}
        if "tools" not in body:
            return says("files a to e were read", usage=usage)
        if len(seen) < turns:
            seen.append(number)
            return calls(call("big", f"c{len(seen)}", q=f"file {len(seen)}"), usage=usage)
        return says("done", usage=usage)

    seen: list[int] = []
    return answer


def results_of(request):
    """Call id to content of every result in a request."""
    found = {}
    for message in request.messages:
        if message.get("role") == "tool":
            found[message["tool_call_id"]] = message["content"]
        for block in message["content"] if isinstance(message.get("content"), list) else []:
            if block.get("type") == "tool_result":
                found[block["tool_use_id"]] = block["content"]
    return found


def calls_of(request):
    """Ids of every call in a request."""
    found = []
    for message in request.messages:
        found += [c["id"] for c in message.get("tool_calls") or ()]
        content = message.get("content")
        found += [b["id"] for b in content if b.get("type") == "tool_use"] if isinstance(content, list) else []
    return found


@pytest.mark.parametrize("api", APIS)
def test_stop_ends_the_run_before_the_request_that_would_be_too_long(engine, api):
    policy = Policy(context="stop", window_tokens=10_000)
    outcome = engine.play(counting(9), [big], policy, begin=start(api))
    assert (outcome.reason, outcome.status) == ("context", "limit")
    assert "the window has 10000" in outcome.detail
    assert [e["policy"] for e in engine.events("context")] == ["stop"]


@pytest.mark.parametrize("api", APIS)
def test_drop_takes_stale_results_out_and_keeps_every_call_paired(engine, api):
    policy = Policy(context="drop", window_tokens=12_000, keep_results=2)
    outcome = engine.play(counting(8), [big], policy, begin=start(api))
    assert outcome.reason == "model"
    events = engine.events("context")
    assert events
    assert all(e["policy"] == "drop" and e["results"] and e["after"] < e["tokens"] for e in events)
    last = engine.run().requests[-1]
    found = results_of(last)
    assert set(found) == set(calls_of(last)) == {f"c{i}" for i in range(1, 9)}
    assert "was dropped to save context" in found["c1"]
    assert 'big({"q": "file 1"}' in found["c1"]
    assert found["c8"] == big("file 8")
    assert found["c7"] == big("file 7")


def test_offload_moves_bulky_results_into_files_and_leaves_their_head_and_the_files_name(engine, monkeypatch, tmp_path):
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "kept"))
    policy = Policy(context="offload", window_tokens=12_000, keep_results=1, bulky=5000)
    outcome = engine.play(counting(6), [big], policy)
    assert outcome.reason == "model"
    files = [Path(f) for e in engine.events("context") for f in e["files"]]
    assert len(files) == len(set(files)) >= 3
    assert files[0].read_text() == big("file 1")
    assert files[0].stat().st_mode & 0o077 == 0
    assert outcome.run in str(files[0])
    told = results_of(engine.run().requests[-1])["c1"]
    assert str(files[0]) in told
    assert "file 1: xxx" in told
    assert len(told) < 1500


def test_no_file_of_an_earlier_offload_is_written_over(engine, monkeypatch, tmp_path):
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "kept"))
    turns = [range(4), *([n] for n in range(4, 9))]  # four at once, then one by one

    def model(body):
        usage = {"input_tokens": sum(len(json.dumps(m)) for m in body["messages"]) // 4, "output_tokens": 20}
        wanted = next(rest, None)
        return calls(*(call("big", f"c{n}", q=f"file {n}") for n in wanted), usage=usage) if wanted else says("done")

    rest = iter(turns)
    policy = Policy(context="offload", window_tokens=6_000, keep_results=1, bulky=5000)
    assert engine.play(model, [big], policy).reason == "model"
    files = [Path(f) for e in engine.events("context") for f in e["files"]]
    assert len(files) >= 6
    assert [f.read_text() for f in files] == [big(f"file {n}") for n in range(len(files))]


@pytest.mark.parametrize("api", APIS)
def test_summarise_lets_the_model_put_the_middle_into_words(engine, api):
    policy = Policy(context="summarise", window_tokens=12_000, keep_results=1)
    outcome = engine.play(counting(7), [big], policy, begin=start(api))
    assert outcome.reason == "model"
    events = engine.events("context")
    assert events[0]["policy"] == "summarise"
    assert events[0]["summary"] == "files a to e were read"
    runs = engine.runs()
    main = next(r for r in runs if r.id == outcome.run)
    last = main.requests[-1]
    assert last.messages[0]["content"].startswith("What is 7%")
    assert any("files a to e were read" in json.dumps(m) for m in last.messages)
    assert set(results_of(last)) == set(calls_of(last))
    helpers = [r for r in runs if r.id != outcome.run]
    assert {r.parent.run for r in helpers} == {outcome.run}, "the summary's own call is recorded with the run"
    assert outcome.tokens > sum((t.usage.context or 0) + (t.usage.output or 0) for t in main.turns)


def test_what_no_policy_can_bring_down_ends_the_run_and_says_so(engine):
    policy = Policy(context="drop", window_tokens=3_000, keep_results=3)
    outcome = engine.play(counting(5), [big], policy)
    assert outcome.reason == "context"
    assert "nothing could be taken out" in outcome.detail


def test_a_refusal_as_too_long_is_handled_once_by_the_policy(engine):
    script = [
        *[calls(call("big", f"c{i}", q=f"file {i}")) for i in range(1, 5)],
        {"error": {"status": 400, "message": "prompt is too long: 9 tokens > 8", "too_long": True}},
        says("done"),
    ]
    outcome = engine.play(script, [big], Policy(context="drop", keep_results=1))
    assert (outcome.reason, outcome.text) == ("model", "done")
    assert [e["why"] for e in engine.events("context")] == ["prompt is too long: 9 tokens > 8"]
    run = engine.run()
    assert [t.status for t in run.turns] == ["ok"] * 4 + ["error", "ok"]
    assert "was dropped" in results_of(run.requests[-1])["c1"]


def test_a_refusal_as_too_long_with_the_stop_policy_ends_it(engine):
    script = [{"error": {"status": 400, "message": "prompt is too long", "too_long": True}}]
    outcome = engine.play(script, [big])
    assert (outcome.reason, outcome.detail.startswith("prompt is too long")) == ("context", True)
    assert len(engine.events("context")) == 1
