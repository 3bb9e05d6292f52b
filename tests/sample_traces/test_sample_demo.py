"""The demo plays the loops as a newcomer's own programs, and leaves no trace in the process that does it."""

import threading
import time

from looptape.sample_traces import demo, loops, stage
from looptape.tracer import clock, facts, process
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, open_store


def standing():
    """What a recording changes while it lasts."""
    return process.replace(None), clock.use(clock.Source()), facts.name(), time.sleep


def test_the_loops_are_recorded_now_and_the_process_is_as_it_was(tmp_path):
    recorder, source, *rest = standing()
    process.replace(recorder)
    clock.use(source)
    began = time.time_ns() // 1000
    ids = demo.record(tmp_path, loops.SAMPLES)
    assert standing() == (recorder, source, *rest)
    process.replace(recorder)
    clock.use(source)
    with open_store(tmp_path) as store:
        runs = store.runs(Filter(limit=0))
    assert {run.id for run in runs} == set(ids)
    assert len(ids) == len(loops.SAMPLES) + 2  # two sub-agents
    assert {run.status for run in runs} == {"completed", "limit", "failed", "interrupted"}
    assert all(run.started_at >= began for run in runs)
    assert not list((tmp_path / "journal").glob("*.jsonl")), "a journal is still held open"


def test_played_again_they_are_new_runs(tmp_path):
    first, second = demo.record(tmp_path), demo.record(tmp_path)
    assert len({*first, *second}) == len(first) + len(second)


def test_each_sample_is_shown_once(tmp_path):
    with open_store(tmp_path) as store:
        demo.record(tmp_path)
        for tape in demo.tapes(but=demo.LIVE):
            import_path(store, tape)
    with open_store(tmp_path) as store:
        names = [run.name for run in store.runs(Filter(limit=0)) if run.parent is None]
    assert len(names) == len(set(names)) == len(loops.SAMPLES)


def test_with_recording_off_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPTAPE", "off")
    assert demo.record(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_thread_that_has_no_part_in_the_play_sleeps_as_ever_and_moves_no_clock():
    go, slept = threading.Event(), []

    def aside():
        go.wait(60)
        begun = time.monotonic()
        time.sleep(0.05)
        slept.append(time.monotonic() - begun)

    thread = threading.Thread(target=aside)
    thread.start()
    with stage.fixed(1_000_000, "ab") as pace:
        go.set()
        thread.join()
        assert pace.now() == 1.0
        time.sleep(7)
        assert pace.now() == 8.0
        own = threading.Thread(target=time.sleep, args=(2,))
        own.start()
        own.join()
        assert pace.now() == 10.0
    assert slept[0] >= 0.05
