"""One file of the user's beside the views: it can be read, and nothing else can be reached through it."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

import small_tape
from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tracer.store import Store, memory_store, open_store


@pytest.fixture
def store(tmp_path: Path):
    with open_store(tmp_path / "home") as made:
        made.ingest(small_tape.records())
        yield made


FILES = {
    "plans.csv": "copy (select 'revenue' as name, 'gold' as plan) to '{}'",
    "plans.tsv": "copy (select 'revenue' as name, 'gold' as plan) to '{}' (delimiter '\t')",
    "plans.parquet": "copy (select 'revenue' as name, 'gold' as plan) to '{}'",
    "plans.json": "copy (select 'revenue' as name, 'gold' as plan) to '{}'",
    "it's odd.csv": "copy (select 'revenue' as name, 'gold' as plan) to '{}'",
    "runs.csv": "copy (select 'revenue' as name, 'gold' as plan) to '{}'",
}
NAMES = {"it's odd.csv": "it_s_odd", "runs.csv": "file_runs"}


def made(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.exists():
        with duckdb.connect() as con:
            con.execute(FILES[name].format(str(path).replace("'", "''")))
    return path


def database(folder: Path, name: str = "crm.duckdb") -> Path:
    path = folder / name
    with duckdb.connect(str(path)) as con:
        con.execute("create table plans as select 'revenue' as name, 'gold' as plan; create schema deep")
        con.execute("create table deep.more as select 7 as n")
        con.execute(f"copy (select 1 as secret) to '{folder / 'secret.csv'}'")
        con.execute(f"create view escape as select * from read_csv('{folder / 'secret.csv'}')")
    return path


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_a_table_of_its_name(store: Store, tmp_path: Path, name: str) -> None:
    found = store.attach(made(tmp_path, name))
    assert found.name == NAMES.get(name, "plans")
    query = f'select r.name, p.plan from runs as r join "{found.name}" as p on p.name = r.name'
    assert store.sql(query)[2] == [("revenue", "gold")]


def test_a_database_has_its_tables_under_its_name(store: Store, tmp_path: Path) -> None:
    store.attach(database(tmp_path))
    for table in ("crm.plans", "crm.main.plans", "CRM.plans"):
        assert store.sql(f"select p.plan from runs as r join {table} as p on p.name = r.name")[2] == [("gold",)]
    assert store.sql("select n from crm.deep.more")[2] == [(7,)]
    assert store.sql("select count(*) from runs")[2] == [(1,)]


def test_another_store_can_be_attached_under_its_views(store: Store, tmp_path: Path) -> None:
    with open_store(tmp_path / "theirs") as theirs:
        theirs.ingest(small_tape.records("f" * 16))
    found = store.attach(tmp_path / "theirs" / "store.duckdb")
    assert store.sql(f"select id from {found.name}.runs union all select id from runs order by 1")[2] == [
        (small_tape.RUN,), ("f" * 16,),
    ]  # fmt: skip


ESCAPES = [
    "select * from read_csv('{folder}/secret.csv')", "select * from '{folder}/secret.csv'",
    "select * from read_text('/etc/passwd')", "select * from glob('{folder}/*')", "select * from crm.escape",
    "select * from read_blob('{folder}/crm.duckdb')", "attach '{folder}/secret.csv' as x", "detach crm",
    "insert into crm.plans values ('a', 'b')", "create table crm.x as select 1", "drop table crm.plans",
    "copy (select 1) to '{folder}/out.csv'", "copy crm.plans to '{folder}/out.csv'", "update crm.plans set plan = ''",
    "set enable_external_access = true", "set allowed_paths = ['/']", "reset enable_external_access", "install httpfs",
    "select * from base.runs", "select * from crm.information_schema.tables", "select * from crm.pg_catalog.pg_class",
    "select * from duckdb_secrets()", "select * from crm.duckdb_tables()", "use crm", "export database '{folder}/x'",
    "select * from query('select * from base.runs')", "select 1; select * from base.runs", "call pragma_version()",
    "select * from store.base.runs", "with crm as (select 1) select * from base.runs", "select * from sniff_csv('{folder}/secret.csv')",
    "select * from parquet_metadata('{folder}/secret.csv')", "pragma database_list", "select * from 'https://example.com/x.csv'",
]  # fmt: skip


@pytest.mark.parametrize("query", ESCAPES)
def test_nothing_else_is_in_reach(store: Store, tmp_path: Path, query: str) -> None:
    path = database(tmp_path)
    before = path.read_bytes()
    store.attach(path)
    with pytest.raises(UsageError) as refused:
        store.sql(query.format(folder=tmp_path))
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
    assert not (tmp_path / "out.csv").exists()


def test_the_connection_itself_is_closed_to_other_files(store: Store, tmp_path: Path) -> None:
    """Behind the check of the query stands the database's own lock."""
    store.attach(made(tmp_path, "plans.csv"))
    (tmp_path / "secret.csv").write_text("a\n1\n")
    for query in (
        f"select * from read_csv('{tmp_path / 'secret.csv'}')",
        f"attach '{tmp_path / 'new.duckdb'}' as x",
        f"copy (select 1) to '{tmp_path / 'plans.csv'}'",
        "set enable_external_access = true",
        "set allowed_directories = ['/']",
    ):
        with pytest.raises(duckdb.Error):
            store.rows(query)
    assert (tmp_path / "plans.csv").read_text() == "name,plan\nrevenue,gold\n"


def test_after_a_write_the_file_is_gone_again(store: Store, tmp_path: Path) -> None:
    store.attach(made(tmp_path, "plans.csv"))
    store.ingest(small_tape.records("e" * 16))
    with pytest.raises(UsageError):
        store.sql("select * from plans")
    assert store.sql("select count(*) from runs")[2] == [(2,)]


@pytest.mark.parametrize(
    "name", ["absent.csv", "folder.csv", "all*.csv", "a[b].csv", "notes.txt", "broken.parquet", "broken.duckdb"]
)
def test_what_cannot_be_attached_is_one_line(store: Store, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "folder.csv":
        path.mkdir()
    elif name != "absent.csv":
        path.write_text("no such thing\n")
    with pytest.raises(LooptapeError) as refused:
        store.attach(path)
    assert (refused.value.slug, refused.value.exit_code) == ("bad-attachment", 2)
    assert "\n" not in str(refused.value)
    assert store.sql("select count(*) from runs")[2] == [(1,)]


def test_a_store_in_memory_takes_no_file(tmp_path: Path) -> None:
    with memory_store() as store, pytest.raises(LooptapeError, match="in memory"):
        store.attach(made(tmp_path, "plans.csv"))


def test_a_link_is_the_file_behind_it(store: Store, tmp_path: Path) -> None:
    target = made(tmp_path, "plans.csv")
    os.symlink(target, tmp_path / "link.csv")
    assert store.attach(tmp_path / "link.csv").name == "plans"
