"""When the screen breaks or is ended from outside: the terminal is given back, one line says where the log is."""

from __future__ import annotations

import os
import re
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pty_terminal import Terminal, program, terminal

SECRET = "customer 4711 paid with canary-value"
WAYS = {
    "handler": "RunsScreen.action_sort = lambda self: boom()",
    "timer": "RunsScreen.action_sort = lambda self: self.set_timer(0.01, boom)",
    "worker": "RunsScreen.action_sort = lambda self: self.run_worker(boom, thread=True)",
    "painting": "RunsScreen.action_sort = lambda self: (setattr(VirtualList, 'render_line', boom), self.listing.refresh())",
}
APP = """
from pathlib import Path
from looptape.tui import report
from looptape.tui.app import show
from looptape.tui.screens.runs.screen import RunsScreen
from looptape.tui.widgets.virtual_list import VirtualList
from tui_fakes import shop

HOME = Path({home!r})

def boom(*_):
    mine = {secret!r}
    raise ValueError(mine)

def nothing_to_read(*_, **__):
    raise ZeroDivisionError("that was all")

source = shop()
type(source).home = property(lambda self: HOME)
{way}
sys.exit(report.guard(lambda: show(source)))
"""
RESTORED = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?2004l")
TAKEN = (b"\x1b[?1049h", b"\x1b[?25l", b"\x1b[?1000h", b"\x1b[?2004h")


def opened(home: Path, way: str = "") -> Iterator[Terminal]:
    with terminal(program(APP.format(home=str(home), secret=SECRET, way=way))) as made:
        made.until("refund-agent")
        made.quiet(0.3)
        yield made


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Terminal]:
    yield from opened(tmp_path)


def given_back(seen: bytes) -> bool:
    """Every mode that was set was taken back, in that order."""
    return all(seen.rfind(after) > seen.rfind(before) for before, after in zip(TAKEN, RESTORED, strict=True))


def last_words(seen: bytes) -> str:
    """What the user reads in the shell afterwards."""
    after = seen[max(seen.rfind(mode) for mode in RESTORED) :]
    return re.sub(r"\x1b\[[0-9;?<>=$]*[a-zA-Z]|\r", "", after.decode("utf-8", "replace")).strip()


def log_of(home: Path, words: str) -> str:
    file = home / "screen.log"
    assert str(file) in words
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    return file.read_text("utf-8")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_an_error_nobody_caught_gives_the_terminal_back_and_leaves_one_line(way: str, tmp_path: Path) -> None:
    for made in opened(tmp_path, way):
        made.send("s")
        assert made.status() == 1
        assert given_back(made.seen)
        words = last_words(made.seen)
        assert words.startswith("looptape: ")
        assert words.count("\n") == 0
        assert b"Traceback" not in made.seen
        assert b"canary" not in made.seen
        log = log_of(tmp_path, words)
        assert "builtins.ValueError" in log
        assert " boom" in log
        assert "canary" not in log


def test_a_reading_that_breaks_is_said_and_the_app_goes_on(tmp_path: Path) -> None:
    for made in opened(tmp_path, "type(source).run = nothing_to_read"):
        made.send("\r")
        made.until("ZeroDivisionError", "screen.log")
        made.send("q")
        made.until("refund-agent")
        made.rest(0.3)
        made.send("\x11")
        assert made.status() == 0
        log = (tmp_path / "screen.log").read_text("utf-8")
        assert "nothing_to_read" in log
        assert "that was all" not in log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["term", "hup"])
def test_ended_from_outside_it_leaves_as_one_leaves(number: int, screen: Terminal, tmp_path: Path) -> None:
    os.kill(screen.pid, number)
    assert screen.status() == 1
    assert given_back(screen.seen)
    words = last_words(screen.seen)
    assert signal.Signals(number).name in words
    assert words.count("\n") == 0
    assert signal.Signals(number).name in log_of(tmp_path, words)


def test_an_interrupt_is_130_without_a_word(screen: Terminal) -> None:
    os.kill(screen.pid, signal.SIGINT)
    assert screen.status() == 130
    assert given_back(screen.seen)
    assert last_words(screen.seen) == ""


def test_a_closed_terminal_leaves_no_process(screen: Terminal) -> None:
    os.close(screen.fd)
    end = time.monotonic() + 60
    done = 0
    while not done and time.monotonic() < end:
        done, status = os.waitpid(screen.pid, os.WNOHANG)
        time.sleep(0.05)
    assert done
    screen.code = os.waitstatus_to_exitcode(status)
    assert screen.code == 1


def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_brings_the_screen_back(screen: Terminal) -> None:
    screen.send("\x1a")
    end, stopped = time.monotonic() + 60, 0
    while not stopped and time.monotonic() < end and screen.read(0.1):  # what it says on the way has to be read
        stopped, status = os.waitpid(screen.pid, os.WNOHANG | os.WUNTRACED)
    assert stopped
    assert os.WIFSTOPPED(status)
    screen.rest(0.3)
    assert given_back(screen.seen)
    before = len(screen.seen)
    os.kill(screen.pid, signal.SIGCONT)
    assert screen.wait(lambda grid: b"\x1b[?1049h" in screen.seen[before:])
    screen.until("refund-agent")
    screen.quiet(0.3)
    screen.send("q")
    assert screen.status() == 0
