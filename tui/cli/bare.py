"""Bare `looptape`: the screen in a terminal, the list in a pipe, on an empty store what there is to begin with."""

from __future__ import annotations

import time

from .. import format as fmt
from .. import report


def bare() -> int | None:
    """Opens the screen or prints the list; on an empty store says what was found on this machine."""
    if report.is_terminal():
        from .tui import open_screen

        return open_screen()
    from ...tracer import settings
    from ...tracer.store import Filter
    from .runs import show_list

    limit = int(settings.effective()["limit"].value)
    if show_list(Filter(limit=limit), time.time_ns() // 1000):
        report.note(
            "looptape show RUN reads one, looptape --help lists the commands; in a terminal looptape opens a screen"
        )
        return None
    for line in offers():
        report.note(line)
    return None


def offers() -> list[str]:
    """What an empty store can begin with: sessions found here, the demo."""
    from ..data.sessions import found

    lines = []
    folders = found()
    if folders:
        programs = [
            f"{fmt.counted(len(f.files), f'{f.program} session file')} in {f.path} ({fmt.size(f.octets)})"
            for f in folders
        ]
        lines.append("found " + "; ".join(programs))
        given = " ".join(dict.fromkeys(f.option for f in folders))
        lines.append(f"looptape import {given} brings them in and keeps them in step")
    lines.append("looptape demo records sample loops: no key, no network")
    lines.append("looptape record -- python agent.py records a program of yours")
    return lines
