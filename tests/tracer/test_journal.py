"""The journal by itself: pieces, the cap, torn writes, permissions, and recording that is switched off or without content."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import threading

import pytest

import looptape
import scripted
from acknowledged import every_byte, journal_lines
from looptape.tracer import paths, process, tape
from looptape.tracer.journal import Journal
from looptape.tracer.recorder import Recorder
from looptape.tracer.store import Filter, open_store, sync
from recorded import recording

RUN = "b" * 16
FLOCK = fcntl.flock


def record(number: int, size: int = 10) -> tape.Record:
    return {"kind": "event", "run": RUN, "turn": None, "at": number, "event": "note", "detail": {"text": "x" * size}}


def numbers(home) -> list[int]:
    return sorted(r["at"] for r in journal_lines(home) if r["kind"] == "event")


def test_every_piece_begins_with_a_header_and_only_the_owner_may_read_it(tmp_path):
    journal = Journal(tmp_path / "new" / "home", rotate_bytes=2000)
    assert all(journal.write([record(n, 300)]) for n in range(10))
    files = sorted(paths.journal_dir(tmp_path / "new" / "home").iterdir())
    assert len(files) > 2
    for file in files:
        first = file.read_bytes().split(b"\n", 1)[0]
        assert b'"kind":"header"' in first
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert numbers(tmp_path / "new" / "home") == list(range(10))


def test_a_torn_write_costs_its_own_records_and_no_others(tmp_path, monkeypatch, capfd):
    journal = Journal(tmp_path)
    assert journal.write([record(1)])
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[: len(data) * 3 // 4]))
    assert not journal.write([record(2), record(3)])
    monkeypatch.setattr(os, "write", real)
    assert journal.write([record(4)])
    assert numbers(tmp_path) == [1, 2, 4]
    assert (journal.dropped, journal.generation) == (2, 1)
    assert capfd.readouterr().err.count("\n") == 1


def test_a_head_that_does_not_fit_leaves_no_file_behind(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:10]))
    assert not journal.write([record(1)])
    assert list(paths.journal_dir(tmp_path).iterdir()) == []
    monkeypatch.setattr(os, "write", real)
    assert journal.write([record(2)])
    assert [r["kind"] for r in journal_lines(tmp_path)] == ["header", "event"]


def test_pieces_are_drained_while_the_process_lives_and_its_run_stays_running(tmp_path):
    home = tmp_path / "home"
    recorder = Recorder(Journal(home, rotate_bytes=20_000))
    former = process.replace(recorder)
    try:
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(20)))
        with looptape.run("long"):

            def look(turn):
                if turn == 15:
                    pieces = len(list(paths.journal_dir(home).iterdir()))
                    assert pieces > 3
                    assert sync(home).turns == 15
                    with open_store(home) as store:
                        assert store.runs(Filter())[0].status == "running"

            scripted.run_loop(client, on_turn=look, result=lambda path: scripted.code_like(path, 3000))
        recorder.at_exit()
    finally:
        process.replace(former)
    with open_store(home) as store:
        run = store.runs(Filter())[0]
        assert (run.status, run.turns) == ("completed", 21)
        assert len(store.request(run.id, 21).messages) == 41
    assert list(paths.journal_dir(home).iterdir()) == []


def test_the_writer_holds_a_lock_at_every_moment_of_a_rotation(tmp_path, monkeypatch):
    journal = Journal(tmp_path, rotate_bytes=1000)
    assert journal.write([record(1, 500)])
    first = journal.path
    held = []

    def flock(fd, how):
        held.append(not _free(first))
        FLOCK(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    assert journal.write([record(2, 500)])
    monkeypatch.undo()
    assert held == [True]
    assert _free(first)
    assert not _free(journal.path)


def _free(file) -> bool:
    with open(file, "rb") as opened:
        try:
            FLOCK(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def test_a_program_that_closes_all_descriptors_keeps_its_own_files_and_is_recorded_on(tmp_path):
    journal, own = Journal(tmp_path), tmp_path / "own.txt"
    assert journal.write([record(1)])
    file, given = journal._fd, os.open(own, os.O_WRONLY | os.O_CREAT)
    os.dup2(given, file)  # closes ours: the program's file has its number now
    os.close(given)
    os.write(file, b"my own")
    assert journal.write([record(2)])
    journal.close()
    os.close(file)
    assert own.read_bytes() == b"my own"
    assert numbers(tmp_path) == [1, 2]


def test_a_journal_that_a_drainer_takes_away_meanwhile_does_not_disturb_the_next_one(tmp_path):
    folder = paths.make_private(paths.journal_dir(tmp_path))
    (folder / "gone.jsonl").symlink_to(tmp_path / "nowhere")  # listed, and not there when it is looked at
    assert Journal(tmp_path, cap_bytes=1 << 20).write([record(1)])


def test_ctrl_c_while_a_journal_is_begun_leaves_nothing_in_the_way_of_the_next_write(tmp_path, monkeypatch):
    journal = Journal(tmp_path)

    def interrupted(fd, how):
        raise KeyboardInterrupt

    monkeypatch.setattr(fcntl, "flock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        journal.write([record(1)])
    monkeypatch.undo()
    assert journal.write([record(2)])
    assert numbers(tmp_path) == [2]


def test_ctrl_c_while_a_journal_is_begun_reaches_the_program_though_somebody_removes_the_file(tmp_path, monkeypatch):
    journal, closed = Journal(tmp_path), []

    def interrupted(fd, how):
        journal.path.unlink()
        raise KeyboardInterrupt

    real = os.close
    monkeypatch.setattr(fcntl, "flock", interrupted)
    monkeypatch.setattr(os, "close", lambda fd: closed.append(fd) or real(fd))
    with pytest.raises(KeyboardInterrupt):
        journal.write([record(1)])
    monkeypatch.undo()
    assert len(closed) == 1
    assert journal.write([record(2)])
    assert numbers(tmp_path) == [2]


def test_a_reader_that_looks_whether_a_new_journal_is_locked_costs_it_nothing(tmp_path, monkeypatch):
    times = []

    def flock(fd, how):
        times.append(how)
        if len(times) == 1:
            raise BlockingIOError
        FLOCK(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    assert Journal(tmp_path).write([record(1)])
    assert numbers(tmp_path) == [1]


def test_at_the_cap_recording_stops_with_one_line_and_the_run_still_says_how_it_ended(tmp_path, capfd):
    home = tmp_path / "home"
    recorder = Recorder(Journal(home, rotate_bytes=20_000, cap_bytes=60_000))
    former = process.replace(recorder)
    try:
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(30)))
        with looptape.run("too much"):
            assert len(scripted.run_loop(client)) == 62
        recorder.at_exit()
    finally:
        process.replace(former)
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "recording stops here. Run `looptape sync`" in err
    with open_store(home) as store:
        run = store.runs(Filter())[0]
        stored = len([t for t in store.turns(run.id) if t.status == "ok"])
        assert 3 < stored < 30
        assert run.status == "completed"
        assert run.warnings == (f"{31 - stored} turns could not be stored",)


def test_the_cap_counts_what_other_processes_have_left(tmp_path, capfd):
    Journal(tmp_path).write([record(1, 5000)])
    assert not Journal(tmp_path, cap_bytes=2000).write([record(2)])
    assert numbers(tmp_path) == [1]
    assert capfd.readouterr().err.count("\n") == 1


def test_a_record_that_json_cannot_hold_is_written_as_text(tmp_path):
    class Odd:
        def __repr__(self):
            raise ValueError("no repr")

    cycle: dict = {}
    cycle["self"] = cycle["again"] = cycle
    journal = Journal(tmp_path)
    assert journal.write(
        [{**record(1), "detail": {"cycle": cycle, "odd": Odd(), "nan": float("nan"), "half": "\ud800"}}]
    )
    detail = journal_lines(tmp_path)[1]["detail"]
    assert detail["cycle"] == {"self": "<cycle>", "again": "<cycle>"}
    assert (detail["odd"], detail["nan"], detail["half"]) == ("<Odd>", "nan", "\ud800")
    assert sync(tmp_path).records == 2


def test_threads_write_whole_lines(tmp_path):
    journal = Journal(tmp_path, rotate_bytes=50_000)
    threads = [
        threading.Thread(target=lambda k=k: [journal.write([record(100 * k + n, 400)]) for n in range(100)])
        for k in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert numbers(tmp_path) == list(range(400))


def test_writing_while_it_writes_neither_waits_for_itself_nor_loses(tmp_path, monkeypatch):
    """A stream that the garbage collector takes in the middle of a write is recorded from there."""
    journal = Journal(tmp_path)
    real, inner = os.write, []

    def write(fd, data):
        if not inner:
            inner.append(None)
            inner.append(journal.write([record(2)]))
        return real(fd, data)

    assert journal.write([record(0)])
    monkeypatch.setattr(os, "write", write)
    done = []
    thread = threading.Thread(target=lambda: done.append(journal.write([record(1)])), daemon=True)
    thread.start()
    thread.join(60)
    assert done == [True]
    assert numbers(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("word", ["off", "OFF", "0", "false"])
def test_switched_off_there_is_no_file_at_all(tmp_path, monkeypatch, word):
    monkeypatch.setenv("LOOPTAPE", word)
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "home"))
    client = scripted.anthropic_client(scripted.loop_answer(2))
    before = client._client._transport
    assert looptape.wrap(client) is client
    assert client._client._transport is before
    run_tool = looptape.tools(lambda name, arguments: "found")
    with looptape.run("unseen", tags={"a": "b"}) as run:
        scripted.run_loop(client, result=lambda path: run_tool("read_file", {"path": path}))
        with run.turn() as turn:
            turn.request([{"role": "user", "content": "hi"}])
            turn.response("ho", stop_reason="end_turn")
        run.outcome("pass")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("word", ["none", "None "])
def test_without_content_nothing_that_was_said_is_anywhere_but_the_figures_are(tmp_path, monkeypatch, word):
    monkeypatch.setenv("LOOPTAPE_CONTENT", word)

    def answer(body):
        turn = sum(m["role"] == "assistant" for m in body["messages"])
        if turn == 3:
            return {"type": "error", "error": {"type": "api_error", "message": "canaryError"}}
        call = {"type": "tool_use", "id": f"toolu_{turn}", "name": "search", "input": {"path": f"canaryArgument{turn}"}}
        return {
            "id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
            "content": [{"type": "text", "text": "canaryAnswer"}, call], "usage": {"input_tokens": 11, "output_tokens": 7},
        }  # fmt: skip

    @looptape.tool(name="search")
    def search(path):
        if path.endswith("2"):
            raise LookupError("canaryToolError")
        return "canaryResult"

    def result(path):
        try:
            return search(path)
        except LookupError as error:
            return str(error)

    with recording(tmp_path) as home:
        client = looptape.wrap(scripted.anthropic_client(answer, max_retries=0))
        prompt = [{"role": "user", "content": "canaryPrompt canaryTitle"}]
        with contextlib.suppress(RuntimeError), looptape.run("words"):
            with contextlib.suppress(Exception):
                scripted.run_loop(client, result=result, messages=prompt)
            raise RuntimeError("canaryException")
        with contextlib.suppress(Exception):
            scripted.run_loop(client, result=result, messages=[{"role": "user", "content": "canaryPrompt"}])
        written = every_byte(home.path)
        runs = home.runs()
        written += every_byte(home.path)
    assert b"canary" not in written
    assert [r.name == "words" for r in runs].count(True) == 1
    for run in runs:
        assert run.turns[0].usage.input == 11
        assert run.turns[0].tool_calls[0].name == "search"
        assert run.turns[0].tool_calls[0].result_length == len("canaryResult")
        assert run.turns[0].started_at < run.turns[0].ended_at
        assert run.turns[0].response_id == "msg_0"
