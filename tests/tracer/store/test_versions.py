"""Stores of other versions: brought up to ours, or refused politely while recording goes on."""

from __future__ import annotations

import duckdb
import pytest

import long_tape
import small_tape
from looptape.tracer import paths, tape
from looptape.tracer.errors import LooptapeError
from looptape.tracer.journal import Journal
from looptape.tracer.store import open_store, schema, sync


def make_newer(home, *, reader):
    """A store that a later looptape has migrated."""
    with open_store(home) as store:
        store.ingest(small_tape.records())
    with duckdb.connect(str(paths.store_file(home))) as con:
        con.execute("update base.meta set value = '99' where key = 'schema_version'")
        con.execute("update base.meta set value = ? where key = 'reader_version'", [reader])
        con.execute("alter table base.runs add column colour varchar")


def test_a_store_of_a_newer_version_is_read_with_a_notice_and_never_written(tmp_path):
    make_newer(tmp_path, reader=str(schema.VERSION))
    file = long_tape.journal(tmp_path, "w", [tape.line(r) for r in long_tape.records(turns=1)])
    with open_store(tmp_path) as store:
        assert store.run(small_tape.RUN).turns == 2
        assert "newer looptape (schema 99" in store.notices[0]
        with pytest.raises(LooptapeError) as caught:
            store.ingest(long_tape.records())
        assert caught.value.slug == "store-newer"
    with pytest.raises(LooptapeError, match="Upgrade looptape") as caught:
        sync(tmp_path)
    assert (caught.value.slug, caught.value.exit_code) == ("store-newer", 3)
    assert file.exists()


def test_a_store_that_we_cannot_even_read_is_refused_and_recording_goes_on(tmp_path):
    make_newer(tmp_path, reader="99")
    with pytest.raises(LooptapeError) as caught, open_store(tmp_path):
        pass
    assert caught.value.slug == "store-newer"
    journal = Journal(tmp_path)
    assert journal.write(list(long_tape.records(turns=1)))
    journal.close()


def test_migrations_are_done_in_order_and_once(tmp_path, monkeypatch):
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records())
    scripts = {
        "090_more.sql": "alter table base.runs add column colour varchar",
        "091_even_more.sql": "update base.runs set colour = 'red'",
    }
    original = schema._script
    monkeypatch.setattr(schema, "_script", lambda name: scripts.get(name) or original(name))
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, *scripts))
    newest = schema.VERSION + 2
    monkeypatch.setattr(schema, "VERSION", newest)
    for _ in range(2):
        with open_store(tmp_path) as store:
            assert store.run(small_tape.RUN).turns == 2
            assert store.rows("select colour from base.runs") == [{"colour": "red"}]
            assert store.rows("select value from base.meta where key = 'schema_version'") == [{"value": str(newest)}]


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records())
    original = schema._script
    bad = "alter table base.runs add column colour varchar; select nonsense"
    monkeypatch.setattr(schema, "_script", lambda name: bad if name == "090_bad.sql" else original(name))
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "090_bad.sql"))
        patch.setattr(schema, "VERSION", schema.VERSION + 1)
        with pytest.raises((LooptapeError, duckdb.Error)):
            sync(tmp_path)
    with open_store(tmp_path) as store:
        assert store.run(small_tape.RUN).turns == 2
        assert "colour" not in store.rows("select * from base.runs")[0]


def test_an_empty_home_becomes_an_empty_store(tmp_path):
    with open_store(tmp_path / "new" / "home") as store:
        assert store.runs() == []
        assert store.notices == []
