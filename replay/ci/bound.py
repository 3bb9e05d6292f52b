"""A test and its tape: replays it, or records it, while the test runs, and says afterwards what came of it."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ...tracer import facts, quiet, tape
from ...tracer.ci_tape import settled
from ...tracer.errors import LooptapeError
from ...tracer.hook import instrumented
from ..player import tape_runs
from ..player.settings import ReplaySettings
from ..player.stops import Miss, UnwrappedTools
from ..program.recorder import recording_to
from ..program.stops import stop_in
from ..replaying import Replaying
from ..verdict import Verdict
from .transcript import agrees, beside, title_of, transcript

Doing = Literal["replay", "record", "observe"]
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
_NO_KEY = "none-needed-looptape-replays"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done for a test.

    Attributes:
        doing: ``replay`` the tape, ``record`` it, or only ``observe`` what the program does.
        file: The tape.
        shown: Its path as people are told it.
        test: pytest's name of the test.
        name: The test's own name, for runs that have none, and what run ids are made of.
        settings: How it is replayed.
    """

    doing: Doing
    file: Path
    shown: str
    test: str
    name: str
    settings: ReplaySettings

    @property
    def record_command(self) -> str:
        """What records the tape (again)."""
        return f"pytest --looptape=record {shlex.quote(self.test)}"


class Bound:
    """A test while it runs; made for each, closed after each.

    Attributes:
        verdict: What came of the replay, once it is over.
        warnings: What was left behind (a stream that nobody read to its end).
        written: Files that were written, as people are told them.
        stale_transcript: The transcript beside the tape says something else than the tape.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.verdict: Verdict | None = None
        self.warnings: list[str] = []
        self.written: list[str] = []
        self.stale_transcript = False
        self._open = ExitStack()
        self._replaying: Replaying | None = None
        self._started = self._over = False

    @property
    def over(self) -> bool:
        """It was closed."""
        return self._over

    @property
    def home(self) -> Path:
        """The passing store directory that the test records into."""
        return self._home

    def start(self) -> None:
        """From here on model calls and wrapped tools are answered, or recorded.

        Raises:
            LooptapeError: There is no tape, or it cannot be replayed.
        """
        plan = self.plan
        if plan.doing == "replay" and not plan.file.is_file():
            raise LooptapeError("no-tape", f"{plan.test} has no tape {plan.shown}", f"Record it: {plan.record_command}")
        with ExitStack() as undo:
            folder = tempfile.TemporaryDirectory(prefix="looptape-test-", ignore_cleanup_errors=True)
            self._home = Path(undo.enter_context(folder))
            undo.enter_context(_environment(keys=plan.doing == "replay"))
            facts.describe(name=plan.name)
            undo.callback(facts.describe, name=None)
            quiet.forget()
            if plan.doing == "replay":
                self._replaying = undo.enter_context(Replaying([str(plan.file)], plan.settings, self._home))
            else:
                undo.enter_context(recording_to(self._home))
                undo.enter_context(instrumented())
            self._open = undo.pop_all()
        self._started = True

    def so_far(self) -> Verdict | None:
        """The verdict until now; None where nothing is replayed."""
        return self.verdict or (self._replaying.so_far() if self._replaying is not None else None)

    def finish(self, *, failed: bool) -> None:
        """The test is over: nothing is answered or recorded any more.

        Args:
            failed: It raised something; what it recorded is no tape then.

        Raises:
            LooptapeError: What was recorded cannot be written, or is nothing.
        """
        if self._over or not self._started:
            return
        self._over = True
        try:
            self.warnings = list(_left_open(self._records()))
            if self.plan.doing == "record" and not failed:
                self._write()
        finally:
            self._open.close()
        if self._replaying is not None:
            self.verdict = self._replaying.verdict
            file = self.plan.file
            self.stale_transcript = not agrees(file, self._replaying.recorded, title_of(file))

    def problem(self, error: BaseException | None) -> str | None:
        """What is wrong with the replay, for a person; None when nothing is.

        Args:
            error: What the test ended with. A test that failed early has not asked for everything: that alone is
                no problem of its replay.
        """
        stop = stop_in(error)
        if isinstance(stop, UnwrappedTools):
            return f"{stop}\n  In a test: @pytest.mark.looptape(unwrapped='run')"
        verdict = self.verdict
        if verdict is None or verdict.ok:
            return str(stop) if stop is not None else None
        miss = verdict.missed or getattr(stop, "miss", None)
        if error is not None and miss is None:
            return str(stop) if stop is not None else None
        rows = [f"looptape: {self.plan.shown} was not replayed as recorded"]
        rows += self._miss(miss) if miss is not None else []
        rows += replace(verdict, missed=None).lines()
        if miss is None:
            rows.append(f"  If this is meant, record it again: {self.plan.record_command}")
        return "\n".join(rows)

    def _miss(self, miss: Miss) -> Sequence[str]:
        cure = f"If this is meant, record it again: {self.plan.record_command}"
        return replace(miss, cure=cure).lines()

    def _records(self) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        for file in sorted((self._home / "journal").glob("*.jsonl")):
            with file.open("rb") as lines:
                found += [record for _, record in tape.read_lines(lines) if not isinstance(record, str)]
        return found

    def _write(self) -> None:
        from ...tracer.process import recorder

        active = recorder()
        if active is not None:
            active.at_exit()
        lines = [tape.line(r) for r in settled(recorded_in(self._home), f"{self.plan.name} {self.plan.file.name}")]
        recorded = tape_runs.read(_decoded(lines), self.plan.shown)
        file = self.plan.file
        file.parent.mkdir(parents=True, exist_ok=True)
        for target, text in ((file, b"".join(lines)), (beside(file), transcript(recorded, title_of(file)).encode())):
            fresh = target.with_name(f".{target.name}.{os.getpid()}.new")
            fresh.write_bytes(text)
            fresh.replace(target)
        self.written = [self.plan.shown]


def recorded_in(home: Path) -> Iterator[tape.Record]:
    """The runs of a store directory, one after the other.

    Raises:
        LooptapeError: There is none.
    """
    from ...tracer.store import Filter, open_store
    from ...tracer.store.export import records_of

    with open_store(home) as store:
        every = store.runs(Filter(limit=0, include_empty=True))
        runs = [r for r in every if r.parent is None or r.parent.kind != "sub-agent"]
        if not any(r.turns for r in every):
            raise LooptapeError(
                "nothing-recorded",
                "the test made no model call that looptape sees",
                "Does its client use httpx2 or httpx?",
            )
        for run in sorted(runs, key=lambda r: (r.started_at or 0, r.id)):
            yield from records_of(store, run.id)


def _decoded(lines: Sequence[bytes]) -> Iterator[tape.Record]:
    return (record for _, record in tape.read_lines(lines) if not isinstance(record, str))


def _left_open(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Model calls that have begun and not ended: a stream that nobody closed, a thread that still waits."""
    names = {r["run"]: r.get("name") for r in records if r["kind"] == "run_start"}
    begun = {(r["run"], r["turn"]): r for r in records if r["kind"] == "turn_start"}
    for record in records:
        if record["kind"] == "turn_end":
            begun.pop((record["run"], record["turn"]), None)
    for (run, turn), start in begun.items():
        what = "stream" if start.get("stream") else "model call"
        yield f"the {what} of turn {turn} of {names.get(run) or run} was left open; looptape stopped recording it"


@contextmanager
def _environment(*, keys: bool) -> Iterator[None]:
    """Recording keeps content whatever the settings say; SDKs that insist on a key get one that is none."""
    wanted = {"LOOPTAPE_CONTENT": "full"}
    if keys:
        wanted |= {name: _NO_KEY for name in KEYS if not os.environ.get(name)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if os.environ.get(name) != wanted[name]:
                continue  # the test has set it since, and will take it back itself
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
