"""OTLP files that tell half: log records whose spans came, or will come, in another import, and the other way round.

What such a file holds goes into the store as it is, beside what a receiver takes, and runs are put together from all of it
there. A file that tells everything becomes runs at once, which costs less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ... import otlp as raw
from ...tape import Record
from ..context import Context, Source
from . import reader
from .dialects import Found
from .wire import RawEvent, RawSpan

MAX_ITEMS = 50_000


def told_in_halves(
    source: Source, spans: Sequence[RawSpan], logs: Sequence[RawEvent], found: Found, context: Context
) -> Iterator[Record] | None:
    """The spans and log records as records of their own, where the store should put them together; None where not.

    No records where the store has all of it from a file that told more.
    """
    if not 0 < len(spans) + len(logs) <= MAX_ITEMS:
        return None
    traces = traces_of(spans, logs)
    waiting, told = context.traced(traces)
    if not waiting:
        if not _half(spans, logs, found):
            return None
        if told:  # the whole came before: a half of it has nothing to add, and apart would be a run beside it
            return iter(()) if {c.trace_id for c in found.calls} <= {*told} else None
    last = max((at for at in (*(s.end for s in spans), *(e.at for e in logs)) if at is not None), default=None)
    return _raw(reader.requests(source), last)


def traces_of(spans: Sequence[RawSpan], logs: Sequence[RawEvent]) -> set[str]:
    """The trace ids in it."""
    return {t for t in (*(s.trace for s in spans), *(e.trace for e in logs)) if t}


def _half(spans: Sequence[RawSpan], logs: Sequence[RawEvent], found: Found) -> bool:
    if not spans:
        return any(e.trace and e.span for e in logs)
    return not logs and bool(found.calls) and all(not c.messages and c.response is None for c in found.calls)


def _raw(requests: Iterator[Any], at: int | None) -> Iterator[Record]:
    """``at``: the last word in it, so that a run of last week is not taken for one that goes on."""
    for request in requests:
        if isinstance(request, dict):
            for signal in raw.SIGNALS:
                yield from raw.records(signal, request, at=at)
