"""`looptape tui`: the screen, in this terminal or in a browser."""

from __future__ import annotations

import os
import sys
import threading

import click

from ...replay import reference
from ...tracer import paths
from ...tracer.errors import UsageError
from ...tracer.interrupts import at_once
from .. import report, terminal
from ..data.source import StoreSource
from ..web import PORT
from .options import run_argument
from .reading import found


@click.command("tui")
@run_argument(required=False)
@click.option("--web", is_flag=True, help="Serve it to a browser on this machine instead; ctrl+c ends it.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"With --web: the port; 0: any. [default: {PORT}]")
@click.option("--open", "open_it", is_flag=True, help="With --web: open the browser too.")
def command(run: str | None, web: bool, port: int | None, open_it: bool) -> int:
    """Open the screen, at a run if one is named."""
    if web:
        return _serve(run, PORT if port is None else port, open_it=open_it)
    if port is not None or open_it:
        raise UsageError("no-web", "--port and --open belong to --web", "Add it: looptape tui --web")
    if not report.is_terminal():
        plain = f"looptape show {run}" if run else "looptape runs"
        raise UsageError("no-terminal", "the screen needs a terminal", f"Without one: {plain}, or: looptape tui --web")
    return open_screen(run)


def open_screen(run: str | None = None) -> int:
    """Opens the Textual app; a reference is looked up first, so that a wrong one is said plainly."""
    terminal.prepare(os.environ)
    turn = None
    if run is not None:
        path = reference.parse(run).path
        with found(run) as one:
            if path is not None:
                from ..app import run_app

                return run_app(paths.home(), path.name, turn=one.first, tape=one)
            run, turn = one.run.id, one.first
    source = StoreSource(paths.home())
    with at_once():
        if run is None:
            source.look_ahead()  # before what takes longest: loading Textual
        from ..app import show

    return show(source, run, turn)


def _serve(run: str | None, port: int, *, open_it: bool) -> int:
    """The same app in a browser, until ctrl+c. A wrong reference is said here, before there is a page."""
    from ..web.server import serve

    if run is not None:
        with found(run):
            pass

    def ready(address: str) -> None:
        report.out(address)
        sys.stdout.flush()
        report.note("looptape answers there, on this machine only; ctrl+c ends it")
        if open_it:  # a browser in a terminal is waited for, and could not load what is not served meanwhile
            threading.Thread(target=_open, args=(address,), daemon=True).start()

    serve([run] if run is not None else [], port, say=report.note, ready=ready)
    report.progress("")
    return report.FINE


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        report.note("no browser could be opened here: paste the address into one")
