"""`looptape replay RUN... -- COMMAND` as a gate: several recordings, reports for CI."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...tracer.errors import LooptapeError, UsageError
from .. import report
from ..outside.export_files import write_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...replay.ci.figures import Figures
    from ...replay.ci.gate import Case, Problem
    from ...replay.program.rerun import Rerun
    from ...replay.program.tape import Recording

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True, slots=True)
class Reports:
    """What is to be written beside the verdict."""

    junit: str | None = None
    github: bool = False
    summary: str | None = None

    def __bool__(self) -> bool:
        return bool(self.junit or self.github or self.summary)

    @property
    def page(self) -> Path | None:
        """The file of the summary: as named, else with ``--github`` the step's own."""
        step = os.environ.get(STEP_SUMMARY) if self.github else None
        named = self.summary or step
        return Path(named).expanduser() if named else None


def report_options(function: Any) -> Any:
    """``--junit``, ``--github``, ``--summary``; they arrive as ``reports``."""

    @functools.wraps(function)
    def gathered(*args: Any, junit: str | None, github: bool, summary: str | None, **given: Any) -> Any:
        return function(*args, reports=Reports(junit, github, summary), **given)

    options = (
        click.option("--junit", metavar="FILE", help="Write a JUnit file, one test case a recording."),
        click.option(
            "--github", is_flag=True,
            help="Print GitHub annotations, the ten worst, each at its turn's line of the tape; and write the summary "
            "to $GITHUB_STEP_SUMMARY where that is set.",
        ),
        click.option("--summary", metavar="FILE", help="Add a markdown page to FILE: what changed in turns, tools and cost."),
    )  # fmt: skip
    for option in reversed(options):
        gathered = option(gathered)
    return gathered


def gate(
    runs: Sequence[str],
    replayed: Callable[[str], tuple[Recording, Rerun]],
    reports: Reports,
    *,
    as_json: bool,
) -> int:
    """Replays every recording, whatever became of the others, and reports on all.

    Args:
        replayed: Replays one by its name.
    """
    from ...replay.ci.gate import exit_code, problems

    if reports.github and as_json:
        raise UsageError("usage", "--github and --json both want stdout", "Leave one of them out, or use --junit FILE")
    cases = []
    for run in dict.fromkeys(runs):
        case = _case(run, replayed)
        cases.append(case)
        _say(case)
        if case.exit_code == report.INTERRUPTED:
            break
    found = problems(cases)
    _write(reports, cases, found)
    good = sum(1 for c in cases if c.ok)
    if len(runs) > 1:
        report.note(f"{good} of {len(cases)} recordings hold")
    if as_json:
        report.data({"ok": exit_code(cases) == 0, "replays": [_json(c) for c in cases]})
    return exit_code(cases)


def _case(run: str, replayed: Callable[[str], tuple[Recording, Rerun]]) -> Case:
    from ...replay.ci.gate import Case, named

    path = Path(run).expanduser()
    file = path if path.is_file() else None
    try:
        with named(run):
            recording, done = replayed(run)
    except UsageError:
        raise
    except LooptapeError as trouble:
        return Case(run, file, trouble=trouble)
    return Case(run, file, recording.runs, done)


def _say(case: Case) -> None:
    if case.rerun is None:
        if case.trouble is not None:
            report.error(case.trouble)
        return
    for text in case.rerun.verdict.lines():
        report.note(f"{case.label}: {text}" if text.startswith("replay ") else text)
    if case.rerun.verdict.ok and case.rerun.code:
        report.note(f"{case.label}: the program ended with code {case.rerun.code}")


def _write(reports: Reports, cases: Sequence[Case], found: Sequence[Problem]) -> None:
    from ...replay.ci.annotations import commands_of
    from ...replay.ci.junit import junit
    from ...replay.ci.summary import summary

    if reports.junit:
        write_texts(Path(reports.junit).expanduser(), iter([junit(cases, found)]))
    if reports.page is not None:
        with _added(reports.page) as out:
            out.write(summary(cases, found, _costs(cases)).encode("utf-8", "backslashreplace"))
    if reports.github:
        for text in commands_of(found):
            report.out(text)


@contextmanager
def _added(path: Path) -> Iterator[Any]:
    """The end of a file: a step may have written to its summary before."""
    try:
        with path.open("ab") as out:
            yield out
    except OSError as error:
        raise LooptapeError(
            "bad-output", f"{path}: {error.strerror}", "Name a file that can be written", exit_code=2
        ) from None


def _costs(cases: Sequence[Case]) -> dict[str, tuple[Figures, Figures]]:
    """Of each recording: what it took when it was recorded, and what its replay took live."""
    from ...replay.ci import measured
    from ...replay.ci.figures import Figures
    from .reading import found

    costs = {}
    for case in cases:
        if case.rerun is None or case.recorded is None:
            continue
        if case.file is not None:
            then = measured.of_tape(case.file)
        else:
            with found(case.label) as one:
                then = measured.of_found(one)
        now = Figures(usd=Decimal(0))
        if case.rerun.verdict.live.model and case.rerun.runs:
            with found(case.rerun.runs[0]) as one:
                now = measured.of_found(one)
        costs[case.label] = (then, now)
    return costs


def _json(case: Case) -> dict[str, Any]:
    done = case.rerun
    return {
        "recording": case.label,
        "ok": case.ok,
        "exit_code": case.exit_code,
        "run": done.runs[0] if done is not None and done.runs else None,
        "verdict": done.verdict.as_json() if done is not None else None,
        "error": str(case.trouble) if case.trouble is not None else None,
    }
