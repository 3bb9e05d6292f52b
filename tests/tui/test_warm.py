"""Questions in a row find the store open; nobody who wants to write is kept waiting for long."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from looptape.tracer import tape
from looptape.tracer.store import open_store
from looptape.tui.data import warm
from looptape.tui.data.source import StoreSource

RUN = "ab" * 8
WRITE = """
import sys
from pathlib import Path
from looptape.tracer.store import open_store
with open_store(Path(sys.argv[1]), drain=False, deadline=60) as store:
    store.write(lambda con: con.execute("create or replace table base.written (n integer)"))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with open_store(tmp_path / "home") as store:
        store.ingest(
            [
                tape.header(writer="test", started_at=1),
                {"kind": "run_start", "run": RUN, "at": 1, "name": "kept", "source": "sdk"},
                {"kind": "run_end", "run": RUN, "at": 2, "status": "completed", "reason": "end_turn"},
            ]
        )
    return tmp_path / "home"


def ask(source: StoreSource) -> str | None:
    return source.ask(lambda store: store.run(RUN).name)


def test_questions_in_a_row_wake_the_database_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "KEPT", 60.0)
    monkeypatch.setattr(warm, "MOST", 60.0)
    source = StoreSource(home)
    assert [ask(source) for _ in range(3)] == ["kept"] * 3
    lease = source._warm._con
    assert lease is not None, "it stays open after a question"
    assert ask(source) == "kept"
    assert source._warm._con is lease, "and is not opened anew"
    source._warm.let_go()


def test_who_writes_here_is_not_in_its_own_way(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "KEPT", 600.0)
    monkeypatch.setattr(warm, "MOST", 600.0)  # waited for, it would not be free before the writer gives up
    source = StoreSource(home)
    assert ask(source) == "kept"
    assert source._warm._con is not None
    source.change(lambda store: store.write(lambda con: con.execute("create table base.mine (n integer)")))
    assert ask(source) == "kept"
    source._warm.let_go()


def test_after_the_last_question_the_file_is_free_again(home: Path) -> None:
    source = StoreSource(home)
    assert ask(source) == "kept"
    end = time.monotonic() + 60
    while source._warm._con is not None and time.monotonic() < end:
        time.sleep(0.02)
    assert source._warm._con is None


def test_a_store_that_was_kept_open_long_enough_is_left_to_others_for_a_while(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "KEPT", 0.1)
    monkeypatch.setattr(warm, "MOST", 0.1)
    monkeypatch.setattr(warm, "REST", 600.0)
    source = StoreSource(home)
    assert ask(source) == "kept"
    end = time.monotonic() + 60
    while source._warm._con is not None and time.monotonic() < end:
        time.sleep(0.02)
    assert [(ask(source), source._warm._con) for _ in range(3)] == [("kept", None)] * 3


def test_another_program_gets_in_while_questions_never_stop(home: Path) -> None:
    source, stop = StoreSource(home), threading.Event()

    def without_end() -> None:
        while not stop.is_set():
            ask(source)
            time.sleep(0.03)  # a held key

    asking = threading.Thread(target=without_end)
    asking.start()
    try:
        for _ in range(2):
            done = subprocess.run([sys.executable, "-c", WRITE, str(home)], capture_output=True, text=True, timeout=120)
            assert (done.returncode, done.stderr) == (0, "")
    finally:
        stop.set()
        asking.join(60)


def test_a_program_that_ends_right_after_a_question_ends_quietly(home: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from looptape.tui.data.source import StoreSource\n"
        "print(StoreSource(Path(sys.argv[1])).ask(lambda store: store.run(sys.argv[2]).name))"
    )
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code, str(home), RUN], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "kept\n", "")
