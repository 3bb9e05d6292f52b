"""The command line: one file per command, listed here in the order shown to people."""

from __future__ import annotations

import sys
from typing import NamedTuple


class Command(NamedTuple):  # importing dataclasses takes longer than all else that goes before main()
    """A command: ``looptape NAME`` is ``command`` in the module NAME (``import_`` for a Python word)."""

    name: str
    says: str

    @property
    def module(self) -> str:
        """The module's full name."""
        return f"{__name__}.{'import_' if self.name == 'import' else self.name}"


COMMANDS = (
    Command("tui", "Open the terminal screen."),
    Command("demo", "Record sample loops (no key, no network) and look at them."),
    Command("record", "Run a program with recording on."),
    Command("replay", "Run a program again, answered from its recording."),
    Command("fork", "Go on from a turn with something changed, as a new run."),
    Command("budget", "Hold turns, tokens and cost of runs against a baseline."),
    Command("stable", "Name what makes a program's requests differ from run to run."),
    Command("receive", "Take OpenTelemetry (OTLP) in from any program."),
    Command("import", "Bring in sessions and tapes you already have."),
    Command("sync", "Move what was recorded into the store."),
    Command("runs", "List recorded runs."),
    Command("show", "Read a run as a transcript, or one turn whole."),
    Command("diff", "Compare two runs, turns or requests: the first divergence first."),
    Command("context", "Show what fills the window at a turn, by origin."),
    Command("cycles", "Tell where a run went round in circles."),
    Command("lint", "Look for faults of the loop in recorded runs."),
    Command("why", "Say why a run cost more and took longer than usual."),
    Command("stats", "Cost, turns, time and errors by model, day, task, tool, ..."),
    Command("search", "Look for a text in everything that was recorded."),
    Command("sql", "Ask the store in SQL, read-only."),
    Command("export", "Write runs in other formats: tape, html, spans, rows, ..."),
    Command("doctor", "Check that recording works here."),
    Command("info", "Print every path, version and setting with its source."),
    Command("completion", "Print the shell completion script."),
    Command("version", "Print the version."),
)


def main(argv: list[str] | None = None) -> None:
    """The console script: runs a command and exits with its code; 130 also for a ctrl+c while it is being imported."""
    try:
        from ...tracer.interrupts import heeded
        from .. import report

        with heeded():
            code = report.guard(lambda: _run(argv))
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _run(argv: list[str] | None) -> object:
    from .group import cli

    return cli.main(argv, prog_name="looptape", standalone_mode=False)
