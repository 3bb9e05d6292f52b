"""The recording that a replay is of: a reference or a tape file, read whole before anything runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...tracer.errors import UsageError
from ...tracer.tape import Record, line, read_lines
from .. import reference
from ..player import tape_runs
from ..player.settings import ReplaySettings
from ..player.tape_runs import RecordedRuns


@dataclass(frozen=True, slots=True)
class Recording:
    """What is replayed.

    Attributes:
        runs: The run with its descendants, as the player reads it.
        records: The same as tape records; None when ``file`` is a tape already.
        file: The tape file that was named, if one was.
        first: The turn of ``RUN:N``, None for the whole run.
        said: What is to be said about the choice of the run.
    """

    runs: RecordedRuns
    records: tuple[Record, ...] | None = None
    file: Path | None = None
    first: int | None = None
    said: str | None = None

    @property
    def turns(self) -> int:
        """Turns of the run itself (the longest, where a tape has several)."""
        return max((len(run.turns) for run in self.runs.roots), default=0)

    def lines(self) -> Iterator[Record]:
        """Its records."""
        if self.records is not None or self.file is None:
            yield from self.records or ()
            return
        with self.file.open("rb") as lines:
            yield from (record for _, record in read_lines(lines) if not isinstance(record, str))

    def written(self, file: Path) -> Path:
        """A tape file of it: its own, else written to ``file``."""
        if self.records is None and self.file is not None:
            return self.file.absolute()
        with file.open("wb") as out:
            out.writelines(line(record) for record in self.records or ())
        return file


def recording_of(text: str, project: str | None = None) -> Recording:
    """The recording that a reference or a path means.

    Args:
        project: The project of this directory, for ``last``.

    Raises:
        UsageError: There is no such run or file.
        LooptapeError: The recording cannot be replayed, or the store cannot be opened.
    """
    recording = of_path(reference.parse(text))
    if recording is None:
        with reference.resolve(text, project) as found:
            recording = of_found(found, text)
    return recording


def joined(recordings: Sequence[Recording]) -> Recording:
    """Several recordings as one, for a program that makes several runs; what was said of the first holds."""
    if len(recordings) == 1:
        return recordings[0]
    records = tuple(record for one in recordings for record in one.lines())
    return replace(recordings[0], runs=tape_runs.read(records), records=records, file=None)


def of_path(named: reference.Reference) -> Recording | None:
    """The recording in a tape file; None for what is no tape (a run of the store, a file of another format)."""
    if named.path is None or not named.path.is_file() or not is_tape(named.path):
        return None
    return Recording(tape_runs.read(named.path), file=named.path, first=_one(named.first, named.last, named.text))


def of_found(found: reference.Found, text: str) -> Recording:
    """The recording of a run in an open store."""
    from ...tracer.store.export import records_of

    records = tuple(records_of(found.store, found.run.id))
    return Recording(tape_runs.read(records), records, first=_one(found.first, found.last, text), said=found.said)


def is_tape(file: Path) -> bool:
    """True for a file that is a tape or wants to be one: its first line is a record, or there is no line at all."""
    with file.open("rb") as lines:
        first = next((stripped for raw in lines if (stripped := raw.strip())), b"")
    try:
        given = json.loads(first) if first else {"kind": ""}
    except (ValueError, RecursionError):
        return file.suffix == ".tape" or file.name.endswith(".tape.jsonl")
    return isinstance(given, dict) and "kind" in given


def _one(first: int | None, last: int | None, text: str) -> int | None:
    if first != last:
        raise UsageError(
            "usage", f"{text} names several turns", f"Name the first that is to run again: {text[: text.rindex('-')]}"
        )
    return first


def starting_at(settings: ReplaySettings, first: int | None) -> ReplaySettings:
    """Settings with the turn of ``RUN:N`` as the turn to go on from.

    Raises:
        UsageError: Another turn was asked for as well.
    """
    if first is None:
        return settings
    if settings.from_turn not in (None, first):
        raise UsageError("usage", f"RUN:{first} and from turn {settings.from_turn} differ", "Give one of them")
    return replace(settings, from_turn=first)
