"""`looptape tui --web` in its own process on a free port, and plain HTTP to it."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

CLI = (sys.executable, "-P", "-m", "looptape.tui.cli", "tui", "--web")


class WebSite:
    """The running server."""

    def __init__(self, home: Path, *options: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [*CLI, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "LOOPTAPE_HOME": str(home), "TZ": "UTC", **environment},
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError(self.process.communicate(timeout=60)[1])
        self.port = int(self.address.rstrip("/").rpartition(":")[2])

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; the path goes out as it is, and so does a Host."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest("GET", path, skip_host=bool(headers and "Host" in headers))
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def children(self) -> list[int]:
        """The app processes that run for pages."""
        listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        rows = [[int(word) for word in line.split()] for line in listed.splitlines()]
        return [pid for pid, parent in rows if parent == self.process.pid]

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Exit code and what it said on stderr."""
        self.process.send_signal(number)
        said = self.process.communicate(timeout=60)[1]
        return self.process.returncode, said


@contextlib.contextmanager
def web_site(home: Path, *options: str, **environment: str) -> Iterator[WebSite]:
    """A server on a free port; gone afterwards."""
    made = WebSite(home, *(() if "--port" in options else ("--port", "0")), *options, **environment)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
            made.process.communicate(timeout=60)
