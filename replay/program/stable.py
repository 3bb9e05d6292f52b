"""Runs a program twice against a recording and finds what made its requests differ from run to run."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...tracer import tape
from ...tracer.errors import LooptapeError
from .. import matching
from ..matching import NOTHING, Difference
from ..player import normalise, tape_runs
from ..player.recorded import RecordedRuns, RecordedTurn
from ..player.settings import ReplaySettings
from .causes import Cause, cause_of, places
from .rerun import Rerun, rerun
from .tape import Recording


@dataclass(frozen=True, slots=True)
class Unsteady:
    """One place of the requests that is not the same in both runs, or not as recorded.

    Attributes:
        run: Which run of the program, by name; ``turn``: the first turn where it shows.
        path: JSON path in the request's body.
        recorded, first, second: The three values, short; None for nothing.
        rules: Matching rules under which it counts as equal (default match mode); empty where a replay would miss.
        cause: What kind of value it is, for what differs between the two runs; None for what only changed since.
        places: Calls in the program's files that make such values.
        caller: The line that made the request.
    """

    run: str
    turn: int
    path: str
    recorded: str | None
    first: str | None
    second: str | None
    rules: tuple[str, ...]
    cause: Cause | None
    places: tuple[str, ...]
    caller: str | None

    def as_json(self) -> dict[str, Any]:
        """As ``stable --json`` prints it."""
        names = ("run", "turn", "path", "recorded", "first", "second", "caller")
        cause = self.cause
        return {
            **{n: getattr(self, n) for n in names}, "rules": list(self.rules), "places": list(self.places),
            "cause": cause.name if cause else None, "cure": cause.cure if cause else None,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stability:
    """What two runs of a program against a recording have shown.

    Attributes:
        unsteady: What differs between the two runs.
        changed: What is the same in both, but not as recorded.
        turns: How many turns the recording and each run had.
        reruns: The two runs.
    """

    unsteady: tuple[Unsteady, ...]
    changed: tuple[Unsteady, ...]
    turns: tuple[int, int, int]
    reruns: tuple[Rerun, Rerun]

    @property
    def stable(self) -> bool:
        """True when no difference is left that matching would not allow."""
        return not any(not u.rules for u in self.unsteady) and self.turns[1] == self.turns[2]


@dataclass(frozen=True, slots=True)
class _Ran:
    """The requests of one run of the program, and who made them."""

    runs: RecordedRuns | None
    callers: Mapping[tuple[str, int], str]


def stability(recording: Recording, argv: Sequence[str], how: ReplaySettings, *, proxy: bool = False) -> Stability:
    """Runs a program twice, a miss being answered by the nearest recording, and compares its requests.

    Raises:
        UsageError: There is no such command.
    """
    how = replace(how, on_miss="warn")
    reruns, rans = [], []
    for _ in range(2):
        with tempfile.TemporaryDirectory(prefix="looptape-stable-", ignore_cleanup_errors=True) as home:
            reruns.append(rerun(recording, argv, how, proxy=proxy, into=Path(home), verb="stable RUN", output=2))
            rans.append(_read(Path(home)))
    first, second = rans
    rules = normalise.of(recording.runs, "normalised", how.normalisers)
    unsteady = tuple(_between(recording.runs, first, second, rules))
    known = {(u.run, u.path) for u in unsteady}
    changed = tuple(u for u in _since(recording.runs, first, rules) if (u.run, u.path) not in known)
    counts = tuple(sum(1 for _ in runs.turns()) if runs else 0 for runs in (recording.runs, first.runs, second.runs))
    return Stability(unsteady, changed, counts, (reruns[0], reruns[1]))  # type: ignore[arg-type]  # three are three


def _read(home: Path) -> _Ran:
    records = [
        record
        for file in sorted((home / "journal").glob("*.jsonl"))
        for _, record in tape.read_lines(file.read_bytes().splitlines(keepends=True))
        if not isinstance(record, str)
    ]
    callers = {(r["run"], r["turn"]): r["caller"] for r in records if r["kind"] == "turn_start" and r.get("caller")}
    try:
        return _Ran(tape_runs.read(records, "the run"), callers)
    except LooptapeError:  # it asked for nothing
        return _Ran(None, {})


def _between(recorded: RecordedRuns, first: _Ran, second: _Ran, rules: normalise.Normaliser) -> Iterator[Unsteady]:
    if first.runs is None or second.runs is None:
        return
    old, one, two = _turns(recorded), _turns(first.runs), _turns(second.runs)
    seen: set[tuple[str, str]] = set()
    for key in one:
        if key not in two:
            continue
        for found in _differences(first.runs, one[key], second.runs, two[key], rules):
            if (key[0], found.path) in seen:
                continue
            seen.add((key[0], found.path))
            before = _value(recorded, old[key], found.path) if key in old else NOTHING
            caller = first.callers.get(one[key].key)
            cause = cause_of(_text(found.recorded), _text(found.got), found.rules)
            files = [c.rpartition(":")[0] for c in dict.fromkeys(first.callers.values())]
            shown = matching.shown_both(found.recorded, found.got)
            yield Unsteady(
                *key[:1], key[2], matching.json_path(found.path), matching.shown(before), *shown, found.rules, cause,
                places(cause, files), caller,
            )  # fmt: skip


def _since(recorded: RecordedRuns, first: _Ran, rules: normalise.Normaliser) -> Iterator[Unsteady]:
    if first.runs is None:
        return
    old, one = _turns(recorded), _turns(first.runs)
    seen: set[tuple[str, str]] = set()
    for key in one:
        if key not in old:
            continue
        for found in _differences(recorded, old[key], first.runs, one[key], rules):
            if (key[0], found.path) not in seen:
                seen.add((key[0], found.path))
                before, now = matching.shown_both(found.recorded, found.got)
                caller = first.callers.get(one[key].key)
                yield Unsteady(
                    key[0], key[2], matching.json_path(found.path), before, now, now, found.rules, None, (), caller
                )


_Key = tuple[str, int, int]


def _turns(runs: RecordedRuns) -> dict[_Key, RecordedTurn]:
    """Every turn under its run's name, which run of that name it is, and its number."""
    found: dict[_Key, RecordedTurn] = {}
    counts: dict[str, int] = {}
    for run in runs.runs:
        name = run.name or "run"
        counts[name] = counts.get(name, 0) + 1
        label = name if counts[name] == 1 else f"{name} ({counts[name]})"
        found |= {(label, counts[name], turn.number): turn for turn in run.turns}
    return found


def _differences(
    left: RecordedRuns, one: RecordedTurn, right: RecordedRuns, other: RecordedTurn, rules: normalise.Normaliser
) -> Iterator[Difference]:
    path = "input" if one.api == "openai.responses" else "contents" if one.api.startswith("google") else "messages"
    for index in range(max(len(one.hashes), len(other.hashes))):
        a = one.hashes[index] if index < len(one.hashes) else None
        b = other.hashes[index] if index < len(other.hashes) else None
        if a == b:
            continue
        before, now = _decoded(left, a), _decoded(right, b)
        if before is NOTHING or now is NOTHING:
            yield Difference(f"{path}[{index}]", before, now)
        else:
            yield from matching.in_message(before, now, f"{path}[{index}]", rules)
    for name, a, b in zip(normalise.PARTS, one.parts, other.parts, strict=True):
        if a != b:
            yield from matching.in_part(_decoded(left, a), _decoded(right, b), name, one.api, rules)


def _decoded(runs: RecordedRuns, key: str | None) -> Any:
    return NOTHING if key is None else json.loads(runs.texts[key])


def _value(runs: RecordedRuns, turn: RecordedTurn, path: str) -> Any:
    """What stands at a path of a recorded request; nothing where it has none."""
    steps = re.findall(r"([^.\[\]]+)|\[(\d+)\]", path)
    parts = {"messages": turn.hashes, "input": turn.hashes, "contents": turn.hashes}
    try:
        head = steps[0][0]
        if head in parts and len(steps) > 1:
            value = _decoded(runs, turn.hashes[int(steps[1][1])])
            rest = steps[2:]
        else:
            value = {"system": _decoded(runs, turn.parts[0]), "instructions": _decoded(runs, turn.parts[0]),
                     "tools": _decoded(runs, turn.parts[1])}.get(head, NOTHING)  # fmt: skip
            value, rest = (value, steps[1:]) if value is not NOTHING else (_decoded(runs, turn.parts[2]), steps)
        for name, number in rest:
            value = value[name] if name else value[int(number)]
    except (LookupError, TypeError, ValueError):
        return NOTHING
    return value


def _text(value: Any) -> str:
    return (
        ""
        if value is NOTHING
        else value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, default=str)
    )
