"""Runs a program as a child with our stdin, stdout and stderr; signals meant for it reach it."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
from collections.abc import Mapping
from types import FrameType, TracebackType

from ..command import Command

_NAMES = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_LOOK_AGAIN = 0.5
_PASSED_ON = tuple(signal.Signals[name] for name in _NAMES if hasattr(signal, name))


def run(command: Command, environment: Mapping[str, str], *, output: int | None = None) -> int:
    """Runs it to its end; its exit code, or 128 plus the signal that ended it, as a shell says it.

    Args:
        output: Descriptor that its stdout goes to; ours otherwise.

    Raises:
        OSError: When it cannot be started.
    """
    with _Relay() as relay:
        child = subprocess.Popen(list(command.argv), executable=command.program, env=dict(environment), stdout=output)
        code = relay.wait(child)
    return 128 - code if code < 0 else code


class _Relay:
    """Passes signals that are sent to us on to the child while its block runs.

    A plain wait for the child would sleep through a signal that comes just before it, or that another thread
    (the proxy's) takes: Python runs a handler only once its main thread awakes. Every signal, the child's end
    too, is therefore a byte on a socket that is waited for.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._former: dict[signal.Signals, object] = {}
        self._awake, self._bell = socket.socketpair()
        self._former_bell = -1

    def wait(self, child: subprocess.Popen[bytes]) -> int:
        """The child is there: it gets what came before, and what comes; its return code once it has ended."""
        self._child = child
        for number in self._early:
            child.send_signal(number)
        while (code := child.poll()) is None:
            # not without end: who started us may have SIGCHLD blocked
            if select.select([self._awake], [], [], _LOOK_AGAIN)[0]:
                self._awake.recv(4096)
        return code

    def __enter__(self) -> _Relay:
        self._bell.setblocking(False)
        self._former_bell = signal.set_wakeup_fd(self._bell.fileno(), warn_on_full_buffer=False)
        self._former[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in _PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup the child ignores it too
                self._former[number] = signal.signal(number, self._pass_on)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal gave
        signal.set_wakeup_fd(self._former_bell)
        self._awake.close()
        self._bell.close()

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        if self._child is None:
            self._early.append(number)  # from the keyboard too: the program was not there yet to hear it
        elif number not in (signal.SIGINT, signal.SIGQUIT) or not _from_keyboard():
            self._child.send_signal(number)  # else the terminal has told the program too; it decides


def _from_keyboard() -> bool:
    """True when we stand in the foreground of a terminal: its Ctrl-C comes to us and the child alike."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
