"""Bounded memory, bounded size, a full disk."""

from __future__ import annotations

import os
import subprocess

import duckdb
import pytest

import long_tape
import small_tape
from looptape.tracer import paths, tape
from looptape.tracer.errors import LooptapeError
from looptape.tracer.journal import Journal
from looptape.tracer.store import connect, memory_store, open_store, sync


def test_memory_is_bounded_by_us_and_spill_lies_beside_the_store(tmp_path):
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records())
        (limit, spill) = store.sql("select current_setting('memory_limit'), current_setting('temp_directory')")[2][0]
    assert limit.endswith("MiB") or limit == "1.0 GiB"
    assert spill.startswith(str(tmp_path))


def test_what_killed_processes_spilled_is_removed(tmp_path):
    left = tmp_path / f"spill-{2**31 - 1}"  # no system gives so high a number to a process
    left.mkdir(parents=True)
    (left / "duckdb_temp_storage_DEFAULT-0.tmp").write_bytes(b"x" * 1000)
    mine = tmp_path / f"spill-{os.getppid()}"
    mine.mkdir()
    sync(tmp_path)
    assert not left.exists()
    assert mine.exists()


def test_a_sort_larger_than_memory_spills_and_leaves_nothing(tmp_path, monkeypatch):
    real = connect.settings
    monkeypatch.setattr(connect, "_memory_limit", lambda: 64 << 20)
    monkeypatch.setattr(connect, "settings", lambda home: {**real(home), "threads": 2})  # each needs some, however many
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records())
    with open_store(tmp_path) as store:
        query = "select count(*) from (select i, repeat(md5(i::varchar), 4) as t from range(1500000) as r(i) order by t desc offset 1)"
        assert store.sql(query)[2] == [(1499999,)]
    assert not list(tmp_path.glob("spill-*"))


def test_a_result_of_20_megabytes_is_kept_whole(tmp_path):
    big = "0123456789abcdef" * (20 * 65536)
    long_tape.journal(tmp_path, "w", [tape.line(r) for r in small_tape.records(result=big)])
    report = sync(tmp_path)
    assert report.bad == 0
    with open_store(tmp_path) as store:
        assert store.turns(small_tape.RUN)[0].tool_calls[0].result == big
        assert store.sql("select result_length, length(result) from tool_calls")[2] == [(len(big), len(big))]


def test_a_question_that_needs_too_much_memory_is_answered_politely(tmp_path, monkeypatch):
    monkeypatch.setattr(connect, "_memory_limit", lambda: 32 << 20)
    with open_store(tmp_path) as store:
        store.ingest(small_tape.records())
    with open_store(tmp_path) as store, pytest.raises(LooptapeError, match="more memory") as caught:
        store.sql("select max(l[7]) from (select list(repeat(md5(i::varchar), 9)) as l from range(900000) as r(i))")
    assert (caught.value.slug, caught.value.exit_code) == ("sql-memory", 2)


def test_cost_questions_never_read_bodies():
    with memory_store() as store:
        store.ingest(long_tape.records(turns=5))
        plans = [
            store.sql(f"explain {query}")[2][0][1]
            for query in (
                "select started_at::date, model, sum(cost_usd) from turns group by all",
                "select sum(cost_usd), sum(input) from runs",
                "select name, count(*), sum(ms) from tool_calls group by name",
            )
        ]
    for plan in plans:
        assert "text" not in plan.replace("context", ""), plan


def test_a_store_grows_in_line_with_what_is_new(tmp_path):
    sizes = []
    for n in range(4):
        with open_store(tmp_path) as store:
            store.ingest(long_tape.records(f"{n:016x}", turns=200, size=4096))
        sizes.append(paths.store_file(tmp_path).stat().st_size)
    per_run = (sizes[-1] - sizes[0]) / 3
    print(f"{sizes[0]} bytes for the first run of 200 turns with 4 KB results, {per_run:.0f} for each more")
    assert per_run < 1_500_000


def test_live_drains_do_not_make_the_store_much_larger(tmp_path):
    journal = Journal(tmp_path)
    for number in range(1, 101):
        journal.write(list(long_tape.one_turn("a" * 16, number, 4096, long_tape.START + number * 10**6)))
        if number % 10 == 0:
            sync(tmp_path)
    journal.close()
    sync(tmp_path)
    with duckdb.connect(str(paths.store_file(tmp_path)), read_only=True) as con:
        (used,) = con.execute("select used_blocks * block_size from pragma_database_size()").fetchone()
    print(f"{used} bytes in use, {paths.store_file(tmp_path).stat().st_size} in the file")
    assert used < 3_000_000


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 24 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a small file system needs root: {made.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_loses_nothing(small_disk):
    home = small_disk / "home"
    with open_store(home) as store:
        store.ingest(small_tape.records())
    long_tape.journal(home, "w", [tape.line(r) for r in long_tape.records(turns=40, size=20_000)])
    filler = small_disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 65536):
                pass
        except OSError:
            pass
    with open_store(home) as store:  # what was there can be read, and it is said what waits
        assert store.run(small_tape.RUN).turns == 2
        assert "1 journal waiting" in store.notices[0]
        assert "nothing is lost" in store.notices[0]
    with pytest.raises(LooptapeError) as caught:
        sync(home)
    assert caught.value.slug == "disk-full"
    filler.unlink()
    report = sync(home)
    assert (report.turns, report.waiting) == (40, 0)
    with open_store(home) as store, memory_store() as whole:
        whole.ingest(long_tape.records(turns=40, size=20_000))
        assert store.turns("a" * 16) == whole.turns("a" * 16)
    assert long_tape.doubles(home) == []
