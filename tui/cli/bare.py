"""Bare `looptape`: the screen in a terminal, the list in a pipe."""

from __future__ import annotations

import time

from .. import report


def bare() -> int | None:
    """Opens the screen or prints the list."""
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
