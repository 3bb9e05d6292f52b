"""Both ends of the line between the server and a page's app, each by itself."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from textual_serve.download_manager import DownloadManager

from looptape.tui.web.driver import Driver
from looptape.tui.web.session import Session


async def driver_of(app: Any) -> Driver:
    """A driver takes the loop that runs."""
    return Driver(app)


def test_a_piece_of_a_download_and_what_is_painted_meanwhile_never_come_into_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe takes 64 kB at once: the thread that hands out a file sleeps in its write while the screen is painted."""
    meeting, real, met = threading.Barrier(2), os.write, []
    ours, theirs = os.pipe()
    with (tmp_path / "out").open("wb") as out, open(ours, "rb") as given:
        monkeypatch.setattr(sys, "__stdout__", out)
        monkeypatch.setattr(sys, "__stdin__", given)

        def slow(fd: int, data: bytes) -> int:
            if fd == out.fileno():
                try:
                    met.append(meeting.wait(0.3))  # the other is in the middle of its own
                except threading.BrokenBarrierError:
                    meeting.reset()
            return real(fd, data)

        monkeypatch.setattr(os, "write", slow)
        driver = asyncio.run(driver_of(object()))
        handing = threading.Thread(target=driver.write_binary_encoded, args=(("deliver_chunk", "key", b"piece"),))
        handing.start()
        driver.write("painted")
        handing.join(60)
    os.close(theirs)
    assert met == []
    said = (tmp_path / "out").read_bytes()
    assert said.count(b"painted") == said.count(b"piece") == 1


def test_a_ping_of_a_page_that_is_being_closed_is_no_trouble() -> None:
    async def closed(*_: object) -> None:
        raise ConnectionResetError("Cannot write to closing transport")

    async def steps() -> None:
        session = Session(
            "true", write_bytes=closed, write_str=closed, close=closed, download_manager=DownloadManager()
        )
        await session.obey(["ping", "17"])

    asyncio.run(steps())
