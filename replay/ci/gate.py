"""Replays a program against several recordings and collects what CI should know of each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...tracer.errors import LooptapeError
from ...tracer.tape import read_lines
from ..player.events import of_kind
from ..player.recorded import RecordedRuns
from ..program.rerun import Rerun
from .transcript import agrees, beside, title_of

Severity = Literal["error", "warning"]
VARIABLE = "LOOPTAPE_TAPE"
"""Names the recording that a program is replayed against, so that one program can serve many."""
INTERRUPTED, BAD, UNUSABLE, USAGE = 130, 1, 3, 2


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of one recording that a person should look at.

    Attributes:
        title: A few words.
        text: The whole report, of several lines.
        turn: The turn it is about.
        file, line: The tape, and the line in it where that turn begins.
    """

    severity: Severity
    case: str
    title: str
    text: str
    turn: int | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A recording and what came of its replay: a rerun, or the trouble that kept it from running.

    Attributes:
        label: The recording as it was named.
        file: The tape, None for a run of the store.
    """

    label: str
    file: Path | None = None
    recorded: RecordedRuns | None = None
    rerun: Rerun | None = None
    trouble: LooptapeError | None = None

    @property
    def exit_code(self) -> int:
        """What a replay of this recording alone would end with."""
        if self.rerun is None:
            return self.trouble.exit_code if self.trouble is not None else BAD
        return self.rerun.exit_code

    @property
    def ok(self) -> bool:
        """Nothing is wrong with it."""
        return self.exit_code == 0


def exit_code(cases: Sequence[Case]) -> int:
    """Of all together: interrupted, a bad verdict, an unusable recording, unwrapped tools, else a program's own code."""
    codes = [case.exit_code for case in cases]
    for code in (INTERRUPTED, BAD, UNUSABLE, USAGE):
        if code in codes:
            return code
    return next((code for code in codes if code), 0)


def problems(cases: Sequence[Case]) -> list[Problem]:
    """Every problem of every recording, the worst first."""
    found = [problem for case in cases for problem in _problems(case)]
    return sorted(found, key=lambda p: ("error", "warning").index(p.severity))  # stable: as named within each


@contextmanager
def named(label: str) -> Iterator[None]:
    """The program can see which recording it is replayed against."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = label
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def _problems(case: Case) -> Iterator[Problem]:
    file = case.label if case.file is not None else None
    if case.rerun is None or case.recorded is None:
        trouble = case.trouble
        what = trouble.what if trouble is not None else "it was not replayed"
        line = re.search(r"\bline (\d+)\b", what)
        yield Problem(
            "error", case.label, "cannot be replayed", str(trouble or what), None, file, int(line[1]) if line else 1
        )
        return
    yield from _bad(case, case.rerun, case.recorded, file)
    yield from _doubtful(case, case.rerun, case.recorded, file)


def _bad(case: Case, done: Rerun, recorded: RecordedRuns, file: str | None) -> Iterator[Problem]:
    verdict = done.verdict
    unwrapped = of_kind(done.events, "unwrapped")
    if unwrapped:
        names = ", ".join(str(n) for n in unwrapped[0].get("names") or ())
        text = f"Stopped before turn 1: {names} would really run. Wrap them (@looptape.tool), or replay with --unwrapped run"
        yield Problem("error", case.label, "tools are not wrapped", text, None, file, 1)
    elif verdict.missed is not None:
        miss = verdict.missed
        title = f"turn {miss.turn} differs" + (f" at {miss.path}" if miss.path else "")
        line = turn_line(case.file, miss.run, miss.turn)
        yield Problem("error", case.label, title, "\n".join(verdict.lines()), miss.turn, file, line)
    elif not verdict.ok:
        left = next(iter(unserved(done, recorded)), None)
        title = f"turn {left[1]} was not asked for" if left else "the replay failed"
        line = turn_line(case.file, *left) if left else 1
        yield Problem("error", case.label, title, "\n".join(verdict.lines()), left[1] if left else None, file, line)
    elif done.code:
        title = f"the program ended with code {done.code}"
        yield Problem("error", case.label, title, f"{title}, though every answer was served as recorded", None, file, 1)


def _doubtful(case: Case, done: Rerun, recorded: RecordedRuns, file: str | None) -> Iterator[Problem]:
    for drift in done.verdict.drift:
        run = str(drift.get("run") or recorded.runs[0].id)
        text = f"recorded  {drift.get('recorded')}\ngot       {drift.get('got')}"
        turn = drift.get("turn")
        title = f"turn {turn} drifts at {drift.get('path')}"
        yield Problem("warning", case.label, title, text, turn, file, turn_line(case.file, run, turn))
    if done.verdict.bypassed:
        text = f"{done.verdict.bypassed} recorded tool calls ran by themselves, since their tools are not wrapped"
        yield Problem("warning", case.label, "tools really ran", text, None, file, 1)
    if case.file is not None and beside(case.file).exists() and not agrees(case.file, recorded, title_of(case.file)):
        text = "Write it anew: pytest --looptape=missing, or looptape export TAPE --to ci-tape -o TAPE"
        place = beside(Path(case.label)).as_posix()
        yield Problem("warning", case.label, "the transcript does not agree with its tape", text, None, place, 1)


def unserved(done: Rerun, recorded: RecordedRuns) -> Iterator[tuple[str, int]]:
    """Run and number of the recorded turns that nobody asked for."""
    served = {(e.get("run"), e.get("turn")) for e in of_kind(done.events, "served_model") if e.get("last")}
    for turn in recorded.turns():
        if turn.answered and turn.key not in served:
            yield turn.key


def turn_line(file: Path | None, run: str | None, turn: int | None) -> int:
    """The line of a tape at which a turn begins; 1 where it has none."""
    if file is None or turn is None:
        return 1
    try:
        with file.open("rb") as lines:
            for number, record in read_lines(lines):
                if isinstance(record, str) or record["kind"] != "turn_start":
                    continue
                if record.get("turn") == turn and run in (None, record.get("run")):
                    return number
    except OSError:
        pass
    return 1
