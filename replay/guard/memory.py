"""What a guard knew of an earlier run: found in the journals, drained or not, else in the store. Never raises."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ...tracer import paths, settings
from ...tracer.facts import project
from ...tracer.observers import STATE
from ...tracer.redaction import redact
from ..cycles.detector import KEPT

_WANTED = ('"run_start"', f'"{STATE}"')


def find(reference: str) -> dict[str, Any] | None:
    """What is known of the run that an id (or its beginning), a name or ``last`` means; the newest one of these.

    Gives ``run``, ``session``, ``turns`` and ``state``; None when there is no such run with a guard.
    """
    home = Path(settings.effective()["home"].value)
    seen = _Seen(reference)
    for file in sorted(_journals(home), key=lambda f: _written(f, home)):
        seen.read(_records(file, home))
    return seen.found() or _in_store(home, reference)


class _Seen:
    """Runs that the reference may mean, and their states, as records go by."""

    def __init__(self, reference: str) -> None:
        self._reference = reference
        self._runs: dict[str, Mapping[str, Any]] = {}
        self._states: dict[str, list[Mapping[str, Any]]] = {}

    def read(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Takes the records of one journal."""
        for record in records:
            run = str(record.get("run"))
            if record.get("kind") == "run_start" and self._means(record):
                self._runs[run] = record
            elif record.get("event") == STATE and isinstance(record.get("detail"), dict):
                self._states.setdefault(run, []).append(record["detail"])

    def found(self) -> dict[str, Any] | None:
        """The newest of them that has a state."""
        exact = [r for r in (self._reference,) if r in self._runs and r in self._states]
        named = sorted((r for r in self._runs if r in self._states), key=lambda r: self._runs[r].get("at") or 0)
        run = next(iter(exact or named[-1:]), None)
        if run is None:
            return None
        state = put_together(self._states[run])
        return {"run": run, "session": self._runs[run].get("session"), "turns": state["turns"], "state": state}

    def _means(self, record: Mapping[str, Any]) -> bool:
        wanted, run = self._reference, str(record.get("run"))
        if wanted == "last":
            return record.get("project") == project()
        return wanted in (run, record.get("name")) or (len(wanted) >= 4 and run.startswith(wanted))


def put_together(states: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One state from those of every turn: the latest counts, the last rounds."""
    rounds: list[Any] = []
    last: Mapping[str, Any] = {}
    for last in states:
        rounds += last.get("rounds") or ()
        del rounds[: -2 * KEPT]
    return {**last, "turns": int(last.get("turns") or 0), "rounds": rounds[-KEPT:]}


def redacted(round_: Mapping[str, Any]) -> dict[str, Any]:
    """A round as it may be written: the openings of calls and errors are the only words in it."""
    moves = [{**m, "short": redact(m["short"]), "error_text": redact(m["error_text"])} for m in round_["moves"]]
    return {**round_, "moves": moves}


def readable(rounds: Iterable[Any]) -> list[Any]:
    """Rounds as the detector takes them: without content the texts in them were not written."""
    found = []
    for given in rounds:
        moves = [
            {**m, "short": m.get("short") or m["name"], "error_text": m.get("error_text") or ""} for m in given["moves"]
        ]
        found.append({**given, "moves": moves})
    return found


def _journals(home: Path) -> Iterable[Path]:
    """Every journal, each once: one that is moved in between is seen at both of its places."""
    found: dict[str, Path] = {}
    for folder in (paths.journal_dir(home), paths.done_dir(home)):
        if folder.is_dir():
            found |= {file.name: file for file in folder.glob("*.jsonl")}
    return found.values()


def _written(file: Path, home: Path) -> tuple[int, str]:
    """When a journal was written last, to sort by; 0 for one that was drained and deleted just now."""
    for place in (file, paths.done_dir(home) / file.name):
        with contextlib.suppress(OSError):
            return place.stat().st_mtime_ns, file.name
    return 0, file.name


def _records(file: Path, home: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with _opened(file, home) as lines:
            for line in lines:
                if any(w in line for w in _WANTED):
                    try:
                        record = json.loads(line)
                    except ValueError:  # torn: its writer died in the middle of it
                        continue
                    if isinstance(record, dict):
                        yield record
    except OSError:  # drained and deleted just now: the store has it
        return


def _opened(file: Path, home: Path) -> IO[str]:
    """A journal; where it was moved to, when it was drained since it was listed."""
    try:
        return open(file, encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return open(paths.done_dir(home) / file.name, encoding="utf-8", errors="replace")


def _in_store(home: Path, reference: str) -> dict[str, Any] | None:
    """The same from the store, read-only and without waiting; None on any trouble."""
    try:
        from ...tracer.store.reading import glance

        with glance(home) as store:
            from ...tracer.store import Filter

            runs = store.runs(Filter(project=project(), limit=20)) if reference == "last" else store.find(reference)
            for run in sorted(runs, key=lambda r: r.started_at or 0, reverse=True):
                states = [e.detail for e in store.events(run.id) if e.kind == STATE]
                if states:
                    state = put_together(states)
                    return {"run": run.id, "session": run.session, "turns": state["turns"], "state": state}
    except Exception:  # no store, held by another, no duckdb here: then nothing is known
        return None
    return None
