"""What must not come in: counts that are none, runs that are their own parents, other content under a known id."""

import pytest

import long_tape
import small_tape
from looptape.tracer.store import Filter, memory_store


def ended(records, **facts):
    """The records with other facts in every turn_end."""
    return [{**r, **facts} if r["kind"] == "turn_end" else r for r in records]


@pytest.mark.parametrize("count", [-8 * 10**18, -1, 2**53 + 1, 1.5, "7", True])
def test_usage_that_is_no_count_is_left_out_and_told(count):
    with memory_store() as store:
        usage = {"input": count, "output": 20, "origin": "recorded"}
        assert not store.ingest(ended(small_tape.records(), usage=usage)).bad
        (run,) = store.runs()
        assert (run.usage.input, run.usage.output, run.usage.partial) == (None, 40, True)
        (told,) = run.warnings
        assert "no count of tokens" in told
        assert "input" in told


def test_the_largest_counts_of_many_turns_do_not_break_the_sum():
    with memory_store() as store:
        records = ended(long_tape.records(turns=1100), usage={"input": 2**53, "output": 2**53})
        assert not store.ingest(records).bad
        (run,) = store.runs()
        assert (run.turns, run.usage.input, run.cost_usd) == (1100, None, None), "beyond what a sum can hold"


def test_a_run_is_never_its_own_ancestor():
    def start(run, parent):
        return {"kind": "run_start", "run": run, "at": 1, "parent": {"run": parent, "turn": 1, "kind": "fork"}}

    with memory_store() as store:
        store.ingest([start("a", "a"), start("b", "c"), start("c", "d")])
        store.ingest([start("d", "b")])
        parents = {r.id: r.parent and r.parent.run for r in store.runs(Filter(include_empty=True))}
        assert parents == {"a": None, "b": "c", "c": "d", "d": None}
        assert "names itself as its parent" in store.run("a").warnings[0]
        assert "names b, which comes from it, as its parent" in store.run("d").warnings[0]


def session(output, *, turns=2, source="claude-code", **facts):
    """A run of a session file; its last turn has this output."""
    records = small_tape.records(source=source)
    last = max(i for i, r in enumerate(records) if r["kind"] == "turn_end")
    records[last] = {**records[last], "usage": {"input": 1, "output": output}, **facts}
    return records


@pytest.mark.parametrize(
    ("source", "facts", "grows"),
    [
        ("claude-code", {}, True),
        ("claude-code", {"response_id": "another"}, False),
        ("sdk", {}, False),
    ],
)
def test_only_a_growing_session_changes_a_complete_turn(source, facts, grows):
    with memory_store() as store:
        store.ingest(session(5, source=source))
        report = store.ingest(session(9, source=source, **facts))
        assert store.turns(small_tape.RUN)[-1].usage.output == (9 if grows else 5)
        assert report.differs == ({} if grows else {small_tape.RUN: 2})
        report = store.ingest(session(3, source=source))
        assert report.differs == {small_tape.RUN: 2}
        assert store.turns(small_tape.RUN)[-1].usage.output == (9 if grows else 5)


def test_a_longer_copy_extends_what_is_here():
    with memory_store() as store:
        whole = list(long_tape.records(turns=4))
        store.ingest([r for r in whole if r.get("turn", 0) <= 2 and r["kind"] != "run_end"])
        report = store.ingest(whole)
        assert (report.differs, store.runs()[0].turns) == ({}, 4)


def test_a_turn_that_was_open_or_failed_is_completed_by_a_file():
    with memory_store() as store:
        store.ingest(ended(small_tape.records(), status="error", error="529", response=None, usage={}))
        assert store.ingest(small_tape.records()).differs == {}
        assert store.runs()[0].usage.output == 320


def changed(records, kind, change):
    """The records with a change in the last one of a kind."""
    last = max(i for i, r in enumerate(records) if r["kind"] == kind)
    return [change(r) if i == last else r for i, r in enumerate(records)]


def results(store):
    return [c.result for t in store.turns(small_tape.RUN) for c in t.tool_calls]


@pytest.mark.parametrize("source", ["claude-code", "sdk"])
def test_another_result_of_a_call_that_has_one_is_kept_out_and_told(source):
    import json

    from looptape.tracer import tape

    whole = list(small_tape.records(source=source))
    seen = [r for r in whole if r["kind"] == "call_seen"][-1]
    said = next(json.loads(r["text"]) for r in whole if r["kind"] == "blob" and r["hash"] == seen["message"])
    forged = tape.blob(json.dumps({**said, "cache": 1}))
    other = json.loads(json.dumps(said))
    for block in other["content"]:
        block["content"] = "something else"
    other = tape.blob(json.dumps(other))
    with memory_store() as store:
        store.ingest(whole)
        before = results(store)
        report = store.ingest([other, *changed(whole, "call_seen", lambda r: {**r, "message": other["hash"]})])
        assert report.differs == {small_tape.RUN: seen["turn"]}
        assert results(store) == before
        same = store.ingest([forged, *changed(whole, "call_seen", lambda r: {**r, "message": forged["hash"]})])
        assert same.differs == {}, "the same result in another message is no contradiction"


def test_a_result_that_was_not_here_yet_comes_in():
    whole = list(small_tape.records(source="claude-code"))
    with memory_store() as store:
        store.ingest([r for r in whole if r["kind"] not in ("call_seen", "call_end")])
        assert results(store) != []
        assert store.ingest(whole).differs == {}
        with memory_store() as fresh:
            fresh.ingest(whole)
            assert results(store) == results(fresh)
