"""Listening on loopback, and who it is that listens there already."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..errors import LooptapeError

_LISTENING = "0A"


def listen(port: int, option: str) -> list[socket.socket]:
    """Sockets on 127.0.0.1 and, where there is one, ::1, of the same port; 0 takes a free one.

    Raises:
        LooptapeError: ``port-taken``: the error says by whom; ``option`` chooses another port.
    """
    try:
        first = _bound(socket.AF_INET, "127.0.0.1", port)
    except PermissionError:
        raise LooptapeError("port-forbidden", f"port {port} may not be used", f"Choose another: {option} N") from None
    except OSError as error:
        raise _taken(port, option, error) from None
    sockets = [first]
    try:
        sockets.append(_bound(socket.AF_INET6, "::1", first.getsockname()[1]))
    except OSError as error:
        if error.errno == errno.EADDRINUSE and port:
            first.close()  # half of the programs that say "localhost" would reach somebody else
            raise _taken(port, option, error) from None
    return sockets


def port_of(sockets: list[socket.socket]) -> int:
    """The port that these sockets listen on."""
    return int(sockets[0].getsockname()[1])


def holder(port: int) -> str | None:
    """Who listens on a port, as ``name (PID n)``; None when that cannot be found out."""
    inodes = _inodes(port)
    if inodes:
        return next((_named(pid) for pid in _processes() if _holds(pid, inodes)), None)
    return _by_lsof(port)


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError:
        made.close()
        raise
    made.setblocking(False)
    return made


def _taken(port: int, option: str, error: OSError) -> LooptapeError:
    if error.errno != errno.EADDRINUSE:
        return LooptapeError("port-unusable", f"port {port} cannot be used ({error.strerror})", f"Try {option} N")
    who = holder(port) or "another program"
    return LooptapeError("port-taken", f"port {port} is taken by {who}", f"Stop it, or choose another: {option} N")


def _inodes(port: int) -> set[str]:
    return {f"socket:[{r.inode}]" for r in _connections() if r.state == _LISTENING and r.here == port}


def peer_user(port: int, peer: int) -> int | None:
    """Which user of this machine holds the other end of a connection to ``port``; None when nobody can tell."""
    return next((r.user for r in _connections() if (r.here, r.there) == (peer, port)), None)


class _Connection(NamedTuple):
    """A row of the kernel's tables: ports, state, user and inode."""

    here: int
    there: int
    state: str
    user: int
    inode: str


def _connections() -> Iterator[_Connection]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            parts = row.split()
            if len(parts) > 9:
                here, there = (int(parts[i].rpartition(":")[2], 16) for i in (1, 2))
                yield _Connection(here, there, parts[3], int(parts[7]), parts[9])


def _processes() -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def _holds(pid: int, inodes: set[str]) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:  # not ours to look at, or gone
        return False
    for name in names:
        with suppress(OSError):  # closed just now: the others are still there
            if os.readlink(f"{folder}/{name}") in inodes:
                return True
    return False


def _named(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        words = []
    if any("looptape" in word for word in words):
        for ours in (("receive",), ("tui", "--web")):
            if all(word in words for word in ours):
                return f"another looptape {' '.join(ours)} (PID {pid})"
    name = Path(words[0]).name if words and words[0] else "a program"
    return f"{name} (PID {pid})"


def _by_lsof(port: int) -> str | None:
    tool = shutil.which("lsof")
    if tool is None:
        return None
    try:
        said = subprocess.run(
            [tool, "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-Fpc"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"^p(\d+)\nc(.+)$", said, re.MULTILINE)
    return f"{found[2]} (PID {found[1]})" if found else None
