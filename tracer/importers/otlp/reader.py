"""A file of OTLP in any of its forms: a request a line, one document, a list of requests, protobuf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...errors import LooptapeError
from .. import reading
from ..context import Source
from ..report import Notes
from . import protobuf, wire
from .wire import RawEvent, RawSpan

_HEAD = re.compile(
    rb'^(?:\xef\xbb\xbf)?\s*(?:\[\s*)?\{\s*"(?:resourceSpans|resourceLogs|resource_spans|resource_logs|resourceMetrics)"\s*:'
)


def looks_like_json(head: bytes) -> bool:
    """True when the first object has the key of an export request."""
    return _HEAD.match(head) is not None


def read(source: Source, notes: Notes) -> tuple[list[RawSpan], list[RawEvent]]:
    """All spans and log records of a file; lines that cannot be read are noted."""
    spans: list[RawSpan] = []
    logs: list[RawEvent] = []
    for file, path in enumerate(source.files or (None,)):
        part = Source(str(path), (path,)) if path is not None else source
        before = len(notes.skipped)
        try:
            for one in _items(part, notes):
                if isinstance(one, RawSpan):
                    spans.append(one)
                else:
                    one.file = file
                    logs.append(one)
        except LooptapeError as error:
            if len(source.files) < 2:
                raise
            notes.warn(f"{error.what}: {error.cure}")
        if len(source.files) > 1:
            for skipped in notes.skipped[before:]:
                skipped["reason"] = f"{part.label}: {skipped['reason']}"
    notes.counts["files"] = len(source.files) if len(source.files) > 1 else 0
    return spans, logs


def _items(source: Source, notes: Notes) -> Iterator[RawSpan | RawEvent]:
    head = source.head()
    if protobuf.looks_like(head):
        notes.counts["objects"] += 1
        yield from protobuf.spans(source.whole(), source.label)
        return
    for line, request in _requests(source, head, notes):
        yield from _request(request, line, notes)


def requests(source: Source) -> Iterator[Any]:
    """The export requests of a file that was read before, as they stand there; of protobuf as OTLP/JSON."""
    for part in [Source(str(path), (path,)) for path in source.files] or [source]:
        head = part.head()
        if protobuf.looks_like(head):
            yield from protobuf.requests(part.whole(), part.label)
        else:
            yield from (request for _, request in _requests(part, head, Notes()))


def _requests(source: Source, head: bytes, notes: Notes) -> Iterator[tuple[int, Any]]:
    if _one_document(head):
        try:
            value = reading.decode(source.whole(), notes)
        except ValueError as error:
            if not _ends_in_lines(head):
                notes.skip(1, str(error))
                return
        else:
            for request in value if isinstance(value, list) else [value]:
                notes.counts["objects"] += 1
                yield 1, request
            return
    yield from reading.objects(source.lines(), notes)  # of a torn document the lines may still be requests


def _request(request: Any, line: int, notes: Notes) -> Iterator[RawSpan | RawEvent]:
    if not isinstance(request, dict):
        notes.skip(line, "not an export request")
        return
    known = [k for k in request if k.startswith(("resourceSpans", "resource_spans", "resourceLogs", "resource_logs"))]
    if not known:
        kind = next(iter(request), "empty object")
        notes.strange("metrics" if str(kind).startswith("resourceM") else str(kind)[:60])
        return
    yield from wire.from_json(request, line)


def _ends_in_lines(head: bytes) -> bool:
    """True when a request stands on a line of its own."""
    return any(line.startswith(b'{"resource') for line in head.split(b"\n")[:200])


def _one_document(head: bytes) -> bool:
    """True for a list, and for an object that goes on after its first line."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"["):
        return True
    lines = [line.rstrip() for line in text.split(b"\n") if line.strip()]
    if len(lines) < 2 or any(line.startswith(b'{"') for line in lines[1:]):
        return False
    return not lines[0].endswith(b"}") or lines[0].count(b"{") > lines[0].count(b"}")
