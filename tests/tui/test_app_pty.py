"""The real program on a real pseudo-terminal: what reaches the terminal is only what we mean to send."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
PROGRAM = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
from looptape.tui.app import show
from tui_fakes import hostile
sys.exit(show(hostile()))
"""
# What Textual itself may send besides text: CSI sequences of colours, places and modes; mode queries, the pointer (OSC 22).
OURS = re.compile(
    rb"\x1b\[[0-9;:?<>=$]*[A-Za-z]|\x1b\[\?[0-9;]*\$p|\x1b\]22;[a-z-]*\x07|\x1b7|\x1b8|\x1b[=>]|\x1bP\+q[0-9a-fA-F;]*\x1b\\|\x1b_G[ -~]*\x1b\\|\r|\n"
)


class Terminal:
    """A pseudo-terminal with a program on it."""

    def __init__(self, program: str, columns: int = 120, lines: int = 40) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
            for name in ("NO_COLOR", "COLUMNS", "LINES"):
                env.pop(name, None)
            os.execve(sys.executable, [sys.executable, "-c", program], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.seen = b""
        self.code: int | None = None

    def until(self, words: bytes, seconds: float = 30) -> bool:
        """Read until the words came (since the last call), or the time is over."""
        start, end = len(self.seen), time.monotonic() + seconds
        while time.monotonic() < end:
            if words in re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", self.seen[start:]):
                return True
            if not self.read(0.1):
                break
        return False

    def read(self, seconds: float) -> bool:
        """Whatever comes; False when the program has gone."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += piece
        return bool(piece)

    def rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read(0.1):
            pass

    def send(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def status(self) -> int:
        """Wait for the end; its exit status, that of a kill if it does not end."""
        end = time.monotonic() + 20
        while self.read(0.1) and time.monotonic() < end:
            pass
        return self.close(max(1.0, end - time.monotonic()))

    def close(self, patience: float = 0.0) -> int:
        """Make sure that the program is gone; its exit status."""
        if self.code is not None:
            return self.code
        end = time.monotonic() + patience
        done, status = os.waitpid(self.pid, os.WNOHANG)
        while not done and time.monotonic() < end:
            time.sleep(0.05)
            done, status = os.waitpid(self.pid, os.WNOHANG)
        if not done:
            os.kill(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
        with contextlib.suppress(OSError):
            os.close(self.fd)
        self.code = os.waitstatus_to_exitcode(status)
        return self.code


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """The program over hostile data; gone afterwards, whatever happens."""
    made = Terminal(PROGRAM)
    try:
        yield made
    finally:
        made.close()


def test_no_hostile_sequence_reaches_the_terminal_on_any_screen(terminal: Terminal) -> None:
    assert terminal.until(b"unclosed"), terminal.seen[-2000:]
    for keys, words in (
        (b"jjj", b""),
        (b"\r", b"RESUME"),
        (b"J", b""),
        (b"\r", b"conversation"),
        *((tab, b"") for tab in (b"2", b"3", b"4", b"5", b"6")),
        (b"G", b""),
        (b"R", b""),
        (b"?", b"valid"),
        (b"\x1b", b""),
        (b"q", b""),
        (b"q", b""),
        (b"s", b"sorted"),
        (b"/", b""),  # one at a time: Textual hands a burst of keys to what had the focus before it
        (b"[/", b"of 16"),
        (b"\r", b""),
    ):
        terminal.send(keys)
        if words:
            assert terminal.until(words), (keys, terminal.seen[-1500:])
        else:
            terminal.rest(0.5)
    terminal.send(b"\x1b")
    terminal.rest(1.0)
    terminal.send(b"q")
    assert terminal.status() == 0
    left = OURS.sub(b"", terminal.seen)
    found = re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", left)
    assert found is None, left[max(0, found.start() - 60) : found.start() + 60]
    for attack in (b"\x1b]52", b"\x1b]0;", b"\x1b]8;", b"\x1b[2J\x1b[Hcleared", "\x9b".encode(), "\u202e".encode()):
        assert attack not in terminal.seen
    assert "␛]52;c;".encode() in left


def test_leaving_gives_the_terminal_back(terminal: Terminal) -> None:
    assert terminal.until(b"unclosed")
    terminal.send(b"q")
    assert terminal.status() == 0
    assert terminal.seen.rindex(b"\x1b[?1049l") > terminal.seen.rindex(b"\x1b[?1049h")
    assert terminal.seen.rindex(b"\x1b[?25h") > terminal.seen.rindex(b"\x1b[?25l")
