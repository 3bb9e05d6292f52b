"""From records to runs, turns and calls: the same again changes nothing, the order is free."""

from __future__ import annotations

import json

import pytest

import long_tape
import small_tape
from looptape.tracer import tape
from looptape.tracer.errors import LooptapeError
from looptape.tracer.model import Parent, Usage
from looptape.tracer.store import Filter, memory_store

RUN = small_tape.RUN
SECOND = small_tape.SECOND


@pytest.fixture
def store():
    with memory_store() as made:
        yield made


def everything(store):
    """All rows of all tables, for comparing."""
    tables = ("runs", "turns", "calls", "attempts", "spans", "chunks", "events", "blobs")
    return {t: sorted(map(repr, store.rows(f"select * from base.{t}"))) for t in tables}


def test_a_loop_is_there_as_it_was(store):
    report = store.ingest(small_tape.records(is_error=True, thinking="hm", limits={"turns": 8}, tags={"a": "b"}))
    assert (report.runs, report.turns, report.tool_calls, report.bad) == ([RUN], 2, 1, [])
    run = store.run(RUN)
    assert (run.name, run.status, run.reason, run.turns, run.tool_calls, run.errors) == (
        "revenue",
        "completed",
        "end_turn",
        2,
        1,
        1,
    )
    assert (run.limits, run.tags, run.models) == ({"turns": 8}, {"a": "b"}, ("claude-sonnet-4-5",))
    first, last = store.turns(RUN)
    assert (first.text, first.thinking, last.text, first.message_count, last.message_count) == (
        "I look it up.",
        "hm",
        "It is 84.",
        1,
        3,
    )
    (call,) = first.tool_calls
    assert (call.name, call.arguments, call.result, call.is_error, call.state) == (
        "search",
        {"q": "revenue"},
        "revenue: 1200",
        True,
        "done",
    )
    request = store.request(RUN, 2)
    assert (request.kept, request.system, request.params) == (1, "You are a careful analyst.", {"max_tokens": 100})
    assert [m["role"] for m in request.messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize("again", ["whole", "backwards", "half"])
def test_the_same_records_again_change_nothing(store, again):
    records = [
        *long_tape.records(turns=5),
        {"kind": "event", "run": "a" * 16, "turn": 2, "at": 5, "event": "compaction", "detail": {"from": 10}},
        {
            "kind": "run_update",
            "run": "a" * 16,
            "at": 6,
            "tags": {"x": "y"},
            "warnings": ["w"],
            "outcome": {"verdict": "pass"},
        },
    ]
    store.ingest(records)
    before = everything(store)
    blobs = [r for r in records if r["kind"] == "blob"]
    part = {"whole": records, "backwards": blobs + records[::-1], "half": records[: len(records) // 2]}[again]
    store.ingest(part)
    assert everything(store) == before


def test_one_record_at_a_time_is_the_same_as_all_at_once(store):
    records = list(long_tape.records(turns=4))
    for record in records:
        store.ingest([record])
    with memory_store() as whole:
        whole.ingest(records)
        assert store.turns("a" * 16) == whole.turns("a" * 16)
        assert store.run("a" * 16) == whole.run("a" * 16)


def test_a_result_is_stored_once_where_the_model_saw_just_that(store):
    store.ingest(long_tape.records(turns=3, size=500))
    assert store.rows("select count(*) as n from base.calls where returned_json is not null") == [{"n": 1}]
    assert store.turns("a" * 16)[0].tool_calls[0].result == long_tape.source_text("a" * 16 + "1", 500)


def test_what_the_model_saw_instead_is_the_result_and_what_was_returned_is_kept(store):
    records = small_tape.records(result="cut ...")
    records.insert(
        -1,
        {
            "kind": "call_end",
            "run": RUN,
            "turn": 1,
            "call": "c1",
            "at": 1,
            "result": {"long": "thing"},
            "is_error": False,
        },
    )
    store.ingest(records)
    (call,) = store.turns(RUN)[0].tool_calls
    assert call.result == "cut ..."
    assert call.result_length == len('{"long":"thing"}')
    assert store.sql("select result, returned from tool_calls")[2] == [("cut ...", '{"long":"thing"}')]


def test_without_content_figures_names_and_hashes_remain(store):
    records = [
        {"kind": "blob", "hash": r["hash"], "length": len(r["text"])} if r["kind"] == "blob" else r
        for r in small_tape.records()
    ]
    store.ingest(records)
    first, last = store.turns(RUN)
    assert (first.usage.output, first.tool_calls[0].name, last.text, first.response) == (300, "search", None, None)
    message = store.request(RUN, 1).messages[0]
    assert (message["not_recorded"], message["content"]) == (True, None)
    assert store.wire(RUN, 1).request_text is None
    store.ingest(small_tape.records())  # the same loop with its content: the texts are filled in
    assert store.turns(RUN)[1].text is not None or store.wire(RUN, 1).request_text is not None


def test_a_call_that_only_its_result_tells_of_is_there(store):
    records = [r if r["kind"] != "turn_end" else {**r, "calls": []} for r in small_tape.records()]
    store.ingest(records)
    (call,) = store.turns(RUN)[0].tool_calls
    assert (call.id, call.result) == ("c1", "revenue: 1200")


def test_a_later_answer_of_the_same_turn_wins_whole(store):
    records = small_tape.records()
    end = next(r for r in records if r["kind"] == "turn_end")
    failed = {
        **end,
        "at": end["at"] - 5,
        "status": "error",
        "error": "overloaded",
        "calls": [],
        "response": None,
        "usage": {},
    }
    store.ingest([*records[:-1], failed, records[-1]])
    assert store.turns(RUN)[0].status == "ok"
    late = {**end, "at": end["at"] + 5, "calls": [], "stop_reason": "end_turn", "flags": ["retried"]}
    store.ingest([late])
    turn = store.turns(RUN)[0]
    assert (turn.stop_reason, turn.flags) == ("end_turn", ("retried",))


@pytest.mark.parametrize("order", [1, -1])
def test_a_run_that_goes_on_after_its_end_is_running_again(store, order):
    first = [r for r in small_tape.records() if r.get("turn") != 2]
    more = {"kind": "turn_start", "run": RUN, "turn": 2, "at": small_tape.START + 9 * SECOND, "keep": 0, "append": []}
    for record in [first, [more]][::order]:
        store.ingest(record)
    assert store.run(RUN).status == "running"
    store.ingest(
        [
            {
                "kind": "run_end",
                "run": RUN,
                "at": small_tape.START + 10 * SECOND,
                "status": "limit",
                "reason": "max_tokens",
            }
        ]
    )
    assert (store.run(RUN).status, store.run(RUN).reason) == ("limit", "max_tokens")


def test_an_imported_status_without_an_end_stays(store):
    records = [r for r in small_tape.records(status="unknown") if r["kind"] != "run_end"]
    store.ingest(records)
    assert store.run(RUN).status == "unknown"
    assert store.turns(RUN)[0].tool_calls[0].state == "done"


def test_an_unanswered_call_of_an_interrupted_run_has_no_result(store):
    records = [r for r in small_tape.records() if r.get("turn") != 2 and r["kind"] != "call_seen"]
    records[-1] = {**records[-1], "status": "interrupted", "reason": "killed"}
    store.ingest(records)
    assert store.run(RUN).status == "interrupted"
    assert store.turns(RUN)[0].tool_calls[0].state == "no_result"


def test_measured_phases(store):
    store.ingest(long_tape.records(turns=2))
    first, last = store.turns("a" * 16)
    assert (first.generate_ms, first.parse_ms, first.execute_ms, first.resume_ms) == (400, 10, 40, 550)
    assert (last.resume_ms, last.tool_calls[0].timing, last.tool_calls[0].ms) == (None, "measured", 40)


def test_inferred_phases(store):
    store.ingest(small_tape.records())
    first, last = store.turns(RUN)
    (call,) = first.tool_calls
    assert (first.generate_ms, first.parse_ms, first.execute_ms, first.resume_ms) == (1000, None, 1000, None)
    assert (call.timing, call.started_at, call.ended_at) == ("inferred", first.ended_at, last.started_at)
    assert (last.parse_ms, last.execute_ms) == (None, None)


def test_overlapping_phases_are_never_negative(store):
    records = small_tape.records()
    at = small_tape.START
    records[-1:-1] = [
        {
            "kind": "call_start",
            "run": RUN,
            "turn": 1,
            "call": "c1",
            "at": at + SECOND // 2,
        },  # before the answer was whole
        {
            "kind": "call_end",
            "run": RUN,
            "turn": 1,
            "call": "c1",
            "at": at + 5 * SECOND,
            "result": "x",
            "is_error": False,
        },
    ]
    store.ingest(records)
    first = store.turns(RUN)[0]
    assert (first.parse_ms, first.resume_ms) == (0, 0)


def test_a_sub_agent_is_the_child_of_its_call_whichever_came_first(store):
    child = "c" * 16
    parent = {"run": RUN, "turn": 1, "call": "c1", "kind": "sub-agent"}
    store.ingest(small_tape.records(child, parent=parent))
    store.ingest(small_tape.records())
    assert store.turns(RUN)[0].tool_calls[0].child_run == child
    assert store.run(child).parent == Parent(RUN, 1, "c1", "sub-agent")
    with memory_store() as other:
        other.ingest(small_tape.records())
        other.ingest(small_tape.records(child, parent=parent))
        assert other.turns(RUN)[0].tool_calls[0].child_run == child


def test_inclusive_totals_count_every_descendant_once(store):
    def sub(run, of):
        return small_tape.records(run, parent={"run": of, "turn": 1, "call": "c1", "kind": "sub-agent"})

    store.ingest(small_tape.records())
    store.ingest(sub("b" * 16, RUN))
    store.ingest(sub("c" * 16, "b" * 16))
    store.ingest(small_tape.records("f" * 16, parent={"run": RUN, "turn": 2, "kind": "fork"}))
    run = store.run(RUN)
    assert run.usage.input == 2700
    assert run.inclusive_usage.input == 3 * 2700
    assert run.inclusive_cost_usd == pytest.approx(3 * run.cost_usd)
    # two runs that name each other as parents are no endless story
    store.ingest(
        [
            {
                "kind": "run_start",
                "run": RUN,
                "at": 1,
                "parent": {"run": "c" * 16, "turn": 1, "call": "c1", "kind": "sub-agent"},
            }
        ]
    )
    assert store.run(RUN).inclusive_usage.input == 3 * 2700


def test_inherited_turns_are_shown_but_not_owned(store):
    records = [
        {**r, "inherited": True} if r["kind"] == "turn_start" and r["turn"] == 1 else r for r in small_tape.records()
    ]
    store.ingest(records)
    run = store.run(RUN)
    assert [t.inherited for t in store.turns(RUN)] == [True, False]
    assert (run.turns, run.usage.input, run.inclusive_usage.input) == (2, 1500, 2700)


def test_an_unknown_model_is_unpriced_never_free(store):
    store.ingest(small_tape.records(model="acme-large-1"))
    run = store.run(RUN)
    assert (run.cost_usd, run.unpriced_turns) == (None, 2)
    assert [t.cost_usd for t in store.turns(RUN)] == [None, None]


def test_a_failed_turn_without_usage_is_neither_unpriced_nor_makes_totals_partial(store):
    records = small_tape.records()
    end = next(r for r in records if r["kind"] == "turn_end" and r["turn"] == 2)
    end.update(
        status="error", error="overloaded", error_type="overloaded_error", response=None, usage={}, usage_raw=None
    )
    store.ingest(records)
    run = store.run(RUN)
    assert (run.errors, run.unpriced_turns, run.usage.partial, run.usage.input) == (1, 0, False, 1200)


def test_usage_is_taken_from_the_response_when_the_record_has_none(store):
    records = list(long_tape.records(turns=1))
    for record in records:
        if record["kind"] == "turn_end":
            for name in ("usage", "usage_raw", "calls", "stop_reason", "model", "response_id"):
                record.pop(name, None)
    store.ingest(records)
    (turn,) = store.turns("a" * 16)
    assert turn.usage == Usage(input=10, output=20, origin="recorded", raw={"input_tokens": 10, "output_tokens": 20})
    assert (turn.stop_reason, turn.model, turn.response_id) == ("tool_use", "claude-sonnet-4-5", f"msg_{'a' * 16}_1")
    assert [c.name for c in turn.tool_calls] == ["read_file"]


def test_what_the_provider_ran_itself_is_the_providers(store):
    records = small_tape.records()
    end = next(r for r in records if r["kind"] == "turn_end" and r["turn"] == 1)
    end["calls"].append(
        {
            "id": "s1",
            "name": "web_search",
            "arguments_raw": "{}",
            "valid": True,
            "origin": "provider",
            "result": [1],
            "is_error": False,
        }
    )
    store.ingest(records)
    call = store.turns(RUN)[0].tool_calls[1]
    assert (call.origin, call.result, call.state, call.started_at, call.timing) == ("provider", [1], "done", None, None)


def test_two_calls_of_one_turn_may_share_an_id(store):
    records = small_tape.records()
    end = next(r for r in records if r["kind"] == "turn_end" and r["turn"] == 1)
    end["calls"] = [*end["calls"], dict(end["calls"][0])]
    store.ingest(records)
    store.ingest(records)
    assert [c.result for c in store.turns(RUN)[0].tool_calls] == ["revenue: 1200", None]


def test_chunks_keep_their_borders_and_offsets(store):
    records = small_tape.records()
    records[-1:-1] = [
        {
            "kind": "chunk",
            "run": RUN,
            "turn": 1,
            "attempt": a,
            "seq": s,
            "parts": [[s * 10, f"{a}-{s}\n"], [s * 10 + 1, "é\ud83e"]],
        }
        for a in (1, 2)
        for s in (1, 0)
    ]
    store.ingest(records)
    assert store.wire(RUN, 1).chunks == ((0, "2-0\n"), (1, "é\ud83e"), (10, "2-1\n"), (11, "é\ud83e"))


def test_a_thread_that_the_server_held_is_seen_whole(store):
    records = small_tape.records()
    hello = tape.blob('{"role":"user","content":"and next year?"}')
    records += [
        hello,
        {"kind": "turn_start", "run": RUN, "turn": 3, "at": small_tape.START + 9 * SECOND, "keep": 0, "base": 2,
         "append": [hello["hash"]], "mode": "thread", "api": "anthropic.messages", "provider": "anthropic"},
    ]  # fmt: skip
    store.ingest(records)
    got = store.request(RUN, 3).messages
    assert [m["role"] for m in got] == ["user", "assistant", "user", "assistant", "user"]
    assert got[3]["content"] == [{"type": "text", "text": "It is 84."}]
    assert json.loads(store.wire(RUN, 3).request_text)["messages"] == [json.loads(hello["text"])]


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "turn_start", "turn": 1}, {"kind": "turn_start", "run": "", "turn": 1}, {"kind": "turn_start", "run": "r"},
        {"kind": "turn_start", "run": "r", "turn": 0}, {"kind": "turn_start", "run": "r", "turn": True},
        {"kind": "turn_start", "run": "r", "turn": 1, "append": ["nope"]}, {"kind": "turn_start", "run": "r", "turn": [1]},
        {"kind": "turn_end", "run": "r", "turn": 1, "status": "fine"}, {"kind": "turn_end", "run": "r", "turn": 1, "calls": 7},
        {"kind": "turn_end", "run": "r", "turn": 1, "at": 2**70}, {"kind": "turn_end", "run": "r", "turn": {}, "calls": []},
        {"kind": "run_end", "run": "r", "status": "great"}, {"kind": "run_start", "run": "r", "parent": "x"},
        {"kind": "blob", "hash": "0" * 32, "text": "other"}, {"kind": "blob", "text": "x"}, {"kind": "chunk", "run": "r", "turn": 1},
        {"kind": "call_end", "run": "r", "turn": 1}, {"kind": "call_seen", "run": "r", "turn": 1, "call": "c", "message": 3},
        {"kind": "event", "run": "r"}, {"kind": "run_start", "run": 7}, {"kind": "run_update", "run": "r", "tags": [1]},
    ],
    ids=lambda r: f"{r['kind']}-{len(str(r))}",
)  # fmt: skip
def test_a_bad_record_is_set_aside_and_the_others_go_in(store, record):
    report = store.ingest([record, *small_tape.records()])
    assert [position for position, _ in report.bad] == [1]
    assert store.run(RUN).turns == 2
    assert store.rows("select position from base.bad_record") == [{"position": 1}]


def test_a_tape_of_a_newer_format_is_refused_whole(store):
    with pytest.raises(LooptapeError) as caught:
        store.ingest([{"kind": "header", "format": "looptape", "version": 99}, *small_tape.records()])
    assert caught.value.slug == "tape-newer"
    assert store.count(Filter(include_empty=True)) == 0


def test_a_journal_that_comes_as_a_file_has_no_writer_any_more(store):
    records = [tape.header(journal="w"), *small_tape.records()[:-1]]
    store.ingest(records)
    assert store.run(RUN).status == "interrupted"
    store.ingest(records)
    assert store.run(RUN).status == "interrupted"


def test_runs_are_listed_filtered_and_sorted(store):
    store.ingest(small_tape.records("1" * 16, name="one", start=small_tape.START, task="t", session="s"))
    store.ingest(
        small_tape.records("2" * 16, name="two", start=small_tape.START + 100, is_error=True, tool="calculator")
    )
    store.ingest(small_tape.records("3" * 16, name="Three", start=small_tape.START + 50, model="gpt-4o"))
    store.ingest([{"kind": "run_start", "run": "4" * 16, "at": 1, "name": "empty"}])
    store.ingest([{"kind": "run_update", "run": "1" * 16, "outcome": {"verdict": "pass"}}])

    def ids(**given):
        return "".join(r.id[0] for r in store.runs(Filter(**given)))

    assert ids() == "231"
    assert ids(include_empty=True) == "2314"
    assert ids(error=True) == "2"
    assert ids(error=False) == "31"
    assert ids(tool="calculator") == "2"
    assert ids(model="gpt-4o") == "3"
    assert ids(text="THREE") == "3"
    assert ids(since=small_tape.START + 60) == "2"
    assert ids(task="t") == ids(session="s") == ids(name="one") == ids(outcome="pass") == "1"
    assert ids(status="completed", limit=2) == "23"
    assert store.count(Filter(limit=1)) == 3
    assert ids(ids=("4" * 16, "1" * 16)) == "14"
    for sort in ("cost", "turns", "errors", "wasted"):
        assert sorted(ids(sort=sort)) == ["1", "2", "3"]
    assert ids(sort="errors")[0] == "2"
    with pytest.raises(LooptapeError):
        store.runs(Filter(sort="colour"))


def test_runs_are_found_by_id_prefix_and_name(store):
    for n, (run, name) in enumerate(
        [("abc1" + "0" * 12, "one"), ("abd2" + "0" * 12, "two"), ("f" * 16, "abc1"), ("e" * 16, "two")]
    ):
        store.ingest(small_tape.records(run, name=name, start=small_tape.START + n))

    def found(text):
        return [r.id[:4] for r in store.find(text)]

    assert found("abc1" + "0" * 12) == ["abc1"]
    assert found("abc") == ["abc1"]
    assert found("ab") == ["abd2", "abc1"]
    assert found("two") == ["eeee", "abd2"]
    assert found("nothing") == found("") == []


def test_what_is_not_there_is_an_error_that_says_so(store):
    store.ingest(small_tape.records())
    with pytest.raises(LooptapeError, match="there is no run zzz"):
        store.run("zzz")
    with pytest.raises(LooptapeError, match="It has turns 1 to 2"):
        store.request(RUN, 9)
    with pytest.raises(LooptapeError):
        store.wire(RUN, 9)
    assert store.turns("zzz") == []
