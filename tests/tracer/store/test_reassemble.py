"""Runs out of raw spans: put together again when more comes, each span once, open ones open, nothing left behind."""

from __future__ import annotations

import random

import duckdb
import pytest

from looptape.tracer import clock, otlp
from looptape.tracer.journal import Journal
from looptape.tracer.store import Filter, open_store, reassemble, sync
from receiving import answered, called, chat, export, logs, runs, span, user

ASK = [user("weather?")]
SEEN = [*ASK, called("c1", "search", {"q": "x"}), answered("c1", "sunny")]
FIRST = chat(1, ASK, "", calls=[("c1", "search", {"q": "x"})], parent=9)
TOOL = span(
    3, name="execute_tool search", parent=9, at=1600, ended=100,
    **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.id": "c1"},
)  # fmt: skip
SECOND = chat(2, SEEN, "it is sunny", parent=9, at=2000)
AGENT = span(
    9, name="invoke_agent a", at=900, ended=2000, **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
)


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path)
    yield made
    made.close()


def send(journal, *spans, signal="traces", body=None, **more):
    assert journal.write(otlp.records(signal, body or export(*spans), **more))


def told(home):
    """Everything that a reader sees of the only run."""
    (run,) = runs(home)
    with open_store(home) as store:
        return run, store.turns(run.id), store.request(run.id, 2).messages


def test_in_whatever_order_and_pieces_spans_come_the_run_is_the_same(journal, tmp_path):
    send(journal, AGENT, FIRST, TOOL, SECOND)
    whole = told(tmp_path)
    assert (whole[0].agent, whole[0].status, whole[0].turns, whole[0].tool_calls) == ("a", "completed", 2, 1)
    pick = random.Random(5)
    for number in range(4):
        home = tmp_path / str(number)
        pieces = [AGENT, FIRST, TOOL, SECOND]
        pick.shuffle(pieces)
        other = Journal(home)
        for piece in pieces:
            send(other, piece)
            if pick.random() < 0.7:
                sync(home)
        other.close()
        assert told(home) == whole


def test_the_same_export_again_changes_nothing(journal, tmp_path):
    send(journal, AGENT, FIRST, TOOL, SECOND)
    before = told(tmp_path)
    send(journal, AGENT, FIRST, TOOL, SECOND)
    send(journal, SECOND)
    assert told(tmp_path) == before
    with open_store(tmp_path) as store:
        assert store.rows("select count(*) as n from base.otlp_spans") == [{"n": 4}]


def test_a_late_first_turn_takes_the_place_of_the_run_that_began_without_it(journal, tmp_path):
    send(journal, chat(2, SEEN, "it is sunny", at=2000, trace=2))
    (early,) = runs(tmp_path)
    send(journal, chat(1, ASK, "", calls=[("c1", "search", {"q": "x"})], trace=1))
    (late,) = runs(tmp_path)
    assert (early.turns, late.turns) == (1, 2)
    with open_store(tmp_path) as store:
        left = store.rows("select distinct run from base.turns union select distinct run from base.spans")
    assert left == [{"run": late.id}]


def test_a_bare_loop_is_one_run_though_every_turn_is_a_trace(journal, tmp_path):
    send(journal, chat(1, ASK, "", calls=[("c1", "search", {"q": "x"})], trace=1))
    sync(tmp_path)
    send(journal, chat(2, SEEN, "it is sunny", at=600_000, trace=2))
    assert [r.turns for r in runs(tmp_path)] == [2]


def test_a_run_that_waits_for_a_tool_is_running_until_nothing_was_heard_for_long(journal, tmp_path, monkeypatch):
    send(journal, chat(1, ASK, "", calls=[("c1", "search", {"q": "x"})]))
    assert [r.status for r in runs(tmp_path)] == ["running"]
    later = clock.now() + reassemble.QUIET + 1
    monkeypatch.setattr(clock, "now", lambda: later)
    assert [r.status for r in runs(tmp_path)] == ["interrupted"]


def test_an_open_span_is_an_open_turn_and_its_end_closes_it(journal, tmp_path):
    send(journal, {**FIRST, "endTimeUnixNano": "0"}, open=True)
    with open_store(tmp_path) as store:
        (run,) = store.runs(Filter())
        assert (run.status, store.turns(run.id)[0].status) == ("running", "open")
    send(journal, FIRST)
    with open_store(tmp_path) as store:
        assert store.turns(run.id)[0].status == "ok"
    send(journal, {**FIRST, "endTimeUnixNano": "0"}, open=True)  # a start that comes after the end
    with open_store(tmp_path) as store:
        assert store.turns(run.id)[0].status == "ok"


def test_what_a_gone_writer_left_open_is_interrupted(tmp_path):
    journal = Journal(tmp_path)
    send(journal, {**FIRST, "endTimeUnixNano": "0"}, open=True)
    assert [r.status for r in runs(tmp_path)] == ["running"]
    journal.close()
    (run,) = runs(tmp_path)
    assert (run.status, run.reason) == ("interrupted", "the process ended without a word (killed?) at turn 1")


def test_spans_that_are_no_genai_are_kept_and_make_no_run(journal, tmp_path):
    send(journal, span(1, name="GET /"), body=export(span(1, name="GET /"), scope="http.server"))
    assert runs(tmp_path) == []
    with open_store(tmp_path) as store:
        assert store.rows("select count(*) as n from base.otlp_spans") == [{"n": 1}]


def test_spans_that_cannot_be_put_together_are_kept_and_keep_nobody_from_the_store(journal, tmp_path, monkeypatch):
    def broken(requests):
        raise ValueError("odd spans")
        yield

    with monkeypatch.context() as patch:
        patch.setattr("looptape.tracer.importers.otlp.otlp_live.assembled", broken)
        send(journal, FIRST)
        report = sync(tmp_path)
        assert "could not be put together (ValueError: odd spans)" in report.messages[0]
        assert sync(tmp_path).messages == []
    send(journal, SECOND)
    assert [r.turns for r in runs(tmp_path)] == [2]


def test_a_record_of_no_signal_is_set_aside(journal, tmp_path):
    journal.write([{"kind": "otlp", "signal": "smells", "body": {}}, {"kind": "otlp", "signal": "traces", "body": [1]}])
    assert sync(tmp_path).bad == 1


def test_log_records_outside_any_trace_are_kept_each_once(journal, tmp_path):
    record = {"timeUnixNano": "1790000000000000000", "body": {"stringValue": "claude_code.user_prompt"}}
    for _ in range(2):
        send(journal, signal="logs", body=logs(record, {**record, "timeUnixNano": "1790000000000000001"}))
    sync(tmp_path)
    with open_store(tmp_path) as store:
        assert store.rows("select count(*) as n from base.otlp_spans where signal = 'logs'") == [{"n": 2}]


def test_a_store_of_schema_1_gets_the_tables(tmp_path):
    from looptape.tracer.store import schema

    con_home = tmp_path / "old"
    import duckdb

    from looptape.tracer import paths

    con_home.mkdir()
    with duckdb.connect(str(paths.store_file(con_home))) as con:
        con.execute(schema._script("001_tables.sql"))
        con.execute("insert into base.meta values ('schema_version', '1'), ('reader_version', '1')")
    journal = Journal(con_home)
    send(journal, AGENT, FIRST, TOOL, SECOND)
    journal.close()
    assert [r.turns for r in runs(con_home)] == [2]


def test_ctrl_c_while_spans_are_put_together_is_felt_and_their_run_comes_the_next_time(journal, tmp_path, monkeypatch):
    send(journal, FIRST, SECOND)

    def interrupted(*_):
        raise RuntimeError("Query interrupted")  # what DuckDB makes of it

    with monkeypatch.context() as patch:
        patch.setattr(reassemble, "_round", interrupted)
        with pytest.raises(KeyboardInterrupt):
            runs(tmp_path)
    assert [run.turns for run in runs(tmp_path)] == [2]


def test_spans_that_memory_does_not_suffice_for_wait_and_are_said(journal, tmp_path, monkeypatch):
    send(journal, FIRST, SECOND)

    def short(*_):
        raise duckdb.OutOfMemoryException("Out of Memory Error: could not allocate")

    with monkeypatch.context() as patch:
        patch.setattr(reassemble, "_round", short)
        with open_store(tmp_path) as store:
            assert (store.runs(Filter()), [n for n in store.notices if "wait for the next command" in n]) == (
                [],
                ["spans that came in wait for the next command (Out of Memory Error: could not allocate)"],
            )
    assert [run.turns for run in runs(tmp_path)] == [2]
