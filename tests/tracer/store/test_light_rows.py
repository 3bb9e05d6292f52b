"""Light rows of turns say what the whole turns say; every row of a run stands under the run's place."""

from __future__ import annotations

from pathlib import Path

import pytest

import small_tape
from looptape.tracer.store import Filter, memory_store, open_store, schema
from looptape.tracer.store.connect import memory
from looptape.tracer.store.rows import Connection

SAME = ("number", "status", "model", "stop_reason", "started_at", "generate_ms", "execute_ms", "user_turn", "inherited",
        "flags", "error", "cost_usd", "usage")  # fmt: skip
OF_CALLS = ("name", "is_error", "valid", "state", "origin", "child_run")
LARGE = ("turns", "calls", "spans")


def places(con: Connection, table: str) -> set[tuple[str, int, int]]:
    """(run, place of the row, place of the run) of a table."""
    query = f"select t.run, t.place, r.place from base.{table} as t join base.runs as r on r.id = t.run"
    return set(con.execute(query).fetchall())


@pytest.mark.parametrize(
    "how", [{}, {"is_error": True}, {"model": "unheard-of", "thinking": "hm"}], ids=["plain", "failed", "unpriced"]
)
def test_light_rows_say_what_whole_turns_say(how: dict[str, object]) -> None:
    with memory_store() as store:
        store.ingest(small_tape.records(**how))  # type: ignore[arg-type]
        whole, light = store.turns(small_tape.RUN), store.turn_rows(small_tape.RUN)
        assert [[getattr(t, n) for n in SAME] for t in light] == [[getattr(t, n) for n in SAME] for t in whole]
        assert [t.attempts for t in light] == [len(t.attempts) for t in whole]
        for left, right in zip(light, whole, strict=True):
            assert [[getattr(c, n) for n in OF_CALLS] for c in left.tool_calls] == [
                [getattr(c, n) for n in OF_CALLS] for c in right.tool_calls
            ]
        assert [t.number for t in store.turn_rows(small_tape.RUN, 2, 2)] == [2]
        assert store.turn_rows("no such run") == []


def test_rows_of_a_run_have_its_place_however_they_came(tmp_path: Path) -> None:
    records = small_tape.records("a" * 16)
    with open_store(tmp_path) as store:
        store.ingest(records[:8])
        store.ingest(small_tape.records("b" * 16))
        store.ingest(records)
        for table in LARGE:
            found = store.write(lambda con, table=table: places(con, table))  # type: ignore[misc]
            assert {run for run, _, _ in found} == {"a" * 16, "b" * 16}
            assert all(row == run for _, row, run in found)
        assert len({place for _, place, _ in found}) == 2
        assert [t.number for t in store.turns("a" * 16)] == [1, 2]


def test_an_older_store_gets_places_when_it_is_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    from looptape.tracer.store import place

    con = memory()
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:5])
        older.setattr(schema, "VERSION", 5)
        schema.migrate(con)
    con.execute("insert into base.runs (id) values ('a'), ('b'), ('empty')")
    con.execute("insert into base.turns (run, number) values ('b', 1), ('a', 1), ('a', 2)")
    con.execute("insert into base.calls (run, turn) values ('a', 1)")
    assert place.of_run(con, "a") == ""
    schema.migrate(con)
    assert con.execute("select id, place from base.runs order by place").fetchall() == [
        ("b", 1),
        ("a", 2),
        ("empty", 3),
    ]
    assert places(con, "turns") == {("a", 2, 2), ("b", 1, 1)}
    assert places(con, "calls") == {("a", 2, 2)}
    assert place.of_run(con, "a") == " and place = 2"


def test_inclusive_totals_of_a_list_count_sub_agents_once() -> None:
    with memory_store() as store:
        store.ingest(small_tape.records("a" * 16))
        store.ingest(
            small_tape.records("b" * 16, parent={"run": "a" * 16, "turn": 1, "call": "c1", "kind": "sub-agent"})
        )
        store.ingest(small_tape.records("c" * 16))
        runs = {r.id[0]: r for r in store.runs(Filter(limit=0))}
    assert runs["a"].inclusive_usage.input == 2 * (runs["a"].usage.input or 0)
    assert runs["b"].inclusive_usage == runs["b"].usage
    assert runs["c"].inclusive_cost_usd == runs["c"].cost_usd


def test_no_column_has_a_default_for_rows_come_without_their_empty_columns() -> None:
    with memory_store() as store:
        columns = store.rows(
            "select table_name, column_name, column_default from duckdb_columns() where schema_name = 'base'"
        )
    assert len(columns) > 100
    assert [c for c in columns if c["column_default"] is not None] == []
