"""Codex rollouts: what is a turn, what it used, what was said, and how it ended."""

from __future__ import annotations

from typing import Any

import pytest

from codex_rollout import Rollout, old_style
from imported import Imported, read
from looptape.tracer.importers.codex import codex
from looptape.tracer.model import BUCKETS
from looptape.tracer.store import memory_store
from testdata import require


def sums(got: Imported) -> dict[str, int]:
    """Tokens of all turns by bucket; those that nobody knew left out."""
    found: dict[str, int] = {}
    for turn in got.turns().values():
        for name in BUCKETS:
            if turn["usage"][name] is not None:
                found[name] = found.get(name, 0) + turn["usage"][name]
    return found


def texts(items: list[Any]) -> list[str]:
    """What messages and results of a request say."""
    return [i["output"] if "output" in i else i["content"][0]["text"] for i in items if "content" in i or "output" in i]


def test_cumulative_counts_injected_text_and_cut_arguments() -> None:  # imp-11
    got = read(codex, old_style().text())
    one, two = got.turns().values()
    assert [c["id"] for c in one["calls"]] == ["c1"]
    assert [c["id"] for c in two["calls"]] == ["c2"]
    assert got.response(2)["output"][-1]["content"][0]["text"] == "done"
    assert (got.notes.counts["prompts"], got.of("run_update")[-1]["title"]) == (1, "list")
    assert texts(got.request(1)) == ["<environment_context>x</environment_context>", "list"]
    assert [t["user_turn"] for t in got.of("turn_start")] == [True, False]
    first = next(r for r in got.of("call_seen") if r["call"] == "c1")
    assert (first["is_error"], first["returned"]) == (False, {"exit_code": 0})
    (bad,) = two["calls"]
    assert (bad["valid"], bad["arguments_raw"]) == (False, '{"command":["ls"')
    assert bad["invalid_reason"].startswith("arguments are not valid JSON")
    assert next(r for r in got.of("call_seen") if r["call"] == "c2")["is_error"] is True
    assert sums(got) == {"input": 1100, "cache_read": 1400, "output": 90, "reasoning": 30}
    assert got.end()[0] == "completed"


def test_words_that_only_the_display_log_has_are_the_words_and_the_unknown_is_kept() -> None:  # imp-12
    made = Rollout()
    made.add("turn_context", {"model": "gpt-demo-6"})
    made.shown("UserMessage", id="i1", content=[{"type": "text", "text": "why is it slow"}])
    made.shown(
        "CommandExecution",
        id="i2",
        command=["top"],
        exit_code=0,
        aggregated_output="ok",
        duration={"secs": 1, "nanos": 0},
    )
    made.shown("AgentMessage", id="i3", content=[{"type": "Text", "text": "Because of X."}], phase="final_answer")
    made.event("token_usage_record", usage={"input_tokens": 900, "cached_input_tokens": 100, "output_tokens": 30})
    made.item("brand_new_call", call_id="q", blob={"a": 1})
    made.add("world_state", {"x": 1})
    made.event("turn_aborted", reason="interrupted")
    got = read(codex, made.text())

    ((number, turn),) = got.turns().items()
    assert texts(got.request(number)) == ["why is it slow"]
    (call,) = turn["calls"]
    assert (call["id"], call["name"], call["arguments_raw"]) == ("i2", "command_execution", '{"command":["top"]}')
    (seen,) = got.of("call_seen")
    assert (seen["is_error"], seen["returned"]["exit_code"]) == (False, 0)
    (start,), (end,) = got.of("call_start"), got.of("call_end")
    assert end["at"] - start["at"] == 1_000_000
    assert got.response(number)["output"][-1]["content"][0]["text"] == "Because of X."
    assert got.end() == ("interrupted", "aborted")
    assert got.notes.unknown == {"response_item brand_new_call": 1, "world_state": 1}
    assert "not understood: 2 records of 2 types" in got.notes.warnings
    kept = [e["detail"]["record"] for e in got.of("event") if e["event"] == "not_understood"]
    assert kept[0]["blob"] == {"a": 1}
    assert kept[1]["payload"] == {"x": 1}


def test_counters_that_repeat_and_go_back_are_counted_once() -> None:  # cst-09
    made = Rollout()
    made.add("turn_context", {"model": "gpt-demo-6"})
    steps = [((1000, 0, 10), (1000, 0, 10)), ((2500, 800, 30), (1500, 800, 20)), ((3000, 1000, 40), (500, 200, 10))]
    for index in (0, 0, 1, 1, 0, 1, 2):
        made.counted(*steps[index])
    got = read(codex, made.text())
    assert got.notes.turns == 3
    assert sums(got) == {"input": 2000, "cache_read": 1000, "output": 40, "reasoning": 0}


def test_a_counter_that_starts_anew_is_counted_and_a_stale_one_is_not() -> None:
    made = Rollout()
    made.counted((1000, 0, 10))
    made.counted((900, 0, 10), (300, 0, 5))  # a stale value: neither seen before nor a first one
    made.counted((200, 0, 20))
    made.counted((500, 0, 30), (300, 0, 10))
    got = read(codex, made.text())
    assert got.notes.counts["counts_gone_back"] == 1
    assert sums(got)["input"] == 1500


def test_counts_before_their_items_belong_to_them() -> None:
    """Versions up to about 0.50 count as soon as the answer is there, and write its items after that."""
    made = Rollout(cli_version="0.46.0")
    made.user("go")
    made.event("agent_reasoning", text="hm")
    made.counted((100, 0, 10))
    made.item("reasoning", summary=[{"type": "summary_text", "text": "hm"}], step=0)
    made.call("c1", step=0)
    made.output("c1", step=0)
    made.event("agent_message", message="all done")
    made.counted((250, 100, 30), (150, 100, 20))
    made.says("all done", step=0)
    got = read(codex, made.text())
    one, two = got.turns().values()
    assert [len(one["calls"]), len(two["calls"])] == [1, 0]
    assert [one["usage"]["output"], two["usage"]["output"]] == [10, 20]
    assert texts(got.request(2)) == ["go", "ok"]
    assert len(got.response(1)["output"]) == 2
    assert len(got.response(2)["output"]) == 1


def test_without_any_count_an_answer_ends_where_results_came_back() -> None:
    made = Rollout()
    made.user("go")
    made.call("c1", step=1)
    made.call("c2", step=1)
    made.output("c1")
    made.output("c2")
    made.says("done")
    got = read(codex, made.text())
    assert [len(t["calls"]) for t in got.turns().values()] == [2, 0]
    assert all(t["usage"]["origin"] == "missing" and t["usage"]["input"] is None for t in got.turns().values())
    assert "no usage in the file for 2 of 2 turns" in got.notes.warnings


def test_records_of_newer_versions_end_turns_and_commands_have_exit_code_and_time() -> None:
    made = Rollout(
        model_provider="azure",
        base_instructions={"text": "You are Codex."},
        git={"commit_hash": "abc123", "branch": "main", "repository_url": "https://example.com/r"},
    )
    made.add("turn_context", {"model": "gpt-demo-6", "effort": "high"})
    made.event("task_started", turn_id="t1")
    made.user("fix it")
    made.shown("UserMessage", id="u", content=[{"type": "text", "text": "fix it"}])
    made.event("user_message", message="fix it")
    made.says("looking")
    made.shown("AgentMessage", id="a", content=[{"type": "Text", "text": "looking"}])
    made.event("agent_message", message="looking")
    made.call("c1", tool="exec_command")
    made.record((100, 40, 10, 5), response_id="resp_1")
    span = {"started_at_ms": 1793610020000, "completed_at_ms": 1793610023500}
    made.shown("CommandExecution", id="c1", exit_code=2, status="failed", duration={"secs": 3, "nanos": 5}, at=span)
    made.output("c1", "Wall time: 3 seconds\nProcess exited with code 2\nOutput:\nboom")
    made.counted((100, 40, 10, 5))
    made.says("cannot")
    made.record((200, 150, 20, 0), (300, 190, 30, 5), response_id="resp_2")
    made.record((200, 150, 20, 0), (300, 190, 30, 5), response_id="resp_2")
    made.counted((300, 190, 30, 5), (200, 150, 20, 0))
    made.event("task_complete", turn_id="t1", last_agent_message="cannot")
    got = read(codex, made.text())

    assert [t["response_id"] for t in got.turns().values()] == ["resp_1", "resp_2"]
    assert sums(got) == {"input": 110, "cache_read": 190, "output": 30, "reasoning": 5}
    assert len(got.request(2)) == 4, "everything stands twice in the file and once in the request"
    with memory_store() as store:
        store.ingest(got.records)
        (run,) = store.runs(_every())
        first, second = store.turns(run.id)
        (call,) = first.tool_calls
    assert (call.is_error, call.ms, call.timing, call.state) == (True, 3500.0, "measured", "done")
    assert call.result.endswith("boom")
    assert (second.text, first.text, first.provider, first.model) == ("cannot", "looking", "azure", "gpt-demo-6")
    assert (run.status, run.reason, run.errors) == ("completed", "task complete", 1)
    assert (run.git_commit, run.tags["git_branch"], run.list_price, run.source) == ("abc123", "main", True, "codex")
    assert (run.versions, run.agent, run.title) == ({"codex": "0.120.0"}, "codex", "fix it")
    assert got.blobs[got.of("turn_start")[0]["system"]] == '"You are Codex."'


def _every() -> Any:
    from looptape.tracer.store import Filter

    return Filter(limit=0, include_empty=True)


def test_a_fork_shows_its_past_and_does_not_count_it() -> None:
    parent = Rollout("019a0000-0000-7000-8000-00000000000a")
    parent.user("first")
    parent.says("answer")
    parent.counted((100, 0, 10))
    fork = Rollout(
        "019a0000-0000-7000-8000-00000000000b", begin=300, forked_from_id="019a0000-0000-7000-8000-00000000000a"
    )
    fork.meta("019a0000-0000-7000-8000-00000000000a", step=0)
    fork.user("first", step=0)
    fork.says("answer", step=0)
    fork.counted((100, 0, 10), step=0)
    fork.user("and then")
    fork.says("more")
    fork.counted((250, 100, 30), (150, 100, 20))
    old, new = read(codex, parent.text()), read(codex, fork.text())
    assert old.main != new.main
    assert [t["inherited"] for t in new.of("turn_start")] == [True, False]
    assert new.of("run_start")[0]["parent"] == {"run": old.main, "turn": None, "call": None, "kind": "fork"}
    for order in ([old, new], [new, old]):
        with memory_store() as store:
            for got in order:
                store.ingest(got.records)
            usage = {r.id: r.usage.input for r in store.runs(_every())}
            assert usage == {old.main: 100, new.main: 50}
            assert [t.text for t in store.turns(new.main)] == ["answer", "more"]


def test_a_fork_that_only_repeats_another_session_meta_is_one_too() -> None:
    made = Rollout("s2")
    made.meta("s1", step=0)
    made.user("first", step=0)
    made.says("answer", step=0)
    made.counted((28_000_000, 0, 700_000), (0, 0, 0), step=0)
    made.user("mine")
    made.says("mine too")
    made.counted((28_000_100, 0, 700_010), (100, 0, 10))
    got = read(codex, made.text())
    assert [s["parent"]["kind"] for s in got.of("run_start") if "parent" in s] == ["fork"]
    assert [t["inherited"] for t in got.of("turn_start")] == [True, False]
    assert got.turns()[2]["usage"]["input"] == 100
    assert list(got.notes.warnings) == ["no usage in the file for 1 of 2 turns"]


def test_a_sub_agent_is_the_child_of_the_call_that_spawned_it() -> None:
    from looptape.tracer.importers.context import Context

    context = Context()
    parent = Rollout("p")
    parent.user("go")
    parent.call("s1", '{"message":"review"}', tool="spawn_agent")
    parent.record((10, 0, 1), response_id="r1")
    parent.output("s1", '{"agent_id":"child","nickname":"Mendel"}')
    parent.says("done")
    parent.record((20, 0, 2), (30, 0, 3), response_id="r2")
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1, "agent_role": "reviewer"}}}
    child = Rollout("child", source=source, session_id="p")
    child.user("review")
    child.says("fine")
    over, under = read(codex, parent.text(), context), read(codex, child.text(), context)
    (start,) = under.of("run_start")
    assert start["parent"] == {"run": over.main, "turn": 1, "call": "s1", "kind": "sub-agent"}
    assert (start["agent"], start["session"]) == ("reviewer", "p")


def test_a_compaction_starts_the_history_anew() -> None:
    made = Rollout()
    made.user("go")
    made.says("one")
    made.counted((100, 0, 10))
    summary = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "so far: one"}]}
    made.add("compacted", {"message": "so far", "replacement_history": [summary]})
    made.counted((100, 0, 10), (0, 0, 0))
    made.user("on")
    made.says("two")
    made.counted((150, 0, 20), (50, 0, 10))
    got = read(codex, made.text())
    assert texts(got.request(2)) == ["so far: one", "on"]
    assert [e["event"] for e in got.of("event")] == ["compaction"]
    assert got.of("turn_start")[1]["flags"] == ["compaction"]


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (lambda r: (r.user("go"),), "interrupted"),
        (lambda r: (r.event("task_started"),), "unknown"),
        (lambda r: (r.says("x"), r.user("go")), "interrupted"),
        (lambda r: (r.user("go"), r.call("c1")), "interrupted"),
        (lambda r: (r.user("go"), r.call("c1"), r.output("c1", "exec command rejected by user")), "halted"),
        (lambda r: (r.user("go"), r.call("c1"), r.output("c1")), "interrupted"),
        (lambda r: (r.user("go"), r.says("x"), r.event("error", message="429")), "failed"),
        (lambda r: (r.user("go"), r.says("x"), r.event("task_complete"), r.user("more")), "interrupted"),
        (lambda r: (r.user("go"), r.says("x")), "completed"),
    ],
)
def test_the_end_is_what_the_file_tells(lines: Any, status: str) -> None:
    made = Rollout()
    lines(made)
    assert read(codex, made.text()).end()[0] == status


def test_a_longer_copy_changes_nothing_twice_and_a_shorter_one_takes_nothing_away() -> None:
    from looptape.tracer.importers import import_path

    whole = old_style()
    short = whole.lines[:10]
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder, memory_store() as store:
        long_file, short_file = Path(folder, "a.jsonl"), Path(folder, "b.jsonl")
        long_file.write_text(whole.text())
        short_file.write_text("\n".join(short) + "\n")
        for path in (short_file, long_file, long_file, short_file):
            import_path(store, path)
        (run,) = store.runs(_every())
        assert (run.turns, run.tool_calls, run.usage.input, run.status) == (2, 2, 1100, "completed")


def test_the_excerpt_of_a_real_file_gives_its_counts() -> None:
    place = require("corpus") / "codex" / "EXCERPT-0.153.4.jsonl"
    assert codex.recognise(place.read_bytes())
    got = read(codex, place)
    assert (got.notes.counts["objects"], got.notes.skipped, dict(got.notes.unknown)) == (14, [], {})
    assert [t["usage"]["input"] for t in got.turns().values()] == [9875, 983]
    assert got.end() == ("completed", "task complete")
    (seen,) = got.of("call_seen")
    assert seen["returned"]["exit_code"] == 0
    assert any("part of the session is not in it" in w for w in got.notes.warnings)
