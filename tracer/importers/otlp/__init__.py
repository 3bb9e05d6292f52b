"""OpenTelemetry traces and logs (OTLP as JSON or protobuf) of every GenAI dialect into runs."""

from __future__ import annotations

from collections.abc import Iterator

from ...tape import Record
from ..calls.assembly import assemble
from ..context import Context, Source
from ..report import Notes
from . import protobuf, reader
from .dialects import Found, sorted_out
from .halves import told_in_halves, traces_of

FORMAT = "otlp"
TITLE = "OpenTelemetry traces and logs, JSON or protobuf"


def recognise(head: bytes) -> bool:
    """True for an export request: its first key, in JSON or protobuf."""
    return reader.looks_like_json(head) or protobuf.looks_like(head)


def records(source: Source, notes: Notes, context: Context) -> Iterator[Record]:
    """The runs that the spans and log records of a file make up."""
    spans, logs = reader.read(source, notes)
    notes.counts["spans"] += len(spans)
    notes.counts["log_records"] += len(logs)
    found = sorted_out(spans, logs)
    say(found, notes)
    halves = told_in_halves(source, spans, logs, found, context)
    if halves is not None:
        notes.traces = traces_of(spans, logs)
        yield from halves
    yield from assemble(
        found.calls, source=FORMAT, notes=notes, tools=found.tools, spans=found.around, orphans=context.orphans
    )
    for flag, text in _SAID.items():
        if notes.counts[flag]:
            notes.warn(text.format(n=notes.counts[flag]))


def say(found: Found, notes: Notes) -> None:
    """What a reader must know of the heap as a whole."""
    for line, reason in found.bad:
        notes.skip(line, reason)
    notes.counts["model_calls"] += len(found.calls)
    notes.counts["tool_spans"] += len(found.tools)
    if not found.calls and not found.tools:
        scopes = ", ".join(sorted(found.scopes)[:12]) or "none"
        notes.warn(f"no GenAI spans found; scopes seen: {scopes}")
    elif not found.calls:
        notes.warn("no model calls among the spans; scopes seen: " + ", ".join(sorted(found.scopes)[:12]))


_SAID = {
    "truncated_at_source": "truncated at source: {n} turns (attributes, bodies or messages are cut)",
    "content_not_kept": "content not kept by the producer: {n} turns",
    "answer_from_next_request": "answers that the producer lost, taken from the request after them: {n} turns",
}


__all__ = ["FORMAT", "TITLE", "recognise", "records"]
