"""A pseudo-terminal with a program on it: keys in, octets out, and what stands on the screen by then."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from terminal_grid import Grid

LOOPTAPE = (sys.executable, "-P", "-m", "looptape.tui.cli")
_LEFT_OUT = ("NO_COLOR", "COLUMNS", "LINES", "TMUX", "STY", "SSH_CONNECTION", "SSH_TTY", "DISPLAY", "WAYLAND_DISPLAY")


def program(text: str) -> tuple[str, ...]:
    """The command that runs this Python text with tests/support on its path."""
    return (sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n{text}")


def _works(pid: int) -> bool:
    """True while a thread of a program or of its children runs, or would if it were let (where /proc tells)."""
    with contextlib.suppress(OSError):  # it ends while it is looked at
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        if any((thread / "stat").read_text().rpartition(")")[2].split()[0] in "RD" for thread in threads):
            return True
        return any(_works(int(child)) for thread in threads for child in (thread / "children").read_text().split())
    return False


class Terminal:
    """A program on a pseudo-terminal.

    Args:
        command: What runs.
        environment: Added to this process's own.
    """

    def __init__(
        self,
        command: Sequence[str],
        columns: int = 120,
        lines: int = 40,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.started = time.perf_counter()
        env = {k: v for k, v in os.environ.items() if k not in _LEFT_OUT}
        env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})}
        self.fd, other = os.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        # no fork: between it and the program's start Python would run in a copy of a process with other threads
        own = [
            (os.POSIX_SPAWN_OPEN, 0, os.ttyname(other), os.O_RDWR, 0),
            *((os.POSIX_SPAWN_DUP2, 0, n) for n in (1, 2)),
        ]
        self.pid = os.posix_spawn(command[0], list(command), env, file_actions=own, setsid=True)
        os.close(other)
        self.seen = b""
        self.grid = Grid(columns, lines)
        self.code: int | None = None

    def read(self, seconds: float) -> bool:
        """Whatever comes within that time; False when the program has gone."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += piece
        self.grid.feed(piece)
        return bool(piece)

    def wait(self, stands: Callable[[Grid], object], seconds: float = 60) -> bool:
        """Read until that is so on the screen, or the time is over."""
        end = time.monotonic() + seconds
        while not stands(self.grid):
            if time.monotonic() > end or not self.read(0.1):
                return bool(stands(self.grid))
        return True

    def until(self, *words: str, seconds: float = 60) -> None:
        """Read until all these words stand on the screen."""
        if not self.wait(lambda grid: all(word in grid.text for word in words), seconds):
            raise AssertionError(f"{words} did not come; the screen:\n{self.grid.text}\n{self.seen[-400:]!r}")

    def rest(self, seconds: float) -> None:
        """Read for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read(0.1):
            pass

    def quiet(self, seconds: float, most: float = 30) -> None:
        """Read until nothing has come for so long, and the program rested: a busy machine keeps it from running."""
        now = since = time.monotonic()
        end = now + most
        while now < end and now - since < seconds:
            seen = len(self.seen)
            if not self.read(0.03):
                return
            now = time.monotonic()
            if len(self.seen) != seen or _works(self.pid):
                since = now

    def send(self, keys: bytes | str) -> None:
        os.write(self.fd, keys.encode() if isinstance(keys, str) else keys)

    def status(self) -> int:
        """Wait for the end; its exit status, that of a kill if it does not end."""
        end = time.monotonic() + 60
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


@contextlib.contextmanager
def terminal(
    command: Sequence[str], columns: int = 120, lines: int = 40, environment: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """A program on a pseudo-terminal; gone afterwards, whatever happens."""
    made = Terminal(command, columns, lines, environment)
    try:
        yield made
    finally:
        made.close()
