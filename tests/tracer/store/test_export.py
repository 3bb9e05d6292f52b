"""A run exported as records and taken into an empty store is the same run."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import long_tape
import small_tape
from examples import examples
from looptape.tracer import tape
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import import_path
from looptape.tracer.store import memory_store
from looptape.tracer.store.export import records_of

RUN = "d" * 16
TEXTS = st.text(st.characters(categories=["L", "N", "Cs", "Zs", "Cc"]), max_size=12)
SHORT = st.none() | TEXTS
TIMES = st.integers(1, 50)
COUNTS = st.none() | st.integers(0, 10**12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.lists(st.sampled_from(["c1", "c2", "c3", "c4"]), unique=True, max_size=3)


def kept(out, value):
    """Adds a blob record for a value; its hash."""
    record = tape.blob(json.dumps(value))
    out.append(record)
    return record["hash"]


@st.composite
def runs(draw):
    """Records of a run with edits of history, odd values, calls in every state, chunks, retries and events."""
    out = []
    tags = draw(st.dictionaries(TEXTS, TEXTS, max_size=2))
    out.append({"kind": "run_start", "run": RUN, "at": draw(TIMES), "name": draw(SHORT), "tags": tags, "source": "sdk",
                "task": draw(SHORT), "limits": draw(st.sampled_from([{}, {"turns": 3}])), "list_price": draw(st.booleans())})  # fmt: skip
    for number in range(1, draw(st.integers(1, 4)) + 1):
        turn(draw, out, number)
    for _ in range(draw(st.integers(0, 2))):
        out.append({"kind": "event", "run": RUN, "turn": draw(st.none() | st.integers(1, 4)), "at": draw(st.none() | TIMES),
                    "event": "compaction", "detail": draw(st.dictionaries(TEXTS, VALUES, max_size=2))})  # fmt: skip
    if draw(st.booleans()):
        out.append(
            {
                "kind": "run_update",
                "run": RUN,
                "at": 60,
                "outcome": {"verdict": "pass"},
                "warnings": draw(st.lists(TEXTS, max_size=2)),
            }
        )
    if draw(st.booleans()):
        out.append(
            {
                "kind": "run_end",
                "run": RUN,
                "at": 100,
                "status": draw(st.sampled_from(["completed", "limit"])),
                "reason": draw(SHORT),
            }
        )
    return out


def turn(draw, out, number):
    """Records of one turn, put at the end of `out`."""
    place = {"run": RUN, "turn": number}
    base = draw(st.none() | st.integers(max(1, number - 2), number - 1)) if number > 1 else None
    new = [kept(out, {"role": "user", "content": draw(TEXTS)}) for _ in range(draw(st.integers(0, 3)))]
    out.append({"kind": "turn_start", **place, "at": draw(st.none() | TIMES), "keep": draw(st.integers(0, 3)) if base else 0, "base": base,
                "append": new, "system": kept(out, draw(TEXTS)), "params": kept(out, draw(st.dictionaries(TEXTS, VALUES, max_size=2))),
                "provider": "anthropic", "api": "anthropic.messages", "model": draw(SHORT), "stream": draw(st.booleans()),
                "user_turn": draw(st.booleans()), "inherited": draw(st.booleans()), "flags": draw(st.lists(TEXTS, max_size=2)),
                "caller": draw(SHORT), "agent": draw(SHORT)})  # fmt: skip
    for seq in range(draw(st.integers(0, 2))):
        out.append(
            {
                "kind": "chunk",
                **place,
                "seq": seq,
                "parts": [[draw(st.integers(0, 10**6)), draw(TEXTS)]],
                "altered": draw(st.booleans()),
            }
        )
    ids = draw(CALLS)
    if draw(st.integers(0, 5)):
        body = {
            "role": "assistant",
            "content": [{"type": "text", "text": draw(TEXTS)}, {"type": "thinking", "thinking": draw(TEXTS)}],
        }
        out.append({"kind": "turn_end", **place, "at": draw(TIMES), "status": draw(st.sampled_from(["ok", "error", "abandoned"])),
                    "error": draw(SHORT), "response": kept(out, body) if draw(st.booleans()) else None, "stop_reason": draw(SHORT),
                    "calls": [listed(draw, i) for i in ids], "usage": {"input": draw(COUNTS), "output": draw(COUNTS), "cache_read": draw(COUNTS),
                    "origin": "recorded", "partial": draw(st.booleans())}, "usage_raw": draw(st.none() | st.just({"x": 1})),
                    "attempts": [{"status": 529, "wait_ms": 0.5, "headers": {"a": "b"}}] * draw(st.integers(0, 2)), "flags": draw(st.lists(TEXTS, max_size=1))})  # fmt: skip
    for call in [*ids, "unlisted"][: draw(st.integers(0, 4))]:
        call_records(draw, out, {**place, "call": call})


def listed(draw, call):
    """A call as a response lists it, sometimes run by the provider."""
    given = {
        "id": call,
        "name": draw(TEXTS),
        "arguments_raw": draw(st.sampled_from(["{}", "{half", '{"a":1}'])),
        "valid": draw(st.booleans()),
    }
    if draw(st.integers(0, 3)) == 0:
        given.update(origin="provider", result=draw(VALUES), is_error=draw(st.booleans()))
    return given


def call_records(draw, out, place):
    """A measured run of a call, its result as the model saw it, or both."""
    result = draw(VALUES)
    if draw(st.booleans()):
        out.append(
            {
                "kind": "call_start",
                **place,
                "name": draw(TEXTS),
                "at": draw(TIMES),
                "side_effect": draw(st.sampled_from(["read", "unknown"])),
            }
        )
        if draw(st.booleans()):
            out.append({"kind": "call_end", **place, "at": draw(TIMES), "result": result, "is_error": draw(st.booleans()),
                        "state": draw(st.sampled_from(["done", "cancelled"])), "error_class": draw(SHORT)})  # fmt: skip
    if draw(st.booleans()):
        content = draw(st.sampled_from([result, "other", "[]"]))
        message = kept(out, {"role": "user", "content": [{"type": "tool_result", "content": content}]})
        out.append(
            {
                "kind": "call_seen",
                **place,
                "at": draw(TIMES),
                "message": message,
                "path": "$.content[0].content",
                "is_error": draw(st.booleans()),
            }
        )


def same(left, right, run=RUN):
    """Compares everything that a user can see of a run in two stores."""
    assert right.run(run) == left.run(run)
    assert right.turns(run) == left.turns(run)
    assert right.events(run) == left.events(run)
    for turn_of in left.turns(run):
        if turn_of.message_count is not None:
            assert right.request(run, turn_of.number) == left.request(run, turn_of.number)
            assert right.wire(run, turn_of.number) == left.wire(run, turn_of.number)


@given(runs())
@settings(max_examples=examples(15), deadline=None)
def test_any_run_survives_export_and_import(records):
    with memory_store() as first, memory_store() as second:
        assert first.ingest(records).bad == []
        exported = list(records_of(first, RUN))
        assert second.ingest(json.loads(tape.line(r)) for r in exported).bad == []
        same(first, second)
        assert list(records_of(second, RUN)) == exported
        first.ingest(exported)  # and into the store that has it already
        same(first, second)


def test_a_long_run_survives_export_and_import():
    with memory_store() as first, memory_store() as second:
        first.ingest(long_tape.records(turns=8))
        second.ingest(records_of(first, "a" * 16))
        same(first, second, "a" * 16)


def test_sub_agents_go_along_and_forks_stay(tmp_path):
    with memory_store() as first, memory_store() as second:
        first.ingest(small_tape.records("p" * 16))
        first.ingest(
            small_tape.records("s" * 16, parent={"run": "p" * 16, "turn": 1, "call": "c1", "kind": "sub-agent"})
        )
        first.ingest(
            small_tape.records("t" * 16, parent={"run": "s" * 16, "turn": 1, "call": "c1", "kind": "sub-agent"})
        )
        first.ingest(small_tape.records("f" * 16, parent={"run": "p" * 16, "turn": 1, "kind": "fork"}))
        second.ingest(records_of(first, "p" * 16))
        assert {r.id[0] for r in second.runs()} == {"p", "s", "t"}
        for run in "pst":
            same(first, second, run * 16)


def test_an_interrupted_run_stays_interrupted(tmp_path):
    long_tape.journal(tmp_path, "w", [tape.line(r) for r in long_tape.records(turns=3, ended=False)])
    from looptape.tracer.store import open_store

    with open_store(tmp_path) as first, memory_store() as second:
        second.ingest(records_of(first, "a" * 16))
        same(first, second, "a" * 16)
        assert second.run("a" * 16).status == "interrupted"


@pytest.mark.parametrize("status", ["completed", "unknown"])
def test_an_end_without_a_time_stays_the_end_it_was(status, tmp_path):
    with memory_store() as first, memory_store() as second:
        first.ingest([
            {"kind": "run_start", "run": RUN, "at": None, "source": "messages"},
            {"kind": "run_end", "run": RUN, "at": None, "status": status, "reason": "the last answer"},
        ])  # fmt: skip
        path = tmp_path / "run.tape"
        path.write_bytes(b"".join(map(tape.line, records_of(first, RUN))))
        import_path(second, path)
        same(first, second, RUN)
        assert (second.run(RUN).status, second.run(RUN).reason) == (status, "the last answer")


def test_every_blob_comes_before_its_first_reference():
    with memory_store() as store:
        store.ingest(long_tape.records(turns=5))
        known = set()
        for record in records_of(store, "a" * 16):
            if record["kind"] == "blob":
                assert record["hash"] not in known, "sent twice"
                known.add(record["hash"])
            named = [record.get(n) for n in ("system", "tools", "params", "response", "message")] + record.get(
                "append", []
            )
            assert {n for n in named if n} <= known


def test_a_run_that_is_not_there_is_an_error():
    with memory_store() as store, pytest.raises(LooptapeError, match="there is no run"):
        list(records_of(store, "nope"))
