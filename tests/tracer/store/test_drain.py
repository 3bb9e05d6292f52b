"""Journals into the store: exactly once, whoever is killed when."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import time
from pathlib import Path

import pytest

import long_tape
from looptape.tracer import paths, tape
from looptape.tracer.journal import Journal
from looptape.tracer.store import journals, memory_store, open_store, sync

KILLS = int(os.environ.get("LOOPTAPE_TEST_KILLS", "10"))


@pytest.mark.parametrize("torn", [False, True], ids=["whole writes", "torn writes"])
def test_a_killed_writer_loses_nothing_that_it_had_written(tmp_path, torn):
    pick = random.Random(torn)
    acknowledged = {}
    for kill in range(max(1, KILLS // 2)):
        run = f"{kill:016x}"
        writer = long_tape.start_writer(tmp_path, run, torn=torn)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        if kill % 3 == 0:
            sync(tmp_path)  # while it writes
        time.sleep(pick.random() * 0.15)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        acknowledged[run] = int([first, *writer.stdout.read().split()][-1])
    report = sync(tmp_path)
    assert report.waiting == 0
    assert long_tape.doubles(tmp_path) == []
    with open_store(tmp_path) as store:
        for run, turns in acknowledged.items():
            got = store.turns(run)
            assert sum(t.status == "ok" for t in got) >= turns > 0
            assert [t.number for t in got] == list(range(1, len(got) + 1))
            assert store.run(run).status == "interrupted"
            assert "killed" in (store.run(run).reason or "")
            assert store.request(run, turns).messages[-1] == long_tape.seen(run, turns - 1, 300) or turns == 1
    assert not list(paths.journal_dir(tmp_path).iterdir())


def test_what_a_killed_run_left_open_shows_as_interrupted(tmp_path):
    lines = [tape.line(r) for r in long_tape.records(turns=3, ended=False)]
    long_tape.journal(tmp_path, "w1", lines[:-3])  # the answer of turn 3 never came, its tool never ran
    with open_store(tmp_path) as store:
        run = store.run("a" * 16)
        last = store.turns(run.id)[-1]
        assert (run.status, last.status) == ("interrupted", "interrupted")
        assert run.reason == "the process ended without a word (killed?) at turn 3"
        assert store.sql("select status from turns where number = 3")[2] == [("interrupted",)]


def test_a_call_without_result_says_so_once_its_run_is_over(tmp_path):
    lines = [tape.line(r) for r in long_tape.records(turns=1, ended=False)]
    long_tape.journal(tmp_path, "w1", lines[:-1])  # killed while the tool ran
    with open_store(tmp_path) as store:
        assert store.turns("a" * 16)[0].tool_calls[0].state == "no_result"
        assert store.sql("select state from tool_calls")[2] == [("no_result",)]


def test_a_living_run_is_running_and_grows(tmp_path):
    journal = Journal(tmp_path)
    everything = list(long_tape.records(turns=4))
    journal.write(everything[:20])
    with open_store(tmp_path) as store:
        first = store.run("a" * 16)
    journal.write(everything[20:])
    with open_store(tmp_path) as store:
        second = store.run("a" * 16)
    journal.close()
    assert (first.status, second.status) == ("running", "completed")
    assert first.turns < second.turns == 4
    assert long_tape.doubles(tmp_path) == []


def test_drained_in_pieces_or_at_once_is_the_same(tmp_path):
    everything = list(long_tape.records(turns=6))
    journal = Journal(tmp_path)
    for start in range(0, len(everything), 5):
        journal.write(everything[start : start + 5])
        sync(tmp_path)
    journal.close()
    with open_store(tmp_path) as store, memory_store() as whole:
        whole.ingest(everything)
        assert store.turns("a" * 16) == whole.turns("a" * 16)
        assert store.run("a" * 16) == whole.run("a" * 16)
        assert store.request("a" * 16, 6) == whole.request("a" * 16, 6)


def test_two_drainers_at_once_take_everything_once(tmp_path):
    for number in range(6):
        lines = [tape.line(r) for r in long_tape.records(f"{number:016x}", turns=10)]
        long_tape.journal(tmp_path, f"w{number}", lines)
    code = "from pathlib import Path\nfrom looptape.tracer.store import sync\nprint(sync(Path(sys.argv[1]), deadline=60).records)"
    drainers = [long_tape.start(code, str(tmp_path)) for _ in range(2)]
    counts = [int(d.communicate(timeout=120)[0]) for d in drainers]
    assert [d.returncode for d in drainers] == [0, 0]
    assert sum(counts) == 6 * (1 + len(list(long_tape.records(turns=10))))
    assert long_tape.doubles(tmp_path) == []
    with open_store(tmp_path) as store:
        assert [r.turns for r in store.runs()] == [10] * 6


def test_a_drainer_killed_anywhere_neither_loses_nor_doubles(tmp_path):
    for number in range(4):
        lines = [tape.line(r) for r in long_tape.records(f"{number:016x}", turns=60)]
        long_tape.journal(tmp_path, f"w{number}", lines)
    code = """
from pathlib import Path
from looptape.tracer.store import journals, sync
journals.PASS_BYTES = 20_000
print("ready", flush=True)
sync(Path(sys.argv[1]), deadline=30)
"""
    pick = random.Random(7)
    for _ in range(KILLS):
        drainer = long_tape.start(code, str(tmp_path))
        assert drainer.stdout is not None
        drainer.stdout.readline()
        time.sleep(pick.random() * 0.5)
        drainer.kill()
        drainer.wait()
    sync(tmp_path)
    assert long_tape.doubles(tmp_path) == []
    with open_store(tmp_path) as store, memory_store() as whole:
        for number in range(4):
            run = f"{number:016x}"
            whole.ingest(long_tape.records(run, turns=60))
            assert store.turns(run) == whole.turns(run)
        assert store.rows("select count(*) as n from base.bad_record") == [{"n": 0}]


def test_a_line_that_cannot_be_understood_is_set_aside_and_the_rest_goes_in(tmp_path):
    lines = [tape.line(r) for r in long_tape.records(turns=2)]
    odd = [
        b'{"kind":"turn_start","run":7}\n',
        b"half a li",
        b"\n",
        b'{"kind":"turn_end","run":"x","turn":1,"at":1e40}\n',
        b'["no"]\n',
    ]
    file = long_tape.journal(tmp_path, "w1", [*lines[:5], *odd, *lines[5:]])
    report = sync(tmp_path)
    assert report.bad == 4
    with open_store(tmp_path) as store:
        assert store.run("a" * 16).status == "completed"
        bad = store.rows("select source, position, reason, text from base.bad_record order by position")
    assert [b["position"] for b in bad] == [7, 8, 9, 10]
    assert {b["source"] for b in bad} == {file.name}
    assert "torn" in bad[1]["reason"]
    assert bad[1]["text"] == "half a li"


def test_the_torn_tail_of_a_dead_writer_is_set_aside_and_said(tmp_path):
    lines = [tape.line(r) for r in long_tape.records(turns=2)]
    long_tape.journal(tmp_path, "w1", [*lines, b'{"kind":"turn_sta'])
    report = sync(tmp_path)
    assert (report.bad, report.waiting) == (1, 0)
    assert not list(paths.journal_dir(tmp_path).iterdir())


def test_the_unfinished_line_of_a_living_writer_waits(tmp_path):
    journal = Journal(tmp_path)
    everything = list(long_tape.records(turns=1))
    journal.write(everything[:3])
    rest = b"".join(map(tape.line, everything[3:]))
    with open(journal.path, "ab") as file:
        file.write(rest[:50])
    first = sync(tmp_path)
    with open(journal.path, "ab") as file:
        file.write(rest[50:])
    second = sync(tmp_path)
    journal.close()
    assert (first.bad, second.bad) == (0, 0)
    assert first.records + second.records == 1 + len(everything)


def test_a_rotated_journal_is_one_writer(tmp_path):
    journal = Journal(tmp_path, rotate_bytes=4000)
    everything = list(long_tape.records(turns=12))
    for record in everything[:-1]:
        journal.write([record])
    sync(tmp_path)
    with open_store(tmp_path) as store:
        assert store.run("a" * 16).status == "running"
    pieces = list(paths.journal_dir(tmp_path).iterdir())
    journal.write(everything[-1:])
    journal.close()
    with open_store(tmp_path) as store, memory_store() as whole:
        whole.ingest(everything)
        assert store.turns("a" * 16) == whole.turns("a" * 16)
        assert store.run("a" * 16).status == "completed"
    assert journal.path.name.split(".")[1] != "jsonl", "the journal did not rotate: this test tests nothing"
    assert len(pieces) >= 1


def test_a_copied_journal_folder_is_drained_without_its_writer(tmp_path):
    journal = Journal(tmp_path / "pod")
    journal.write(list(long_tape.records(turns=2, ended=False)))
    there, here = paths.journal_dir(tmp_path / "pod"), paths.make_private(paths.journal_dir(tmp_path / "here"))
    (here / journal.path.name).write_bytes((there / journal.path.name).read_bytes())
    with open_store(tmp_path / "here") as store:
        assert store.run("a" * 16).status == "interrupted"
    journal.close()


def test_a_journal_of_a_newer_format_is_left_alone_and_reported(tmp_path):
    old = [tape.line(r) for r in long_tape.records(turns=1)]
    newer = long_tape.journal(tmp_path, "new", [b'{"kind":"quantum","run":"z"}\n'], version=99)
    long_tape.journal(tmp_path, "old", old)
    before = newer.read_bytes()
    report = sync(tmp_path)
    assert (report.newer, report.runs) == (1, 1)
    assert "newer" in report.messages[0]
    assert newer.read_bytes() == before


def test_kinds_of_a_later_version_are_passed_over(tmp_path):
    with memory_store() as store:
        report = store.ingest([*long_tape.records(turns=1), {"kind": "hologram", "run": "a" * 16}])
        assert report.unknown == {"hologram": 1}
        assert report.bad == []


def test_folders_and_files_are_for_their_owner_only(tmp_path):
    home = tmp_path / "home"
    long_tape.journal(home, "w1", [tape.line(r) for r in long_tape.records(turns=1)])
    sync(home)
    with open_store(home, checkpoint=False) as store:
        store.ingest(long_tape.records("b" * 16, turns=1))
        files = [f for f in home.iterdir() if f.is_file()]
        assert {f.stat().st_mode & 0o777 for f in files} == {0o600}
    assert home.stat().st_mode & 0o777 == 0o700


def test_drained_journals_wait_for_the_checkpoint(tmp_path):
    long_tape.journal(tmp_path, "w1", [tape.line(r) for r in long_tape.records(turns=1)])
    with open_store(tmp_path, checkpoint=False):
        assert [f.name for f in paths.done_dir(tmp_path).iterdir()] == ["w1.jsonl"]
    with open_store(tmp_path):
        assert list(paths.done_dir(tmp_path).iterdir()) == []


def test_a_writer_that_goes_on_in_a_new_piece_while_it_is_looked_at_lives(tmp_path, monkeypatch):
    journal = Journal(tmp_path, rotate_bytes=500)
    journal.write([{"kind": "run_start", "run": "a" * 16, "at": 1}])
    real = journals._locked

    def rotated_first(file):
        monkeypatch.setattr(journals, "_locked", real)
        journal.write([{"kind": "event", "run": "a" * 16, "at": 2, "name": "x" * 600}])
        return real(file)

    monkeypatch.setattr(journals, "_locked", rotated_first)
    with open_store(tmp_path) as store:
        assert (store.run("a" * 16).status, store.notices) == ("running", [])
    assert len(list(tmp_path.glob("*/*.jsonl"))) == 2
    journal.close()


def test_a_writer_that_locks_its_new_journal_just_after_it_was_looked_at_lives(tmp_path, monkeypatch):
    sync(tmp_path)
    path = long_tape.journal(tmp_path, "w0", []).with_name("w1.jsonl")
    writer = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
    records = [tape.header(journal="w1", pid=1, started_at=1), *long_tape.records(turns=1, ended=False)]
    real, looks = journals._locked, []

    def locked_then(file):
        found = real(file)
        if file == path:
            looks.append(found)
            if len(looks) == 2:  # the first look only tells that there is something to drain
                fcntl.flock(writer, fcntl.LOCK_EX)
                os.write(writer, b"".join(map(tape.line, records)))
        return found

    monkeypatch.setattr(journals, "_locked", locked_then)
    with open_store(tmp_path) as store:
        assert (store.run("a" * 16).status, store.notices) == ("running", [])
    assert path.exists(), "it is not taken away from its writer"
    os.close(writer)
    with open_store(tmp_path) as store:
        assert store.run("a" * 16).status == "interrupted"


@pytest.mark.parametrize("moment", ["_locked", "_begun"])
def test_a_journal_that_somebody_removes_while_it_is_looked_at_costs_no_command(tmp_path, monkeypatch, moment):
    long_tape.journal(tmp_path, "w1", [tape.line(r) for r in long_tape.records(turns=1)])
    long_tape.journal(tmp_path, "w2", [tape.line(r) for r in long_tape.records("b" * 16, turns=1)])
    real = getattr(journals, moment)

    def removed(file):
        found = real(file)
        if file.name.startswith("w1"):
            file.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(journals, moment, removed)
    with open_store(tmp_path) as store:
        assert [run.id for run in store.runs()] == ["b" * 16]


def test_a_drained_journal_that_somebody_removes_before_the_checkpoint_does_costs_no_command(tmp_path, monkeypatch):
    for run in "ab":
        long_tape.journal(tmp_path, f"w{run}", [tape.line(r) for r in long_tape.records(run * 16, turns=1)])
    real = Path.glob

    def removed(folder, pattern):
        found = list(real(folder, pattern))
        if folder == paths.done_dir(tmp_path):
            found[0].unlink()
        return found

    with open_store(tmp_path, checkpoint=False) as store:
        assert len(list(paths.done_dir(tmp_path).iterdir())) == 2
        monkeypatch.setattr(Path, "glob", removed)
        store.checkpoint()
        monkeypatch.undo()
        assert len(store.runs()) == 2
    assert list(paths.done_dir(tmp_path).iterdir()) == []
