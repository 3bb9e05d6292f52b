"""Steps from window to window: put together again they are the requests that were recorded, one by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import conversation_tape as talk
import long_tape
from looptape.tracer.importers import import_path
from looptape.tracer.store import Store, memory_store
from looptape.tracer.store.windows import Sent
from looptape.tracer.tape import blob

SAMPLES = sorted((Path(__file__).parents[3] / "sample_traces").glob("*.jsonl"))


def windows(store: Store, run: str) -> list[list[object]]:
    window: list[Sent] = []
    found = []
    for step in store.steps(run):
        assert step.count == len(window) - len(step.dropped) + len(step.added)
        window[step.kept : step.kept + len(step.dropped)] = step.added
        found.append([json.loads(s.text or "null") for s in window])
    return found


@pytest.mark.parametrize("sample", SAMPLES, ids=[s.stem for s in SAMPLES])
def test_the_steps_of_a_sample_make_the_request_of_every_turn(sample: Path) -> None:
    store = memory_store()
    for report in import_path(store, sample):
        for run in report.runs:
            made = windows(store, run)
            numbers = [t.number for t in store.turns(run)]
            assert len(made) == len(numbers)
            for number, window in zip(numbers, made, strict=True):
                assert window == list(store.request(run, number).messages)


def test_an_edit_in_the_middle_touches_only_its_message() -> None:
    messages = [talk.user("a"), talk.assistant(talk.text("b")), talk.user("c"), talk.user("d")]
    edited = [messages[0], talk.assistant(talk.text("B")), *messages[2:]]
    store = memory_store()
    store.ingest(talk.records([talk.Said(messages, [talk.text("1")]), talk.Said(edited, [talk.text("2")])]))
    second = store.steps("c" * 16)[1]
    assert second.kept == 1
    assert json.loads(second.added[0].text or "") == edited[1]
    assert windows(store, "c" * 16) == [messages, edited]


def test_messages_that_only_the_server_held_are_in_the_window() -> None:
    run, at = "d" * 16, talk.START
    out = [{"kind": "run_start", "run": run, "at": at, "source": "sdk"}]
    for number, words in enumerate(("one", "two"), 1):
        sent = blob(json.dumps({"role": "user", "content": words}))
        body = {
            "id": f"resp_{number}",
            "output": [{"type": "message", "role": "assistant", "content": [talk.text(f"to {words}")]}],
        }
        answer = blob(json.dumps(body))
        mode = {"mode": "full"} if number == 1 else {"mode": "previous_response", "base": 1}
        out += [sent, answer,
            {"kind": "turn_start", "run": run, "turn": number, "at": at, "keep": 0, "append": [sent["hash"]], "model": "gpt-5",
             "provider": "openai", "api": "openai.responses", **mode},
            {"kind": "turn_end", "run": run, "turn": number, "at": at, "status": "ok", "response": answer["hash"]},
        ]  # fmt: skip
    store = memory_store()
    store.ingest(out)
    made = windows(store, run)
    assert [m.get("content") for m in made[1]] == ["one", [talk.text("to one")], "two"]
    assert made[1] == list(store.request(run, 2).messages)


def test_what_was_said_is_the_same_as_in_whole_turns() -> None:
    store = memory_store()
    store.ingest(long_tape.records(turns=4, size=50))
    for light, whole in zip(store.said("a" * 16), store.turns("a" * 16), strict=True):
        for name in ("number", "model", "flags", "text", "thinking", "message_count", "started_at"):
            assert getattr(light, name) == getattr(whole, name)
        assert [(c.id, c.name, c.arguments_raw) for c in light.tool_calls] == [
            (c.id, c.name, c.arguments_raw) for c in whole.tool_calls
        ]
        assert (light.usage.context, light.usage.output) == (whole.usage.context, whole.usage.output)
