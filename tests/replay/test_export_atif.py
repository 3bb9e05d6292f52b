"""A run as an ATIF trajectory: valid by the format's own models, and back again up to what docs/formats.md lists."""

from __future__ import annotations

import io
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import small_tape
from commandline import looptape
from corpus_counts import entries
from examples import examples
from looptape.replay.export_atif import gather, text, trajectory
from looptape.tracer.importers import import_path
from looptape.tracer.importers.builder import RunBuilder
from looptape.tracer.importers.context import Context, Source
from looptape.tracer.importers.report import Notes
from looptape.tracer.importers.trajectories import atif
from looptape.tracer.model import Usage
from looptape.tracer.providers import openai_chat
from looptape.tracer.store import Filter, Store, memory_store
from testdata import require


def _valid(value: dict[str, Any]) -> None:
    """By the pydantic models of the atif package, where that is installed."""
    models = pytest.importorskip("atif", reason="the atif package (extra dev) is not installed")
    models.Trajectory.model_validate(value)


def _exported(store: Store, run: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text(trajectory(gather(store, store.run(run)))))
    return value


def test_a_run_of_another_api_becomes_steps_one_for_each_turn() -> None:
    with memory_store() as store:
        store.ingest(small_tape.records(thinking="hm", agent="analyst", session="S"))
        value = _exported(store, small_tape.RUN)

    _valid(value)
    assert [s["source"] for s in value["steps"]] == ["system", "user", "agent", "agent"]
    assert [s["step_id"] for s in value["steps"]] == [1, 2, 3, 4]
    turn = value["steps"][2]
    assert (turn["message"], turn["reasoning_content"], turn["llm_call_count"]) == ("I look it up.", "hm", 1)
    assert turn["tool_calls"] == [{"tool_call_id": "c1", "function_name": "search", "arguments": {"q": "revenue"}}]
    result = turn["observation"]["results"][0]
    assert (result["source_call_id"], result["content"]) == ("c1", "revenue: 1200")
    assert (turn["metrics"]["prompt_tokens"], turn["metrics"]["cached_tokens"]) == (1300, 100)
    assert value["final_metrics"]["total_prompt_tokens"] == 2900
    assert value["agent"]["tool_definitions"][0]["function"]["parameters"] == {"type": "object"}
    assert (value["trajectory_id"], value["session_id"]) == (small_tape.RUN, "S")


def test_what_is_not_known_is_left_out_and_cut_arguments_are_kept_beside() -> None:
    run = RunBuilder("a" * 16, api=openai_chat.API, source="x")
    call = {"id": "", "function": {"name": "f", "arguments": '{"a": '}}
    run.turn(response={"choices": [{"message": {"content": None, "tool_calls": [call, call]}}]})
    run.end()
    with memory_store() as store:
        store.ingest(run.drain())
        value = _exported(store, run.run)

    _valid(value)
    (step,) = value["steps"]
    assert not {"timestamp", "metrics", "observation", "model_name"} & set(step)
    assert [c["tool_call_id"] for c in step["tool_calls"]][:1] == ["turn-1-call-1"]
    assert step["tool_calls"][0]["arguments"] == {}
    assert step["tool_calls"][0]["extra"]["looptape"] == {"arguments_raw": '{"a": '}


def test_a_failed_call_is_still_one_when_it_comes_back() -> None:
    records = small_tape.records(is_error=True, result="no")
    next(r for r in records if r["kind"] == "call_seen")["error_class"] = "denied"
    with memory_store() as store, memory_store() as other:
        store.ingest(records)
        (back,) = _imported(other, _exported(store, small_tape.RUN))
        (call,) = other.turns(back.id)[0].tool_calls
    assert (back.errors, call.is_error, call.error_class, call.result) == (1, True, "denied", "no")


def test_images_become_parts_and_blocks_of_text_one_text() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    told = {"type": "text", "text": "seen"}
    for result, wanted in (
        ([told, told], "seenseen"),
        (
            [told, image],
            [told, {"type": "image", "source": {"media_type": "image/png", "path": "data:image/png;base64,AAAA"}}],
        ),
    ):
        with memory_store() as store:
            store.ingest(small_tape.records(result=result))
            value = _exported(store, small_tape.RUN)
        _valid(value)
        assert value["steps"][2]["observation"]["results"][0]["content"] == wanted


def test_sub_agents_are_embedded_and_come_back_as_child_runs() -> None:
    parent = {"run": small_tape.RUN, "turn": 1, "call": "c1", "kind": "sub-agent"}
    with memory_store() as store, memory_store() as other:
        store.ingest([*small_tape.records(), *small_tape.records(run="b" * 16, parent=parent)])
        value = _exported(store, small_tape.RUN)
        _valid(value)
        runs = _imported(other, value)
        assert (runs[0].turns, runs[1].parent.run, runs[1].parent.call) == (2, runs[0].id, "c1")
    assert value["steps"][2]["observation"]["results"][0]["subagent_trajectory_ref"] == [{"trajectory_id": "b" * 16}]


def test_the_command_writes_a_run_and_some_of_its_turns(tmp_path: Path) -> None:
    tape = small_tape.write(tmp_path / "x.tape.jsonl", small_tape.records())
    whole = looptape("export", str(tape), "--to", "atif")
    part = looptape("export", f"{tape}:2", "--to", "atif")

    assert (whole.code, part.code) == (0, 0)
    assert whole.json["schema_version"] == "ATIF-v1.8"
    assert [s["message"] for s in part.json["steps"] if s["source"] == "agent"] == ["It is 84."]
    assert part.json["notes"] == "Turns 2 to 2 of a run with 2."
    _valid(part.json)


# -- there and back -----------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
SOME = st.text("abc é\n", min_size=1, max_size=8).map(lambda t: f"x{t}x")  # the store and ATIF have no empty thoughts
JSON = st.dictionaries(SOME, st.none() | st.booleans() | st.integers(-9, 9) | WORDS, max_size=3)
NUMBERS = itertools.count(1)  # one pair of stores for all examples: every run has an id of its own
TIMES = st.integers(1_700_000_000_000_000, 1_800_000_000_000_000)
END = 1_900_000_000_000_000
COUNTS = st.none() | st.integers(0, 10_000)


@st.composite
def runs(draw: st.DrawFn) -> RunBuilder:
    """A run with everything that a trajectory can hold."""
    facts = {n: draw(st.none() | SOME) for n in ("title", "agent", "project", "session", "task", "git_commit")}
    run = RunBuilder(
        f"{next(NUMBERS):016x}",
        api=openai_chat.API,
        source="x",
        started_at=draw(st.none() | TIMES),
        name=draw(SOME),
        **facts,
    )
    if draw(st.booleans()):
        run.message({"role": draw(st.sampled_from(["system", "developer"])), "content": draw(SOME)})
    for number in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(0, 2))):
            run.message({"role": "user", "content": draw(SOME)}, prompt=draw(st.booleans()))
        _turn(draw, run, number)
    run.update(outcome={"verdict": draw(SOME), "score": 0.5}, tags={"k": draw(SOME)})
    run.end(
        draw(st.sampled_from(["completed", "failed", "limit", "halted"])),
        draw(st.none() | SOME),
        draw(st.none() | st.just(END)),
    )
    return run


def _turn(draw: st.DrawFn, run: RunBuilder, number: int) -> None:
    calls = [
        {"id": f"c{number}{i}", "type": "function", "function": {"name": draw(SOME), "arguments": json.dumps(a)}}
        for i, a in enumerate(draw(st.lists(JSON, max_size=2)))
    ]
    status = draw(st.sampled_from(["ok", "ok", "interrupted"]))
    message: dict[str, Any] = {"role": "assistant", "content": draw(WORDS if status == "ok" else SOME)}
    if thought := draw(st.none() | SOME):
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    usage = Usage(*(draw(COUNTS) for _ in range(5)), None, origin="recorded")
    stop = draw(st.none() | SOME)
    began = draw(st.none() | TIMES)
    run.turn(
        message=message,
        response={
            "id": draw(st.none() | SOME),
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": stop}],
        },
        usage=usage if usage.input is not None and usage.output is not None else Usage(),
        at=began,
        ended_at=None if began is None else began + 7,
        model="m",
        status=status,
        flags=draw(st.lists(SOME, max_size=1)),
        inherited=draw(st.booleans()),
        reported_cost_usd=draw(st.none() | st.just(0.25)),
    )
    for call in calls:
        if draw(st.booleans()):
            failed = draw(st.none() | st.booleans())
            seen = {"role": "tool", "tool_call_id": call["id"], "content": draw(WORDS)}
            run.result(
                call["id"], message=seen, path="$.content", is_error=failed, error_class="denied" if failed else None
            )
        if draw(st.booleans()):
            run.event(draw(SOME), draw(st.none() | TIMES), detail_of=draw(SOME))


def _imported(store: Store, value: dict[str, Any]) -> list[Any]:
    notes = Notes()
    records = list(atif.records(Source("-", stream=io.BytesIO(text(value).encode())), notes, Context()))
    assert store.ingest(records).bad == []
    assert (notes.skipped, notes.unknown) == ([], {})
    return [store.run(r) for r in notes.runs]


def _kept(store: Store, run: str) -> dict[str, Any]:
    """What survives the way there and back."""
    one = store.run(run)
    names = (
        "name",
        "title",
        "agent",
        "project",
        "session",
        "task",
        "status",
        "reason",
        "git_commit",
        "turns",
        "tool_calls",
        "errors",
    )
    turns = [
        {
            **{
                n: getattr(t, n)
                for n in ("text", "thinking", "model", "stop_reason", "status", "response_id", "inherited")
            },
            **{n: getattr(t, n) for n in ("user_turn", "started_at", "ended_at", "flags", "reported_cost_usd")},
            "usage": [
                getattr(t.usage, n) for n in ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
            ],
            "calls": [(c.id, c.name, c.arguments, c.result, c.is_error, c.error_class, c.state) for c in t.tool_calls],
            "request": [(m["role"], m.get("content")) for m in store.request(run, t.number).messages],
        }
        for t in store.turns(run)
    ]
    events = sorted(
        (e.kind, e.at or 0, e.turn or 0, json.dumps(dict(e.detail))) for e in store.events(run) if e.kind != "notes"
    )
    return {
        **{n: getattr(one, n) for n in names},
        "outcome": one.outcome,
        "tags": one.tags,
        "turns_": turns,
        "events": events,
        "ended_at": one.ended_at,
    }


def test_there_and_back_everything_is_kept_that_the_page_does_not_call_lost() -> None:
    with memory_store() as store, memory_store() as other:

        @settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(runs())
        def there_and_back(run: RunBuilder) -> None:
            assert store.ingest(run.drain()).bad == []
            value = _exported(store, run.run)
            _valid(value)
            (back,) = _imported(other, value)
            assert _kept(other, back.id) == _kept(store, run.run)
            again = _exported(other, back.id)
            assert [s for s in again["steps"] if s["source"] == "agent"] == [
                s for s in value["steps"] if s["source"] == "agent"
            ]

        there_and_back()


@pytest.mark.parametrize("name", ["claude_code", "mini_swe_agent", "inspect"])
def test_real_runs_are_valid_and_come_back_with_the_same_figures(name: str, tmp_path: Path) -> None:
    found = sorted(entries(name), key=lambda e: int(e["bytes"]))[:4]
    if not found:
        require("corpus")
    for entry in found:
        with memory_store() as store, memory_store() as other:
            import_path(store, require("corpus") / entry["file"])
            for run in store.runs(Filter(limit=0)):
                if run.parent is None:
                    value = _exported(store, run.id)
                    _valid(value)
                    back = _imported(other, value)[0]
                    figures = [
                        (r.turns, r.tool_calls, r.errors, r.usage.input, r.usage.cache_read, r.usage.output)
                        for r in (run, back)
                    ]
                    assert figures[0] == figures[1]
