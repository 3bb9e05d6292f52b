"""Reads a tape into memory for a replay; a tape that cannot be relied on is refused before anything runs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...tracer import ci_tape, tape
from ...tracer.errors import LooptapeError
from .recorded import RecordedAttempt, RecordedCall, RecordedRun, RecordedRuns, RecordedTurn

Source = str | os.PathLike[str] | Iterable[tape.Record]

_OUR_STOPS = ("ReplayMismatch", "UnwrappedTools", "ReplayStopped", "NotServed")
"""What ends a replay that stops: no answer of a server, where such a replay is replayed itself."""
_RAISED = re.compile(r"([A-Za-z_][\w.]*): (.*)", re.DOTALL)
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")


def read(source: Source, label: str | None = None) -> RecordedRuns:
    """Every run of a tape.

    Args:
        source: A tape file, or its records.
        label: What messages call it; the file's path otherwise.

    Raises:
        LooptapeError: ``recording-unusable``: absent, empty, damaged, of a newer version, without content, or
            with no answered model call.
    """
    label = label or (os.fspath(source) if isinstance(source, (str, os.PathLike)) else "the recording")
    reading = _Reading(label)
    for number, record in ci_tape.restored(_records(source, label)):
        reading.take(number, record)
    return reading.result()


def unusable(label: str, what: str, cure: str = "Record it again: looptape record -- COMMAND") -> LooptapeError:
    """The error for a recording that cannot be replayed."""
    return LooptapeError("recording-unusable", f"{label} cannot be replayed: {what}", cure)


def _records(source: Source, label: str) -> Iterator[tuple[int, tape.Record]]:
    if not isinstance(source, (str, os.PathLike)):
        yield from enumerate(source, 1)
        return
    try:
        with open(source, "rb") as lines:
            for number, record in tape.read_lines(lines):
                if isinstance(record, str):
                    raise unusable(
                        label,
                        f"line {number}: {record}",
                        "Record it again, or save what is whole: looptape import FILE, then replay that run with --from N",
                    )
                yield number, record
    except OSError as error:
        raise unusable(
            label, f"it cannot be read ({error.strerror or error})", "looptape runs lists what there is"
        ) from None


@dataclass(slots=True)
class _Turn:
    start: tape.Record
    hashes: tuple[str, ...] = ()
    ends: list[tape.Record] = field(default_factory=list)
    chunks: dict[int, list[tape.Record]] = field(default_factory=dict)
    calls: dict[str, tape.Record] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Run:
    facts: tape.Record
    turns: dict[int, _Turn] = field(default_factory=dict)
    ended: tape.Record | None = None


class _Reading:
    """What a tape has said so far."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.texts: dict[str, str] = {}
        self.withheld = 0
        self.lines = 0
        self.runs: dict[str, _Run] = {}
        self.recorded_at: int | None = None
        self.originals: dict[str, str] = {}

    def take(self, number: int, record: tape.Record) -> None:
        self.lines += 1
        kind = record.get("kind")
        if kind == "header":
            self._header(number, record)
        elif kind == "blob":
            self._blob(record)
        elif kind == "otlp":
            raise unusable(
                self.label, "it holds spans, not wire records", "Import it, then replay the run: looptape import FILE"
            )
        elif isinstance(record.get("run"), str):
            try:
                self._of_run(str(kind), record)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise unusable(self.label, f"line {number}: a {kind} record that lacks something ({error})") from None

    def _header(self, number: int, record: tape.Record) -> None:
        version, made = record.get("version"), record.get("started_at")
        self.recorded_at = made if isinstance(made, int) else self.recorded_at
        if isinstance(record.get("runs"), dict):
            self.originals.update({str(new): str(old) for new, old in record["runs"].items()})
        if isinstance(version, int) and version > tape.VERSION:
            raise unusable(
                self.label,
                f"line {number}: tape version {version} was written by a newer looptape, this one reads up to {tape.VERSION}",
                "Upgrade with: pip install --upgrade looptape",
            )
        if record.get("content") == "none":
            raise unusable(
                self.label, "it was recorded without content (LOOPTAPE_CONTENT=none)", "Record it again with content"
            )

    def _blob(self, record: tape.Record) -> None:
        if isinstance(record.get("text"), str):
            self.texts[str(record.get("hash"))] = record["text"]
        else:
            self.withheld += 1

    def _of_run(self, kind: str, record: tape.Record) -> None:
        run = self.runs.setdefault(record["run"], _Run({}))
        if kind == "run_start":
            run.facts.update({k: v for k, v in record.items() if v is not None})
        elif kind == "run_end":
            run.ended = record
        elif kind == "turn_start":
            self._turn_start(run, record)
        elif kind == "turn_end":
            self._turn(run, record).ends.append(record)
        elif kind == "chunk":
            self._turn(run, record).chunks.setdefault(record.get("attempt") or 1, []).append(record)
        elif kind in ("call_start", "call_end", "call_seen"):
            turn = self._turn(run, record)
            call = str(record["call"])
            turn.extra.append(call)
            turn.calls.setdefault(call, {})[kind] = record

    def _turn_start(self, run: _Run, record: tape.Record) -> None:
        number = record["turn"]
        if record.get("amends") and number in run.turns:
            run.turns[number].start |= {k: v for k, v in record.items() if k not in ("kind", "at")}
            return
        base = run.turns.get(record.get("base") or 0)
        keep = record.get("keep") or 0
        if keep and (base is None or len(base.hashes) < keep):
            raise unusable(self.label, f"turn {number} leans on turn {record.get('base')}, which is not there")
        kept = base.hashes[:keep] if base is not None else ()
        run.ended = None
        run.turns[number] = _Turn(record, (*kept, *record.get("append", ())))

    def _turn(self, run: _Run, record: tape.Record) -> _Turn:
        try:
            return run.turns[record["turn"]]
        except KeyError:
            raise unusable(self.label, f"its turn {record.get('turn')} has no beginning: it was cut") from None

    def result(self) -> RecordedRuns:
        if not self.lines:
            raise unusable(self.label, "it is empty")
        if self.withheld:
            raise unusable(
                self.label, "it was recorded without content (LOOPTAPE_CONTENT=none)", "Record it again with content"
            )
        runs = tuple(self._run(name, run) for name, run in self.runs.items())
        runs = tuple(sorted(runs, key=lambda r: r.started_at or 0))
        if not any(t.answered for r in runs for t in r.turns):
            raise unusable(self.label, "it holds no answered model call")
        notes = tuple(
            f"run {r.id} has no end in the recording: its process was killed, or it was still running"
            for r in runs
            if self.runs[r.id].ended is None and r.status is None
        )
        return RecordedRuns(runs, self.texts, self.label, notes, self.recorded_at)

    def _run(self, name: str, run: _Run) -> RecordedRun:
        end, facts = run.ended or {}, run.facts
        turns = tuple(self._made(name, number, turn) for number, turn in sorted(run.turns.items()))
        status, ended = end.get("status", facts.get("status")), end.get("at")
        return RecordedRun(
            name, facts.get("name"), facts.get("parent"), facts.get("project"), turns, facts.get("at"), ended, status,
            end.get("reason"), self.originals.get(name),
        )  # fmt: skip

    def _made(self, run: str, number: int, turn: _Turn) -> RecordedTurn:
        start, end = turn.start, turn.ends[-1] if turn.ends else {}
        parts = tuple(start.get(p) for p in ("system", "tools", "params"))
        missing = next((h for h in (*turn.hashes, *parts) if h is not None and h not in self.texts), None)
        if missing is not None:
            raise unusable(self.label, f"turn {number} of run {run} names a text that is not there ({missing})")
        return RecordedTurn(
            run, number, str(start.get("api") or "manual"), start.get("provider"), start.get("model"),
            bool(start.get("stream")), str(start.get("mode") or "full"), turn.hashes, parts,  # type: ignore[arg-type]
            tuple(self._attempts(turn)), tuple(self._calls(run, number, turn, end)),
            end.get("status"), start.get("at"), end.get("at"),
        )  # fmt: skip

    def _attempts(self, turn: _Turn) -> Iterator[RecordedAttempt]:
        """The attempts of a turn. An earlier end of it holds the answer that its retry followed."""
        if not turn.ends:
            return
        last = turn.ends[-1]
        if not last.get("attempts") and last.get("response") is None and last.get("status") != "error":
            return  # it was still open when its process was killed
        told = list(last.get("attempts") or [{"status": 200 if last.get("status") == "ok" else None}])
        told = [a for a in told if a.get("error_type") not in _OUR_STOPS]
        answers = {len(e.get("attempts") or [None]): e.get("response") for e in turn.ends}
        api, stream = str(turn.start.get("api") or "manual"), bool(turn.start.get("stream"))
        for number, attempt in enumerate(told, 1):
            final = number == len(told)
            response = self._text(answers.get(number))
            status = attempt.get("status")
            refused = status is not None and status >= 300
            partial = final and last.get("status") != "ok" and not refused
            error, kind = attempt.get("error"), attempt.get("error_type")
            if final and status is None and error is None and kind is None:
                error, kind = last.get("error"), last.get("error_type")
            yield RecordedAttempt(
                number, api, stream, status, tuple((str(k), str(v)) for k, v in (attempt.get("headers") or {}).items()),
                attempt.get("body") or (response if refused else None), tuple(_pieces(turn.chunks.get(number, []))),
                None if refused else response, error, kind, attempt.get("wait_ms") or 0.0, partial,
                attempt.get("started_at"), attempt.get("ended_at"),
            )  # fmt: skip

    def _text(self, key: Any) -> str | None:
        if key is None:
            return None
        if key not in self.texts:
            raise unusable(self.label, f"an answer's text is not there ({key})")
        return self.texts[key]

    def _calls(self, run: str, number: int, turn: _Turn, end: Mapping[str, Any]) -> Iterator[RecordedCall]:
        asked = {str(c.get("id")): c for c in end.get("calls") or ()}
        for call in dict.fromkeys((*asked, *turn.extra)):
            said, parts = asked.get(call, {}), turn.calls.get(call, {})
            start = parts.get("call_start") or {}
            if "provider" in (said.get("origin"), start.get("origin")):
                continue
            raw = start.get("arguments_raw") if said.get("arguments_raw") is None else said["arguments_raw"]
            has, value, is_error, kind, words = self._returned(parts)
            ended = parts.get("call_end") or {}
            yield RecordedCall(
                run, number, call, str(said.get("name") or start.get("name") or ""), _decoded(raw), has, value, is_error,
                kind, words, ended.get("state"), start.get("side_effect"), bool(start) and start.get("at") is not None,
                start.get("at"), ended.get("at"), ended.get("gave"), ended.get("shape"),
            )  # fmt: skip

    def _returned(self, parts: Mapping[str, tape.Record]) -> tuple[bool, Any, bool, str | None, str | None]:
        """Whether there is a result, the result, whether it is an error, and what was raised with its words."""
        end, seen = parts.get("call_end") or {}, parts.get("call_seen") or {}
        kind = end.get("error_type")
        if "result" in end:
            value, failed = end["result"], bool(end.get("is_error"))
        elif "returned" in seen:
            return True, seen["returned"], bool(seen.get("is_error")), None, None
        elif seen.get("message") in self.texts:  # also where a store dropped the result, since the model saw just that
            found = _at(self.texts[seen["message"]], str(seen.get("path") or "$"))
            value, failed = _plain_text(found), bool(seen.get("is_error")) or kind is not None
        else:
            return False, None, False, None, None
        raised = _RAISED.fullmatch(value) if failed and isinstance(value, str) else None
        if kind is None and "result" in end and raised is not None and end.get("state") != "open":
            kind = raised[1]
        return True, value, failed, kind, (raised[2] if raised else str(value)) if kind else None


def _pieces(records: list[tape.Record]) -> Iterator[tuple[int, str]]:
    for record in sorted(records, key=lambda r: r.get("seq") or 0):
        for offset, text in record.get("parts") or ():
            yield int(offset or 0), str(text)


def _decoded(raw: Any) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, TypeError, RecursionError):
        return raw


def _at(text: str, path: str) -> Any:
    """What stands at a path like ``$.content[0].content`` of a JSON text; None where nothing does."""
    try:
        value = json.loads(text)
        for name, index in _STEP.findall(path):
            value = value[name] if name else value[int(index)]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return value


def _plain_text(value: Any) -> Any:
    """A result as the tool most likely gave it: blocks that are only text as one text."""
    if (
        isinstance(value, list)
        and value
        and all(isinstance(b, dict) and b.get("type") in ("text", "input_text", "output_text") for b in value)
    ):
        return "\n".join(str(b.get("text") or "") for b in value)
    return value


__all__ = ["RecordedAttempt", "RecordedCall", "RecordedRun", "RecordedRuns", "RecordedTurn", "read", "unusable"]
