"""The store while other processes hold it, and after they died with it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time

import duckdb
import pytest

import long_tape
from looptape.tracer import paths, tape
from looptape.tracer.errors import LooptapeError
from looptape.tracer.store import memory_store, open_store, schema, sync

HOLD = """
import duckdb, time
con = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "ro")
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def held(tmp_path):
    """Starts a process that holds the store; it ends with the test."""
    started = []

    def hold(mode):
        holder = long_tape.start(HOLD, str(paths.store_file(tmp_path)), mode)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        started.append(holder)
        return holder

    yield hold
    for process in started:
        process.kill()
        process.wait()


def fill(home, *runs, turns=3):
    for run in runs:
        long_tape.journal(home, f"w{run}", [tape.line(r) for r in long_tape.records(run, turns=turns)])


def test_a_store_held_for_reading_is_read_too_with_a_notice(tmp_path, held):
    fill(tmp_path, "a" * 16)
    sync(tmp_path)
    fill(tmp_path, "b" * 16)
    holder = held("ro")
    with open_store(tmp_path, deadline=0.2) as store:
        assert [r.id for r in store.runs()] == ["a" * 16]
        (notice,) = store.notices
    assert notice.startswith("as of ")
    assert f"1 journal waiting: python3.11 (PID {holder.pid}) has the store open; nothing is lost" in notice or (
        f"(PID {holder.pid}) has the store open; nothing is lost" in notice
    )
    holder.kill()
    holder.wait()
    with open_store(tmp_path) as store:
        assert len(store.runs()) == 2
        assert store.notices == []


def test_a_file_of_the_store_that_goes_while_its_time_is_looked_up_is_no_error(tmp_path, held):
    fill(tmp_path, "a" * 16)
    sync(tmp_path)
    fill(tmp_path, "b" * 16)
    held("ro")
    (tmp_path / "store.duckdb.gone").symlink_to("nowhere")  # listed, and not there when it is looked at
    with open_store(tmp_path, deadline=0.2) as store:
        assert store.notices[0].startswith("as of ")


def test_a_store_held_for_writing_is_an_error_that_names_the_holder(tmp_path, held):
    fill(tmp_path, "a" * 16)
    sync(tmp_path)
    holder = held("rw")
    begun = time.monotonic()
    with pytest.raises(LooptapeError, match=rf"PID {holder.pid}") as caught, open_store(tmp_path, deadline=0.3):
        pass
    assert (caught.value.slug, caught.value.exit_code) == ("store-held", 3)
    assert time.monotonic() - begun >= 0.3, "it gave up before its time"
    with pytest.raises(LooptapeError) as caught:
        sync(tmp_path, deadline=0.1)
    assert caught.value.slug == "store-held"


def test_a_holder_that_goes_soon_is_waited_for(tmp_path):
    fill(tmp_path, "a" * 16)
    sync(tmp_path)
    fill(tmp_path, "b" * 16)
    code = HOLD.replace("sys.stdin.readline()", "time.sleep(0.3)")
    holder = long_tape.start(code, str(paths.store_file(tmp_path)), "rw")
    assert holder.stdout is not None
    holder.stdout.readline()
    with open_store(tmp_path, deadline=60) as store:
        assert len(store.runs()) == 2
    holder.wait()


def test_a_recorder_two_readers_and_a_second_recorder_get_along(tmp_path):
    writers = [long_tape.start_writer(tmp_path, f"{n:016x}", 0.002) for n in range(2)]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    code = """
from pathlib import Path
import time
from looptape.tracer.store import open_store
seen = []
while len(seen) < 6 or seen[-1] == seen[0]:  # a busy machine may let the writers wait for long
    with open_store(Path(sys.argv[1]), deadline=60) as store:
        seen.append(sum(r.turns for r in store.runs()))
        print(seen[-1], *store.notices, flush=True)
    time.sleep(0.05)
"""
    readers = [long_tape.start(code, str(tmp_path)) for _ in range(2)]
    try:
        seen = [reader.communicate(timeout=300)[0].split("\n")[:-1] for reader in readers]
    finally:
        for process in (*writers, *readers):
            process.kill()
            process.wait()
    for lines, reader in zip(seen, readers, strict=True):
        assert reader.returncode == 0
        counts = [int(line) for line in lines]  # a notice would not be a number
        assert counts == sorted(counts)
        assert counts[-1] > counts[0] > 0


def test_a_process_killed_while_it_takes_records_in_loses_no_finished_one(tmp_path):
    code = """
from pathlib import Path
import long_tape
from looptape.tracer.store import open_store
home = Path(sys.argv[1])
with open_store(home) as store:
    for n in range(int(sys.argv[2]), 10_000):
        store.ingest(long_tape.records(f"{n:016x}", turns=4))
        store.ingest(long_tape.records(f"{n:016x}", turns=6))
        print(n, flush=True)
"""
    pick, done, begin = random.Random(3), [], 0
    for _ in range(4):
        worker = long_tape.start(code, str(tmp_path), str(begin))
        assert worker.stdout is not None
        worker.stdout.readline()
        time.sleep(pick.random() * 0.5)
        worker.kill()
        worker.wait()
        finished = [begin, *(int(line) for line in worker.stdout.read().split())]
        done += finished
        begin = finished[-1] + 1
        assert long_tape.doubles(tmp_path) == []
    with open_store(tmp_path) as store, memory_store() as whole:
        for n in done:
            assert store.run(f"{n:016x}").turns == 6
        whole.ingest(long_tape.records(f"{done[-1]:016x}", turns=6))
        assert store.turns(f"{done[-1]:016x}") == whole.turns(f"{done[-1]:016x}")


def leave_a_log(home):
    """A store whose last drain was committed but not checkpointed, as a killed reader leaves it."""
    fill(home, "a" * 16)
    sync(home)
    fill(home, "b" * 16, "c" * 16)
    with open_store(home, checkpoint=False) as store:
        assert len(store.runs()) == 3
    log = paths.store_file(home).with_name("store.duckdb.wal")
    assert log.stat().st_size > 1000
    return log


@pytest.mark.parametrize("place", ["middle", "end", "all"])
def test_a_damaged_log_is_moved_aside_and_the_journals_bring_everything_back(tmp_path, place):
    log = leave_a_log(tmp_path)
    data = bytearray(log.read_bytes())
    at = {"middle": len(data) // 2, "end": len(data) - 80, "all": 0}[place]
    data[at : at + (len(data) if place == "all" else 64)] = b"\xa5" * (len(data) if place == "all" else 64)
    log.write_bytes(data)
    with open_store(tmp_path) as store:
        assert sorted(r.id[0] for r in store.runs()) == ["a", "b", "c"]
        assert store.run("c" * 16).status == "completed"
        notices = store.notices
    aside = list(tmp_path.glob("store.duckdb.wal.damaged-*"))
    assert len(aside) == len([n for n in notices if "damaged" in n])
    if aside:
        assert str(aside[0]) in notices[0]
        assert "import it again" in notices[0]
    assert long_tape.doubles(tmp_path) == []


def test_a_log_that_is_cut_short_loses_nothing_either(tmp_path):
    log = leave_a_log(tmp_path)
    data = log.read_bytes()
    log.write_bytes(data[: len(data) // 2])
    with open_store(tmp_path) as store:
        assert sorted(r.id[0] for r in store.runs()) == ["a", "b", "c"]
    assert long_tape.doubles(tmp_path) == []


def test_a_store_that_is_no_database_is_an_error_with_a_cure(tmp_path):
    paths.store_file(tmp_path).write_bytes(b"not a database" * 1000)
    with pytest.raises(LooptapeError, match="is damaged") as caught, open_store(tmp_path):
        pass
    assert caught.value.slug == "store-damaged"
    assert "Move it away" in caught.value.cure


def test_two_stores_open_in_one_process_get_along(tmp_path):
    fill(tmp_path, "a" * 16)
    with open_store(tmp_path) as outer:
        assert len(outer.runs()) == 1
        fill(tmp_path, "b" * 16)
        with open_store(tmp_path, deadline=0.1) as inner:
            assert len(inner.runs()) == 1
            assert "this process has the store open" in inner.notices[0]
    with open_store(tmp_path) as store:
        assert len(store.runs()) == 2


def test_files_are_of_the_format_that_older_duckdb_reads(tmp_path):
    fill(tmp_path, "a" * 16)
    sync(tmp_path)
    with duckdb.connect(str(paths.store_file(tmp_path)), read_only=True) as con:
        (tags,) = con.execute("select tags from duckdb_databases() where database_name = 'store'").fetchone()
    assert tags["storage_version"].startswith("v1.5.0")


@pytest.mark.parametrize(
    "trouble",
    ['Cannot open file "{}": Permission denied', 'Failure while replaying WAL file "{}": Out of Memory Error'],
)
def test_a_good_log_that_cannot_be_read_just_now_stays_where_it_is(tmp_path, monkeypatch, trouble):
    log = leave_a_log(tmp_path)
    real = duckdb.connect

    def connect(*args, **more):
        raise duckdb.IOException(f"IO Error: {trouble.format(log)}")

    monkeypatch.setattr(duckdb, "connect", connect)
    with pytest.raises(LooptapeError, match="cannot be opened"), open_store(tmp_path):
        pass
    monkeypatch.setattr(duckdb, "connect", real)
    assert log.exists()
    with open_store(tmp_path) as store:
        assert len(store.runs()) == 3


def test_a_store_in_a_folder_that_others_look_into_is_private_and_the_umask_is_left_alone(tmp_path, monkeypatch):
    def umask(mask):
        raise AssertionError("it is that of every thread")

    tmp_path.chmod(0o755)
    monkeypatch.setattr(os, "umask", umask)
    fill(tmp_path, "a" * 16)
    sync(tmp_path)
    assert {f.stat().st_mode & 0o777 for f in tmp_path.iterdir() if f.is_file()} == {0o600}
    assert not list(tmp_path.glob("new-*"))


def test_a_process_killed_while_it_makes_the_store_leaves_none_and_the_next_makes_it(tmp_path):
    """DuckDB writes a new file in several steps: a half of one could be opened by nobody, ever again."""
    fill(tmp_path, "a" * 16)
    code = """
import os, signal
from pathlib import Path
import duckdb
from looptape.tracer.store import sync
real = duckdb.connect
def connect(path, *args, **more):
    Path(path).write_bytes(b"DUCK")  # as far as it came
    os.kill(os.getpid(), signal.SIGKILL)
duckdb.connect = connect
sync(Path(sys.argv[1]))
"""
    killed = long_tape.start(code, str(tmp_path))
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert not paths.store_file(tmp_path).exists()
    with open_store(tmp_path) as store:
        assert [r.id for r in store.runs()] == ["a" * 16]
    assert not list(tmp_path.glob("new-*"))


def test_a_store_is_never_seen_without_its_tables(tmp_path, monkeypatch):
    seen = []
    real = schema.migrate

    def migrate(con):
        seen.append(paths.store_file(tmp_path).exists())
        real(con)

    monkeypatch.setattr(schema, "migrate", migrate)
    sync(tmp_path)
    with open_store(tmp_path, drain=False) as store:
        assert store.runs() == []
    assert seen[0] is False


def test_the_log_of_a_store_that_was_moved_away_is_not_read_into_the_next(tmp_path):
    log = leave_a_log(tmp_path)
    paths.store_file(tmp_path).rename(tmp_path / "away.duckdb")
    assert log.exists()
    with open_store(tmp_path) as store:
        assert (len(store.runs()), store.notices) == (2, []), "those whose journals are still there"


def test_nobody_writes_between_the_parts_of_a_copy_nor_while_the_copied_store_is_read(tmp_path, monkeypatch):
    """To close a file that was read lets go this process's locks on it, those of the open database too."""
    leave_a_log(tmp_path)
    code = """
import duckdb
try:
    duckdb.connect(sys.argv[1]).close()
    print("in")
except duckdb.IOException:
    print("kept out")
"""
    tried = []

    def others():
        tried.append(long_tape.start(code, str(paths.store_file(tmp_path))).communicate(timeout=60)[0].strip())

    real = shutil.copyfileobj

    def copied(source, target, *more):
        others()
        real(source, target, *more)

    monkeypatch.setattr(shutil, "copyfileobj", copied)
    with open_store(tmp_path, drain=False) as store:
        assert len(store.runs()) == 3
        store.copy_to(tmp_path / "copy.duckdb")
        others()
    others()
    assert tried == ["kept out", "kept out", "kept out", "in"]
    with duckdb.connect(str(tmp_path / "copy.duckdb"), read_only=True) as con:
        assert con.execute("select count(*) from runs").fetchone() == (3,)
