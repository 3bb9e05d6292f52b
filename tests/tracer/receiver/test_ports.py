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


@pytest.mark.parametrize(
    ("says", "named"), [("p4711\ncnginx\nf6\n", "nginx (PID 4711)"), ("", None), ("lsof: no such thing\n", None)]
)
def test_where_proc_does_not_tell_lsof_is_asked(tmp_path, monkeypatch, says, named):
    tool = tmp_path / "lsof"
    tool.write_text(f"#!/bin/sh\nprintf '%s' '{says}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(ports, "_inodes", lambda port: set())
    assert ports.holder(4318) == named


def test_without_lsof_nobody_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(ports, "_inodes", lambda port: set())
    assert ports.holder(4318) is None
