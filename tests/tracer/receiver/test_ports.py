"""Who listens on a port, whatever else goes on in the process that does."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from looptape.tracer.receiver import ports


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="elsewhere another tool is asked")
def test_a_holder_that_closes_a_file_while_it_is_looked_at_is_still_named(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        real = os.listdir

        def gone_first(folder):
            found = real(folder)
            return ["999999", *found] if str(folder).endswith("/fd") else found

        monkeypatch.setattr(os, "listdir", gone_first)
        found = ports.holder(listening.getsockname()[1])
    assert found is not None
    assert f"(PID {os.getpid()})" in found
