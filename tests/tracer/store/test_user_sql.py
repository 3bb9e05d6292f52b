"""What users may ask in SQL, and what they may not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import long_tape
import small_tape
from looptape.tracer.errors import UsageError
from looptape.tracer.store import memory_store, open_store

DOCS = Path(__file__).resolve().parents[3] / "docs" / "schema.md"
EXAMPLES = re.findall(r"```sql\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def store():
    with memory_store() as made:
        made.ingest(long_tape.records(turns=5))
        made.ingest(small_tape.records(is_error=True))
        yield made


@pytest.mark.parametrize("query", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_of_the_documentation_runs(store, query):
    names, types, _ = store.sql(query)
    assert len(names) == len(types) > 0
    assert len(EXAMPLES) >= 8


def test_every_column_of_the_views_is_documented(store):
    text = DOCS.read_text("utf-8")
    sections = dict(zip(*[iter(re.split(r"^## (\w+)\n", text, flags=re.MULTILINE)[1:])] * 2, strict=False))
    for view in ("runs", "turns", "tool_calls", "messages", "attempts", "events"):
        names = store.sql(f"select * from {view}")[0]
        said = set(re.findall(r"`(\w+)`", sections[view]))
        usage = {"cache_read", "cache_write_5m", "cache_write_1h", "output"} if view == "turns" else set()
        assert set(names) - said - usage == set(), view


def test_the_views_say_what_the_objects_say(store):
    run = store.runs()[0]
    names, _, rows = store.sql(f"select * from runs where id = '{run.id}'")
    row = dict(zip(names, rows[0], strict=True))
    for name in ("name", "status", "reason", "turns", "tool_calls", "errors", "cost_usd", "unpriced_turns", "project"):
        assert row[name] == getattr(run, name), name
    names, _, rows = store.sql(f"select * from turns where run = '{run.id}' order by number")
    for got, turn in zip(rows, store.turns(run.id), strict=True):
        row = dict(zip(names, got, strict=True))
        for name in (
            "model",
            "stop_reason",
            "status",
            "generate_ms",
            "parse_ms",
            "execute_ms",
            "resume_ms",
            "cost_usd",
            "text",
        ):
            assert row[name] == getattr(turn, name), name
    names, _, rows = store.sql(f"select * from tool_calls where run = '{run.id}' order by turn")
    calls = [c for t in store.turns(run.id) for c in t.tool_calls]
    for got, call in zip(rows, calls, strict=True):
        row = dict(zip(names, got, strict=True))
        for name in (
            "id",
            "name",
            "result",
            "result_digest",
            "result_length",
            "is_error",
            "state",
            "ms",
            "timing",
            "side_effect",
        ):
            assert row[name] == getattr(call, name), name


@pytest.mark.parametrize(
    "query",
    [
        "insert into runs values (1)", "update base.runs set name = 'x'", "delete from base.turns", "drop view runs",
        "create table x as select 1", "attach '/etc/passwd'", "copy runs to '/tmp/looptape-escape.csv'",
        "copy (select 1) to '/tmp/looptape-escape.csv'", "export database '/tmp/looptape-escape'", "pragma database_list",
        "set memory_limit = '9GB'", "reset memory_limit", "install httpfs", "load httpfs", "call pragma_version()",
        "select * from read_csv('/etc/passwd')", "select * from read_text('/etc/passwd')", "select * from '/etc/passwd'",
        "from 'https://example.com/x.parquet'", "select * from glob('/*')", "select * from base.runs",
        "select (select count(*) from base.blobs)", "with x as (select * from base.calls) select * from x",
        "select * from duckdb_settings()", "select * from information_schema.tables", "select * from sqlite_master",
        "select * from query('select * from base.runs')", "select * from query_table('base.runs')",
        "explain analyze insert into base.meta values ('x', 'y')", "select 1; drop table base.runs", "checkpoint",
        "begin", "use base", "detach store", "describe base.runs", "summarize base.runs", "prepare x as select 1",
        "select * from runs union all by name select * from base.runs", "vacuum", "select * from pg_catalog.pg_class",
        "", "   ;  ", "-- nothing",
    ],
)  # fmt: skip
def test_anything_but_reading_the_views_is_refused_in_one_line(store, query, tmp_path):
    with pytest.raises(UsageError) as caught:
        store.sql(query.replace("/tmp/looptape-escape", str(tmp_path / "escape")))
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert caught.value.cure
    assert list(tmp_path.iterdir()) == []
    assert store.count() == 2


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("selec 1", "line 1, column 1"),
        ("select *\nfro runs", "line 2, column 5"),
        ("select nonsense from runs", "line 1, column 8"),
        ("select *\nfrom runs\nwhere foo = 1", "line 3, column 7"),
    ],
)
def test_wrong_sql_is_one_clear_line_with_the_place(store, query, place):
    with pytest.raises(UsageError) as caught:
        store.sql(query)
    assert place in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "from runs", "describe turns", "show tables", "summarize tool_calls", "values (1)", "explain select * from runs",
        "select * from runs, unnest([1, 2])", "select * from main.turns limit 1", "with runs as (select 1) select * from runs",
        "select i from range(3) as t(i)",
        "select json_extract_string(message, '$.role') from messages",
    ],
)  # fmt: skip
def test_reading_in_all_its_forms_works(store, query):
    assert store.sql(query)[0]


def test_a_limit_cuts_the_rows(store):
    assert len(store.sql("select * from turns", limit=3)[2]) == 3


def test_a_store_on_disk_is_as_closed_as_one_in_memory(tmp_path):
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records())
        for query in (
            "select * from base.runs",
            "select * from read_text('/etc/passwd')",
            f"copy runs to '{tmp_path / 'escape.csv'}'",
        ):
            with pytest.raises(UsageError):
                store.sql(query)
        assert store.sql("select count(*) from runs")[2] == [(1,)]


def test_names_of_python_variables_are_no_tables(store):
    secret = [1, 2, 3]  # noqa: F841 - DuckDB would find it
    with pytest.raises(UsageError):
        store.sql("select * from secret")


HIDDEN = "select name, sql from sqlite_master"


@pytest.mark.parametrize(
    "query",
    [
        f"select * from (with sqlite_master as (select 1 a) select * from sqlite_master) t, ({HIDDEN}) u",
        f"with t as ({HIDDEN}), sqlite_master as (select 1 a) select * from t",
        "with sqlite_master as (select 1 a) select * from main.sqlite_master",
        f"select * from (with recursive sqlite_master as (select 1 a) select * from sqlite_master) t, ({HIDDEN}) u",
        f"select (with pragma_database_list as (select 1 a) select a from pragma_database_list), ({HIDDEN} limit 1)",
        "select * from pragma_database_list",
        f"/* c */ explain analyze {HIDDEN}",
    ],
)
def test_a_name_is_a_with_query_only_where_it_stands(store, query):
    with pytest.raises(UsageError) as refused:
        store.sql(query)
    assert refused.value.slug in ("sql-views-only", "bad-sql")


def test_what_was_checked_is_what_runs(store):
    assert "sqlite_master" not in str(store.sql(f"/* /* */ explain select 1 -- */ explain {HIDDEN}"))


@pytest.mark.parametrize(
    "query",
    [
        "/* c */ explain select 1",
        "-- c\nexplain /* d */ analyze select * from runs",
        "explain (format json) select 1",
        "with a as (select 1 x), b as (select x from a) select * from b, (with c as (select x from a) select * from c) d",
        "with recursive n as (select 1 x union all select x + 1 from n where x < 3) select * from n",
        "with runs as (select id from runs) select * from runs",
    ],
)
def test_explain_and_with_queries_run(store, query):
    assert store.sql(query)[2]
