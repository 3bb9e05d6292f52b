"""Reading at the edges: more turns than there are, ctrl+c, a closed pipe, a folder as the file to write, a tape on screen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import small_tape
from commandline import looptape
from looptape.tracer import paths
from looptape.tui.data.source import StoreSource
from looptape.tui.data.views import RunsWanted


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_fewer_turns_than_asked_for_is_said(tmp_path: Path) -> None:
    path = small_tape.write(tmp_path / "t.jsonl", small_tape.records())
    looptape("import", str(path))
    for where in (small_tape.RUN, str(path)):
        assert "turns 1-2 of 2" in looptape("show", f"{where}:1-99").err
        assert "turn 2 of 2" in looptape("show", f"{where}:2-3", "--json").err
        assert looptape("show", f"{where}:1-2").err == ""


def test_one_interrupt_ends_a_query(tmp_path: Path) -> None:
    """DuckDB, working in several threads, forgets a good part of the interrupts: six in a row it hardly ever heeds."""
    query = "select count(*) from range(100000000000) t(a) where sqrt(a) > 3 and a % 7 = 3"
    said = []
    for number in range(6):
        home = tmp_path / str(number)
        command = [sys.executable, "-m", "looptape.tui.cli", "sql", query]
        env = {**os.environ, "LOOPTAPE_HOME": str(home)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as asked:
            end = time.monotonic() + 60
            while not paths.store_file(home).exists() and time.monotonic() < end:
                time.sleep(0.02)
            time.sleep(0.2 + 0.05 * number)  # the store is made: the command has begun, the query soon will have
            asked.send_signal(signal.SIGINT)
            try:
                out, err = asked.communicate(timeout=60)
            finally:
                asked.kill()
        said.append((asked.returncode, out, err.strip()))
    assert said == [(130, b"", b"")] * 6


@pytest.mark.parametrize(
    "module", ["looptape.tracer.interrupts", "looptape.tui.report", "click", "looptape.tui.cli.runs"]
)
def test_ctrl_c_while_a_command_is_still_being_imported_ends_it_quietly(module: str) -> None:
    code = f"""
import os, signal, sys
class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Impatient())
from looptape.tui.cli import main
main(["runs"])
"""
    ran = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (130, "", "")


@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_a_closed_pipe_is_quiet(form: str) -> None:
    command = [sys.executable, "-m", "looptape.tui.cli", "sql", "select * from range(300000)", "--format", form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asked:
        assert asked.stdout
        assert asked.stderr
        asked.stdout.read(1)
        asked.stdout.close()
        said = asked.stderr.read()  # a short table may have been written whole before the pipe was closed
        assert not said or said.startswith(b"only the f")
        assert asked.wait(60) == 0


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("place", ["/", ".", "~"])
def test_rows_cannot_be_written_over_a_folder(form: str, place: str) -> None:
    ran = looptape("sql", "select 1", "--format", form, "-o", place)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "is a folder" in ran.err


def test_the_screen_opens_a_tape_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from looptape.tui import app

    path = small_tape.write(tmp_path / "t.jsonl", small_tape.records())
    shown: list[object] = []

    def show(source: StoreSource, run: str, turn: int | None) -> int:
        shown.extend(
            [
                source.place,
                list(source.runs(RunsWanted()).listing.keys),
                source.run(run).run.id,
                source.turn(run, 2),
                turn,
            ]
        )
        return 0

    monkeypatch.setattr("looptape.tui.report.is_terminal", lambda: True)
    monkeypatch.setattr(app, "show", show)
    assert looptape("tui", f"{path}:2").code == 0
    assert (shown[0], shown[1], shown[2], shown[4]) == ("t.jsonl", [small_tape.RUN], small_tape.RUN, 2)
