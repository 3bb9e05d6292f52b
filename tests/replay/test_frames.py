"""`looptape.df` and `looptape.snapshot`: tables for notebooks, which then hold nothing open that others need."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import looptape
import small_tape
from looptape.replay import frames
from looptape.tracer.errors import LooptapeError
from looptape.tracer.store import Filter, Store, memory_store, open_store


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "home"))
    with open_store() as store:
        store.ingest(small_tape.records("a" * 16, name="first"))
        store.ingest(small_tape.records("b" * 16, name="second", model="gpt-4o"))
    return tmp_path / "home"


class Taken:
    """A frame of a library that is always installed: the rows."""

    def __init__(self, columns: list[str], rows: list[Any]) -> None:
        self.columns, self.rows = columns, rows


@pytest.fixture
def rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def frame(self: Store, name: str, wanted: Filter, method: str) -> Taken:
        assert method == "pl"
        columns, _, batches = self.table(name, wanted)
        return Taken(columns, [row for rows in batches for row in rows])

    monkeypatch.setattr(frames, "find_spec", lambda name: name in ("polars", "pyarrow") or None)
    monkeypatch.setattr(Store, "frame", frame)


@pytest.mark.usefixtures("rows_only")
@pytest.mark.parametrize(
    ("table", "text", "rows"),
    [("runs", "", 2), ("turns", "", 4), ("turns", "model:claude*", 2), ("tool_calls", "name:second", 1), ("messages", "", 6),
     ("attempts", "model:nothing", 0), ("events", "", 0)],
)  # fmt: skip
def test_a_table_of_the_runs_that_the_filter_picks(table: str, text: str, rows: int) -> None:
    found = looptape.df(table, text)
    assert len(found.rows) == rows
    assert {"id" if table == "runs" else "run"} <= set(found.columns)


@pytest.mark.usefixtures("rows_only")
@pytest.mark.parametrize(
    ("table", "text", "part"),
    [
        ("turn", "", "The tables are runs, turns"),
        ("turns", "modle:x", "model:x"),
        ("runs; drop table x", "", "no table"),
    ],
)
def test_what_is_wrong_is_said(table: str, text: str, part: str) -> None:
    with pytest.raises(LooptapeError, match=part):
        looptape.df(table, text)


def test_without_a_frame_library_the_cure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "find_spec", lambda _: None)
    with pytest.raises(LooptapeError, match="pip install polars pyarrow") as trouble:
        looptape.df("turns")
    assert trouble.value.slug == "no-frames"
    with pytest.raises(LooptapeError, match="pandas is not installed"):
        looptape.df("turns", library="pandas")
    with pytest.raises(LooptapeError, match="no frames of 'excel'"):
        looptape.df("turns", library="excel")


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_each_library_gives_its_own_frame(library: str) -> None:
    pytest.importorskip(library)
    frame = looptape.df("turns", "model:claude*", library=library)
    assert type(frame).__module__.partition(".")[0] == library
    assert frame.shape[0] == 2
    names = frame.column_names if library == "pyarrow" else list(frame.columns)
    assert {"run", "number", "cost_usd", "started_at"} <= set(names)


def test_a_snapshot_is_held_open_and_keeps_nobody_from_anything(tmp_path: Path) -> None:
    path = looptape.snapshot(tmp_path / "copy.duckdb")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    code = (
        f"import duckdb\nc = duckdb.connect({str(path)!r}, read_only=True)\n"
        "print(c.execute('select count(*), min(name) from runs').fetchone(), flush=True)\ninput()"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout
        assert holder.stdout.readline() == "(2, 'first')\n"
        with open_store(deadline=0.2) as store:
            store.ingest(small_tape.records("c" * 16))
            assert store.count() == 3
    finally:
        holder.communicate("\n")
    assert [p.name for p in tmp_path.iterdir() if "copy" in p.name] == ["copy.duckdb"]


def test_a_snapshot_has_also_what_still_lies_in_the_log(tmp_path: Path, home: Path) -> None:
    """A screen drains without a checkpoint: then the newest rows are not in the file yet."""
    with open_store(checkpoint=False) as store:
        store.ingest(small_tape.records("c" * 16))
        store._wrote = False  # as after a crash: nothing was checkpointed
    assert (home / "store.duckdb.wal").stat().st_size > 0
    import duckdb

    with duckdb.connect(str(looptape.snapshot(tmp_path / "copy.duckdb")), read_only=True) as con:
        assert con.execute("select count(*) from runs").fetchone() == (3,)


def test_a_snapshot_replaces_nothing_and_leaves_nothing_half(tmp_path: Path) -> None:
    there = tmp_path / "there.duckdb"
    there.write_text("mine")
    with pytest.raises(LooptapeError, match="is there already"):
        looptape.snapshot(there)
    assert there.read_text() == "mine"
    with pytest.raises(LooptapeError, match="No such file") as trouble:
        looptape.snapshot(tmp_path / "no" / "x.duckdb")
    assert trouble.value.exit_code == 2
    with memory_store() as store, pytest.raises(LooptapeError, match="in memory"):
        store.copy_to(tmp_path / "m.duckdb")


def test_the_public_names_load_no_database() -> None:
    code = "import looptape, sys; looptape.df, looptape.snapshot; print('duckdb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
