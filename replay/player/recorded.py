"""A recording as the player serves it: runs, turns, attempts and tool calls, without a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """One sending of a request, and what came back.

    Attributes:
        number: 1 for the first.
        stream: The request asked for a stream.
        status: HTTP status; None when no answer came at all.
        body: Text of a refused answer, None where it was not kept.
        chunks: Pieces of a stream: microseconds since the request, text.
        response: Text of the response body; for a stream put together from its events.
        error, error_type: What a transport raised (class name), or what a refused answer said.
        partial: The answer was not read to its end.
    """

    number: int
    api: str
    stream: bool = False
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    chunks: tuple[tuple[int, str], ...] = ()
    response: str | None = None
    error: str | None = None
    error_type: str | None = None
    wait_ms: float = 0.0
    partial: bool = False
    started_at: int | None = None
    ended_at: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call that the client ran.

    Attributes:
        arguments: Decoded; the raw text where it is no JSON.
        has_result: False when the call was never answered in the recording.
        value: What the tool returned, else what the model saw of it.
        error_type: ``module.QualName`` of what the tool raised; None when it returned.
        error: The words of that exception.
        measured: The tool was wrapped when it was recorded.
        gave: ``coroutine``, ``generator``, ...: what a plain function gave back in place of the result.
        shape: What the result was in Python, see `tracer.shapes`; None for a text, or where it is not known.
    """

    run: str
    turn: int
    id: str
    name: str
    arguments: Any = None
    has_result: bool = False
    value: Any = None
    is_error: bool = False
    error_type: str | None = None
    error: str | None = None
    state: str | None = None
    side_effect: str | None = None
    measured: bool = False
    started_at: int | None = None
    ended_at: int | None = None
    gave: str | None = None
    shape: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A model call with everything that followed. Hashes are keys of `RecordedRuns.texts`."""

    run: str
    number: int
    api: str
    provider: str | None = None
    model: str | None = None
    stream: bool = False
    mode: str = "full"
    hashes: tuple[str, ...] = ()
    parts: tuple[str | None, str | None, str | None] = (None, None, None)
    attempts: tuple[RecordedAttempt, ...] = ()
    calls: tuple[RecordedCall, ...] = ()
    status: str | None = None
    started_at: int | None = None
    ended_at: int | None = None

    @property
    def key(self) -> tuple[str, int]:
        """Its run and number."""
        return self.run, self.number

    @property
    def answered(self) -> bool:
        """Whether the recording says what came back; a turn whose process was killed has no answer."""
        return bool(self.attempts)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run. ``parent`` is {``run``, ``turn``, ``call``, ``kind``} or None; ``original``: its id where it was recorded,
    for a tape that has given it another."""

    id: str
    name: str | None = None
    parent: Mapping[str, Any] | None = None
    project: str | None = None
    turns: tuple[RecordedTurn, ...] = ()
    started_at: int | None = None
    ended_at: int | None = None
    status: str | None = None
    reason: str | None = None
    original: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedRuns:
    """Every run of a tape, in the order of their start.

    Attributes:
        texts: Hash to text of every message, system prompt, tool list and parameter set.
        label: Where it comes from, for messages.
        notes: What a reader should know of it (runs without an end).
        recorded_at: When the tape says it was made (microseconds since the epoch).
    """

    runs: tuple[RecordedRun, ...]
    texts: Mapping[str, str]
    label: str = "the recording"
    notes: tuple[str, ...] = ()
    recorded_at: int | None = None
    _turns: dict[tuple[str, int], RecordedTurn] = field(default_factory=dict)
    _runs: dict[str, RecordedRun] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._runs.update({r.id: r for r in self.runs})
        self._turns.update({t.key: t for t in self.turns()})

    @property
    def roots(self) -> tuple[RecordedRun, ...]:
        """The runs that no other run of the tape started."""
        return tuple(r for r in self.runs if self.parent_of(r.id) is None)

    def turns(self) -> Iterator[RecordedTurn]:
        """Every turn, run by run."""
        for run in self.runs:
            yield from run.turns

    def calls(self) -> Iterator[RecordedCall]:
        """Every tool call that the client ran, run by run."""
        for turn in self.turns():
            yield from turn.calls

    def run(self, run: str) -> RecordedRun | None:
        """The run of that id."""
        return self._runs.get(run)

    def turn(self, run: str, number: int) -> RecordedTurn | None:
        """The turn of that run and number."""
        return self._turns.get((run, number))

    def parent_of(self, run: str) -> tuple[str, int | None, str | None] | None:
        """Run, turn and call that started a run; None where no run of the tape did."""
        found = self._runs.get(run)
        parent = found.parent if found is not None else None
        if not parent or parent.get("kind") != "sub-agent" or parent.get("run") not in self._runs:
            return None
        return str(parent["run"]), parent.get("turn"), parent.get("call")

    def root_turn(self, run: str, number: int) -> int:
        """The turn of the root run in whose time a turn lies: its own number in a root run."""
        seen = set()
        above = self.parent_of(run)
        while above is not None and run not in seen:
            seen.add(run)
            run, number = above[0], above[1] or 1
            above = self.parent_of(run)
        return number
