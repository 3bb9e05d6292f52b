"""Inspect logs: samples are runs, model events turns, tool events measure, the score is the outcome."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import inspect_logs as logs
from corpus_counts import entries
from damaged_json import damaged, read_whatever_it_is, store_whatever_it_is
from examples import examples
from imported import Imported, read
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import IMPORTERS, compressed
from looptape.tracer.importers.inspect import inspect_ai, inspect_parts
from looptape.tracer.store import Filter, memory_store
from testdata import require


def _stored(got: Imported) -> Any:
    with memory_store() as store:
        assert store.ingest(got.records).bad == []
        run = store.run(got.main)
        return run, store.turns(run.id)


@pytest.mark.parametrize("data", [logs.document(logs.sample()), logs.packed(logs.sample())], ids=["json", "eval"])
def test_a_sample_becomes_a_run_with_its_turns_times_usage_and_outcome(data: bytes) -> None:
    assert inspect_ai.recognise(data[:65536])
    run, turns = _stored(read(inspect_ai, data))

    assert (run.name, run.title, run.task) == ("arith", "What is the answer?", "arith/7")
    assert (run.session, run.git_commit, run.limits) == ("R1", "abc", {"tokens": 5000})
    assert run.tags == {
        "task": "arith", "sample": "7", "epoch": "2", "model": "openai/gpt-5-mini", "eval": "E1", "eval_status": "success",
    }  # fmt: skip
    assert (run.status, run.reason) == ("completed", "stop")
    assert run.outcome == {
        "verdict": "pass",
        "score": 1.0,
        "note": "match C, judge 0.5: equal",
        "scores": {"match": "C", "judge": 0.5},
    }
    assert (run.usage.input, run.usage.cache_read, run.usage.output) == (240, 60, 21)
    assert [t.user_turn for t in turns] == [True, False, False]
    assert [(t.provider, t.request_model, t.model, t.step, t.generate_ms) for t in turns] == [
        ("openai", "gpt-5-mini", "gpt-5-mini", "react", 5.0)
    ] * 3
    calls = [c for t in turns for c in t.tool_calls]
    assert [(c.id, c.arguments, c.ms, c.timing, c.state) for c in calls] == [
        ("c1", {"cmd": "ls"}, 3.0, "measured", "done"),
        ("c2", {"cmd": "false"}, 3.0, "measured", "done"),
        ("c3", {"cmd": "cat a.txt"}, 3.0, "measured", "done"),
    ]
    assert [(c.is_error, c.error_class, c.result) for c in calls] == [
        (False, None, "a.txt [redacted:anthropic-key]"),
        (True, "transient", "too slow"),
        (False, None, "42"),
    ]


def test_the_request_of_a_turn_has_attachments_put_back_and_nothing_twice() -> None:
    with memory_store() as store:
        got = read(inspect_ai, logs.document(logs.sample()))
        store.ingest(got.records)
        request = store.request(got.main, 3)

    assert [m["role"] for m in request.messages] == ["user", "assistant", "tool", "tool", "assistant", "tool"]
    assert request.messages[0] == {"role": "user", "content": "What is the answer?"}
    assert request.tools[0]["function"]["description"] == "runs a command"
    assert request.params == {"max_tokens": 9, "tool_choice": "auto"}
    assert request.kept == 4


@pytest.mark.parametrize("pooled", [{"message_pool": None}, {"events_data": None}], ids=["version 3", "later"])
def test_messages_in_a_pool_are_found_by_their_ranges(pooled: dict[str, Any]) -> None:
    plain = logs.sample()
    pool = plain["messages"]
    refs = [[[0, 1]], [[0, 2], [2, 4]], [[0, 6]]]
    events = [dict(e) for e in plain["events"]]
    for event, ref in zip([e for e in events if e["event"] == "model"], refs, strict=True):
        event.update(input=[], input_refs=ref)
    where = {"message_pool": pool} if "message_pool" in pooled else {"events_data": {"messages": pool, "calls": []}}
    left = read(inspect_ai, logs.document(plain))
    right = read(inspect_ai, logs.document(logs.sample(events=events, **where), version=3))

    assert [right.request(n) for n in (1, 2, 3)] == [left.request(n) for n in (1, 2, 3)]


def test_a_later_copy_of_a_log_and_its_other_form_are_the_same_run() -> None:
    with memory_store() as store:
        for data in (logs.document(logs.sample()), logs.packed(logs.sample()), logs.document(logs.sample())):
            store.ingest(read(inspect_ai, data).records)
        runs = store.runs(Filter(limit=0, include_empty=True))

    assert [(r.turns, r.tool_calls) for r in runs] == [(3, 3)]


def test_without_a_uuid_eval_sample_and_epoch_tell_runs_apart() -> None:
    samples = [logs.sample(uuid=None, id=i, epoch=e) for i, e in ((1, 1), ("1", 1), (1, 2))]
    assert len(read(inspect_ai, logs.document(*samples)).notes.runs) == 3


def test_a_sub_agent_inside_a_tool_call_is_a_child_run_and_so_is_a_scorers_model() -> None:
    sample = logs.sample()
    inner = {"role": "user", "content": "subtask", "source": None}
    place = next(i for i, e in enumerate(sample["events"]) if e.get("id") == "c1")
    sample["events"][place : place + 1] = [
        {
            "event": "span_begin",
            "timestamp": logs.at(20),
            "id": "t1",
            "parent_id": "s1",
            "type": "tool",
            "name": "bash",
        },
        sample["events"][place],
        {
            "event": "span_begin",
            "timestamp": logs.at(21),
            "id": "a1",
            "parent_id": "t1",
            "type": "agent",
            "name": "helper",
        },
        logs.model(21, [inner], logs.output(logs.said("done"), "stop"), span_id="a1"),
    ]
    sample["events"] += [
        {"event": "span_begin", "timestamp": logs.at(70), "id": "g1", "type": "scorer", "name": "judge"},
        logs.model(71, [inner], logs.output(logs.said("C"), "stop"), span_id="g1"),
    ]
    with memory_store() as store:
        got = read(inspect_ai, logs.document(sample))
        assert store.ingest(got.records).bad == []
        main = store.run(got.main)
        child, judge = (store.run(r) for r in [*got.notes.runs][1:])
        assert (main.turns, child.turns, judge.turns) == (3, 1, 1)
        assert (child.agent, child.parent.turn, child.parent.call) == ("helper", 1, "c1")
        assert (judge.name, judge.parent.run, judge.parent.call) == ("judge", main.id, None)
        assert store.turns(main.id)[0].tool_calls[0].child_run == child.id
        assert main.inclusive_usage.output == 35


@pytest.mark.parametrize(
    ("change", "end"),
    [
        ({"error": {"message": "boom"}}, ("failed", "boom")),
        ({"limit": {"type": "token", "limit": 5000}}, ("limit", "token limit of 5000")),
    ],
)
def test_errors_and_limits_of_a_sample_are_how_its_run_ends(change: dict[str, Any], end: tuple[str, str]) -> None:
    assert read(inspect_ai, logs.document(logs.sample(**change))).end() == end


def test_a_log_without_samples_says_so_and_gives_no_run() -> None:
    for data in (logs.document(status="cancelled"), logs.packed(head=False)):
        got = read(inspect_ai, data)
        assert (got.records, got.notes.runs) == ([], {})
        assert any("no samples" in w and ("cancelled" in w or "started" in w) for w in got.notes.warnings)


def test_a_sample_without_events_gives_turns_without_times_and_says_so() -> None:
    plain = logs.sample(events=[])
    plain["output"] = logs.output(plain["messages"][-1], "stop")
    got = read(inspect_ai, logs.document(plain))
    run, turns = _stored(got)

    assert [t.text for t in turns] == ["I look", "again", "It is 42"]
    assert {t.started_at for t in turns} == {None}
    assert [t.usage.output for t in turns] == [None, None, 7]
    assert (run.tool_calls, run.errors) == (3, 1)
    assert any("without model events" in w for w in got.notes.warnings)


def test_tokens_that_no_model_call_shows_are_said() -> None:
    got = read(inspect_ai, logs.document(logs.sample(model_usage={"m": {"total_tokens": 1321}})))
    assert _stored(got)[0].warnings == ("the log counts 1,000 tokens more for this sample than its model calls show",)


@pytest.mark.parametrize(
    ("raw", "buckets"),
    [
        ({"input_tokens": 100, "output_tokens": 7, "total_tokens": 107, "input_tokens_cache_read": 60}, (40, 60, 7)),
        ({"input_tokens": 40, "output_tokens": 7, "total_tokens": 107, "input_tokens_cache_read": 60}, (40, 60, 7)),
        ({"input_tokens": 40, "output_tokens": 7, "total_tokens": 50, "reasoning_tokens": 3}, (40, None, 10)),
        ({"input_tokens": 40, "output_tokens": 7, "total_tokens": 47, "reasoning_tokens": 3}, (40, None, 7)),
        ({"input_tokens": 100, "output_tokens": 7, "total_tokens": 5, "input_tokens_cache_read": 60}, (None, 60, 7)),
    ],
    ids=["input with cached", "input without", "reasoning apart", "reasoning inside", "cannot be told"],
)
def test_the_total_tells_what_the_input_includes(raw: dict[str, Any], buckets: tuple[int | None, ...]) -> None:
    answer = {**logs.output(logs.said("x"), "stop"), "usage": raw}
    got = read(inspect_ai, logs.document(logs.sample(events=[logs.model(1, [], answer)])))
    usage = got.turns()[1]["usage"]
    assert (usage["input"], usage["cache_read"], usage["output"]) == buckets


def test_failed_pending_and_cached_model_calls_are_marked() -> None:
    events = [
        logs.model(1, [], {"choices": []}, error="overloaded", retries=2),
        logs.model(2, [], logs.output(logs.said("x"), "stop"), cache="read"),
        logs.model(3, [], {"choices": []}, pending=True, completed=None),
        {"event": "compaction", "timestamp": logs.at(4), "tokens_before": 9},
        {"event": "brand_new", "timestamp": logs.at(5)},
    ]
    got = read(inspect_ai, logs.document(logs.sample(events=events)))
    _, turns = _stored(got)

    assert [(t.status, t.error) for t in turns] == [("error", "overloaded"), ("ok", None), ("interrupted", None)]
    assert turns[1].flags == ("cached_response",)
    assert [e["event"] for e in got.of("event")] == ["model_retries", "compaction"]
    assert got.notes.unknown == {"event brand_new": 1}


def test_a_history_that_was_cut_starts_anew_where_it_differs() -> None:
    prompt, summary = {"role": "user", "content": "go", "source": "input"}, {"role": "user", "content": "so far: x"}
    first = logs.said("one")
    events = [
        logs.model(1, [prompt], logs.output(first, "stop")),
        {"event": "compaction", "timestamp": logs.at(7)},
        logs.model(8, [prompt, summary], logs.output(logs.said("two"), "stop")),
        logs.model(9, [summary], logs.output(logs.said("three"), "stop")),
    ]
    got = read(inspect_ai, logs.document(logs.sample(events=events)))

    assert [[m["content"] for m in got.request(n)] for n in (1, 2, 3)] == [["go"], ["go", "so far: x"], ["so far: x"]]
    assert [t.flags for t in _stored(got)[1]] == [(), ("compaction",), ()]


# -- files that are damaged or made to hurt ------------------------------------------------------------------------


def test_a_cut_document_gives_the_samples_before_the_cut_and_names_the_line() -> None:
    data = logs.document(logs.sample(), logs.sample(uuid="U8"))
    got = read(inspect_ai, data[: data.index(b'"U8"')])

    assert len(got.notes.runs) == 1
    assert "incomplete tail" in got.notes.skipped[0]["reason"]
    assert got.notes.skipped[0]["line"] > 100


def test_what_is_over_the_limit_is_named_and_the_rest_of_the_sample_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    big = logs.sample(uuid="U8", store={"x": 'y\\"' * 400_000})  # not wanted, so that its size is nothing
    big["events"].insert(3, {"event": "info", "timestamp": logs.at(15), "data": "z" * (1 << 20)})
    samples = (logs.sample(), big, logs.sample(uuid="U9", error={"message": "boom", "traceback": "t" * (1 << 20)}))
    monkeypatch.setattr(inspect_parts, "MAX_PART_BYTES", 1 << 20)
    monkeypatch.setattr(inspect_ai, "MAX_PART_BYTES", 1 << 20)
    for data, where in (
        (logs.document(*samples), "sample {}"),
        (logs.packed(*samples), "member 'samples/{}_epoch_1.json'"),
    ):
        got = read(inspect_ai, data)
        assert [len(got.of("turn_end", run)) for run in got.notes.runs] == [3, 3, 3]
        assert [s["reason"] for s in got.notes.skipped] == [
            f"events/4 of {where.format(2)} is longer than 1 MB: left out",
            f"error of {where.format(3)} is longer than 1 MB: left out",
        ]


def test_a_sample_is_never_decoded_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    decode = inspect_ai.reading.decode
    monkeypatch.setattr(inspect_ai.reading, "decode", lambda raw, *more: sizes.append(len(raw)) or decode(raw, *more))
    events = [e for n in range(60) for e in logs.sample()["events"][2:5] if e.update(timestamp=logs.at(n)) is None]
    sample = logs.sample(events=events, attachments={f"{n:032}": "x" * 5000 for n in range(60)})
    for data in (logs.document(sample), logs.packed(sample)):
        sizes.clear()
        got = read(inspect_ai, data)
        assert got.notes.turns == 60
        assert max(sizes) < len(json.dumps(sample)) / 50


def test_a_bad_event_is_named_and_the_others_are_imported() -> None:
    text = logs.document(logs.sample()).replace(b'"event": "sample_init"', b'"event": sample_init')
    got = read(inspect_ai, text)

    assert got.notes.turns == 3
    assert [s["reason"].split(" (")[0] for s in got.notes.skipped] == ["event 1 of sample 1 is not JSON"]
    assert got.notes.skipped[0]["line"] > 100


def test_zstd_entries_are_read_and_their_absence_has_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    zstd = pytest.importorskip("backports.zstd" if not _has_zstd() else "compression.zstd")
    data = logs.packed(logs.sample(), zstd=zstd.compress)
    assert read(inspect_ai, data).notes.turns == 3

    monkeypatch.setattr(compressed.importlib, "import_module", _absent)
    with pytest.raises(LooptapeError) as caught:
        read(inspect_ai, data)
    assert "looptape[zstd]" in caught.value.cure


def test_damaged_encrypted_and_strange_members_are_named_and_the_others_are_imported() -> None:
    zstd = pytest.importorskip("backports.zstd" if not _has_zstd() else "compression.zstd")
    odd = {
        "../../etc/passwd": b"x",
        "samples/../../evil_epoch_1.json": json.dumps(logs.sample(uuid="U8")).encode(),
        "samples/a_epoch_1.json": b"[1]",
        "samples/b_epoch_1.json": b"{",
    }
    data = logs.packed(logs.sample(), zstd=zstd.compress, members=odd)
    got = read(inspect_ai, data)
    assert len(got.notes.runs) == 1
    assert got.notes.unknown == {"member of samples/": 1}
    assert [s["reason"] for s in got.notes.skipped] == [
        "member 'samples/a_epoch_1.json': no JSON object",
        "member 'samples/b_epoch_1.json': a key is not a string",
    ]

    wrong = data.replace(zstd.compress(b"{"), b"\0" * len(zstd.compress(b"{")))
    assert any("is damaged" in s["reason"] for s in read(inspect_ai, wrong).notes.skipped)


def test_a_member_whose_checksum_is_wrong_is_named() -> None:
    zstd = pytest.importorskip("backports.zstd" if not _has_zstd() else "compression.zstd")
    good = json.dumps(logs.sample()).encode()
    changed = zstd.compress(good.replace(b"It is 42", b"It is 43"))
    data = logs.packed(good, zstd=lambda data: changed if data == good else zstd.compress(data))
    got = read(inspect_ai, data)

    assert not got.notes.runs
    assert [s["reason"] for s in got.notes.skipped] == [
        "member 'samples/1_epoch_1.json' is damaged (its checksum is wrong)"
    ]


def test_a_member_over_the_limit_is_not_kept_in_memory_while_it_is_read_past(monkeypatch: pytest.MonkeyPatch) -> None:
    from looptape.tracer.importers import json_stream

    held: list[int] = []
    more = json_stream._Scan.more
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 4096)
    monkeypatch.setattr(json_stream._Scan, "more", lambda scan: (held.append(len(scan.data)), more(scan))[1])
    text = json.dumps({"list": ["x" * 500_000, [["y", {}]] * 50_000, 7], "after": 1}).encode()
    found = list(json_stream.members(io.BytesIO(text), {"list": {"*": None}, "after": None}, 10_000))

    assert [(m.path, m.raw) for m in found if m.kind == "value"] == [
        (("list", 1), None), (("list", 2), None), (("list", 3), b"7"), (("after",), b"1"),
    ]  # fmt: skip
    assert max(held) < 40_000
    held.clear()
    assert [m.path for m in json_stream.members(io.BytesIO(text), {"after": None}, 1 << 30) if m.raw] == [("after",)]
    assert max(held) < 40_000


def test_an_archive_without_its_table_is_refused_with_a_cure() -> None:
    with pytest.raises(LooptapeError) as caught:
        read(inspect_ai, logs.packed(logs.sample())[:-30])
    assert caught.value.slug == "damaged-archive"
    assert "inspect log recover" in caught.value.cure


def test_attachments_that_are_missing_or_too_many_stay_references(monkeypatch: pytest.MonkeyPatch) -> None:
    got = read(inspect_ai, logs.document(logs.sample(attachments={"b" * 32: "runs"})))
    assert got.request(1)[0]["content"] == "attachment://" + "a" * 32
    assert any("missing" in w for w in got.notes.warnings)

    monkeypatch.setattr(inspect_ai.inspect_sample.said, "MAX_ATTACHED", 30)
    prompt = {"role": "user", "content": [{"type": "text", "text": "attachment://" + "a" * 32}] * 4}
    got = read(
        inspect_ai, logs.document(logs.sample(events=[logs.model(1, [prompt], logs.output(logs.said("x"), "stop"))]))
    )
    assert [p["text"][:4] for p in got.request(1)[0]["content"]] == ["What", "atta", "atta", "atta"]
    assert any("were left out" in w for w in got.notes.warnings)


def test_other_files_are_not_taken_for_a_log() -> None:
    others = [
        b"PK\x03\x04",
        b"PK\x03\x04" + b"\0" * 40,
        b'{"version":2,"eval":{}}',
        b'{"version":2,"eval":"x"}',
        b"[]",
        b"",
    ]
    assert not any(inspect_ai.recognise(head) for head in others)
    assert not any(i.recognise(logs.document(logs.sample())) for i in IMPORTERS if i is not inspect_ai)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(json.loads(logs.document(logs.sample()))))
def test_damaged_logs_never_raise_and_are_never_lost_without_a_word(data: bytes) -> None:
    read_whatever_it_is(inspect_ai, data)


@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(json.loads(logs.document(logs.sample()))))
def test_damaged_logs_are_stored_and_can_be_read_back(data: bytes) -> None:
    store_whatever_it_is(inspect_ai, data)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 3000), st.binary(max_size=4)), max_size=4), st.integers(0, 400))
def test_damaged_archives_never_raise_and_are_never_lost_without_a_word(
    changes: list[tuple[int, bytes]], cut: int
) -> None:
    data = bytearray(logs.packed(logs.sample()))
    for place, put in changes:
        data[place % len(data) : place % len(data) + len(put)] = put
    read_whatever_it_is(inspect_ai, bytes(data[: len(data) - cut] if cut < 40 else data))


@settings(max_examples=examples(100), deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_any_document_taken_apart_is_the_document(value: Any) -> None:
    from looptape.tracer.importers import json_stream

    whole = {"a": value, "list": [value, 1, value], "keyed": {"x": value, "": 2}, "b": [value], "none": {}}
    text = json.dumps(whole, ensure_ascii=False, indent=1).encode("utf-8", "replace")
    whole = json.loads(text)
    rule = {"a": None, "list": {"*": None}, "keyed": {"*": None}, "none": {"*": None}}
    before, json_stream.CHUNK_BYTES = json_stream.CHUNK_BYTES, 3
    try:
        found = list(json_stream.members(io.BytesIO(text), rule, 1 << 20))
        alone = list(json_stream.members(io.BytesIO(text), None, 1 << 20))
    finally:
        json_stream.CHUNK_BYTES = before
    assert json.loads(alone[0].raw or b"") == whole
    values = {m.path: json.loads(m.raw or b"") for m in found if m.kind == "value"}
    items = {("list", n): v for n, v in enumerate(whole["list"], 1)}
    assert values == {("a",): whole["a"], **items, ("keyed", "x"): whole["keyed"]["x"], ("keyed", ""): 2}
    assert [m.path for m in found if m.kind == "begin"] == [(), ("list",), ("keyed",), ("none",)]
    assert [m.path for m in found if m.kind == "end"] == [("list",), ("keyed",), ("none",), ()]


@pytest.mark.parametrize("entry", entries("inspect"), ids=lambda entry: Path(entry["file"]).name)
def test_counts_are_those_of_the_manifest(entry: dict[str, Any]) -> None:
    got, wanted = read(inspect_ai, require("corpus") / entry["file"]), entry["counts"]
    counts = got.notes.counts

    assert len(got.notes.runs) == counts["samples"] == wanted["samples"]
    assert counts["messages"] == wanted["messages"]
    assert got.notes.turns == wanted["events"].get("model", wanted["assistant_messages"])
    assert got.notes.tool_calls == wanted["tool_calls"] == counts["tool_results"]
    assert counts["tool_errors"] == wanted["tool_errors"]
    usage = [r["usage"] for r in got.records if r["kind"] == "turn_end"]
    for told in wanted["model_usage"].values() if got.notes.turns else ():
        read_tokens = sum(u.get("cache_read") or 0 for u in usage)
        assert sum(u["input"] for u in usage) + read_tokens == told["input_tokens"]
        assert read_tokens == told.get("input_tokens_cache_read", 0)
        assert sum(u["output"] for u in usage) == told["output_tokens"]
    assert not got.notes.unknown
    with memory_store() as store:
        assert store.ingest(got.records).bad == []


def _has_zstd() -> bool:
    import sys

    return sys.version_info >= (3, 14)


def _absent(name: str) -> Any:
    raise ImportError(name)
